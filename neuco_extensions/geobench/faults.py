"""Faults of a submission: where each is, what was found, and its cure. Equal faults in many rows are told once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from neuco_core.text import join_names, shorten

MOST_SHOWN = 3


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong. ``rows`` are lines of the file as an editor counts them; the header is line 1.

    ``official`` is a rule that the leaderboard's own validator has; the others are ours.
    """

    rule: str
    what: str
    cure: str
    file: str = ""
    rows: tuple[int, ...] = ()
    column: str = ""
    value: str | None = None
    official: bool = False

    @property
    def where(self) -> str:
        places = [self.file, f"column {shorten(self.column)}" if self.column else "", _lines(self.rows)]
        return ", ".join(place for place in places if place)

    def __str__(self) -> str:
        found = "" if self.value is None else f" (found {shorten(self.value)})"
        return f"{self.where}: {self.what}{found}. {self.cure}"


def merged(faults: Iterable[Fault]) -> list[Fault]:
    """Faults that differ only by row become one with all rows; the order is that of the first."""
    together: dict[Fault, list[int]] = {}
    for fault in faults:
        together.setdefault(replace(fault, rows=()), []).extend(fault.rows)
    return [replace(fault, rows=tuple(sorted(set(rows)))) for fault, rows in together.items()]


def _lines(rows: Sequence[int]) -> str:
    if not rows:
        return ""
    if len(rows) == 1:
        return f"line {rows[0]}"
    if len(rows) > 2 and rows[-1] - rows[0] == len(rows) - 1:
        return f"lines {rows[0]}–{rows[-1]}"
    return f"lines {join_names([*map(str, rows)], MOST_SHOWN)}"
