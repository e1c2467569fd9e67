"""Score a pull request: every plugin becomes data in a sandbox of its own, and data is checked and scored.

The pull request passes if every check passes; a plugin of which no check completed fails. What cannot be scored here
for somebody else's reason (labels without a pin, a dataset elsewhere, a server that is down) waits for a maintainer.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ci import sandbox
from ci.changed import TREES, Changes, changed, frozen_suites
from ci.describe import describe, describe_all
from ci.embeddings import Store, read_index
from ci.extract import fetch_sources, make_cubes, make_labels
from ci.git import check_out
from ci.plugin_sandbox import OVER, PINS, PluginData, PluginSandbox, plugin_folders
from ci.plugin_tests import run_tests, test_everything
from ci.read_outputs import array_header
from ci.report import LARGEST, MOST_FINDINGS, MOST_RECORDS, WAITING, Report, cut
from ci.rules import (
    MOST_PLUGINS,
    SHOWN,
    changed_suites,
    check_pins,
    check_submissions,
    check_suites,
    compare_ids,
    general,
    removed,
    unwritten,
)
from ci.sandbox import Limits
from ci.score import Material, choose, evaluate, judge_cells, only_datasets
from neuco_core.contract.contract import Finding
from neuco_core.errors import DataError
from neuco_core.fetch.transfer import TransientError
from neuco_core.records.store import read_all
from neuco_core.text import join_names

HELP = "Run `python -m ci score-pr` on your machine; if it is not your plugin's fault, open an issue"
MINUTES = 150.0  # for a whole pull request; the workflows end after 180
CARD = "only its card or its tests changed, so its records stay as they are"
IMAGES = "dataset-images"  # as `neuco check` calls it; here they are read in the sandbox


class Judge:
    """One pull request: ``base`` is the trusted checkout that this code belongs to, ``head`` the stranger's.

    ``tell`` is given a line for each step.
    """

    def __init__(
        self,
        base: Path,
        head: Path,
        since: str,
        limits: Limits | None = None,
        kind: str = "",
        minutes: float = MINUTES,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._tell, self._start = tell, time.monotonic()
        self.base, self.head, self.since = base.resolve(), head.resolve(), since
        self.limits = limits or Limits()
        self.deadline = time.monotonic() + 60 * minutes
        self.kind = kind or sandbox.engine()
        self._temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # its name shows inside
        self.scratch = Path(self._temporary.name)
        self.suites = frozen_suites(self.base / "registry")
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
        boxes = PluginSandbox(self.base, self.scratch, self.limits, self.kind, self.deadline, self.tell)
        before = describe_all(boxes) if changes.plugins or changes.core else []
        mine = self._touched(boxes, changes)
        folders = {plugin.touched.folder for plugin in mine}
        there = [plugin for plugin in mine if plugin.touched.how != "removed"]
        after = [*(plugin for plugin in before if plugin.touched.folder not in folders), *there]
        for plugin in there:
            self._look_at(boxes, plugin)
        rows = {plugin.touched.folder: plugin.rows for plugin in before}
        for plugin in there:  # registers what it does on main, with the same code and data
            folder = plugin.touched.folder
            if folder in changes.cards and plugin.rows and plugin.rows == rows.get(folder):
                self.cards.add(folder)
        findings += compare_ids(before, after)
        gone = [plugin for plugin in mine if plugin not in there]
        records = read_all(self.base / "registry") if gone else []
        findings += [item for plugin in gone for item in removed(plugin.touched, before, self.suites, records)]
        if changes.core or any(plugin.touched.tree == "neuco_tasks" for plugin in there):
            findings += check_suites(self.head / "registry", after)
        if PINS in changes.core:
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

    def _touched(self, boxes: PluginSandbox, changes: Changes) -> list[PluginData]:
        """The touched plugins; from now on their folders are the pull request's."""
        for tree in TREES:
            here = plugin_folders(self.head / tree)
            for touched in changes.plugins:
                if touched.tree == tree:
                    boxes.folders[tree].pop(touched.name, None)
                    boxes.folders[tree] |= {touched.name: here[touched.name]} if touched.name in here else {}
        made = self.scratch / "made" / "touched"
        return [PluginData(item, self.head / item.folder, made / item.folder) for item in changes.plugins]

    def _look_at(self, boxes: PluginSandbox, plugin: PluginData) -> None:
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
            plugin.problem = str(error)
            plugin.declare([])
            plugin.say("data", "failed", plugin.problem, "Repair the plugin; `neuco check` shows the same here")
        try:
            run_tests(boxes, plugin)
        except DataError as error:
            plugin.say("tests", "failed", str(error))

    def _score(
        self, boxes: PluginSandbox, after: Sequence[PluginData], mine: Sequence[PluginData], general: list[Finding]
    ) -> list[str]:
        """Make the data of all cells that are asked for, and evaluate them."""
        alive = [plugin for plugin in mine if plugin.rows]
        if not alive:
            return []
        store = Store(read_index(self.base / "registry"))
        material = Material(boxes, after, store=store)
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
        result = evaluate(boxes, after, cells, commit=self.commit, touched=alive, cards=self.cards)
        for problem in result.problems:
            general.append(Finding("register", problem["name"], "failed", problem["error"], "Repair the plugin"))
        for plugin in alive:
            ids = {*plugin.ids("task"), *plugin.ids("method"), *plugin.ids("dataset")}
            plugin.findings += [finding for finding in result.findings if finding.subject in ids]
            if plugin.touched.folder in self.cards:
                plugin.say("score", "skipped", CARD)
            elif plugin.tasks or plugin.methods:
                judge_cells(plugin, result, material.missing)
        return result.texts

    def _look_at_images(self, boxes: PluginSandbox, plugin: PluginData) -> None:
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
