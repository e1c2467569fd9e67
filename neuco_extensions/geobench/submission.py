"""A submission as values, and as it lies in the registry: ``geobench/<id>/submission.json`` and ``runs.csv``.

``runs.csv`` has a line for each backbone and dataset: what was found by the search, then the seeds and their scores.
That is all that a folder for the leaderboard holds, in a sixth of its size.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import msgspec

from neuco_core._validate import ID
from neuco_core.errors import DataError
from neuco_core.files import read_limited, write_atomic
from neuco_core.jsonio import dump
from neuco_core.paths import layers

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
    seeds: tuple[int, ...] = field(default=())
    scores: tuple[float, ...] = field(default=())


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a backbone is shown. ``size`` is as people write it: 300M."""

    title: str
    size: str = ""


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
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
class Submission:
    about: About
    runs: tuple[Runs, ...]

    @property
    def backbones(self) -> tuple[str, ...]:
        return tuple(sorted({own.backbone for own in self.runs}))

    def scores(self) -> dict[tuple[str, str], tuple[float, ...]]:
        """By backbone and dataset."""
        return {(own.backbone, own.dataset): own.scores for own in self.runs}


NAMES = tuple(f.name for f in fields(Runs))


def submissions_dir(registry: Path) -> Path:
    return registry / "geobench"


def write_submission(registry: Path, submission: Submission) -> Path:
    """Put a submission into the registry; the same one again writes the same bytes."""
    folder = submissions_dir(registry) / submission.about.id
    write_atomic(folder / RUNS, _table(submission.runs))
    write_atomic(folder / ABOUT, dump(msgspec.to_builtins(submission.about)))
    return folder


def _table(runs: Iterable[Runs]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(NAMES)
    for own in sorted(runs, key=lambda own: (own.backbone, own.dataset)):
        writer.writerow(["" if (value := getattr(own, name)) is None else _text(value) for name in NAMES])
    return text.getvalue().encode()


def _text(value: Any) -> str:
    return " ".join(map(repr, value)) if isinstance(value, tuple) else str(value)


def read_submission(folder: Path) -> Submission:
    """Read a submission of the registry strictly."""
    try:
        about = msgspec.json.decode(read_limited(folder / ABOUT, LARGEST), type=About)
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
    _unique(runs, folder / RUNS)
    return Submission(about, runs)


def _runs(cells: Sequence[str], path: Path, line: int) -> Runs:
    types = Runs.__dataclass_fields__
    if len(cells) != len(NAMES):
        raise DataError(f"line {line}: wrong number of fields", where=path, expected=len(NAMES), got=len(cells))
    try:
        values = {name: _value(str(types[name].type), text) for name, text in zip(NAMES, cells, strict=True)}
        own = Runs(**values)
    except ValueError as error:
        raise DataError(f"line {line}: {error}", where=path) from error
    if not all(map(math.isfinite, (*own.scores, own.lr, own.weight_decay))):
        raise DataError(f"line {line}: non-finite values", where=path)
    if len(own.scores) > MOST_RUNS:
        raise DataError(f"line {line}: too many runs", where=path, expected=f"at most {MOST_RUNS}", got=len(own.scores))
    if not own.scores or len(own.scores) != len(own.seeds):
        expected = "a score for each seed"
        raise DataError(f"line {line}: seeds and scores differ", where=path, expected=expected, got=len(own.scores))
    return own


def _value(kind: str, text: str) -> Any:
    if kind.startswith("tuple"):
        one = int if "int" in kind else float
        return tuple(one(word) for word in text.split())
    if kind == "int | None" and not text:
        return None
    return {"str": str, "float": float}.get(kind, int)(text)


def _unique(runs: Sequence[Runs], path: Path) -> None:
    for key, count in Counter((own.backbone, own.dataset) for own in runs).items():
        if count > 1:
            raise DataError(f"{key[0]} on {key[1]} is there twice", where=path, hint="Keep one of the lines")


def list_submissions(registry: Path) -> list[Submission]:
    """All submissions of a registry, and of those that lie below it."""
    found: dict[str, Path] = {}
    for layer in reversed(layers(registry)):
        found |= {path.parent.name: path.parent for path in submissions_dir(layer).glob(f"*/{ABOUT}")}
    return [read_submission(found[name]) for name in sorted(found)]
