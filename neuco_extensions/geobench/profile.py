"""The profile of a method over the capabilities of a board, as a tab of the board's page and on its own page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from neuco_core.boards.formatting import axes
from neuco_core.boards.model import Board, BoardRow
from neuco_core.site.figures import MOST, ends, num, places
from neuco_core.site.page_data import PageData

TICKS = 5  # at most
MARKS = "Bars are intervals, grey dots are the other methods."


def profiles_of_board(page: PageData) -> dict[str, Any] | None:
    """Of the first two methods; a reader may choose others."""
    chosen = [row.method for row in page.board.ranked[:2]]
    if not chosen or not axes(page.board):
        return None
    note = f"Choose a method, or two to compare; methods ticked in the ranking are chosen. {MARKS}"
    return {"profiles": Profile(page.board, chosen), "chosen": chosen, "note": note, "choose": True}


def profile_of_method(page: PageData, method: str) -> dict[str, Any] | None:
    row = next(row for row in page.board.rows if row.method == method)
    if not any(column.key in row.values for column in axes(page.board)):
        return None
    note = f"Its scores on each column. {MARKS}"
    return {"profiles": Profile(page.board, [method]), "chosen": [method], "note": note, "choose": False}


@dataclass(frozen=True)
class Dot:
    """A value of a method on a column of a profile: its place, the ends of its interval, and the dot before it."""

    x: str
    y: int
    ends: tuple[str, ...]
    label: str
    before: Dot | None


class Profile:
    """Methods over the columns that have rankings of their own: dots with intervals, the others in grey behind them."""

    TOP, LINE, BELOW = 64, 46, 31  # pixels: above the first column, from one to the next, from its top to its dots

    def __init__(self, board: Board, chosen: Sequence[str]) -> None:
        self.columns = axes(board)
        keys = [column.key for column in self.columns]
        drawn = [row for row in board.rows if not row.same_as and any(row.values.get(key) is not None for key in keys)]
        rows = [row for index, row in enumerate(drawn) if index < MOST or row.method in chosen]
        order = {method: index for index, method in enumerate(chosen)}
        self.rows = sorted(rows, key=lambda row: order.get(row.method, -1))  # the chosen lie on top
        numbers = [value for row in rows for key in keys if isinstance(value := row.values.get(key), int | float)]
        numbers += [end for row in rows for key in keys for end in ends(row.intervals.get(key)) or ()]
        step = _round_step(max(numbers) - min(numbers))
        low, high = math.floor(min(numbers) / step) * step, math.ceil(max(numbers) / step) * step
        self.x = places(low, high, 1, 70)
        self.ticks = [low + k * step for k in range(round((high - low) / step) + 1)]
        self.height = self.TOP + self.LINE * len(self.columns)

    def dots(self, row: BoardRow) -> Iterator[Dot]:
        before = None
        for k, column in enumerate(self.columns):
            value, interval = row.values.get(column.key), ends(row.intervals.get(column.key))
            if isinstance(value, int | float):
                label = num(value, 2) + (f" ({num(interval[0], 2)}–{num(interval[1], 2)})" if interval else "")
                y = self.TOP + k * self.LINE + self.BELOW
                before = Dot(self.x(value), y, tuple(map(self.x, interval or ())), label, before)
                yield before
            else:
                before = None


def _round_step(span: float) -> float:
    """From one tick to the next: a round number."""
    rough = span / TICKS or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= rough)
