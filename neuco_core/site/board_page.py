"""The page of a board: tabs over sections that stand below each other where there are no scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from neuco_core.boards.formatting import RANK, axes
from neuco_core.boards.model import Board, BoardRow, Column, plain, rounded
from neuco_core.boards.report import copies, diagnostics, doubts, overlaps
from neuco_core.boards.stats.ranking import Rule, rank
from neuco_core.site import figures
from neuco_core.site.board_table import gaps, layout, shades, short_names, table_view, value_of
from neuco_core.site.item_pages import has_pairs
from neuco_core.site.page_data import PageData
from neuco_core.site.render import RenderedPanel, panels, render
from neuco_core.text import clean, counted

UP = "../../"
UNKNOWN = "unknown"
DIGITS = 7
SCRIPTS = ("rank.js", "state.js", "board.js", "details.js", "compare.js", "figures.js")


def board_page(page: PageData) -> str:
    board = page.board
    colours = shades(page)
    added = panels(page, "board") if board.shown else []
    tabs = _tabs(page, added)
    return render(
        "board.html",
        page=page,
        board=board,
        title=page.title,
        about=_summary(page) if board.shown else page.description,
        up=UP,
        scripts=SCRIPTS if board.shown else (),
        tiles=_tiles(page),
        tabs=tabs,
        panels=added,
        table=table_view(page, colours),
        interval_keys={key for row in board.ranked for key in row.intervals},
        names=short_names(board.tasks),
        profile_columns=axes(board),
        limits=_limits(page),
        choices=_choices(page),
        rerank=rerank_data(board),
        pairs=has_pairs(page),
        diagnostics=diagnostics(board) if board.tasks else None,
        notes=(*board.notes, *overlaps(board), *copies(board)),
        doubts=doubts(board),
        trusted={cell.trust for row in page.table_rows for cell in row.cells.values()},
        bibtex=bibtex(page),
        data=view_data(page, colours) if board.shown else None,
    )


def _tabs(page: PageData, added: Sequence[RenderedPanel]) -> dict[str, str]:
    """The titles of the sections that there are, by id."""
    board = page.board
    tabs = {"ranking": "Ranking"}
    if len(board.ranked) > 1 and board.tasks:
        tabs["compare"] = "Compare"
    if board.scatter and figures.has_scatter(board):
        labels = {column.key: column.label for column in board.columns}
        tabs["size"] = f"{labels[board.scatter[1]]} against {labels[board.scatter[0]].lower()}"
    if board.tasks:
        tabs["tasks"] = "Tasks"
    if board.tasks and board.ranked:
        tabs["robustness"] = "Robustness"
    tabs |= {panel.id: panel.title for panel in added}
    return {**tabs, "reading": "How to read this", "submit": "Submit"}


def _summary(page: PageData) -> str:
    """The board in one sentence, as for the preview of a link."""
    board = page.board
    size = f"{counted(len(board.ranked), 'method')} ranked"
    size += f" on {counted(len(board.tasks), 'task')}" if board.tasks else ""
    first = [page.method_title(row.method) for row in board.ranked if row.rank == 1]
    return f"{size}; first: {', '.join(first[:3])}." if first else f"{size}."


def _tiles(page: PageData) -> list[tuple[str, str, str, str]]:
    """What a reader wants to know first: a title, a strong word, a few words beside it, and where it leads."""
    board, tiles = page.board, []
    first = [row for row in board.ranked if row.rank == 1]
    if first:
        names = ", ".join(page.method_title(row.method) for row in first[:3]) + (", …" if len(first) > 3 else "")
        tiles.append(("Leader", names, " · ".join(_certainty(page, first)), ""))
    if board.groups is not None and len(board.ranked) > 1:
        below = gaps(board)
        ranks = [str(row.rank) for row, after in pairwise(board.ranked) if after.method in below]
        label = f"after {'rank' if len(ranks) == 1 else 'ranks'} {', '.join(ranks[:6])}"
        tiles.append(("Groups end", label + (", …" if len(ranks) > 6 else "") if ranks else "none", "", ""))
    for column in board.task_columns[:1]:
        weighed = [(task.values[column.key] or 0, task.id) for task in board.tasks if column.key in task.values]
        if len(weighed) > 1:
            value, task = max(weighed)
            label = f"Largest {column.label.lower()}"
            tiles.append((label, page.task_title(task), figures.shown(column, value), f"task/{task}.html"))
    if page.updated:
        tiles.append(("Updated", page.updated, "", ""))
    return tiles


def _certainty(page: PageData, first: Sequence[BoardRow]) -> Iterable[str]:
    """How sure the first place is: who cannot be told from it, and how often it is first."""
    board, leader = page.board, first[0]
    near = {name for group in board.groups or () if group[0] == leader.method for name in group[1:]}
    others = [page.method_title(row.method) for row in board.ranked if row.method in near and row.rank != 1]
    if others:
        names = others[0] if len(others) == 1 else f"{others[0]} and {counted(len(others) - 1, 'other')}"
        yield f"in a group with {names}"
    if len(first) > 1 or len(board.ranked) == 1:
        return
    for column in board.columns:
        values = {row.method: value for row in board.ranked if isinstance(value := row.values.get(column.key), float)}
        if column.format == "percent" and leader.method in values:
            yield f"{column.label} {figures.shown(column, values[leader.method])}"
            best = max(values, key=lambda name: values[name])
            if values[best] > values[leader.method]:
                yield f"({page.method_title(best)}: {figures.shown(column, values[best])})"


def view_data(page: PageData, colours: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What the scripts need, with more digits than are shown: rounded twice, a number would not be the table's."""
    board, columns = page.board, (RANK, *layout(page).columns)
    names = short_names(board.tasks)
    tasks = [
        plain(task) | {"title": clean(page.task_title(task.id)), "name": clean(names[task.id])} for task in board.tasks
    ]
    keys = [column.key for column in board.cell_columns]
    rows = []
    for row in page.table_rows:
        about = page.method(row.method)
        cells = [row.cells[task.id].values if task.id in row.cells else {} for task in board.tasks]
        entry = {
            "id": row.method,
            "title": clean(page.method_title(row.method)),
            "find": " ".join((row.method, about.title, *about.tags)).lower(),
            "base": row.baseline,
            "values": {column.key: rounded(value_of(row, column), DIGITS) for column in columns} | {"rank": row.rank},
            "overlaps": row.overlaps,
            "intervals": {key: rounded([i.low, i.high], DIGITS) for key, i in row.intervals.items()},
            "cells": [rounded([values.get(key) for key in keys], DIGITS) if values else None for values in cells],
            "heat": list(colours[row.method]),
        }
        rows.append(entry)
    return {
        "board": page.id,
        "protocol": board.suite.protocol if board.suite else "",
        "tasks": tasks,
        "columns": plain(columns),
        "more": [column.key for column in layout(page).more],
        "cellColumns": plain(board.cell_columns),
        "limits": [plain(column) for column, _ in _limits(page)],
        "choices": [{"key": column.key, "label": column.label} for column, _ in _choices(page)],
        "rows": rows,
        "anew": rerank_data(board),
        "axes": [column.key for column in axes(board)],
        "splits": page.cells is not None,
        "pairs": has_pairs(page),
    }


def rerank_data(board: Board) -> dict[str, Any] | None:
    """What ``rank.js`` needs to rank a choice of a board: the rule, and Q of each ranked method by task.

    ``None`` for a kind of board that is not ranked by it, and for one that it does not rank as the board does, such as
    a board that an older version has written.
    """
    if board.kind != "neuco" or not board.ranked:
        return None
    cells = [[row.value(task.id, "q") for task in board.tasks] for row in board.ranked]
    complete = [t for t in range(len(board.tasks)) if all(values[t] is not None for values in cells)]
    q = np.array([[values[t] for values in cells] for t in complete], dtype=np.float64)
    options: dict[str, Any] = {
        key: board.options[key] for key in ("weights", "spread", "ghost") if key in board.options
    }
    rule = Rule(**options)
    baselines = np.array([row.baseline for row in board.ranked])
    if not complete or rank(q, rule, baselines).final.tolist() != [*board.ranks.values()]:
        return None
    return {
        "rule": asdict(rule),
        "tasks": [board.tasks[t].id for t in complete],
        "methods": [row.method for row in board.ranked],
        "baselines": [int(row.baseline) for row in board.ranked],
        "q": q.tolist(),
        "cells": "rank",
    }


def _limits(page: PageData) -> list[tuple[Column, list[float]]]:
    """Counts by which the rows can be filtered, such as the size of an embedding, and their values."""
    limits = []
    for column in layout(page).columns:
        values = {value for row in page.table_rows if isinstance(value := value_of(row, column), int | float)}
        if column.format == "integer" and len(values) > 1:
            limits.append((column, sorted(values)))
    return limits


def _choices(page: PageData) -> list[tuple[Column, list[str]]]:
    """Facts by whose words the rows can be filtered, and the words; a row may have several, or none."""
    choices = []
    for column in page.board.fact_columns:
        values = {value for row in page.table_rows for value in str(row.facts.get(column.key, "")).split(", ")}
        if column.format == "choice" and len(values) > 1:
            choices.append((column, [value or UNKNOWN for value in sorted(values)]))
    return choices


def bibtex(page: PageData) -> str:
    """What is known of the board as an entry: its name, version, content and date; of a published one, its source."""
    board = page.board
    if board.published:
        note = f"{board.published.citation}. Imported from: {board.published.source}"
        fields = {"title": page.title, "note": note}
    else:
        note = ""
        if board.suite:
            note = f"suite {page.id} version {board.suite.version}, protocol {board.suite.protocol}, "
        fields = {"title": f"{page.title}: neuco leaderboard", "note": f"{note}cells {board.cells[:16]}"}
        if page.updated:
            fields["year"] = page.updated[:4]
    # Strangers' words inside braces: no brace or command of their own.
    plain_fields = {name: re.sub(r"[{}\\]", "", " ".join(value.split())) for name, value in fields.items()}
    escaped = {name: re.sub(r"([&%$#_])", r"\\\1", value) for name, value in plain_fields.items()}
    body = ",\n".join(f"  {name} = {{{value}}}" for name, value in escaped.items())
    return f"@misc{{neuco-{page.id},\n{body}\n}}"
