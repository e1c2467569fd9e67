"""From the leaderboard's folder to a submission of the registry and back; nothing that it reads is lost."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from neuco_core.errors import DataError
from neuco_core.files import write_atomic
from neuco_core.text import counted
from neuco_extensions.geobench.facts import COLUMNS, INFO, INTEGER, MODELS, TABLE, TEXT
from neuco_extensions.geobench.folder import SubmissionFolder, grouped, read_folder
from neuco_extensions.geobench.submission import NAMES, GeobenchSubmission, Model, Runs, SubmissionInfo
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
# Our names of what all runs of a backbone on a dataset share, and theirs.
THEIRS = {"metric": "Metric", "partition": "partition name", "experiment": "experiment_name"}
SHARED = {name: THEIRS.get(name, name) for name in NAMES if name not in ("seeds", "scores")}


def from_folder(path: Path, name: str, *, title: str = "", source: str = "") -> GeobenchSubmission:
    """The submission in a folder, which must be without faults."""
    folder = read_folder(path)
    if faults := faults_of(folder):
        hint = f"Run `neuco geobench validate {path}`"
        raise DataError(f"the submission has {counted(len(faults), 'fault')}: {faults[0]}", where=path, hint=hint)
    runs = []
    for rows in grouped(folder.table or ()).values():
        shared = {ours: _value(theirs, rows[0].text(theirs)) for ours, theirs in SHARED.items()}
        seeds = tuple(_value("Seed", row.text("Seed")) for row in rows)
        runs.append(Runs(**shared, seeds=seeds, scores=tuple(float(row.text("test metric")) for row in rows)))
    return GeobenchSubmission(_about(folder, name, title, source), tuple(runs))


def _about(folder: SubmissionFolder, name: str, title: str, source: str) -> SubmissionInfo:
    info = folder.info or {}
    rows = folder.table or ()
    described = {
        entry["unique_backbone_key"]: Model(entry["model_display_name"], entry["model_size"])
        for entry in info["New model info"]
        if entry["unique_backbone_key"]
    }
    backbones = {row.text("backbone") for row in rows}
    models = {key: described.get(key) or Model(*MODELS[key]) for key in sorted(backbones)}
    texts = {ours: info[theirs] for ours, theirs in TEXTS.items()}
    tuning = rows[0].text("frozen_or_full_ft")
    try:
        return SubmissionInfo(id=name, title=title or name, source=source, tuning=tuning, models=models, **texts)  # type: ignore[arg-type]
    except ValueError as error:
        raise DataError(str(error), where=folder.path) from error


def _value(column: str, text: str) -> Any:
    """What a column holds; tables with a gap in a column of whole numbers have 10.0 for 10."""
    if COLUMNS[column] == TEXT:
        return text
    if COLUMNS[column] == INTEGER:
        if not text:
            return None
        return int(text) if text.lstrip("+-").isdigit() else int(float(text))
    return float(text)


def to_folder(submission: GeobenchSubmission, path: Path) -> Path:
    """Write the two files that the leaderboard takes."""
    if path.exists() and any(path.iterdir()):
        raise DataError("the folder is not empty", where=path, hint="Name a new folder")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    for runs in submission.runs:
        shared = {theirs: getattr(runs, ours) for ours, theirs in SHARED.items()}
        shared["frozen_or_full_ft"] = submission.about.tuning
        for seed, score in zip(runs.seeds, runs.scores, strict=True):
            writer.writerow({**shared, "Seed": seed, "test metric": score})  # csv writes repr(score)
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
