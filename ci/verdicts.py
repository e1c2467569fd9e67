"""What the cells of a plugin say about it: scored, failed by its fault, or not scored for somebody else's reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ci.boxes import PluginData
from ci.report import WAITING
from neuco_core.contract.contract import FAILED
from neuco_core.specs import versioned_id
from neuco_core.text import counted

Pair = tuple[str, str]  # labels of a method and a task
CARD = "only its card or its tests changed, so its records stay as they are"
NEXT = "Nothing for the contributor to do: a maintainer reads the reason, provides what is missing, and runs this again"


def judge_cells(plugin: PluginData, result: Mapping[str, Any], missing: Mapping[Pair, str]) -> None:
    """Say what became of a plugin's cells; without any score it is waiting, or has failed if nothing could fit it."""
    own = {spec.label for spec in (*plugin.tasks, *plugin.methods)}
    records = [row for row in map(_parsed, result["records"]) if own & set(row["pair"])]
    skipped = Counter(reason for pair, reason in missing.items() if own & set(pair))
    unfit: set[str] = set()
    for cell in result["unscored"]:
        if own & {cell["method"], cell["task"]}:
            if cell["state"] == "skipped":
                skipped[cell["reason"]] += 1
            else:
                unfit.add(cell["reason"])
    failures, others = _blame(plugin, records, {tuple(pair) for pair in result["foreign"]})
    skipped.update(others)
    for words in failures:
        plugin.say("score", "failed", words)
    for reason, cells in skipped.items():
        plugin.say("score", "skipped", f"{counted(cells, 'cell')} not scored here: {reason}")
    scored = sum(record["status"] == "ok" for record in records)
    if scored:
        plugin.say("score", "ok", f"{scored} cells scored")
    elif not any(finding.status == FAILED for finding in plugin.findings):
        if skipped:
            plugin.say(WAITING, "skipped", f"nothing could be scored here: {'; '.join(skipped)}", NEXT)
        else:
            reasons = "; ".join(sorted(unfit)) or "no method or task fits"
            plugin.say("score", "failed", f"nothing was scored: {reasons}")


def _parsed(text: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(text)
    method, task = (versioned_id(record[noun], record[f"{noun}_version"]) for noun in ("method", "task"))
    return {**record, "pair": (method, task)}


def _blame(
    plugin: PluginData, records: Sequence[Mapping[str, Any]], foreign: Collection[Pair]
) -> tuple[list[str], list[str]]:
    """Cells without a score: those that failed by the plugin's making, and those that did not, each with the reason.

    An untouched method that cannot be scored on a task, where another can, has only itself to blame: the task's labels
    were checked by themselves. But if none can, the task is such that nobody fits it.
    """
    tasks = {task.label for task in plugin.tasks}
    fits = {record["pair"][1] for record in records if record["status"] == "ok"} & tasks
    mine: list[str] = []
    others: list[str] = []
    for record in records:
        if record["status"] == "failed":
            words = f"{record['method']} on {record['task']}: {record['failure']}: {record['reason']}"
            innocent = record["pair"] in foreign or record["pair"][1] in fits
            (others if innocent else mine).append(words)
        elif record["status"] == "skipped":  # while it was run: a full disk, for example
            others.append(record["reason"])
    return mine, others
