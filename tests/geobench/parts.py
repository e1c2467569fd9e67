"""A whole, faultless submission to spoil."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from neuco_core.boards.published import Published
from neuco_extensions.geobench.command import geobench
from neuco_extensions.geobench.facts import CAPABILITIES, COLUMNS, DATASETS, INFO, TABLE
from neuco_extensions.geobench.published import of_submissions
from neuco_extensions.geobench.submission import GeobenchSubmission, list_submissions

Rows = list[dict[str, str]]
Info = dict[str, Any]


def good_rows(datasets: tuple[str, ...] = CAPABILITIES["Classification"]) -> Rows:
    """Two backbones on the datasets of one capability, five seeds each."""
    return [
        {
            "dataset": dataset,
            "Metric": DATASETS[dataset],
            "experiment_name": f"trial_{backbone}",
            "partition name": "100%",
            "backbone": backbone,
            "decoder": "UNet",
            "batch_size_selection": "HPO",
            "frozen_or_full_ft": "frozen",
            "early_stop_patience": "10.0",
            "n_trials": "16",
            "Seed": str(seed),
            "data_percentages": "100",
            "batch_size": "32",
            "weight_decay": "0.01",
            "lr": "0.0003",
            "test metric": repr(0.5 + 0.01 * seed + 0.1 * (backbone == "resnet50")),
        }
        for backbone in ("resnet50", "terramind_v1_base")
        for dataset in datasets
        for seed in range(5)
    ]


def good_info() -> Info:
    return {
        "Paper Link": "N/A",
        "Code Repository Link ": "N/A",
        "License": "MIT",
        "Number of HPO trials": "16",
        "Additional information about submission": "A trial",
        "Comments on new models in submission": "N/A",
        "New model info": [{"model_display_name": "", "model_size": "", "unique_backbone_key": ""}],
    }


def write(
    folder: Path, rows: Rows | None = None, info: object = None, columns: tuple[str, ...] = tuple(COLUMNS)
) -> Path:
    """A folder as the leaderboard takes it; without faults unless told otherwise."""
    rows, info = good_rows() if rows is None else rows, good_info() if info is None else info
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / TABLE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (folder / INFO).write_text(json.dumps(info), encoding="utf-8")
    return folder


def spoiled(folder: Path, spoil: Callable[[Rows, Info], object]) -> Path:
    rows, info = good_rows(), good_info()
    spoil(rows, info)
    return write(folder, rows, info)


def renamed(name: str, display: str = "Mine") -> Callable[[Rows, Info], None]:
    """A backbone of this name, with an entry that tells what it is called."""

    def spoil(rows: Rows, info: Info) -> None:
        for row in rows:
            row["backbone"] = name if row["backbone"] == "resnet50" else row["backbone"]
        info["New model info"] = [{"model_display_name": display, "model_size": "1M", "unique_backbone_key": name}]

    return spoil


def board_of(registry: Path, *submissions: GeobenchSubmission) -> Published:
    """The board of a registry with further submissions."""
    board = of_submissions([*list_submissions(registry), *submissions])
    assert board is not None
    return board


def run(*words: object) -> Result:
    """``neuco geobench`` in this process."""
    return CliRunner().invoke(geobench, list(map(str, words)), catch_exceptions=False)
