"""The page of a method and the page of a task on a board: scores split by split, labels, card, how to reproduce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from neuco_core.boards.formatting import LOWER, MARK, axes, higher_is_better, in_row, with_values
from neuco_core.boards.model import SCORE, BoardCell, BoardRow, BoardTask, Number
from neuco_core.site.cell_details import record_facts, verify_command
from neuco_core.site.figures import Scale, scale, shown
from neuco_core.site.page_data import PageData
from neuco_core.site.render import TableCell, panels, render

Scales = Mapping[str, Scale]


class ScoreLine(NamedTuple):
    """A method on a task, for a line of a table: its score with those of its splits, on the scale of the task."""

    title: str
    href: str
    cell: BoardCell | None
    score: Number
    splits: list[float]
    scale: Scale
    label: str
    task: BoardTask


def scales(page: PageData) -> Scales:
    """By task, a scale wide enough for every method's splits, or scores where there are no splits."""
    by_task = {}
    for task in page.board.tasks:
        splits = [value for row in page.board.rows for value in _splits(page, row, task.id)]
        scores = [value for row in page.board.rows if (value := page.board.score(row, task.id)) is not None]
        by_task[task.id] = scale(splits or scores, task.greater_is_better)
    return by_task


def _splits(page: PageData, row: BoardRow, task: str) -> list[float]:
    if page.cells is None or page.board.score(row, task) is None:
        return []
    return [value for value in page.cells.cell(row.method, task).splits if value is not None]


def _score_line(page: PageData, row: BoardRow, task: BoardTask, on: Scales, title: str, href: str) -> ScoreLine:
    score, splits = page.board.score(row, task.id), _splits(page, row, task.id)
    label = f"{row.method} on {task.id}"
    return ScoreLine(title, href, row.cells.get(task.id), score, splits, on[task.id], label, task)


def method_page(page: PageData, row: BoardRow, on: Scales) -> str:
    board, about = page.board, page.method(row.method)
    facts = [(c.label, in_row(c, row)) for c in with_values(board.columns, (row,))]
    facts += [("Id", row.method), *about.facts]
    facts += [(c.label, shown(c, row.facts[c.key])) for c in board.fact_columns if c.key in row.facts]
    facts += [(f"Overlap with {dataset}", sentence) for dataset, sentence in row.overlaps.items()]
    if row.baseline:
        facts.append(("Baseline", "yes"))
    if row.note:
        facts.append(("Not ranked", row.note))
    titles = {task.id: page.task_title(task.id) for task in board.tasks}
    return render(
        "method.html",
        **_shared(page, page.method_title(row.method)),
        about_item=about,
        row=row,
        facts=facts,
        lines=[_score_line(page, row, t, on, titles[t.id], f"../task/{t.id}.html") for t in board.tasks],
        with_profile=any(column.key in row.values for column in axes(board)),
        estimates=[
            _estimate(page, row.method, task, titles[task], f"../task/{task}.html")
            for task in titles
            if (row.method, task) in page.estimated
        ],
        records=[
            (titles[task], task, record, verify_command(page, row.method, task))
            for task in titles
            if (record := record_facts(page, row.method, task))
        ],
        panels=panels(page, "method", row.method),
        command=f"neuco score --method {row.method} --suite {page.id}",
    )


def task_page(page: PageData, task: BoardTask, on: Scales) -> str:
    board, about = page.board, page.task(task.id)
    facts = [("Id", task.id)]
    facts += [(c.label, shown(c, task.values[c.key])) for c in board.task_columns if c.key in task.values]
    facts += about.facts or (("Metric", task.metric),)
    if not task.greater_is_better:
        facts.append(("Scores", LOWER))
    # By name of the method: in the order of estimates it would be a ranking.
    estimated = sorted((page.method_title(method), method) for method, on_task in page.estimated if on_task == task.id)
    commands = [f"neuco show {task.id}"]
    if board.rows and board.suite:  # a command that works as it stands, with a method of this board
        commands.append(
            f"neuco score --method {board.rows[0].method} --task {task.id} --protocol {board.suite.protocol}"
        )
    return render(
        "task.html",
        **_shared(page, page.task_title(task.id)),
        about_item=about,
        facts=facts,
        pictures=page.pictures.get(task.id, ()),
        task=task,
        lines=[
            _score_line(page, row, task, on, page.method_title(row.method), f"../method/{row.method}.html")
            for row in _by_profile(page, task)
        ],
        estimates=[_estimate(page, name, task.id, title, f"../method/{name}.html") for title, name in estimated],
        labels=page.labels.get(task.id),
        panels=panels(page, "task", task.id),
        command="\n".join(commands),
    )


def _shared(page: PageData, heading: str) -> dict[str, Any]:
    about = {"heading": heading, "title": f"{heading} on {page.title}", "about": "", "picture": ""}
    return {"page": page, "board": page.board, "up": "../../../", "scripts": (), **about}


def _by_profile(page: PageData, task: BoardTask) -> list[BoardRow]:
    """The ranked methods, by the column that is drawn over the tasks, such as the rank, or else by the score."""
    column = next((c for c in page.board.cell_columns if page.board.profile in (c.key, "")), SCORE)
    values = {row.method: row.value(task.id, column.key) for row in page.board.ranked}
    sign = -1 if higher_is_better(column, task) else 1
    order = sorted((sign * value, method) for method, value in values.items() if value is not None)
    rows = {row.method: row for row in page.board.ranked}
    return [rows[method] for _, method in order]


def _estimate(page: PageData, method: str, task: str, title: str, href: str) -> list[TableCell]:
    cell, column = page.estimated[method, task], page.board.cell_columns[0]
    value, interval = shown(column, cell.values[column.key]), shown(column, cell.intervals[column.key])
    return [TableCell(title, href=href), TableCell(f"{MARK}{value}", "number soft"), TableCell(interval, "number soft")]
