"""The top of a board's page: what a reader wants to know first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neuco_core.boards.model import Board, BoardRow, Column
from neuco_core.boards.views.site.html import Safe, join, linked, tag
from neuco_core.boards.views.site.pieces import facts_list, shown
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import counted

PRINTED = "Published result, imported as it was printed. Nothing here was computed from embeddings by neuco. "
COMPUTED = (
    "The scores of single runs are published ones, imported as they are. Ranks, intervals and groups were computed "
    "from them here. "
)


def summary(source: BoardSource) -> str:
    """The board in one sentence, as for the preview of a link."""
    board = source.board
    size = f"{counted(len(board.ranked), 'method')} ranked"
    size += f" on {counted(len(board.tasks), 'task')}" if board.tasks else ""
    first = [source.method_title(row.method) for row in board.ranked if row.rank == 1]
    return f"{size}; first: {', '.join(first[:3])}." if first else f"{size}."


def heading(source: BoardSource) -> Safe:
    board = source.board
    crumbs = tag("p", tag("a", "Boards", href="../../index.html"), " / ", source.id, class_="crumbs")
    kinds = sorted({task.kind for task in board.tasks})
    size = [
        counted(len(board.ranked), "method") + " ranked",
        *([counted(len(board.tasks), "task")] if board.tasks else []),
    ]
    size += kinds if len(kinds) == 1 else []
    size += [f"protocol {board.suite.protocol}"] if board.suite else []
    lead = " · ".join((*((source.description,) if source.description else ()), ", ".join(size)))
    above = [crumbs, tag("h1", source.title), tag("p", lead, class_="lead")]
    if board.published:
        words = COMPUTED if board.uncertainty else PRINTED
        cited = linked(f"Source: {board.published.source}. {board.published.citation}")
        above.append(tag("p", tag("strong", words), cited, class_="banner"))
    tiles = list(_tiles(source))
    return join((*above, *([facts_list(tiles, "tiles facts")] if tiles else [])))


def _tiles(source: BoardSource) -> Iterable[tuple[str, object]]:
    """What a reader wants to know first."""
    board = source.board
    first = [row for row in board.ranked if row.rank == 1]
    if first:
        names = ", ".join(source.method_title(row.method) for row in first[:3]) + ", …" * (len(first) > 3)
        yield "Leader", join((tag("b", names), tag("span", " · ".join(_leading(source, first)))))
    if board.groups is not None and len(board.ranked) > 1:
        ends = [
            row.rank for row, after in zip(board.ranked, board.ranked[1:], strict=False) if _apart(board, row, after)
        ]
        noun = "rank" if len(ends) == 1 else "ranks"
        said = f"after {noun} {', '.join(map(str, ends[:6]))}" + ", …" * (len(ends) > 6) if ends else "none"
        yield "Clear gaps", tag("b", said)
    for column in board.task_columns[:1]:
        weighed = [(task.values[column.key] or 0, task.id) for task in board.tasks if column.key in task.values]
        if len(weighed) > 1:
            value, task = max(weighed)
            title = tag("a", source.task_title(task), href=f"task/{task}.html")
            yield f"Largest {column.label.lower()}", join((tag("b", title), tag("span", shown(column, value))))
    if source.updated or source.history:
        version = f"version {source.history[-1].version}" if source.history else ""
        link = tag("a", "what changed", href="#history") if source.history else Safe("")
        yield (
            "Updated",
            join((tag("b", source.updated or version), tag("span", version if source.updated else "", " ", link))),
        )


def _leading(source: BoardSource, first: Sequence[BoardRow]) -> Iterable[str]:
    """How sure the first place is: who cannot be told from it, and how often it is first."""
    board = source.board
    near = {name for group in board.groups or () if group[0] == first[0].method for name in group[1:]}
    others = [source.method_title(row.method) for row in board.ranked if row.method in near and row.rank != 1]
    if others:
        names = others[0] if len(others) == 1 else f"{others[0]} and {counted(len(others) - 1, 'other')}"
        yield f"not separable from {names}"
    for column in board.columns:
        known = first[0].values.get(column.key) is not None
        if column.format == "percent" and known and len(board.ranked) > len(first) == 1:
            best = max(board.ranked, key=lambda row: _number(row, column))
            yield f"{column.label} {shown(column, first[0].values.get(column.key))}"
            if _number(best, column) > _number(first[0], column):
                yield f"({source.method_title(best.method)}: {shown(column, best.values.get(column.key))})"


def _number(row: BoardRow, column: Column) -> float:
    value = row.values.get(column.key)
    return value if isinstance(value, int | float) else -1.0


def _apart(board: Board, row: BoardRow, after: BoardRow) -> bool:
    return not any(row.method in group and after.method in group for group in board.groups or ())
