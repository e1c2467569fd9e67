"""The capabilities of a board: a ranking for each, with its intervals."""

from __future__ import annotations

from typing import Any

from neuco_core.boards.formatting import rankings_by_column
from neuco_core.boards.model import Interval, Section, Value
from neuco_core.site.page_data import PageData


def capabilities(page: PageData) -> dict[str, Any] | None:
    """What the template needs of each capability, in the order of the board's columns."""
    rankings = rankings_by_column(page.board)
    if not rankings:
        return None
    return {"rankings": [_ranking(key, part) for key, part in rankings.items()]}


def _ranking(key: str, part: Section) -> dict[str, Any]:
    """The rows with the score and its interval, and the ends of all, so that bars have one scale."""
    at = [column.key for column in part.columns].index(key)
    rows = [(row, row[at], _interval(row, at)) for row in part.rows]
    ends = [value for _, value, _ in rows if isinstance(value, int | float)]
    for _, _, interval in rows:
        ends += [end for end in (interval.low, interval.high) if end is not None] if interval else []
    return {"key": key, "part": part, "at": at, "rows": rows, "ends": (min(ends, default=0.0), max(ends, default=0.0))}


def _interval(row: tuple[Value, ...], at: int) -> Interval | None:
    return next((value for value in row[at:] if isinstance(value, Interval)), None)
