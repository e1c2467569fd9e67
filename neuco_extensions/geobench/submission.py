"""A submission as values, and as it lies in the registry: ``geobench/<id>/submission.json`` and ``runs.csv``.

``runs.csv`` has a line for each backbone and dataset: what was found by the search, then the seeds and their scores.
That is all that a folder for the leaderboard holds, in a sixth of its size.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import msgspec

from neuco_core.env import layers, registry_dir
from neuco_core.errors import DataError, UnknownIdError
from neuco_core.fields import ID
from neuco_core.files import dump, read_limited, write_atomic
from neuco_core.text import counted
from neuco_extensions.geobench.facts import COLUMNS, INFO, INTEGER, MODELS, TABLE, TEXT
from neuco_extensions.geobench.folder import grouped, read_folder
from neuco_extensions.geobench.validate import faults_of

ABOUT, RUNS = "submission.json", "runs.csv"
LARGEST = 2_000_000  # bytes; 18 backbones on 19 datasets are 90,000
MOST_RUNS = 100  # of a backbone on a dataset


@dataclass(frozen=True)
class Runs:
    """A backbone on a dataset: one setting, repeated with several seeds. All scores are the better the higher."""

    backbone: str
    dataset: str
    metric: str
    decoder: str
    lr: float
    weight_decay: float
    batch_size: int
    batch_size_selection: str
    n_trials: int
    early_stop_patience: int | None
    data_percentages: int
    partition: str
    experiment: str
    seeds: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a backbone is shown. ``size`` is as people write it: 300M."""

    title: str
    size: str = ""


class SubmissionInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a submission says of itself. ``source`` is where its numbers come from, ``license`` is theirs."""

    schema: Literal[1] = 1
    id: str
    title: str
    source: str = ""
    license: str = ""
    tuning: Literal["frozen", "full_ft"]
    paper: str = ""
    code: str = ""
    trials: str = ""
    notes: str = ""
    comments: str = ""
    models: dict[str, Model] = {}

    def __post_init__(self) -> None:
        if not ID.fullmatch(self.id):
            raise ValueError(f"bad id {self.id!r}: lower-case letters, digits, - and _")


@dataclass(frozen=True)
class GeobenchSubmission:
    about: SubmissionInfo
    runs: tuple[Runs, ...]

    @property
    def backbones(self) -> tuple[str, ...]:
        return tuple(sorted({runs.backbone for runs in self.runs}))

    def scores(self) -> dict[tuple[str, str], tuple[float, ...]]:
        return {(runs.backbone, runs.dataset): runs.scores for runs in self.runs}


NAMES = tuple(f.name for f in fields(Runs))


def submissions_dir(registry: Path) -> Path:
    return registry / "geobench"


def write_submission(registry: Path, submission: GeobenchSubmission) -> Path:
    """Put a submission into the registry; the same one again writes the same bytes."""
    folder = submissions_dir(registry) / submission.about.id
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(NAMES)
    for runs in sorted(submission.runs, key=lambda runs: (runs.backbone, runs.dataset)):
        values = [getattr(runs, name) for name in NAMES]
        writer.writerow([" ".join(map(repr, value)) if isinstance(value, tuple) else value for value in values])
    write_atomic(folder / RUNS, text.getvalue().encode())
    write_atomic(folder / ABOUT, dump(msgspec.to_builtins(submission.about)))
    return folder


def read_submission(folder: Path) -> GeobenchSubmission:
    try:
        about = msgspec.json.decode(read_limited(folder / ABOUT, LARGEST), type=SubmissionInfo)
        rows = list(csv.reader(io.StringIO(read_limited(folder / RUNS, LARGEST).decode(), newline=""), strict=True))
    except (OSError, ValueError, csv.Error, msgspec.MsgspecError) as error:
        hint = f"A submission is {ABOUT} and {RUNS}: `neuco geobench import FOLDER` writes them"
        raise DataError(f"not a submission: {error}", where=folder, hint=hint) from error
    if about.id != folder.name:
        raise DataError("bad id", where=folder / ABOUT, expected="the name of the folder", got=repr(about.id))
    if not rows or tuple(rows[0]) != NAMES:
        raise DataError(
            "wrong header", where=folder / RUNS, expected=",".join(NAMES), got=",".join(rows[0] if rows else ())
        )
    runs = tuple(_runs(cells, folder / RUNS, line) for line, cells in enumerate(rows[1:], 2))
    for key, count in Counter((line.backbone, line.dataset) for line in runs).items():
        if count > 1:
            raise DataError(f"{key[0]} on {key[1]} is there twice", where=folder / RUNS, hint="Keep one of the lines")
    return GeobenchSubmission(about, runs)


def _runs(cells: Sequence[str], path: Path, line: int) -> Runs:
    if len(cells) != len(NAMES):
        raise DataError(f"line {line}: wrong number of fields", where=path, expected=len(NAMES), got=len(cells))
    values: dict[str, Any] = dict(zip(NAMES, cells, strict=True))
    values |= {"seeds": values["seeds"].split(), "scores": values["scores"].split()}
    values["early_stop_patience"] = values["early_stop_patience"] or None
    try:
        runs = msgspec.convert(values, Runs, strict=False)  # numbers are text in a table
    except msgspec.ValidationError as error:
        raise DataError(f"line {line}: {error}", where=path) from error
    if not all(map(math.isfinite, (*runs.scores, runs.lr, runs.weight_decay))):
        raise DataError(f"line {line}: non-finite values", where=path)
    if len(runs.scores) > MOST_RUNS:
        expected = f"at most {MOST_RUNS}"
        raise DataError(f"line {line}: too many runs", where=path, expected=expected, got=len(runs.scores))
    if not runs.scores or len(runs.scores) != len(runs.seeds):
        expected = "a score for each seed"
        raise DataError(f"line {line}: seeds and scores differ", where=path, expected=expected, got=len(runs.scores))
    return runs


def list_submissions(registry: Path) -> list[GeobenchSubmission]:
    """All submissions of a registry, and of those that lie below it."""
    folders: dict[str, Path] = {}
    for layer in reversed(layers(registry)):
        folders |= {path.parent.name: path.parent for path in submissions_dir(layer).glob(f"*/{ABOUT}")}
    return [read_submission(folders[name]) for name in sorted(folders)]


def load_submission(name: str) -> GeobenchSubmission:
    submissions = {item.about.id: item for item in list_submissions(registry_dir())}
    if name not in submissions:
        raise UnknownIdError("submission", name, submissions)
    return submissions[name]


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
        hint = f"Run `neuco geobench check {path}`"
        raise DataError(f"the submission has {counted(len(faults), 'fault')}: {faults[0]}", where=path, hint=hint)
    info, table = folder.info or {}, folder.table or ()
    runs = []
    for rows in grouped(table).values():
        shared = {ours: _value(theirs, rows[0].text(theirs)) for ours, theirs in SHARED.items()}
        seeds = tuple(_value("Seed", row.text("Seed")) for row in rows)
        runs.append(Runs(**shared, seeds=seeds, scores=tuple(float(row.text("test metric")) for row in rows)))
    described = {
        entry["unique_backbone_key"]: Model(entry["model_display_name"], entry["model_size"])
        for entry in info["New model info"]
        if entry["unique_backbone_key"]
    }
    models = {key: described.get(key) or Model(*MODELS[key]) for key in sorted({run.backbone for run in runs})}
    texts = {ours: info[theirs] for ours, theirs in TEXTS.items()}
    tuning = table[0].text("frozen_or_full_ft")
    try:
        about = SubmissionInfo(id=name, title=title or name, source=source, tuning=tuning, models=models, **texts)  # type: ignore[arg-type]
    except ValueError as error:
        raise DataError(str(error), where=path) from error
    return GeobenchSubmission(about, tuple(runs))


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
