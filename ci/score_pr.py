"""Score a pull request: every plugin becomes data in a sandbox of its own, and data is checked and scored.

The pull request passes if every check passes; a plugin of which no check completed fails. What cannot be scored here
for somebody else's reason (labels without a pin, a dataset elsewhere, a server that is down) waits for a maintainer.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from ci import sandbox
from ci.as_data import describe_all, write_tree
from ci.boxes import OVER, Boxes, PluginData, in_cache, limit, plugin_folders
from ci.cells import Cell, Material, choose
from ci.changed import TREES, Changes, changed, check_out
from ci.collect import array_header
from ci.contributed import test_everything
from ci.embeddings import Store, read_index
from ci.extract import describe, fetch_sources, make_cubes, make_labels, run_tests
from ci.general import MOST_PLUGINS, SHOWN, check_suites, compare_ids, general, removed, unwritten
from ci.registry_data import PINS, changed_suites, check_pins
from ci.report import LARGEST, MOST_FINDINGS, MOST_RECORDS, WAITING, Report, cut
from ci.sandbox import OUT, TREE, Limits
from ci.stub import read_json
from ci.submissions import check_submissions
from ci.verdicts import CARD, judge_cells
from neuco_core.contract.contract import Finding
from neuco_core.errors import DataError
from neuco_core.fetch.transfer import TransientError
from neuco_core.plugins.catalog import Catalog
from neuco_core.records.store import read_all
from neuco_core.text import counted, join_names

HELP = "Run `python -m ci score-pr` on your machine; if it is not your plugin's fault, open an issue"
MINUTES = 150.0  # for a whole pull request; the workflows end after 180
HOURS = 2  # more than any evaluation needs
IMAGES = "dataset-images"  # as `neuco check` calls it; here they are read in the sandbox


class Scoring:
    """One pull request: ``base`` is the trusted checkout that this code belongs to, ``head`` the stranger's.

    ``merged``: it is on main now. ``tell`` is given a line for each step.
    """

    def __init__(
        self,
        base: Path,
        head: Path,
        since: str,
        limits: Limits | None = None,
        kind: str = "",
        merged: bool = False,
        minutes: float = MINUTES,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._tell, self._start = tell, time.monotonic()
        self.base, self.head, self.since, self.merged = base.resolve(), head.resolve(), since, merged
        self.limits = limits or Limits()
        self.deadline = time.monotonic() + 60 * minutes
        self.kind = kind or sandbox.engine()
        self._temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # its name shows inside
        self.scratch = Path(self._temporary.name)
        self.suites = list(Catalog(registry=self.base / "registry").suites().values())
        self.cards: set[str] = set()  # folders of plugins whose scores cannot have changed
        self.commit = ""

    def tell(self, text: str) -> None:
        """Say what begins now: a run takes minutes, and whoever waits wants to know for what."""
        self._tell(f"[{time.monotonic() - self._start:4.0f} s] {text}")

    def run(self) -> Report:
        """Check and score everything that was touched."""
        start = time.monotonic()
        with self._temporary:
            changes = changed(self.head, self.since)
            self.commit = changes.head
            findings = list(general(changes))
            mine: list[PluginData] = []
            records: list[str] = []
            # A link could lead out of the tree, so then nothing is read.
            if not changes.unreadable and len(changes.plugins) <= MOST_PLUGINS:
                self.head = check_out(self.head, changes.head, self.scratch / "head")
                mine, records = self._judge(changes, findings)
            if time.monotonic() > self.deadline:  # whatever was left out, by whoever's fault
                findings.append(Finding("deadline", "pull request", "failed", OVER, "Make several pull requests"))
            return self._report(changes, mine, findings, records, time.monotonic() - start)

    def _judge(self, changes: Changes, findings: list[Finding]) -> tuple[list[PluginData], list[str]]:
        """Describe main and what the pull request makes of it, compare the two, and score what is touched."""
        boxes = Boxes(self.base, self.scratch, self.limits, self.kind, self.deadline, self.tell)
        self.tell(f"asking {sum(map(len, boxes.folders.values()))} plugins of main what they register")
        before = describe_all(boxes) if changes.plugins or changes.core else []
        mine = self._touched(boxes, changes)
        folders = {plugin.touched.folder for plugin in mine}
        there = [plugin for plugin in mine if plugin.touched.how != "removed"]
        after = [*(plugin for plugin in before if plugin.touched.folder not in folders), *there]
        for plugin in there:
            self._look_at(boxes, plugin)
        rows = {plugin.touched.folder: plugin.rows for plugin in before}
        self.cards = {name for name in changes.cards for plugin in there if _same(plugin, name, rows)}
        findings += compare_ids(before, after)
        gone = [plugin for plugin in mine if plugin not in there]
        records = read_all(self.base / "registry") if gone else []
        findings += [item for plugin in gone for item in removed(plugin.touched, before, self.suites, records)]
        if changes.core or any(plugin.touched.tree == "neuco_tasks" for plugin in there):
            findings += check_suites(self.head / "registry", after)
        if str(PINS) in changes.core:
            findings += check_pins(self.base, self.head, before)
        findings += check_submissions(self.base, self.head, changes.submissions)
        findings += changed_suites(self.base, self.head, [path for path in changes.core if "/suites/" in path], after)
        try:
            if changes.core and not (changes.plugins or changes.only_data):
                limits = boxes.within(self.limits)
                findings += test_everything(self.head, self.scratch, limits, self.kind, boxes.warm_for(self.head))
            return mine, self._score(boxes, after, there, findings)
        except Exception as error:
            findings.append(Finding("evaluate", "pull request", "failed", str(error) or type(error).__name__, HELP))
            return mine, []

    def _touched(self, boxes: Boxes, changes: Changes) -> list[PluginData]:
        """The touched plugins; from now on their folders are the pull request's."""
        for tree in TREES:
            here = plugin_folders(self.head / tree)
            for touched in changes.plugins:
                if touched.tree == tree:
                    boxes.folders[tree].pop(touched.name, None)
                    boxes.folders[tree] |= {touched.name: here[touched.name]} if touched.name in here else {}
        made = self.scratch / "made" / "touched"
        return [PluginData(item, self.head / item.folder, made / item.folder) for item in changes.plugins]

    def _look_at(self, boxes: Boxes, plugin: PluginData) -> None:
        """Describe and test one contributed plugin; errors become findings."""
        if not (plugin.folder / "__init__.py").is_file():
            plugin.problem = "there is no __init__.py, so nothing is registered"
            plugin.say("import", "failed", plugin.problem, "Write one; `neuco new` does")
            return
        describe(boxes, plugin)
        for method in plugin.methods:
            if method.uses_ids:
                words = f"method {method.label!r} declares uses_ids=True: it is given the true names of samples"
                plugin.say("uses-ids", "warning", words, "Make sure that it needs them, and that they tell no label")
        plugin.findings += unwritten(plugin)
        try:
            fetch_sources(plugin, [*plugin.tasks, *plugin.methods, *plugin.datasets])
            make_labels(boxes, plugin)
        except TransientError as error:  # then no cell that needs it can be scored, and this says why
            plugin.say("data", "skipped", str(error))
        except Exception as error:  # what comes out of the sandbox may be broken in any way
            plugin.problem, plugin.rows = str(error), []
            plugin.say("data", "failed", plugin.problem, "Repair the plugin; `neuco check` shows the same here")
        try:
            run_tests(boxes, plugin)
        except DataError as error:
            plugin.say("tests", "failed", str(error))

    def _score(
        self, boxes: Boxes, after: Sequence[PluginData], mine: Sequence[PluginData], general: list[Finding]
    ) -> list[str]:
        """Make the data of all cells that are asked for, and evaluate them."""
        alive = [plugin for plugin in mine if plugin.rows]
        if not alive:
            return []
        store = Store(read_index(self.base / "registry"))
        material = Material(boxes, after, self.merged, store)
        still = {plugin.touched.folder for plugin in after if plugin.kept} | self.cards
        wanted = [
            cell
            for cell in choose(after, self.suites)
            if not {cell.methods.touched.folder, cell.tasks.touched.folder} <= still
        ]
        cells = material.gather(wanted)
        general += [Finding("stored-embeddings", "main", "warning", note) for note in store.notes]
        if store.used:
            general.append(
                Finding("stored-embeddings", "main", "ok", f"taken from the store: {join_names(store.used)}")
            )
        for plugin in alive:
            self._look_at_images(boxes, plugin)
        result = self._evaluate(boxes, after, alive, cells)
        for problem in result["problems"]:
            general.append(Finding("register", problem["name"], "failed", problem["error"], "Repair the plugin"))
        for plugin in alive:
            ids = {*plugin.ids("task"), *plugin.ids("method"), *plugin.ids("dataset")}
            plugin.findings += [finding for finding in result["findings"] if finding.subject in ids]
            if plugin.touched.folder in self.cards:
                plugin.say("score", "skipped", CARD)
            elif plugin.tasks or plugin.methods:
                judge_cells(plugin, result, material.missing)
        return list(result["records"])

    def _look_at_images(self, boxes: Boxes, plugin: PluginData) -> None:
        """Read every image of a dataset that is a plugin by itself; those beside tasks are read for their cells."""
        for dataset in plugin.datasets if only_datasets(plugin) and plugin.touched.folder not in self.cards else ():
            try:
                folder = make_cubes(boxes, plugin, dataset)
                shape = array_header(folder / "cubes.npy")[0]
                words = f"{shape[0]} images of {shape[2]} bands, {shape[3]} × {shape[4]} pixels, all read"
                plugin.say(IMAGES, "ok", words)
            except TransientError as error:
                plugin.say(WAITING, "skipped", str(error), "Run it again")
            except Exception as error:  # what comes out of a sandbox may be broken in any way
                plugin.say(IMAGES, "failed", str(error), "Pack them again; `neuco data verify` names damaged ones")

    def _evaluate(
        self, boxes: Boxes, after: Sequence[PluginData], alive: Sequence[PluginData], cells: Sequence[Cell]
    ) -> dict[str, Any]:
        """Run ``ci.evaluate`` where all plugins are data; also what reads strangers' files has limits."""
        self.tell(f"checking the contract of {counted(len(alive), 'plugin')} and scoring {counted(len(cells), 'cell')}")
        tree = self.scratch / "data"
        write_tree(tree, self.base, after)
        by_protocol: dict[str, list[tuple[str, str]]] = {}
        for cell in cells:
            by_protocol.setdefault(cell.protocol, []).append(cell.pair)
        job = {
            "tasks": [task.label for plugin in alive for task in plugin.tasks],
            "methods": [method.label for plugin in alive for method in plugin.methods],
            "datasets": [dataset.id for plugin in alive if only_datasets(plugin) for dataset in plugin.datasets],
            "cells": by_protocol,
            "touched": [plugin.touched.folder.replace("/", ".") for plugin in alive],
            # A contributor brings labels that are pinned; those that main has are a maintainer's to pin.
            "unpinned": [task.label for plugin in alive for task in plugin.tasks if plugin.touched.how == "changed"],
            "cards": [
                spec.label
                for plugin in alive
                for spec in (*plugin.tasks, *plugin.methods)
                if plugin.touched.folder in self.cards
            ],
            "commit": self.commit,
            "seconds": self.limits.seconds,
        }
        (tree / "job.json").write_text(json.dumps(job), encoding="utf-8")
        fetched = {sha: path for plugin in after for sha, path in plugin.fetched.items()}
        limits = boxes.within(replace(self.limits, seconds=HOURS * 3600))
        read = {TREE: tree, **in_cache(fetched)}
        if any(plugin.tasks for plugin in alive):
            read |= boxes.warm()
        arguments = ("-m", "ci.evaluate", OUT, f"{TREE}/job.json")
        ran = sandbox.run(arguments, read=read, out=self.scratch / "out" / "evaluate", limits=limits, kind=self.kind)
        if not ran.ok:
            if ran.status != "failed":
                what = f"the evaluation was stopped at the limit of {ran.status}"
                raise DataError(what, expected=limit(ran, limits))
            raise DataError(f"the evaluation failed: {' '.join(ran.output.split())[-500:]}")
        result: dict[str, Any] = read_json(self.scratch / "out" / "evaluate" / "result.json", 2 * LARGEST)
        if "error" in result:
            raise DataError(f"the evaluation failed: {result['error']}")
        return {**result, "findings": msgspec.convert(result["findings"], list[Finding])}

    def _report(
        self, changes: Changes, mine: list[PluginData], findings: list[Finding], records: list[str], seconds: float
    ) -> Report:
        report = Report(
            base=changes.base,
            head=changes.head,
            sandbox=self.kind,  # type: ignore[arg-type] # one of two words, checked by whoever reads the report
            plugins=tuple(plugin.report() for plugin in mine),
            general=cut(findings),
            records=tuple(records),
            core=tuple(path[:4096] for path in changes.core[:MOST_FINDINGS]),
            seconds=round(seconds, 1),
            schema=1,
        )
        size = len(report.to_bytes())
        if len(records) <= MOST_RECORDS and size <= LARGEST:
            return report
        words = f"{len(records)} records and {len(report.findings)} findings are more than a report can hold"
        too_many = Finding("records", "pull request", "failed", words, "Make several pull requests")
        # Without their findings if these are what is too large: then nothing is known of the plugins.
        kept = report.plugins if size - sum(map(len, records)) < LARGEST // 2 else ()
        return msgspec.structs.replace(report, records=(), plugins=kept, general=(*report.general[:SHOWN], too_many))


def only_datasets(plugin: PluginData) -> bool:
    return bool(plugin.datasets) and not plugin.tasks and not plugin.methods


def _same(plugin: PluginData, folder: str, main: dict[str, list[dict[str, Any]]]) -> bool:
    """Whether it is the plugin in a folder and registers what it does on main, with the same code and data."""
    return plugin.touched.folder == folder and bool(plugin.rows) and plugin.rows == main.get(folder)
