"""What is behind a score: its splits, its record, the command that verifies it, its differences to other methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from neuco_core.boards.cells import Cell
from neuco_core.boards.model import rounded
from neuco_core.scoring.compare import Comparison, holm, paired_test
from neuco_core.site.page_data import PageData
from neuco_core.site.render import literal
from neuco_core.text import clean

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
        "Samples": f"{samples['used']} used, {samples['train']} to train, {samples['test']} to test" if samples else "",
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


def verify_command(page: PageData, method: str, task: str) -> str:
    """The line that runs the score again and compares it with the record."""
    record = page.records.get((method, task))
    return f"neuco verify {'/'.join(record.key[:2])}" if record else ""


def details_script(page: PageData, method: str, against: Mapping[str, Any]) -> str:
    """The cells of a method and its differences to others, for the page, which loads them when they are asked for."""
    tasks = {}
    for task in page.board.tasks:
        cell = page.cells.cell(method, task.id) if page.cells else None
        if cell is not None and cell.splits:
            tasks[task.id] = {
                "splits": rounded(list(cell.splits), 6),
                "facts": record_facts(page, method, task.id),
                "command": verify_command(page, method, task.id),
            }
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
    return paired_test(first, second, a.test_to_train)
