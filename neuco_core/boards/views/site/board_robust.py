"""How sure a ranking is, and what it depends on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from neuco_core.boards.model import Column, Interval, Section, Value
from neuco_core.boards.views.report import GROUPED, TEXT
from neuco_core.boards.views.site.html import Safe, join, section, table, tag
from neuco_core.boards.views.site.pieces import MANY, MOST, figure, shown, small_table, value_cell
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import counted

FOREST = "Each with its interval; a bar joins methods that the data do not tell apart."


def robustness(source: BoardSource) -> Safe:
    """How sure the ranking is, and what the kind says about what it depends on."""
    board = source.board
    if not board.tasks or not board.ranked:
        return Safe("")
    matrices = [_matrix(source, part) for part in board.sections if part.about == "robustness"]
    own = [small_table(source, part) for part in board.sections if part.about == "ranking"]
    return section("Robustness", *_certainty(source), *matrices, *own, id_="robustness")


def _matrix(source: BoardSource, part: Section) -> Safe:
    """Methods against other ways to rank them; a cell is tinted by how many places a method moves."""
    if not part.rows:
        return tag("p", part.empty) if part.empty else Safe("")
    heads = [column.label if column.format in TEXT else (column.label, "number") for column in part.columns]
    rows = [
        tuple(_moved(source, part, row, column, value) for column, value in zip(part.columns, row, strict=True))
        for row in part.rows[:MOST]
    ]
    lead = [tag("p", _with_titles(source, part.lead), class_="lead")] if part.lead else []
    tint = "The darker a cell, the more places it is from the board's own rank."
    cut = f" First {MOST} of {len(part.rows)}; all are in the JSON file." if len(part.rows) > MOST else ""
    return join((tag("h3", part.title), *lead, table(heads, rows, caption=tint + cut, class_="robust")))


def _with_titles(source: BoardSource, words: str) -> str:
    """A sentence of the board, which names methods and tasks by their ids, for people."""
    titles = {row.method: source.method_title(row.method) for row in source.board.rows}
    titles |= {task.id: source.task_title(task.id) for task in source.board.tasks}
    return re.sub(r"[\w.-]*\w", lambda found: titles.get(found[0], found[0]), words)


def _moved(source: BoardSource, part: Section, row: tuple[Value, ...], column: Column, value: Value) -> Any:
    if column.format not in ("rank", "range"):
        return value_cell(source, part, row, column, value)
    own = source.board.ranks.get(str(row[0]))
    ends = [value.low, value.high] if isinstance(value, Interval) else [value]
    places = [abs(end - own) for end in ends if isinstance(end, int | float) and own is not None]
    far = max(places, default=0)
    return shown(column, value), f"number m{min(round(far), 5)}"


def _certainty(source: BoardSource) -> list[Safe]:
    if source.board.uncertainty is None:
        return [tag("p", "No intervals are known for this board.")]
    drawn = figure("forest", "Ranks.", FOREST) if len(source.board.ranked) > 1 else Safe("")
    return [tag("h3", "Statistically indistinguishable"), drawn, *_groups(source)]


def _groups(source: BoardSource) -> list[Safe]:
    groups = source.board.groups
    if len(source.board.ranked) == 1:
        return [tag("p", "Only one method is ranked, so there is nothing to compare it with.")]
    if not groups:
        return [tag("p", "Every method is separated from its neighbours in the ranking.")] if groups == () else []
    items = [tag("li", _group(source, group)) for group in groups[:MANY]]
    if len(groups) > MANY:
        items.append(tag("li", f"and {counted(len(groups) - MANY, 'more group')}, in the JSON file"))
    return [tag("details", tag("summary", f"{GROUPED}: {counted(len(groups), 'group')}"), tag("ul", *items))]


def _group(source: BoardSource, group: Sequence[str]) -> Safe:
    """The names of a group; of a large one the ends, and how many it has."""
    names = [tag("b", source.method_title(name)) for name in group]
    if len(names) <= MANY:
        return join(names, ", ")
    return join((*names[:3], f"… ({len(names)} methods) …", *names[-2:]), ", ")
