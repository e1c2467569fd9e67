"""Score a pull request: its plugins run in the sandbox, become data, and are checked and scored as data.

The result is the AND of everything that was looked at; a plugin about which nothing could be found out is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ci import sandbox
from ci.changed import TREES, Changes, changed, check_out
from ci.contributed import test_everything
from ci.extract import Extractor, Work
from ci.general import general
from ci.overlay import write_stub
from ci.report import LARGEST, MOST_FINDINGS, MOST_RECORDS, Finding, PluginReport, Report
from ci.sandbox import Limits
from neuco_core.errors import DataError

HELP = "Run `python -m ci score-pr` on your machine; if it is not your plugin's fault, tell us in an issue"
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
        """Look at everything that was touched, and judge."""
        start = time.monotonic()
        with self._temporary:
            changes = changed(self.head, self.since)
            findings = list(general(changes))
            works: list[Work] = []
            records: list[str] = []
            if not changes.unreadable:  # a link could lead out of the tree, so not even a look is taken
                self.head = check_out(self.head, changes.head, self.scratch / "head")
                works = [Work(item, self.head / item.folder) for item in changes.plugins]
                findings += self._everything(changes)
                records = self._score(works, findings)
            return self._report(changes, works, findings, records, time.monotonic() - start)

    def _everything(self, changes: Changes) -> list[Finding]:
        if changes.plugins or not changes.core:
            return []
        return [test_everything(self.head, self.scratch, self.limits, self.kind)]

    def _score(self, works: list[Work], findings: list[Finding]) -> list[str]:
        """From code to data to records; if our own part of it fails, that is a finding like any other."""
        extractor = Extractor(self.base, self.head, self.scratch, self.limits, self.kind)
        present = [work for work in works if work.touched.how != "removed"]
        for work in present:
            extractor.look_at(work)
        try:
            extractor.encode(present)
            return self._evaluate(works)
        except Exception as error:
            findings.append(Finding("evaluate", "pull request", "failed", str(error) or type(error).__name__, HELP))
            return []

    def _evaluate(self, works: list[Work]) -> list[str]:
        """Everything as data: check and score it in a process of its own, whose plugins are the overlay's."""
        alive = [work for work in works if work.rows]
        if not alive:
            return []
        overlay = self._overlay(works)
        for work in alive:
            folder = overlay / work.touched.folder
            write_stub(folder, work.folder, work.rows)
            self._copy_data(work, folder)
        result = self._process(overlay, alive)
        for work in alive:
            mine = {*work.ids("task"), *work.ids("method")}
            for row in result["findings"]:
                if row["subject"] in mine:
                    work.findings.append(
                        Finding(row["check"], row["subject"], row["status"], row["detail"], row["cure"])
                    )
            for problem in result["problems"]:
                if problem["name"] in (work.touched.name, *mine):
                    work.say("register", "failed", problem["error"])
            self._judge_records(work, mine, result["records"])
        return list(result["records"])

    def _overlay(self, works: list[Work]) -> Path:
        """Main's plugins without the touched ones, whose place the stubs take."""
        overlay = self.scratch / "overlay"
        touched = {work.touched.folder for work in works}
        for package in TREES:
            (overlay / package).mkdir(parents=True)
            (overlay / package / "__init__.py").touch()
            for path in sorted((self.base / package).iterdir()):
                if path.is_dir() and path.name != "__pycache__" and f"{package}/{path.name}" not in touched:
                    (overlay / package / path.name).symlink_to(path)
        return overlay

    def _copy_data(self, work: Work, folder: Path) -> None:
        out = self.scratch / "out" / work.touched.folder
        for name in work.loaders:
            shutil.copyfile(out / "labels1" / f"{name}.csv", folder / f"_{name}.csv")
        for name in work.ids("dataset"):
            for suffix in (".npy", ".json"):
                if (out / "cubes" / f"{name}{suffix}").is_file():
                    shutil.copyfile(out / "cubes" / f"{name}{suffix}", folder / f"{name}{suffix}")

    def _process(self, overlay: Path, works: list[Work]) -> dict[str, Any]:
        registry = self.scratch / "registry"
        shutil.copytree(self.base / "registry" / "suites", registry / "suites")
        job = {
            "tasks": [name for work in works for name in work.ids("task")],
            "methods": [name for work in works for name in work.ids("method")],
            "plugins": [work.touched.name for work in works],
            "parts": {
                r["spec"]["id"]: r["part"] for w in works for r in w.rows if r["noun"] == "method" and r.get("part")
            },
            "loaders": {name: words for work in works for name, words in work.loaders.items()},
            "allow_unpinned": all(work.touched.how == "changed" for work in works),
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
        return result

    def _judge_records(self, work: Work, mine: set[str], records: list[str]) -> None:
        """Each failed cell of the plugin's own is a failure; that nothing was scored is one, too."""
        found = [json.loads(text) for text in records]
        own = [record for record in found if record["task"] in mine or record["method"] in mine]
        for record in own:
            if record["status"] == "failed":
                work.say(
                    "score",
                    "failed",
                    f"{record['method']} on {record['task']}: {record['failure']}: {record['reason']}",
                )
        scored = sum(record["status"] == "ok" for record in own)
        skipped = len(own) - scored - sum(record["status"] == "failed" for record in own)
        if scored:
            work.say("score", "ok", f"{scored} cells scored" + (f", {skipped} skipped" if skipped else ""))
        elif not any(finding.check == "score" for finding in work.findings):
            reasons = "; ".join(sorted({record["reason"] for record in own})) or "no method or task fits"
            unpinned = work.touched.how == "changed" and own and all(record["status"] == "skipped" for record in own)
            work.say("score", "skipped" if unpinned else "failed", f"nothing was scored: {reasons}"[:2000])

    def _report(
        self, changes: Changes, works: list[Work], findings: list[Finding], records: list[str], seconds: float
    ) -> Report:
        plugins = tuple(
            PluginReport(
                w.touched.tree, w.touched.name, w.touched.how, w.ids("task"), w.ids("method"), tuple(w.findings)
            )
            for w in works
        )
        core = tuple(path[:4096] for path in changes.core[:MOST_FINDINGS])
        seconds = round(seconds, 1)
        report = Report(changes.base, changes.head, self.kind, plugins, tuple(findings), tuple(records), core, seconds)
        if len(records) <= MOST_RECORDS and len(report.to_bytes()) <= LARGEST:
            return report
        words = f"{len(records)} records are more than a report may hold"
        too_many = Finding("records", "pull request", "failed", words, "Make several pull requests")
        return replace(report, records=(), general=(*findings, too_many))


def score_pr(base: Path, head: Path, since: str, limits: Limits | None = None, kind: str = "") -> Report:
    """The report of a pull request."""
    return Scoring(base, head, since, limits, kind).run()
