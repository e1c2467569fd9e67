"""Differences of methods, pair by pair: the very test of ``neuco compare``, made before the page is."""

from __future__ import annotations

import math
from collections.abc import Mapping

from neuco_core.boards.cells import Cell
from neuco_core.boards.model import rounded
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.scoring.compare import Comparison, holm, paired_test

MOST = 60  # methods: the pairs of 400 would take a minute and 50 MB
# A − B, the ends of its interval, p, and p by Holm's correction for all tasks of the pair.
Difference = tuple[float, float, float, float, float]


def many(source: BoardSource) -> bool:
    return len(source.board.shown) > MOST


def differences(source: BoardSource) -> dict[str, dict[str, list[Difference | None]]]:
    """By two methods, a list by task; ``None`` where the splits are not of the same samples."""
    found: dict[str, dict[str, list[Difference | None]]] = {}
    if source.cells is None or many(source):
        return found
    names = [row.method for row in source.board.shown]
    tasks = [task.id for task in source.board.tasks]
    cells = {name: [source.cells.cell(name, task) for task in tasks] for name in names}
    for place, a in enumerate(names):
        for b in names[place + 1 :]:
            own = _pair(cells, a, b)
            found.setdefault(a, {})[b] = own
            found.setdefault(b, {})[a] = [item and _turned(item) for item in own]
    return found


def _pair(cells: Mapping[str, list[Cell]], a: str, b: str) -> list[Difference | None]:
    tests = [_test(*both) for both in zip(cells[a], cells[b], strict=True)]
    adjusted = holm([test.p if test else math.nan for test in tests])
    return [
        _shortened(test, p) if test and math.isfinite(test.p) else None for test, p in zip(tests, adjusted, strict=True)
    ]


def _test(a: Cell, b: Cell) -> Comparison | None:
    if not a.scored or not b.scored or not a.splits or (len(a.splits), a.samples) != (len(b.splits), b.samples):
        return None
    first, second = ([math.nan if value is None else value for value in cell.splits] for cell in (a, b))
    return paired_test(first, second, a.test_to_train)


def _shortened(test: Comparison, p_holm: float) -> Difference:
    difference, low, high = (rounded(value, 6) for value in (test.difference, test.low, test.high))
    return difference, low, high, float(f"{test.p:.3g}"), float(f"{p_holm:.3g}")


def _turned(item: Difference) -> Difference:
    difference, low, high, p, p_holm = item
    return -difference, -high, -low, p, p_holm
