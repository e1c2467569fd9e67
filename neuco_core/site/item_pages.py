"""The page of a method and the page of a task on a board, and what is behind a score.

That is: its splits, its record, the command that verifies it, its differences to other methods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from neuco_core.boards.cells import Cell
from neuco_core.boards.formatting import LOWER, higher_is_better, in_row, with_values
from neuco_core.boards.model import SCORE, TRUST, BoardRow, BoardTask, rounded
from neuco_core.scoring.compare import Comparison, holm, paired_test
from neuco_core.site.figures import scale, shown
from neuco_core.site.page_data import PageData
from neuco_core.site.render import environment, literal, panels, render
from neuco_core.text import clean

Strips = Mapping[tuple[str, str], Markup]


def strips(page: PageData) -> Strips:
    """By method and task, the drawing of a score; the pages of both show it, so it is drawn once.

    A task has one scale, wide enough for every method's splits, or scores where there are no splits.
    """
    drawn = {}
    figures: Any = environment().globals["figures"]
    for task in page.board.tasks:
        splits = {row.method: page.splits(row, task.id) for row in page.board.rows}
        scores = {row.method: score for row in page.board.rows if (score := page.board.score(row, task.id)) is not None}
        on = scale(
            [value for values in splits.values() for value in values] or list(scores.values()), task.greater_is_better
        )
        axis = figures.strip_axis(on)
        for row in page.board.rows:
            if row.method in scores:
                interval = row.cells[task.id].intervals.get(page.board.cell_columns[0].key)
                label = f"{row.method} on {task.id}"
                drawn[row.method, task.id] = figures.strip(
                    splits[row.method], scores[row.method], interval, on, axis, label
                )
    return drawn


def method_page(page: PageData, row: BoardRow, drawn: Strips) -> str:
    board, about = page.board, page.method(row.method)
    facts = [(c.label, in_row(c, row)) for c in with_values(board.columns, (row,))]
    facts += [("Id", row.method), *about.facts]
    facts += [(c.label, shown(c, row.facts[c.key])) for c in board.fact_columns if c.key in row.facts]
    facts += [(f"Overlap with {dataset}", sentence) for dataset, sentence in row.overlaps.items()]
    if row.baseline:
        facts.append(("Baseline", "yes"))
    if row.note:
        facts.append(("Not ranked", row.note))
    return _render_item(
        "method.html",
        page,
        page.method_title(row.method),
        about_item=about,
        row=row,
        facts=facts,
        expectations=expectations(page, row),
        scores=[(row, task) for task in board.tasks],
        strips=drawn,
        estimates=[(row.method, task.id) for task in board.tasks if (row.method, task.id) in page.estimated],
        records={t.id: record_facts(page, row.method, t.id) for t in board.tasks if (row.method, t.id) in page.records},
        panels=panels(page, "method", row.method),
        command=f"neuco score --method {row.method} --suite {page.id}",
    )


def expectations(page: PageData, row: BoardRow) -> list[tuple[str, bool, str]]:
    """What every result should come with (arXiv:2605.12678): each, whether it is there, and what was looked at."""
    board, cells = page.board, [cell for cell in row.cells.values() if cell.status == "ok"]
    marks = {cell.trust for cell in cells}
    license = page.method(row.method).license
    spread = bool(cells) and all(cell.splits > 1 or cell.intervals for cell in cells)
    controls = [other.method for other in board.ranked if other.baseline]
    one = board.suite is not None and marks.isdisjoint({"", "copied"}) and bool(cells)
    return [
        ("Named licence", bool(license), license or "none is declared"),
        ("All core tasks", bool(cells) and not row.lacks, f"{len(cells)} of {len(board.tasks)} tasks"),
        ("Copied or re-run", bool(marks - {""}), ", ".join(TRUST[mark][1] for mark in TRUST if mark in marks)),
        ("Variance", spread, "splits or an interval behind every score" if spread else "not of every score"),
        ("One harness", one, f"protocol {board.suite.protocol}" if board.suite and one else "scored elsewhere"),
        ("Controls", bool(controls), f"{len(controls)} baselines ranked beside it"),
    ]


def task_page(page: PageData, task: BoardTask, drawn: Strips) -> str:
    board, about = page.board, page.task(task.id)
    facts = [("Id", task.id)]
    facts += [(c.label, shown(c, task.values[c.key])) for c in board.task_columns if c.key in task.values]
    facts += about.facts or (("Metric", task.metric),)
    if not task.greater_is_better:
        facts.append(("Scores", LOWER))
    estimated = [method for method, on_task in page.estimated if on_task == task.id]
    commands = [f"neuco show {task.id}"]
    if board.rows and board.suite:  # a command that works as it stands, with a method of this board
        commands.append(
            f"neuco score --method {board.rows[0].method} --task {task.id} --protocol {board.suite.protocol}"
        )
    return _render_item(
        "task.html",
        page,
        page.task_title(task.id),
        about_item=about,
        facts=facts,
        pictures=page.pictures.get(task.id, ()),
        task=task,
        scores=[(row, task) for row in _by_profile(page, task)],
        strips=drawn,
        # By name of the method: in the order of estimates it would be a ranking.
        estimates=[(method, task.id) for method in sorted(estimated, key=lambda m: (page.method_title(m), m))],
        labels=page.labels.get(task.id),
        panels=panels(page, "task", task.id),
        command="\n".join(commands),
    )


def _render_item(template: str, page: PageData, heading: str, **values: Any) -> str:
    title = f"{heading} on {page.title}"
    shared = {"page": page, "board": page.board, "up": "../../../", "scripts": (), "about": ""}
    return render(template, heading=heading, title=title, **shared, **values)


def _by_profile(page: PageData, task: BoardTask) -> list[BoardRow]:
    """The ranked methods, by the column that is drawn over the tasks, such as the rank, or else by the score."""
    column = next((c for c in page.board.cell_columns if page.board.profile in (c.key, "")), SCORE)
    values = {row.method: row.value(task.id, column.key) for row in page.board.ranked}
    sign = -1 if higher_is_better(column, task) else 1
    order = sorted((sign * value, method) for method, value in values.items() if value is not None)
    rows = {row.method: row for row in page.board.ranked}
    return [rows[method] for _, method in order]


CODE = ("metric_code", "probe_code", "splitter_code", "scorer")
MOST = 60  # methods: the pairs of 400 would take a minute and 50 MB
# A − B, the ends of its interval, p, and p by Holm's correction for all tasks of the pair.
Difference = tuple[float, float, float, float, float]


def record_facts(page: PageData, method: str, task: str) -> list[tuple[str, str]]:
    """What the record of a cell says besides its scores; nothing if the board was not made of records."""
    record = page.records.get((method, task))
    if record is None:
        return []
    made, inputs, samples = record.provenance, record.inputs, record.samples
    packages = made.get("packages")
    made_with = [f"{name} {made[name]}" for name in ("neuco", "python") if name in made]
    made_with += [f"{name} {version}" for name, version in packages.items()] if isinstance(packages, dict) else []
    if "platform" in made:
        made_with.append(str(made["platform"]))
    facts = {
        "Protocol": record.protocol,
        "Samples": sample_counts(samples) if samples else "",
        "Versions": f"method {record.method_version}, task {record.task_version}",
        "Code": ", ".join(f"{name.removesuffix('_code')} {inputs.get(name)}" for name in CODE if inputs.get(name)),
        "Labels (sha256)": str(inputs.get("labels") or ""),
        "Embeddings (sha256)": str(inputs.get("embeddings") or ""),
        "Record": record.fingerprint,
        "Scored": str(made.get("time", "")),
        "Seconds": str(made.get("seconds", "")),
        "Made with": ", ".join(made_with),
    }
    return [(label, clean(value)) for label, value in facts.items() if value]


def sample_counts(samples: Mapping[str, int]) -> str:
    left = f", {samples['lost']} near tested ones left out" if samples.get("lost") else ""
    return f"{samples['used']} used, {samples['train']} to train, {samples['test']} to test{left}"


def details_script(page: PageData, method: str, against: Mapping[str, Any]) -> str:
    """The cells of a method and its differences to others, for the page, which loads them when they are asked for."""
    tasks = {}
    for task in page.board.tasks:
        cell = page.cells.cell(method, task.id) if page.cells else None
        if cell is not None and cell.splits:
            facts = record_facts(page, method, task.id)
            command = f"neuco verify {method}/{task.id}" if facts else ""
            tasks[task.id] = {"splits": rounded(list(cell.splits), 6), "facts": facts, "command": command}
    return f"neuco.give({literal(method)}, {literal({'tasks': tasks, 'against': against})});\n"


def has_pairs(page: PageData) -> bool:
    """Whether methods are tested in pairs: where splits are known, and the methods are not too many."""
    return page.cells is not None and len(page.board.shown) <= MOST


def differences(page: PageData) -> dict[str, dict[str, list[Difference | None]]]:
    """By two methods, a list by task, by the test of ``neuco compare``; ``None`` where the samples are not the same."""
    if page.cells is None or not has_pairs(page):
        return {}
    methods = [row.method for row in page.board.shown]
    cells = {name: [page.cells.cell(name, task.id) for task in page.board.tasks] for name in methods}
    pairs: dict[str, dict[str, list[Difference | None]]] = {name: {} for name in methods}
    for index, a in enumerate(methods):
        for b in methods[index + 1 :]:
            tests = [_test(*both) for both in zip(cells[a], cells[b], strict=True)]
            adjusted = holm([test.p if test else math.nan for test in tests])
            for test, p_holm in zip(tests, adjusted, strict=True):
                forward = back = None
                if test and math.isfinite(test.p):
                    difference, low, high = (rounded(value, 6) for value in (test.difference, test.low, test.high))
                    chances = float(f"{test.p:.3g}"), float(f"{p_holm:.3g}")
                    forward, back = (difference, low, high, *chances), (-difference, -high, -low, *chances)
                pairs[a].setdefault(b, []).append(forward)
                pairs[b].setdefault(a, []).append(back)
    return pairs


def _test(a: Cell, b: Cell) -> Comparison | None:
    if not a.scored or not b.scored or not a.splits or (len(a.splits), a.samples) != (len(b.splits), b.samples):
        return None
    first, second = ([math.nan if value is None else value for value in cell.splits] for cell in (a, b))
    return paired_test(first, second, a.test_to_train * min(a.trained.factor, b.trained.factor))
