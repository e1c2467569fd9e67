"""Tables of results from files and boards: a row per method, a row per result, or as the paper's authors keep it."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuco_core.errors import DataError, UnknownIdError
from neuco_core.fetch.fetch import fetch
from neuco_core.plugins.catalog import load_metric
from neuco_core.specs import Remote
from neuco_extensions.predict.table import Facts, ScoreTable

if TYPE_CHECKING:
    from neuco_core.boards.model import Ranked

LONG = ("method", "task", "score")
SIZES = ("dim", "n_parameters")
# The table of the capabilities-encoding paper has no licence, so it is fetched from its authors and verified.
COMMIT = "52057bd9224fb36f9aed0ce3be8a6e9220a71703"
ADDRESS = "https://raw.githubusercontent.com/pierreadorni/capabilities-encoding"
# File → sha256 and size.
FILES = {
    "data": ("eab0a98739f85202bf2f81a298bef03ebe6a58e2b90351ee1d3be280a58b04c6", 24021),
    "models": ("4213e9b5d9f4b5a199d4a65204985d62e2535ae22d5ea539c0458cb3e360c171", 2816),
    "tasks": ("2d730c4b17c0a2169c2a3aa758673b9bc018c985d883ac01ff8d9ae975674eeb", 2137),
}
REMOTES = {
    name: Remote(f"{ADDRESS}/{COMMIT}/data/{name}.csv", sha256=sha256, size=size)
    for name, (sha256, size) in FILES.items()
}
FEW_LABELS = re.compile(r"samples|(?<![\d.,])(?:[0-9](?:[.,]\d+)?|1[0-9]|20) ?%")


def read_table(path: Path) -> ScoreTable:
    """A CSV with the columns method, task and score, or with a row per method and a column per task."""
    rows = _rows(path)
    header = [name.strip() for name in rows[0]]
    if header[:1] == ["dataset"] and len(rows) > 1 and rows[1][:1] == ["variant"]:
        return read_paper(path, path.with_name("models.csv"), path.with_name("tasks.csv"))
    if set(LONG) <= set(header):
        method, task, score = (header.index(name) for name in LONG)
        return _table(path, [(n, row[method], row[task], row[score]) for n, row in enumerate(rows[1:], 2)])
    if header[0] == "id" and all(map(str.isdigit, header[1:])):
        hint = "Score it first: `neuco score --embeddings FILE`"
        raise DataError("this file holds embeddings, not scores", where=path, hint=hint)
    if len(header) < 2:
        raise DataError("no tasks", where=path, expected="a column per task, or " + ", ".join(LONG), got=header)
    cells = [(n, row[0], header[at], row[at]) for n, row in enumerate(rows[1:], 2) for at in range(1, len(header))]
    return _table(path, cells, tuple(header[1:]))


def read_paper(path: Path, models: Path, kinds_of_tasks: Path) -> ScoreTable:
    """Two rows of header (datasets, what was measured on them), decimal commas; facts, where those files are there."""
    rows = _rows(path)
    datasets, last = [], ""
    for name in rows[0][1:]:
        last = name.strip() or last
        datasets.append(last)
    variants = [name.strip() for name in rows[1][1:]]
    named = zip(datasets, variants, strict=True)
    tasks = tuple(f"{dataset}: {variant}" if variant else dataset for dataset, variant in named)
    cells = [(n, row[0], tasks[at], row[at + 1]) for n, row in enumerate(rows[2:], 3) for at in range(len(tasks))]
    kinds = {row[0].strip(): row[1].strip() for row in _facts(kinds_of_tasks) if len(row) > 1}
    facts: dict[str, dict[str, str | float]] = {}
    for task, dataset, variant in zip(tasks, datasets, variants, strict=True):
        facts[task] = {"dataset": dataset, "labels": "few" if FEW_LABELS.search(variant) else "many"}
        if kinds.get(dataset):
            facts[task]["kind"] = kinds[dataset]
    return _table(path, cells, tasks, _model_facts(_facts(models)), facts)


def fetch_paper() -> ScoreTable:
    """All 85 methods and 160 tasks, with what is known about both."""
    data, models, tasks = (fetch(REMOTES[name]) for name in FILES)
    return read_paper(data, models, tasks)


def from_board(board: Ranked) -> ScoreTable:
    """The scores of a board: the first column of its cells, turned where lower is better."""
    tasks = tuple(task.id for task in board.tasks)
    rows = [row for row in board.rows if any(board.score(row, task) is not None for task in tasks)]
    values = np.full((len(rows), len(tasks)), np.nan)
    for r, row in enumerate(rows):
        for c, task in enumerate(board.tasks):
            score = board.score(row, task.id)
            if score is not None and row.cells[task.id].status == "ok":
                values[r, c] = float(score) if task.greater_is_better else -float(score)
    facts = {task.id: {"dataset": task.dataset, "kind": task.kind} for task in board.tasks}
    allowed = {task.id: allowed_by(task.metric) for task in board.tasks}
    of_methods: dict[str, dict[str, str | float]] = {}
    for row in board.rows:
        # What is known of a method before it is run: texts as they are, sizes as logarithms; not what it costs.
        of_methods[row.method] = {}
        for key, value in {"dim": row.values.get("dim"), **row.facts}.items():
            if key == "trust":  # of its scores, not of the method
                continue
            if isinstance(value, str):
                of_methods[row.method][key] = value
            elif key in SIZES and value is not None:
                of_methods[row.method][key] = math.log1p(value)
    return ScoreTable(tuple(row.method for row in rows), tasks, values, of_methods, facts, allowed=allowed)


def allowed_by(name: str) -> tuple[float, float]:
    """The least and the largest score of a metric, if it is registered here; turned where lower is better."""
    try:
        metric = load_metric(name)
    except UnknownIdError:
        return -math.inf, math.inf
    low = -math.inf if metric.lower is None else metric.lower
    high = math.inf if metric.upper is None else metric.upper
    return (low, high) if metric.greater_is_better else (-high, -low)


def _rows(path: Path) -> list[list[str]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        rows = [row for row in csv.reader(lines) if any(map(str.strip, row))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot be read as CSV: {error}", where=path) from error
    if rows and len(rows[0]) == 1 and ";" in rows[0][0]:
        raise DataError("columns are separated by semicolons", where=path, expected="commas", got=rows[0][0])
    if len(rows) < 2:
        raise DataError("no results", where=path, expected="a header and at least one row", got=f"{len(rows)} rows")
    ragged = [number for number, row in enumerate(rows, 1) if len(row) != len(rows[0])]
    if ragged:
        got = f"row {ragged[0]} has {len(rows[ragged[0] - 1])} columns"
        raise DataError("rows of different lengths", where=path, expected=f"{len(rows[0])} columns", got=got)
    return rows


def _facts(path: Path) -> list[list[str]]:
    return _rows(path)[1:] if path.is_file() else []


def _table(
    path: Path,
    cells: Iterable[tuple[int, str, str, str]],
    tasks: tuple[str, ...] = (),
    method_facts: Facts | None = None,
    task_facts: Facts | None = None,
) -> ScoreTable:
    """Cells are (line, method, task, text); an empty text is an unknown score."""
    scores: dict[tuple[str, str], float] = {}
    methods: dict[str, None] = {}
    seen: dict[str, None] = dict.fromkeys(tasks)
    for line, method, task, text in cells:
        key = method.strip(), task.strip()
        if not all(key):
            raise DataError("a method or task without a name", where=path, got=f"row {line}")
        methods[key[0]] = seen[key[1]] = None
        text = text.strip()
        if text.lower() in ("", "nan", "-", "–"):
            continue
        if key in scores:
            raise DataError(f"{key[0]!r} has two scores on {key[1]!r}", where=path, got=f"row {line}")
        try:  # decimal commas are understood, thousands are not
            scores[key] = float(text.replace(",", ".") if text.count(",") == 1 and "." not in text else text)
        except ValueError:
            scores[key] = math.nan
        if not math.isfinite(scores[key]):
            got = f"{text!r} in row {line}, {key[1]!r}"
            raise DataError("not a number", where=path, expected="a score, or nothing", got=got)
    values = np.array([[scores.get((method, task), np.nan) for task in seen] for method in methods], float)
    return ScoreTable(tuple(methods), tuple(seen), values, method_facts or {}, task_facts or {})


def _model_facts(rows: list[list[str]]) -> Facts:
    """Architecture, logarithm of the size in millions of parameters, and the year of publication with its part."""
    by_model: dict[str, dict[str, str | float]] = {}
    for row in rows:
        name, architecture, size, date = (row[at].strip() if at < len(row) else "" for at in range(4))
        facts: dict[str, str | float] = {"architecture": architecture} if architecture else {}
        if size:
            facts["size"] = math.log(float(size.replace(",", ".")))
        parts = date.split("/")
        if len(parts) == 3:
            facts["date"] = int(parts[2]) + (int(parts[1]) - 1) / 12
        if name:
            by_model[name] = facts
    return by_model
