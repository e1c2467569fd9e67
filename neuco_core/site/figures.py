"""What the figures of a page need besides a template: scales, places, words. ``figures.html`` draws them as SVG.

They are complete without scripts: scripts only highlight methods, hide those that the table hides, and save a figure as
a file. Places across are mostly shares of the width, so that text is as large on a phone as elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from neuco_core.boards.formatting import show
from neuco_core.boards.model import Board, BoardRow, Column, Interval
from neuco_core.text import clean, counted

MOST = 60  # methods, of which single lines are still told apart
HIGHLIGHTED = 3  # the first methods have a colour where the reader has chosen none


def text(value: object) -> Markup:
    """Escaped, and without characters that turn the reading order; what was made here stays as it is."""
    return value if isinstance(value, Markup) else escape(clean(str(value)))


def tag(element: str, /, *children: object, **attributes: object) -> Markup:
    """An element; ``class_`` is class, ``_`` is ``-``; an attribute that is None is left out. All text is escaped."""
    parts = [f"<{element}"]
    for key, value in attributes.items():
        if value is not None:
            parts.append(f' {key.rstrip("_").replace("_", "-")}="{text(value)}"')
    return Markup("".join([*parts, ">", *map(text, children), f"</{element}>"]))  # noqa: S704 (every part is escaped)


def shown(column: Column, value: Any) -> str:
    """A value as its column says, with a real minus sign."""
    label = show(column, value)
    return label.replace("-", "−") if isinstance(value, int | float | Interval) else label


def num(value: float | int | None, digits: int = 3) -> str:
    """A number for people: a real minus sign, a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def ends(interval: Interval | None) -> tuple[float, float] | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    return interval.low, interval.high


def places(low: float, high: float, left: float = 3.0, width: float = 94.0) -> Callable[[float], str]:
    """From values to places, as shares of a drawing's width."""
    return lambda value: f"{left + width * (value - low) / ((high - low) or 1):.2f}%"


def path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:.1f}" for x, y in points)


def rank_ticks(last: int, most: int = 13) -> list[int]:
    """From 1 to the last rank: all of them, or a few."""
    step = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, last) if last / n <= most)
    inner = (n for n in range(step, last, step) if 1 < n <= last - 0.7 * step)
    return list(dict.fromkeys([1, *inner, last]))


def hue(row: BoardRow) -> str:
    """The colour of a method before the reader has chosen any."""
    return f" c{row.rank - 1} d0" if row.rank and row.rank <= HIGHLIGHTED else ""


# --- scores of splits


@dataclass(frozen=True)
class Scale:
    """From scores to places on a strip. The edges leave room for the numbers at both ends."""

    low: float
    high: float
    width: float = 380.0
    edge: float = 56.0

    def x(self, value: float) -> float:
        """A place on the axis; what lies beyond it is at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low or 1.0)
        return self.edge + share * (self.width - 2 * self.edge)

    def side(self, value: float) -> int:
        """-1 if a value lies below the axis, 1 if above, 0 if it is on it."""
        return (value > self.high) - (value < self.low)

    def inside(self, values: Sequence[float]) -> list[float]:
        return [value for value in values if not self.side(value)]

    def dots(self, values: Sequence[float]) -> str:
        """A path of dots; those that lie on each other are easier to see when they are not on one line."""
        return "".join(f"M{self.x(value):.1f} {(8, 11, 14)[index % 3]}h0" for index, value in enumerate(values))

    def labels(self) -> tuple[str, str]:
        """Both ends of the axis in few characters: with three digits, or as many as tell them apart."""

        def short(value: float, digits: int) -> str:
            mantissa, _, power = f"{value:.{digits}g}".partition("e")
            return (f"{mantissa}e{int(power)}" if power else mantissa).replace("-", "−")

        digits = 3
        while digits < 17 and short(self.low, digits) == short(self.high, digits):
            digits += 1
        return short(self.low, digits), short(self.high, digits)

    def arrows(self, splits: Sequence[float], mean: float, interval: Interval | None) -> Iterator[tuple[int, int, str]]:
        """What lies beyond the axis: its side, a height in the drawing, and words with the values."""
        for side in (-1, 1):
            away = sorted(value for value in splits if self.side(value) == side)
            beyond = [end for end in ends(interval) or () if self.side(end) == side]
            if away:
                values = num(away[0]) if len(away) == 1 else f"{num(away[0])} to {num(away[-1])}"
                yield side, 15, f"{counted(len(away), 'split')} beyond the axis: {values}"
            if self.side(mean) == side:
                yield side, 26, f"mean beyond the axis: {num(mean)}"
            elif beyond:
                yield side, 26, f"interval beyond the axis, to {num(min(beyond) if side < 0 else max(beyond))}"


def bounds(values: Sequence[float], greater_is_better: bool, reach: float) -> tuple[float, float] | None:
    """The ends of the values, but for bad ones that are more than ``reach`` interquartile ranges from the quartile.

    One very bad method would otherwise press all others together. The good end is never cut.
    """
    sign = 1.0 if greater_is_better else -1.0
    ordered = sorted(sign * value for value in values)
    if not ordered:
        return None
    first, third = ordered[(len(ordered) + 1) // 4], ordered[(3 * len(ordered)) // 4]
    slack = reach * (third - first) or 0.1 * abs(third) or 1.0
    worst, best = sign * next(value for value in ordered if value >= first - slack), sign * ordered[-1]
    return (worst, best) if greater_is_better else (best, worst)


def scale(values: Sequence[float], greater_is_better: bool = True) -> Scale:
    """A scale for all these scores; for what lies far on the bad side of the rest there are arrows."""
    low, high = bounds(values, greater_is_better, 4.0) or (0.0, 1.0)
    pad = 0.02 * (high - low) or 0.05 * abs(low) or 0.05
    return Scale(low - pad, high + pad)


# --- methods of a board


def group_bars(board: Board) -> dict[str, list[tuple[bool, bool] | None]]:
    """By method, what stands in each lane of bars beside the names: whether a bar begins here, and whether it ends.

    A bar joins a group; groups overlap, and each gets the first lane that is free.
    """
    order = [row.method for row in board.ranked]
    bars: dict[str, list[tuple[bool, bool] | None]] = {method: [] for method in order}
    free: list[int] = []  # by lane, the last place that is taken
    for group in board.groups or ():
        ranked = [order.index(method) for method in group if method in bars]  # who is not ranked has no place
        if not ranked:
            continue
        first, last = min(ranked), max(ranked)
        lane = next((k for k, end in enumerate(free) if end < first), len(free))
        free[lane:] = [last, *free[lane + 1 :]]
        for index in range(first, last + 1):
            lanes = bars[order[index]]
            lanes += [None] * (lane + 1 - len(lanes))
            lanes[lane] = index == first, index == last
    return bars


class Parallel:
    """A line for each method over the tasks, by the column that the board draws over them; the best is on top."""

    def __init__(self, board: Board) -> None:
        self.column = next(column for column in board.cell_columns if column.key == board.profile)
        self.values = {row.method: [row.value(task.id, board.profile) for task in board.tasks] for row in board.ranked}
        numbers = [value for values in self.values.values() for value in values if value is not None] or [0.0]
        best, worst = max(numbers), min(numbers)
        self.best, self.worst = (worst, best) if self.column.direction == "lower" else (best, worst)

    def points(self, method: str) -> list[tuple[int, float]]:
        """Tasks and heights, from 0 for the best to 100."""
        span = (self.worst - self.best) or 1
        values = enumerate(self.values[method])
        return [(task, 100 * (value - self.best) / span) for task, value in values if value is not None]


def has_scatter(board: Board) -> bool:
    """Whether anything is known of both columns that the board draws against each other."""
    keys = {key for row in board.ranked for key, value in row.values.items() if value is not None}
    return board.scatter is not None and keys.issuperset(board.scatter)


class Scatter:
    """Two columns against each other; methods of one value stand side by side, by rank."""

    TOP, BOTTOM = 14, 380

    def __init__(self, board: Board) -> None:
        self.across, self.up = (column for key in board.scatter or () for column in board.columns if column.key == key)
        keys = (self.across.key, self.up.key)
        self.rows = [r for r in board.ranked if all(isinstance(r.values.get(key), int | float) for key in keys)]
        self.at = {row.method: float(row.values[self.across.key] or 0) for row in self.rows}
        # Counts, such as the size of an embedding, differ by factors.
        self.log = self.across.format == "integer" and min(self.at.values()) > 0
        heights = [float(row.values[self.up.key] or 0) for row in self.rows]
        heights += [end for row in self.rows for end in ends(row.intervals.get(self.up.key)) or ()]
        self.low, self.high = min(heights), max(heights)
        if self.low == self.high:
            self.low, self.high = self.low - 1, self.high + 1
        first, last = self._unit(min(self.at.values())), self._unit(max(self.at.values()))
        margin = 0.5 if self.log else (last - first) / 20 or 1
        self.first = (math.floor(first) if self.log else first) - margin
        self.last = (math.ceil(last) if self.log else last) + margin

    def _unit(self, value: float) -> float:
        return math.log2(value) if self.log else value

    def x(self, value: float) -> str:
        return places(self.first, self.last, 6.0, 92.0)(self._unit(value))

    def y(self, value: float) -> str:
        return f"{self.BOTTOM - (value - self.low) / (self.high - self.low) * (self.BOTTOM - self.TOP):.1f}"

    def beside(self, row: BoardRow) -> str:
        """How far a method is moved from the others of its value, in pixels."""
        same = [other.method for other in self.rows if self.at[other.method] == self.at[row.method]]
        return f"{(same.index(row.method) - (len(same) - 1) / 2) * min(9.0, 120 / len(same)):.1f}"

    def ticks(self) -> Iterator[float]:
        step = max(1, round((self.last - self.first) / 12)) if self.log else (self.last - self.first) / 4
        tick: float = math.ceil(self.first) if self.log else self.first
        while tick <= self.last:
            yield 2.0**tick if self.log else tick
            tick += step

    def heights(self) -> Iterator[tuple[float, str]]:
        """Values up the axis, and as text."""
        digits = max(0, min(self.up.digits, 1 - math.floor(math.log10((self.high - self.low) / 4))))
        for part in range(5):
            value = self.low + (self.high - self.low) * part / 4
            yield value, num(value, digits)
