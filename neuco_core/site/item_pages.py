"""The page of a method and the page of a task on a board: scores split by split, labels, card, how to reproduce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from neuco_core.boards.formatting import LOWER, MARK, RANK, axes, higher_is_better, in_row, with_values
from neuco_core.boards.model import BoardCell, BoardRow, BoardTask, Column
from neuco_core.site.cell_details import record_facts, verify_command
from neuco_core.site.figures import Scale, class_bars, histogram, profile, rank_axis, scale, shown, strip
from neuco_core.site.page_data import PageData
from neuco_core.site.render import TableCell, panels, render
from neuco_core.text import counted

UP = "../../../"
Scales = Mapping[str, Scale]


class ScoreLine(NamedTuple):
    """A method on a task: its drawing or why there is none, and its values."""

    title: str
    href: str
    cell: BoardCell | None
    drawing: object
    values: list[str]
    task: str = ""
    note: str = ""


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


def method_page(page: PageData, row: BoardRow, on: Scales) -> str:
    board, about, title = page.board, page.method(row.method), page.method_title(row.method)
    facts: list[tuple[str, object]] = [(c.label, in_row(c, row)) for c in with_values(board.columns, (row,))]
    facts += [("Id", row.method), *about.facts]
    facts += [(c.label, shown(c, row.facts[c.key])) for c in board.fact_columns if c.key in row.facts]
    facts += [(f"Overlap with {dataset}", words) for dataset, words in row.overlaps.items()]
    if row.baseline:
        facts.append(("Baseline", "yes"))
    if row.note:
        facts.append(("Not ranked", row.note))
    lines = []
    for task in board.tasks:
        note = "" if task.greater_is_better else LOWER
        lines.append(_score_line(page, row, task.id, on[task.id], page.task_title(task.id), "task", note))
    records = [
        (page.task_title(task.id), task.id, record, verify_command(page, row.method, task.id))
        for task in board.tasks
        if (record := record_facts(page, row.method, task.id))
    ]
    drawn = any(column.key in row.values for column in axes(board))
    return render(
        "method.html",
        **_shared(page, title),
        about_item=about,
        row=row,
        facts=facts,
        rank=rank_axis(row.rank, row.intervals.get(RANK.key), len(board.ranked)) if row.rank else None,
        ranks=row.intervals.get(RANK.key),
        lines=lines,
        profile=profile(board, [row.method], page.title, page.method_title) if drawn else None,
        estimates=[
            _estimate(page, row.method, task.id, page.task_title(task.id), f"../task/{task.id}.html")
            for task in board.tasks
            if (row.method, task.id) in page.estimated
        ],
        records=records,
        panels=panels(page, "method", row.method),
        command=f"neuco score --method {row.method} --suite {page.id}",
    )


def task_page(page: PageData, task: BoardTask, on: Scales) -> str:
    board, about, title = page.board, page.task(task.id), page.task_title(task.id)
    facts: list[tuple[str, object]] = [("Id", task.id)]
    facts += [(c.label, shown(c, task.values[c.key])) for c in board.task_columns if c.key in task.values]
    facts += [*(about.facts or (("Metric", task.metric),))]
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
        **_shared(page, title),
        about_item=about,
        facts=facts,
        pictures=page.pictures.get(task.id, ()),
        task=task,
        lines=_task_lines(page, task, on[task.id]),
        estimates=[_estimate(page, name, task.id, words, f"../method/{name}.html") for words, name in estimated],
        labels=_labels(page, task.id),
        panels=panels(page, "task", task.id),
        command="\n".join(commands),
    )


def _shared(page: PageData, title: str) -> dict[str, Any]:
    return {
        "page": page,
        "board": page.board,
        "heading": title,
        "title": f"{title} on {page.title}",
        "up": UP,
        "about": "",
        "picture": "",
        "scripts": (),
    }


def _task_lines(page: PageData, task: BoardTask, on: Scale) -> list[ScoreLine]:
    """The ranked methods, by the column that is drawn over the tasks, such as the rank, or else by the score."""
    board = page.board
    if not board.ranked:
        return []
    column: Column = next(c for c in board.cell_columns if board.profile in (c.key, ""))
    sign = -1 if higher_is_better(column, task) else 1
    order = []
    for row in board.ranked:
        value = row.cells[task.id].values.get(column.key) if task.id in row.cells else None
        if value is not None:
            order.append((sign * value, row.method, row))
    return [
        _score_line(page, row, task.id, on, page.method_title(row.method), "method")
        for _, _, row in sorted(order, key=lambda entry: entry[:2])
    ]


def _score_line(
    page: PageData, row: BoardRow, task: str, on: Scale, title: str, side: str, note: str = ""
) -> ScoreLine:
    href = f"../{side}/{task if side == 'task' else row.method}.html"
    cell, columns, score = row.cells.get(task), page.board.cell_columns, page.board.score(row, task)
    if cell is None or score is None:
        words = f"{cell.status}: {cell.reason}" if cell else "not scored"
        return ScoreLine(title, href, None, words, [""] * len(columns), task, note)
    interval = cell.intervals.get(columns[0].key)
    drawing = strip(_splits(page, row, task), score, interval, on, f"{row.method} on {task}")
    return ScoreLine(title, href, cell, drawing, [shown(c, cell.values.get(c.key)) for c in columns], task, note)


def _estimate(page: PageData, method: str, task: str, title: str, href: str) -> list[TableCell]:
    cell, column = page.estimated[method, task], page.board.cell_columns[0]
    value, interval = shown(column, cell.values[column.key]), shown(column, cell.intervals[column.key])
    return [TableCell(title, href=href), TableCell(f"{MARK}{value}", "number soft"), TableCell(interval, "number soft")]


def _labels(page: PageData, task: str) -> tuple[str, object] | None:
    """How the labels are spread, in words and drawn."""
    spread = page.labels.get(task)
    if spread is None:
        return None
    words = counted(spread.total, "label") + (f" ({spread.unit})" if spread.unit else "")
    if spread.classes:
        words += f", {counted(len(spread.classes), 'class')}"
        return words, class_bars(spread.counts, spread.classes, words)
    words += f", from {spread.edges[0]:.4g} to {spread.edges[-1]:.4g}"
    return words, histogram(spread.counts, spread.edges, words)
