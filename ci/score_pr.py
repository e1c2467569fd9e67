"""Score a pull request: its plugins run in the sandbox, become data, and are checked and scored as data.

The pull request passes if every check passes; a plugin of which no check completed fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from ci import sandbox
from ci.changed import TREES, Changes, changed, check_out
from ci.contributed import test_everything
from ci.extract import Contribution, Extractor
from ci.general import general
from ci.overlay import write_stub
from ci.report import LARGEST, MOST_FINDINGS, MOST_RECORDS, Report
from ci.sandbox import Limits
from neuco_core.contract.contract import Finding
from neuco_core.errors import DataError

HELP = "Run `python -m ci score-pr` on your machine; if it is not your plugin's fault, open an issue"
HOURS = 2  # more than any evaluation needs


class Scoring:
    """One pull request: ``base`` is the trusted checkout that this code belongs to, ``head`` the stranger's."""

    def __init__(self, base: Path, head: Path, since: str, limits: Limits | None = None, kind: str = "") -> None:
        self.base, self.head, self.since = base.resolve(), head.resolve(), since
        self.limits = limits or Limits()
        self.kind = kind or sandbox.engine()
        self._temporary = tempfile.TemporaryDirectory(prefix="neuco-ci-", ignore_cleanup_errors=True)
        self.scratch = Path(self._temporary.name)

    def run(self) -> Report:
        """Check and score everything that was touched."""
        start = time.monotonic()
        with self._temporary:
            changes = changed(self.head, self.since)
            findings = list(general(changes))
            plugins: list[Contribution] = []
            records: list[str] = []
            if not changes.unreadable:  # a link could lead out of the tree, so nothing is read
                self.head = check_out(self.head, changes.head, self.scratch / "head")
                plugins = [Contribution(item, self.head / item.folder) for item in changes.plugins]
                findings += self._everything(changes)
                records = self._score(plugins, findings)
            return self._report(changes, plugins, findings, records, time.monotonic() - start)

    def _everything(self, changes: Changes) -> list[Finding]:
        if changes.plugins or not changes.core:
            return []
        return [test_everything(self.head, self.scratch, self.limits, self.kind)]

    def _score(self, plugins: list[Contribution], findings: list[Finding]) -> list[str]:
        """From code to data to records; if our own part of it fails, that becomes a finding, too."""
        extractor = Extractor(self.base, self.head, self.scratch, self.limits, self.kind)
        present = [plugin for plugin in plugins if plugin.touched.how != "removed"]
        for plugin in present:
            extractor.look_at(plugin)
        try:
            extractor.encode(present)
            return self._evaluate(plugins)
        except Exception as error:
            findings.append(Finding("evaluate", "pull request", "failed", str(error) or type(error).__name__, HELP))
            return []

    def _evaluate(self, plugins: list[Contribution]) -> list[str]:
        """Check and score everything as data, in a process of its own whose plugins are the overlay's."""
        alive = [plugin for plugin in plugins if plugin.rows]
        if not alive:
            return []
        overlay = self._overlay(plugins)
        for plugin in alive:
            folder = overlay / plugin.touched.folder
            write_stub(folder, plugin.folder, plugin.rows)
            self._copy_data(plugin, folder)
        result = self._process(overlay, alive)
        for plugin in alive:
            mine = {*plugin.ids("task"), *plugin.ids("method")}
            plugin.findings += [finding for finding in result["findings"] if finding.subject in mine]
            for problem in result["problems"]:
                if problem["name"] in (plugin.touched.name, *mine):
                    plugin.say("register", "failed", problem["error"])
            self._judge_records(plugin, mine, result["records"])
        return list(result["records"])

    def _overlay(self, plugins: list[Contribution]) -> Path:
        """Main's plugins without the touched ones, whose place the stubs take."""
        overlay = self.scratch / "overlay"
        touched = {plugin.touched.folder for plugin in plugins}
        for package in TREES:
            (overlay / package).mkdir(parents=True)
            (overlay / package / "__init__.py").touch()
            for path in sorted((self.base / package).iterdir()):
                if path.is_dir() and path.name != "__pycache__" and f"{package}/{path.name}" not in touched:
                    (overlay / package / path.name).symlink_to(path)
        return overlay

    def _copy_data(self, plugin: Contribution, folder: Path) -> None:
        out = self.scratch / "out" / plugin.touched.folder
        for name in plugin.loaders:
            shutil.copyfile(out / "labels1" / f"{name}.csv", folder / f"_{name}.csv")
        for name in plugin.ids("dataset"):
            for suffix in (".npy", ".json"):
                if (out / "cubes" / f"{name}{suffix}").is_file():
                    shutil.copyfile(out / "cubes" / f"{name}{suffix}", folder / f"{name}{suffix}")

    def _process(self, overlay: Path, plugins: list[Contribution]) -> dict[str, Any]:
        registry = self.scratch / "registry"
        shutil.copytree(self.base / "registry" / "suites", registry / "suites")
        job = {
            "tasks": [name for plugin in plugins for name in plugin.ids("task")],
            "methods": [name for plugin in plugins for name in plugin.ids("method")],
            "plugins": [plugin.touched.name for plugin in plugins],
            "parts": {
                r["spec"]["id"]: r["part"] for w in plugins for r in w.rows if r["noun"] == "method" and r.get("part")
            },
            "loaders": {name: words for plugin in plugins for name, words in plugin.loaders.items()},
            "allow_unpinned": all(plugin.touched.how == "changed" for plugin in plugins),
            "seconds": self.limits.seconds,
        }
        (self.scratch / "job.json").write_text(json.dumps(job), encoding="utf-8")
        environment = {
            **os.environ,
            "PYTHONPATH": f"{overlay}{os.pathsep}{self.base}",
            "NEUCO_REGISTRY": str(registry),
        }
        command = [sys.executable, "-P", "-m", "ci.evaluate", str(self.scratch / "job.json")]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, cwd=self.scratch, timeout=HOURS * 3600
        )
        if done.returncode:
            raise DataError(f"the evaluation failed: {' '.join(done.stderr.split())[-500:]}")
        result: dict[str, Any] = json.loads((self.scratch / "result.json").read_text(encoding="utf-8"))
        if result.get("error"):
            raise DataError(f"the evaluation failed: {result['error']}")
        return {**result, "findings": msgspec.convert(result["findings"], list[Finding])}

    def _judge_records(self, plugin: Contribution, mine: set[str], records: list[str]) -> None:
        """A failed cell of the plugin is a failure; so is no score at all."""
        parsed = [json.loads(text) for text in records]
        own = [record for record in parsed if record["task"] in mine or record["method"] in mine]
        for record in own:
            if record["status"] == "failed":
                words = f"{record['method']} on {record['task']}: {record['failure']}: {record['reason']}"
                plugin.say("score", "failed", words)
        scored = sum(record["status"] == "ok" for record in own)
        skipped = len(own) - scored - sum(record["status"] == "failed" for record in own)
        if scored:
            plugin.say("score", "ok", f"{scored} cells scored" + (f", {skipped} skipped" if skipped else ""))
        elif not any(finding.check == "score" for finding in plugin.findings):
            reasons = "; ".join(sorted({record["reason"] for record in own})) or "no method or task fits"
            unpinned = plugin.touched.how == "changed" and own and all(record["status"] == "skipped" for record in own)
            plugin.say("score", "skipped" if unpinned else "failed", f"nothing was scored: {reasons}")

    def _report(
        self, changes: Changes, plugins: list[Contribution], findings: list[Finding], records: list[str], seconds: float
    ) -> Report:
        report = Report(
            base=changes.base,
            head=changes.head,
            sandbox=self.kind,  # type: ignore[arg-type] # one of two words, checked by whoever reads the report
            plugins=tuple(plugin.report() for plugin in plugins),
            general=tuple(findings),
            records=tuple(records),
            core=tuple(path[:4096] for path in changes.core[:MOST_FINDINGS]),
            seconds=round(seconds, 1),
            schema=1,
        )
        if len(records) <= MOST_RECORDS and len(report.to_bytes()) <= LARGEST:
            return report
        words = f"{len(records)} records are more than a report can hold"
        too_many = Finding("records", "pull request", "failed", words, "Make several pull requests")
        return msgspec.structs.replace(report, records=(), general=(*findings, too_many))


def score_pr(base: Path, head: Path, since: str, limits: Limits | None = None, kind: str = "") -> Report:
    """The report of a pull request."""
    return Scoring(base, head, since, limits, kind).run()
