"""Score a pull request: every plugin becomes data in a sandbox of its own, and data is checked and scored.

What is found here is decided on in ``Report.verdict``. What cannot be scored for somebody else's reason (labels without
a pin, a dataset elsewhere, a server that is down) waits for a maintainer.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ci.changed import TREES, Changes, changed, frozen_suites
from ci.describe import describe, describe_all
from ci.extract import array_header, fetch_sources, make_cubes, make_labels, run_tests
from ci.git import check_out
from ci.plugin_sandbox import OVER, PINS, PluginData, PluginSandbox, plugin_folders
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
)
from ci.sandbox import Limits
from ci.score import Material, check_and_score, choose, only_datasets, report_cells
from neuco_core.contract.contract import Finding, Status
from neuco_core.errors import NeucoError
from neuco_core.fetch.transfer import TransientError
from neuco_core.records.store import read_all

HELP = "Run `python -m ci score-pr` on your machine; if it is not your plugin's fault, open an issue"
MINUTES = 150.0  # for a whole pull request; the workflows end after 180
CARD = "only its card or its tests changed, so its records stay as they are"
IMAGES = "dataset-images"  # as `neuco check` calls it; here they are read in the sandbox


class Judge:
    """One pull request: ``base`` is the trusted checkout that this code belongs to, ``head`` the stranger's.

    ``tell`` is given a line for each step: a run takes minutes, and whoever waits wants to know for what.
    """

    def __init__(
        self,
        base: Path,
        head: Path,
        since: str,
        limits: Limits | None = None,
        minutes: float = MINUTES,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.start = time.monotonic()
        self.base, self.head, self.since = base.resolve(), head.resolve(), since
        self._temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # its name shows inside
        self.scratch = Path(self._temporary.name)
        self.boxes = PluginSandbox(
            self.base,
            self.scratch,
            limits or Limits(),
            self.start + 60 * minutes,
            lambda text: tell(f"[{time.monotonic() - self.start:4.0f} s] {text}"),
        )
        self.findings: list[Finding] = []  # on the pull request as a whole
        self.suites = frozen_suites(self.base / "registry")
        self.cards: set[str] = set()  # folders of plugins whose scores cannot have changed

    def run(self) -> Report:
        """Check and score everything that was touched."""
        with self._temporary:
            changes = changed(self.head, self.since)
            self.findings += general(changes)
            mine: list[PluginData] = []
            records: list[str] = []
            # A link could lead out of the tree, so then nothing is read.
            if not changes.unreadable and len(changes.plugins) <= MOST_PLUGINS:
                self.head = check_out(self.head, changes.head, self.scratch / "head")
                mine, records = self._judge(changes)
            if time.monotonic() > self.boxes.deadline:  # whatever was left out, by whoever's fault
                self.findings.append(Finding("deadline", "pull request", "failed", OVER, "Make several pull requests"))
            return self._report(changes, mine, records)

    def _judge(self, changes: Changes) -> tuple[list[PluginData], list[str]]:
        """Describe main and what the pull request makes of it, compare the two, and score what is touched."""
        before = describe_all(self.boxes) if changes.plugins or changes.core else []
        for tree in TREES:  # from now on the folders of touched plugins are the pull request's
            here = plugin_folders(self.head / tree)
            for name in (touched.name for touched in changes.plugins if touched.tree == tree):
                self.boxes.folders[tree].pop(name, None)
                if name in here:
                    self.boxes.folders[tree][name] = here[name]
        made = self.scratch / "made" / "touched"
        mine = [PluginData(item, self.head / item.folder, made / item.folder) for item in changes.plugins]
        folders = {plugin.touched.folder for plugin in mine}
        present = [plugin for plugin in mine if plugin.touched.how != "removed"]
        after = [*(plugin for plugin in before if plugin.touched.folder not in folders), *present]
        for plugin in present:
            self._look_at(plugin)
        rows = {plugin.touched.folder: plugin.rows for plugin in before}
        for plugin in present:  # registers what it does on main, with the same code and data
            folder = plugin.touched.folder
            if folder in changes.cards and plugin.rows and plugin.rows == rows.get(folder):
                self.cards.add(folder)
        self._compare(changes, before, after, mine)
        try:
            return mine, self._score(changes.head, after, present)
        except Exception as error:
            self._say("evaluate", "failed", str(error) or type(error).__name__, HELP)
            return mine, []

    def _compare(
        self, changes: Changes, before: list[PluginData], after: list[PluginData], mine: list[PluginData]
    ) -> None:
        """What pure functions decide from the declarations and the data of both sides."""
        self.findings += compare_ids(before, after)
        gone = [plugin for plugin in mine if plugin.touched.how == "removed"]
        records = read_all(self.base / "registry") if gone else []
        for plugin in gone:
            self.findings += removed(plugin.touched, before, self.suites, records)
        if changes.core or any(plugin.touched.tree == "neuco_tasks" for plugin in mine if plugin not in gone):
            known = list(check_suites(self.base / "registry", before))  # a plugin of main may be broken
            self.findings += [item for item in check_suites(self.head / "registry", after) if item not in known]
        if PINS in changes.core:
            self.findings += check_pins(self.base, self.head, before)
        self.findings += check_submissions(self.base, self.head, changes.submissions)
        suites = [path for path in changes.core if "/suites/" in path]
        self.findings += changed_suites(self.base, self.head, suites, after)

    def _say(self, check: str, status: Status, detail: str, cure: str = "", subject: str = "pull request") -> None:
        self.findings.append(Finding(check, subject, status, detail, cure))

    def _look_at(self, plugin: PluginData) -> None:
        """Describe and test one contributed plugin; errors become findings."""
        if not (plugin.folder / "__init__.py").is_file():
            plugin.problem = "there is no __init__.py, so nothing is registered"
            plugin.say("import", "failed", plugin.problem, "Write one; `neuco new` does")
            return
        describe(self.boxes, plugin)
        for method in plugin.methods:
            if method.uses_ids:
                detail = f"method {method.label!r} declares uses_ids=True: it is given the true names of samples"
                plugin.say("uses-ids", "warning", detail, "Make sure that it needs them, and that they tell no label")
        try:
            fetch_sources(plugin, [*plugin.tasks, *plugin.methods, *plugin.datasets])
            make_labels(self.boxes, plugin)
        except TransientError as error:  # then no cell that needs it can be scored, and this says why
            plugin.say("data", "skipped", str(error))
        except Exception as error:  # what comes out of the sandbox may be broken in any way
            self._check_card(plugin)
            plugin.problem = str(error)
            plugin.declare([])
            plugin.say("data", "failed", plugin.problem, "Repair the plugin; `neuco check` shows the same here")
        try:
            run_tests(self.boxes, plugin)
        except NeucoError as error:
            plugin.say("tests", "failed", str(error))

    def _check_card(self, plugin: PluginData) -> None:
        """What can be said of a plugin without its data: its files and what it declares of itself."""
        try:
            only = {plugin.touched.folder}
            plugin.findings += check_and_score(
                self.boxes, [plugin], [], commit="", touched=[plugin], cards=only
            ).findings
        except Exception as error:  # what comes out of the sandbox may be broken in any way
            plugin.say("contract", "failed", str(error))

    def _score(self, commit: str, after: Sequence[PluginData], present: Sequence[PluginData]) -> list[str]:
        """Make the data of all cells that are asked for, and evaluate them."""
        alive = [plugin for plugin in present if plugin.rows]
        if not alive:
            return []
        material = Material(self.boxes, after)
        still = {plugin.touched.folder for plugin in after if plugin.kept} | self.cards
        wanted = [
            cell
            for cell in choose(after, self.suites)
            if not {cell.methods.touched.folder, cell.tasks.touched.folder} <= still
        ]
        cells = material.gather(wanted)
        for plugin in alive:
            if only_datasets(plugin) and plugin.touched.folder not in self.cards:
                self._look_at_images(plugin)
        result = check_and_score(self.boxes, after, cells, commit=commit, touched=alive, cards=self.cards)
        records = result.records()
        for problem in result.problems:
            self._say("register", "failed", problem["error"], "Repair the plugin", subject=problem["name"])
        for plugin in alive:
            ids = {*plugin.ids("task"), *plugin.ids("method"), *plugin.ids("dataset")}
            plugin.findings += [finding for finding in result.findings if finding.subject in ids]
            if plugin.touched.folder in self.cards:
                plugin.say("score", "skipped", CARD)
            elif plugin.tasks or plugin.methods:
                report_cells(plugin, result, records, material.missing)
        return result.texts

    def _look_at_images(self, plugin: PluginData) -> None:
        """Read every image of datasets that are a plugin by themselves; those beside tasks are read for their cells."""
        for dataset in plugin.datasets:
            try:
                folder = make_cubes(self.boxes, plugin, dataset)
                shape = array_header(folder / "cubes.npy")[0]
                detail = f"{shape[0]} images of {shape[2]} bands, {shape[3]} × {shape[4]} pixels, all read"
                plugin.say(IMAGES, "ok", detail)
            except TransientError as error:
                plugin.say(WAITING, "skipped", str(error), "Run it again")
            except Exception as error:  # what comes out of a sandbox may be broken in any way
                plugin.say(IMAGES, "failed", str(error), "Pack them again; `neuco data check` names damaged ones")

    def _report(self, changes: Changes, mine: list[PluginData], records: list[str]) -> Report:
        report = Report(
            base=changes.base,
            head=changes.head,
            sandbox="bubblewrap",
            plugins=tuple(plugin.report() for plugin in mine),
            general=cut(self.findings),
            records=tuple(records),
            core=tuple(path[:4096] for path in changes.core[:MOST_FINDINGS]),
            seconds=round(time.monotonic() - self.start, 1),
            schema=1,
        )
        size = len(report.to_bytes())
        if len(records) <= MOST_RECORDS and size <= LARGEST:
            return report
        detail = f"{len(records)} records and {len(report.findings)} findings are more than a report can hold"
        too_many = Finding("records", "pull request", "failed", detail, "Make several pull requests")
        # Without their findings if these are what is too large: then nothing is known of the plugins.
        kept = report.plugins if size - sum(map(len, records)) < LARGEST // 2 else ()
        return msgspec.structs.replace(report, records=(), plugins=kept, general=(*report.general[:SHOWN], too_many))
