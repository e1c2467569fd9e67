"""The capabilities of a board: a ranking for each, with its intervals."""

from __future__ import annotations

from typing import Any

from neuco_core.boards.formatting import rankings_by_column
from neuco_core.boards.model import Interval
from neuco_core.site.page_data import PageData


def capabilities(page: PageData) -> dict[str, Any] | None:
    """What the template needs of each capability: its rows with score and interval, and the ends of the bars' scale."""
    rankings: list[dict[str, Any]] = []
    for key, part in rankings_by_column(page.board).items():
        at = [column.key for column in part.columns].index(key)
        rows = []
        for row in part.rows:
            interval = next((value for value in row[at:] if isinstance(value, Interval)), None)
            rows.append((row, row[at], interval))
        ends = [value for _, value, _ in rows if isinstance(value, int | float)]
        ends += [end for *_, interval in rows if interval for end in (interval.low, interval.high) if end is not None]
        scale = min(ends, default=0.0), max(ends, default=0.0)
        rankings.append({"key": key, "part": part, "at": at, "rows": rows, "ends": scale})
    return {"rankings": rankings} if rankings else None
