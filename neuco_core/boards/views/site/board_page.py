"""The page of a board: tabs over sections that stand below each other where there are no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuco_core.boards.anew import rule_of
from neuco_core.boards.facts import FILTERS
from neuco_core.boards.formatting import RANK, axes, show
from neuco_core.boards.model import BoardRow, Column, plain, rounded
from neuco_core.boards.views.site import board_panels as panels
from neuco_core.boards.views.site.board_estimates import estimated_said, estimated_switch
from neuco_core.boards.views.site.board_head import heading, summary
from neuco_core.boards.views.site.board_table import layout, lines_of, shades, short_names, table, value_of
from neuco_core.boards.views.site.html import Safe, data, join, page, section, tag
from neuco_core.boards.views.site.pairs import many
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import clean

UP = "../../"
UNKNOWN = "unknown"
DIGITS = 7
RULE = "rule.js"  # made, see compiled.py
SCRIPTS = ("arrays.js", RULE, "state.js", "board.js", "details.js", "compare.js", "capabilities.js", "figures.js")


def board_page(source: BoardSource, picture: str = "") -> str:
    """``picture`` is the address of a picture for links to the page."""
    board = source.board
    if not board.shown:
        return page(source.title, join((heading(source), *panels.empty(source))), up=UP, about=source.description)
    colours = shades(board)
    ranking = section(
        "Ranking",
        _toolbar(source),
        table(source, colours),
        panels.legend(source),
        estimated_said(source),
        panels.not_ranked(source),
        id_="ranking",
    )
    found = [("ranking", "Ranking", ranking), *panels.panels(source)]
    tabs = panels.tabs([(name, title) for name, title, _ in found])
    sections = [inner for _, _, inner in found]
    body = join((heading(source), tabs, *sections, data("board-data", view_data(source, colours))))
    return page(source.title, body, up=UP, scripts=SCRIPTS, about=summary(source), picture=picture)


def view_data(source: BoardSource, colours: Mapping[str, Sequence[str]]) -> Mapping[str, Any]:
    """What the scripts need, with more digits than are shown: rounded twice, a number would not be the table's."""
    board, place = source.board, layout(source.board)
    names = short_names(board.tasks)
    tasks = [
        {
            "id": t.id,
            "title": clean(source.task_title(t.id)),
            "name": clean(names[t.id]),
            "kind": t.kind,
            "dataset": t.dataset,
            "greater_is_better": t.greater_is_better,
        }
        for t in board.tasks
    ]
    columns = (RANK, *place.columns)
    return {
        "board": source.id,
        "protocol": board.suite.protocol if board.suite else "",
        "tasks": tasks,
        "columns": plain(columns),
        "more": [column.key for column in place.more],
        "cellColumns": plain(board.cell_columns),
        "limits": [plain(column) for column, _ in _limits(source)],
        "choices": [{"key": column.key, "label": column.label} for column, _ in _choices(source)],
        "profile": [column.key for column in board.cell_columns].index(board.profile) if board.profile else None,
        "scatter": [plain(c) for key in board.scatter or () for c in board.columns if c.key == key],
        "rows": [_row_data(source, row, columns, colours) for row in lines_of(board)],
        "groups": _runs(source),
        "anew": rule_of(board),
        "axes": [column.key for column in axes(board)],
        "splits": source.cells is not None,
        "pairs": source.cells is not None and not many(source),
    }


def _runs(source: BoardSource) -> list[tuple[int, int]]:
    """The first and the last row of each group: its methods are neighbours in the ranking."""
    place = {row.method: i for i, row in enumerate(lines_of(source.board))}
    return [(place[group[0]], place[group[-1]]) for group in source.board.groups or ()]


def _row_data(
    source: BoardSource, row: BoardRow, columns: Sequence[Column], colours: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    words = source.method(row.method)
    cells = [row.cells[task.id].values if task.id in row.cells else {} for task in source.board.tasks]
    keys = [column.key for column in source.board.cell_columns]
    return {
        "id": row.method,
        "title": clean(source.method_title(row.method)),
        "find": " ".join((row.method, words.title, *words.tags)).lower(),
        "base": row.baseline,
        "values": {column.key: rounded(value_of(row, column), DIGITS) for column in columns} | {RANK.key: row.rank},
        "overlaps": row.overlaps,
        "intervals": {key: rounded([i.low, i.high], DIGITS) for key, i in row.intervals.items()},
        "cells": [rounded([own.get(key) for key in keys], DIGITS) if own else None for own in cells],
        "heat": list(colours[row.method]),
    }


def _limits(source: BoardSource) -> list[tuple[Column, list[float]]]:
    """Counts by which the rows can be filtered, such as the size of an embedding, and their values."""
    integers = [column for column in layout(source.board).columns if column.format == "integer"]
    rows = lines_of(source.board)
    found = [(c, sorted({v for row in rows if isinstance(v := value_of(row, c), int | float)})) for c in integers]
    return [(column, values) for column, values in found if len(values) > 1]


def _choices(source: BoardSource) -> list[tuple[Column, list[str]]]:
    """Facts by whose words the rows can be filtered, and the words; a row may have several, or none."""
    columns = [column for column in source.board.fact_columns if column.key in FILTERS]
    rows = lines_of(source.board)
    found = [(c, sorted({w for row in rows for w in str(row.facts.get(c.key, "")).split(", ")})) for c in columns]
    return [(column, words) for column, words in found if len(words) > 1]


def _toolbar(source: BoardSource) -> Safe:
    board = source.board
    search = tag("input", id="search", type="search", placeholder="Search methods ( / )", autocomplete="off")
    controls = [tag("label", tag("span", "Search", class_="hidden"), search)]
    if board.tasks and board.cell_columns:
        controls.append(_choice("Cells", "show", [(column.key, column.label) for column in board.cell_columns]))
    if axes(board):
        controls.append(tag("label", tag("input", id="far", type="checkbox"), " Tasks one by one"))
    if len(board.tasks) > 1:
        controls.append(_tasks(source))
    if any(row.baseline for row in lines_of(board)):
        controls.append(tag("label", tag("input", id="no-baselines", type="checkbox"), " Hide baselines"))
    if source.estimated:
        controls.append(estimated_switch())
    if layout(board).more:
        controls.append(tag("label", tag("input", id="more", type="checkbox"), " More columns"))
    if filters := _filters(source):
        controls.append(tag("details", tag("summary", "Filters"), tag("div", *filters), class_="menu"))
    controls.append(tag("button", "Download view (CSV)", id="download", type="button", class_="quiet"))
    chips = tag("div", id="chips", class_="chips", role="group", aria_label="Filters that are on")
    status = tag("p", id="status", role="status", class_="note")
    # Without scripts the controls would do nothing, so scripts show them.
    inner = (tag("div", *controls, class_="controls", role="search"), _chosen(source), chips, status)
    return tag("div", *inner, id="toolbar", hidden=True)


def _tasks(source: BoardSource) -> Safe:
    """A box for each task; what is not ticked is left out, of the ranking as well where its rule is known here."""
    names = short_names(source.board.tasks)
    boxes = [
        tag("label", tag("input", type="checkbox", checked=True, data_task=task.id), f" {names[task.id]}")
        for task in source.board.tasks
    ]
    kinds = sorted({task.kind for task in source.board.tasks})
    quick = [tag("button", "all", type="button", class_="quiet", data_kind="")]
    quick += [tag("button", f"only {k}", type="button", class_="quiet", data_kind=k) for k in kinds if len(kinds) > 1]
    note = "Ranks are computed anew." if rule_of(source.board) else "Columns are hidden; ranks stay."
    inner = tag("div", *boxes, tag("p", *quick), tag("p", note, class_="note"))
    return tag("details", tag("summary", tag("span", "Tasks: all", id="tasks-said")), inner, class_="menu", id="choose")


def _chosen(source: BoardSource) -> Safe:
    """What can be done with the ticked methods."""
    buttons = [tag("button", "Compare", id="go-compare", type="button", class_="quiet")]
    if rule_of(source.board):
        buttons += [
            tag("button", "Rank without them", id="go-without", type="button", class_="quiet"),
            tag("button", "Rank only them", id="go-only", type="button", class_="quiet"),
        ]
    buttons.append(tag("button", "Clear", id="go-clear", type="button", class_="quiet"))
    return tag("p", tag("span", id="chosen-said"), *buttons, id="chosen", hidden=True)


def _filters(source: BoardSource) -> list[Safe]:
    """What there is to choose by facts, folded away: a phone has no room for more than the usual."""
    found = [_limit(column, counts) for column, counts in _limits(source)]
    for fact, words in _choices(source):
        named = [(word or UNKNOWN, word or UNKNOWN) for word in words]
        found.append(_choice(fact.label, f"is-{fact.key}", [("", "any"), *named]))
    if any(row.overlaps for row in lines_of(source.board)):
        found.append(tag("label", tag("input", id="no-overlap", type="checkbox"), " Hide overlaps"))
    return found


def _limit(column: Column, counts: Sequence[float]) -> Safe:
    most = [(str(count), f"at most {show(column, count)}") for count in counts]
    return _choice(column.label, f"max-{column.key}", [("", "any"), *most])


def _choice(label: str, name: str, options: Sequence[tuple[str, str]]) -> Safe:
    return tag("label", f"{label} ", tag("select", *(tag("option", t, value=v) for v, t in options), id=name))
