"""The board of a suite: a pure function of cells, a kind of board and its options."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from neuco_core.boards.cells import Cells, fold, from_records
from neuco_core.boards.model import Board, BoardSuite, Ranked, number, rounded
from neuco_core.errors import DataError, NeucoError, PluginError, UsageError
from neuco_core.files import digest
from neuco_core.plugins.catalog import load_board
from neuco_core.records.model import Record
from neuco_core.specs import BoardKind, Suite, resolve

LARGEST = 250_000  # cells of a board, methods × tasks: its file would come near the 64 MB that are read


class TooManyCellsError(DataError):
    """A suite whose board would be too large to be read."""


def build_board(
    records: Iterable[Record],
    suite: Suite,
    options: Mapping[str, Any] | None = None,
    *,
    stale: Callable[[Record], str | None] | None = None,
) -> Board:
    """The board of a suite from the records of all methods; ``options`` go before those of the suite."""
    about = BoardSuite(suite.id, suite.title, suite.version, suite.protocol, dict(suite.tasks))
    make_cells = load_board(suite.kind).cells
    cells = (resolve(make_cells) if make_cells else from_records)(records, suite, stale)
    size = len(cells.methods) * len(cells.tasks)
    if size > LARGEST:
        hint = "Make a suite of fewer tasks, or rank fewer methods"
        expected = f"at most {LARGEST}"
        what = "too many cells for a board"
        raise TooManyCellsError(what, where=f"suite {suite.id}", expected=expected, got=size, hint=hint)
    return rank_cells(cells, suite.kind, {**suite.options, **(options or {})}, suite=about)


def rank_cells(cells: Cells, kind: str, options: Mapping[str, Any] | None = None, **about: Any) -> Board:
    """The board of cells; what a kind gives is checked like a file, since a kind may be anybody's.

    A kind never sees copies of methods: their rows come last, and say whose copies they are.
    """
    spec = load_board(kind)
    chosen = _options(spec, options or {})
    states = sorted([m, t, c.fingerprint, c.status, number(c.q)] for (m, t), c in cells.cells.items())
    distinct, copies = fold(cells)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what a kind prints must not end up in our JSON
            values = rounded(_plain(resolve(spec.rank)(distinct, **chosen)))
        values["rows"] = [*values["rows"], *_folded(cells, copies, values["rows"])]
        values["tasks"] = values["tasks"] or msgspec.to_builtins(cells.tasks)
        more = msgspec.to_builtins({"kind": kind, "options": chosen, "cells": digest(states), **about})
        return msgspec.convert(values | more, Board)
    except NeucoError:
        raise
    except (Exception, SystemExit) as error:
        what = f"board kind {kind!r} failed: {type(error).__name__}: {error}"
        raise PluginError(what, where=spec.origin) from error


def _folded(cells: Cells, copies: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of copies: what stands in the cells of the method that they are copies of, with their own records."""
    cells_by_method = {row["method"]: row["cells"] for row in rows}
    for method in cells.methods:
        if method.id in copies:
            row = msgspec.to_builtins(method.row(None, {}, same_as=copies[method.id]))
            shown = cells_by_method.get(copies[method.id], {})
            for task, cell in shown.items():
                own = cells.cell(method.id, task)
                row["cells"][task] = cell | {"fingerprint": own.fingerprint[:16], "trust": own.trust}
            yield row


def _plain(ranked: object) -> Any:
    """What a kind gives, as JSON values; it may well have computed with numbers of numpy."""
    if not isinstance(ranked, Ranked):
        raise TypeError(f"it gave a {type(ranked).__name__}, not a Ranked")
    return msgspec.to_builtins(ranked, enc_hook=lambda value: value.item())


def _options(kind: BoardKind, values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a kind, as far as none is given its defaults; a text, as of a command line, may be a number."""
    options = dict(kind.options)
    for name, value in values.items():
        if name not in options:
            names = ", ".join(options) or "none"
            raise UsageError(f"board kind {kind.id!r} has no option {name!r}", expected=names)
        wanted = type(options[name])
        try:
            options[name] = msgspec.convert(value, wanted, strict=not isinstance(value, str))
        except msgspec.ValidationError as error:
            where = f"board kind {kind.id}"
            raise UsageError(f"bad {name}", where=where, expected=wanted.__name__, got=repr(value)) from error
    return options
