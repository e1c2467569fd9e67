"""From the leaderboard's folder to a submission of the registry and back; nothing that it reads is lost."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from neuco_core.errors import DataError
from neuco_core.files import write_atomic
from neuco_core.text import counted
from neuco_extensions.geobench.facts import COLUMNS, INFO, MODELS, TABLE
from neuco_extensions.geobench.folder import Folder, Row, grouped, read_folder
from neuco_extensions.geobench.submission import About, Model, Runs, Submission
from neuco_extensions.geobench.validate import faults_of

# Our names for the keys of their JSON file that are plain text.
TEXTS = {
    "paper": "Paper Link",
    "code": "Code Repository Link ",
    "license": "License",
    "trials": "Number of HPO trials",
    "notes": "Additional information about submission",
    "comments": "Comments on new models in submission",
}


def from_folder(path: Path, name: str, *, title: str = "", source: str = "") -> Submission:
    """The submission in a folder, which must be without faults."""
    folder = read_folder(path)
    if faults := faults_of(folder):
        hint = f"Run `neuco geobench validate {path}`"
        raise DataError(f"the submission has {counted(len(faults), 'fault')}: {faults[0]}", where=path, hint=hint)
    return Submission(_about(folder, name, title, source), tuple(_all_runs(folder.table or ())))


def _about(folder: Folder, name: str, title: str, source: str) -> About:
    info = folder.info or {}
    rows = folder.table or ()
    told = {
        entry["unique_backbone_key"]: Model(entry["model_display_name"], entry["model_size"])
        for entry in info["New model info"]
        if entry["unique_backbone_key"]
    }
    backbones = {row.text("backbone") for row in rows}
    models = {key: told.get(key) or Model(*MODELS[key]) for key in sorted(backbones)}
    texts = {ours: info[theirs] for ours, theirs in TEXTS.items()}
    tuning = rows[0].text("frozen_or_full_ft")
    try:
        return About(id=name, title=title or name, source=source, tuning=tuning, models=models, **texts)  # type: ignore[arg-type]
    except ValueError as error:
        raise DataError(str(error), where=folder.path) from error


def _all_runs(rows: Sequence[Row]) -> Iterable[Runs]:
    for (backbone, dataset), own in grouped(rows).items():
        first = own[0]
        patience = first.text("early_stop_patience")
        yield Runs(
            backbone=backbone,
            dataset=dataset,
            metric=first.text("Metric"),
            decoder=first.text("decoder"),
            lr=float(first.text("lr")),
            weight_decay=float(first.text("weight_decay")),
            batch_size=_whole(first.text("batch_size")),
            batch_size_selection=first.text("batch_size_selection"),
            n_trials=_whole(first.text("n_trials")),
            early_stop_patience=_whole(patience) if patience else None,
            data_percentages=_whole(first.text("data_percentages")),
            partition=first.text("partition name"),
            experiment=first.text("experiment_name"),
            seeds=tuple(_whole(row.text("Seed")) for row in own),
            scores=tuple(float(row.text("test metric")) for row in own),
        )


def _whole(text: str) -> int:
    """A whole number; tables with a gap in the column have 10.0 for 10."""
    return int(text) if text.lstrip("+-").isdigit() else int(float(text))


def to_folder(submission: Submission, path: Path) -> Path:
    """Write the two files that the leaderboard takes."""
    if path.exists() and any(path.iterdir()):
        raise DataError("the folder is not empty", where=path, hint="Name a new folder")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    for own in submission.runs:
        for seed, score in zip(own.seeds, own.scores, strict=True):
            writer.writerow(_row(submission.about.tuning, own, seed, score))
    about = submission.about
    models = [
        {"model_display_name": model.title, "model_size": model.size, "unique_backbone_key": backbone}
        for backbone, model in sorted(about.models.items())
        if MODELS.get(backbone) != (model.title, model.size)
    ]
    nothing = {"model_display_name": "", "model_size": "", "unique_backbone_key": ""}
    info = {theirs: getattr(about, ours) for ours, theirs in TEXTS.items()} | {"New model info": models or [nothing]}
    write_atomic(path / TABLE, text.getvalue().encode())
    write_atomic(path / INFO, (json.dumps(info, ensure_ascii=False, indent=2) + "\n").encode())
    return path


def _row(tuning: str, own: Runs, seed: int, score: float) -> dict[str, object]:
    return {
        "dataset": own.dataset,
        "Metric": own.metric,
        "experiment_name": own.experiment,
        "partition name": own.partition,
        "backbone": own.backbone,
        "decoder": own.decoder,
        "batch_size_selection": own.batch_size_selection,
        "frozen_or_full_ft": tuning,
        "early_stop_patience": "" if own.early_stop_patience is None else own.early_stop_patience,
        "n_trials": own.n_trials,
        "Seed": seed,
        "data_percentages": own.data_percentages,
        "batch_size": own.batch_size,
        "weight_decay": repr(own.weight_decay),
        "lr": repr(own.lr),
        "test metric": repr(score),
    }
