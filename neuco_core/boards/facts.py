"""What a board shows besides scores: facts of methods, what they cost, and values for empty cells. None changes a rank.

Facts are declared by plugins, cost is measured and comes from records, columns behind those of the kind and values for
empty cells come from whoever registers them: the latter are marked, and shown on request.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from neuco_core.boards.cells import Cells
from neuco_core.boards.model import (
    RANDOM,
    TRUST,
    Board,
    BoardRow,
    Column,
    ExtraCells,
    Interval,
    Number,
    number,
    read_part,
    rounded,
)
from neuco_core.env import layers
from neuco_core.errors import DataError, NeucoError
from neuco_core.plugins.catalog import catalog, load_dataset, load_method, load_task
from neuco_core.protocol import load_protocol
from neuco_core.records.model import Record
from neuco_core.scoring.splits import cut_groups
from neuco_core.specs import FITTED, CellSource, ColumnSource, Dataset, Method, resolve, versioned_id

MACHINE, TRUSTED = "machine_spread", "trust"
CONFIRMED = "confirmed.json"  # in the registry: by label of a method, where its model's author has said so
COLUMNS = (
    Column("pretraining", "Trained on", "Data that the method was trained on before it was scored", format="choice"),
    Column("n_parameters", "Parameters", "Numbers that were learned and are used to encode", "lower", 0, "integer"),
    Column("preprocessing", "Preprocessing", "What happens to an image before it is encoded", format="text"),
    Column(TRUSTED, "How it came about", "How the scores came about, in the words of their marks", format="choice"),
    Column(
        MACHINE,
        "Between machines",
        "How far a mean score may move on another machine, where the method is trained anew",
        "lower",
    ),
    Column(
        "encode_ms",
        "ms per sample",
        "Milliseconds to encode a sample, reading included, where it was scored; of several datasets the slowest",
        "lower",
        1,
    ),
    Column(
        "encode_mb",
        "Memory, MB",
        "Peak memory of the process that encoded; of several datasets the largest",
        "lower",
        0,
    ),
)
SELF = "the encoded samples"
log = logging.getLogger(__name__)


class EncodingCost(msgspec.Struct, frozen=True):
    """What making the embeddings of a dataset took, as the provenance of a record has it."""

    samples: int
    seconds: float
    peak_memory: int | None = None


def read_confirmed(registry: Path) -> dict[str, str]:
    """The methods whose model's author has confirmed them, by label (``x@2``): a maintainer's list, on main alone."""
    confirmed: dict[str, str] = {}
    for layer in reversed(layers(registry)):
        if (layer / CONFIRMED).exists():
            confirmed |= read_part(layer / CONFIRMED, dict[str, str], "a list of confirmed methods")
    return confirmed


def with_facts(board: Board, records: Iterable[Record], confirmed: Collection[str] = ()) -> Board:
    """The board with the facts of its methods, as far as they are registered here, and with overlaps named.

    ``confirmed`` are labels of methods: what CI has run again of these counts as confirmed.
    """
    board = replace(board, rows=tuple(_with_trust(row, confirmed) for row in board.rows))
    costs: dict[str, list[EncodingCost]] = {}
    for record in records:
        with suppress(msgspec.ValidationError, KeyError):  # provenance is free text, and anybody's
            costs.setdefault(record.method, []).append(msgspec.convert(record.provenance["encoding"], EncodingCost))
    datasets: dict[str, Dataset] = {}
    for name in sorted({task.dataset for task in board.tasks}):
        dataset = or_none(load_dataset, name)
        if dataset is not None:
            datasets[name] = dataset
    rows = tuple(_row(row, datasets, costs.get(row.method, ())) for row in board.rows)
    # A kind of somebody else's may have a column of the same name; then that one is shown.
    keys = {key for row in rows for key in row.facts} - {column.key for column in board.columns}
    notes = [*board.notes]
    spreads = {row.method: row.facts[MACHINE] for row in rows if MACHINE in row.facts and row.has_values}
    if spreads:
        methods = ", ".join(f"{name} by up to {spread:g}" for name, spread in spreads.items())
        notes.append(f"Scores that vary between CPUs, since the method is trained when it runs: {methods}.")
    for row in board.ranked:
        method = or_none(load_method, row.method)
        if method is not None and method.uses_positions:
            notes.append(
                f"{row.method} knows only where a sample lies: what scores no higher may know the place alone."
            )
    protocol = or_none(load_protocol, board.suite.protocol) if board.suite else None
    tasks = [or_none(load_task, f"{task.id}@{task.version}") for task in board.tasks]
    for message in cut_groups((task, protocol) for task in tasks if task and protocol):
        notes.append(f"{message[0].upper()}{message[1:]}.")
    rows = tuple(replace(row, facts={key: row.facts[key] for key in row.facts if key in keys}) for row in rows)
    fact_columns = tuple(column for column in COLUMNS if column.key in keys)
    return replace(board, rows=rows, fact_columns=fact_columns, notes=tuple(notes))


def _with_trust(row: BoardRow, confirmed: Collection[str]) -> BoardRow:
    if versioned_id(row.method, row.version) not in confirmed:
        return row
    again = {task: replace(cell, trust="confirmed") for task, cell in row.cells.items() if cell.trust == "re-run"}
    return replace(row, cells={**row.cells, **again})


def _row(row: BoardRow, datasets: Mapping[str, Dataset], costs: Iterable[EncodingCost]) -> BoardRow:
    method: Method | None = or_none(load_method, f"{row.method}@{row.version}")
    facts: dict[str, str | Number] = dict(declared(method)) if method else {}
    marks = {cell.trust for cell in row.cells.values()}
    if words := [word for trust, (_, word) in TRUST.items() if trust in marks]:
        facts[TRUSTED] = ", ".join(words)
    measured = [cost for cost in costs if cost.samples > 0]
    if measured:
        facts["encode_ms"] = round(max(1000 * cost.seconds / cost.samples for cost in measured), 3)
    memory = [cost.peak_memory for cost in measured if cost.peak_memory]
    if memory:
        facts["encode_mb"] = round(max(memory) / 1e6)
    overlaps = {name: overlap(method, dataset) for name, dataset in datasets.items()} if method else {}
    return replace(row, facts=facts, overlaps={name: meets for name, meets in overlaps.items() if meets})


def declared(method: Method) -> Iterable[tuple[str, str | Number]]:
    """What a method says of itself, by key of ``COLUMNS``."""
    if method.pretraining is not None:
        yield "pretraining", ", ".join(SELF if name == FITTED else name for name in method.pretraining) or "nothing"
    if method.n_parameters is not None:
        yield "n_parameters", method.n_parameters
    if method.preprocessing:
        yield "preprocessing", method.preprocessing
    if method.machine_spread:
        yield MACHINE, method.machine_spread


def overlap(method: Method, dataset: Dataset) -> str:
    """How the data that a method was trained on meets the samples of a dataset, in words; "" if it is not known to."""
    names = {_plain(name) for name in (dataset.id, dataset.title) if name}
    related = {_plain(name) for name in dataset.related}
    for name in method.pretraining or ():
        if name == FITTED:
            return "fitted on these samples, without their labels"
        if _plain(name) in names:
            return f"trained on {name}: these very samples"
        if _plain(name) in related:
            return f"trained on {name}, which may share samples with this dataset"
    return ""


def _plain(name: str) -> str:
    """A name as people spell it in several ways: SSL4EO-S12, ssl4eo_s12."""
    return re.sub(r"[\W_]+", "-", name.casefold()).strip("-")


def or_none(load: Any, name: str) -> Any:
    """What ``load`` gives, or None: what is not registered here, or is broken, is shown by its id alone."""
    with suppress(NeucoError):
        return load(name)
    return None


def with_columns(board: Board, cells: Mapping[str, Cells]) -> Board:
    """The board with the columns of all sources behind its own; one that fails harms neither it nor the others."""
    for source in catalog().all(ColumnSource).values():
        try:
            for column, values, intervals in resolve(source.columns)(board, cells):
                board = _with_column(board, column, rounded(values), intervals)
        except Exception as error:  # it is anybody's code
            log.warning("%s: no column from %s: %s: %s", board.about.id, source.id, type(error).__name__, error)
    return board


def _with_column(board: Board, column: Column, values: Mapping[str, Any], intervals: Mapping[str, Any]) -> Board:
    rows = []
    for row in board.rows:
        if row.method in values:
            row = replace(row, values={**row.values, column.key: values[row.method]})
        if row.method in intervals:
            interval = Interval(*(number(end, RANDOM) for end in intervals[row.method]))
            row = replace(row, intervals={**row.intervals, column.key: interval})
        rows.append(row)
    return replace(board, columns=(*board.columns, column), rows=tuple(rows))


def extra_cells(board: Board) -> ExtraCells | None:
    """Of the first source that has any. One that fails harms neither the board nor the other sources."""
    for source in catalog().all(CellSource).values():
        try:
            extra: ExtraCells | None = resolve(source.fill)(board)
        except DataError as error:
            log.warning("%s: no extra cells from %s: %s", board.about.id, source.id, error)
            continue
        if extra is not None and extra.cells:
            return extra
    return None


def filled(board: Board, extra: ExtraCells) -> Board:
    """The board with these in its empty cells; its ranks and all its other values are as they were."""
    rows = []
    for row in board.rows:
        of_row = {task: cell for (method, task), cell in extra.cells.items() if method == row.method}
        rows.append(replace(row, cells={**row.cells, **of_row}))
    return replace(board, rows=tuple(rows))
