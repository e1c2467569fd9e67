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
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ci import sandbox
from ci.changed import TREES, Changes, Touched, changed
from ci.extract import Extractor, Work
from ci.overlay import write_stub
from ci.report import Finding, PluginReport, Report
from ci.sandbox import Limits
from neuco_core.catalog import list_suites
from neuco_core.errors import DataError


class Scoring:
    """One pull request: ``base`` is the trusted checkout that this code belongs to, ``head`` the stranger's."""

    def __init__(self, base: Path, head: Path, since: str, limits: Limits | None = None, kind: str = "") -> None:
        self.base, self.head, self.since = base.resolve(), head.resolve(), since
        self.limits = limits or Limits()
        self.kind = kind or sandbox.engine()
        self._temporary = tempfile.TemporaryDirectory(prefix="neuco-ci-")
        self.scratch = Path(self._temporary.name)

    def run(self) -> Report:
        """Look at everything that was touched, and judge."""
        start = time.monotonic()
        with self._temporary:
            changes = changed(self.head, self.since)
            works = [Work(item, self.head / item.folder) for item in changes.plugins]
            extractor = Extractor(self.base, self.head, self.scratch, self.limits, self.kind)
            present = [work for work in works if work.touched.how != "removed"]
            for work in present:
                extractor.look_at(work)
            extractor.encode(present)
            records = self._evaluate(works)
            return self._report(changes, works, records, time.monotonic() - start)

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
        command = [sys.executable, "-m", "ci.evaluate", str(self.scratch / "job.json")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=self.scratch)
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

    def _report(self, changes: Changes, works: list[Work], records: list[str], seconds: float) -> Report:
        plugins = tuple(
            PluginReport(
                w.touched.tree, w.touched.name, w.touched.how, w.ids("task"), w.ids("method"), tuple(w.findings)
            )
            for w in works
        )
        general = tuple(_general(changes))
        return Report(
            changes.base, changes.head, self.kind, plugins, general, tuple(records), changes.core, round(seconds, 1)
        )


def _general(changes: Changes) -> Iterable[Finding]:
    """What concerns the pull request as a whole."""
    for name in changes.bad_names:
        yield Finding("name", name, "failed", "the directory's name is no id", "Use a-z, 0-9, _ and -")
    for path in changes.protected:
        yield Finding("protected", path, "failed", "records and boards are written on main only", "Take it out")
    for item in changes.plugins:
        if item.how == "removed":
            yield _removed(item)
    if changes.core and not changes.plugins:
        yield Finding(
            "core", "core", "ok", f"{len(changes.core)} files of the core: all plugins are tested by `make test`"
        )
    elif changes.core:
        text = f"{len(changes.core)} files of the core beside plugins: {', '.join(changes.core[:5])}"
        yield Finding("core", "core", "failed", text, "Make two pull requests: code that scores is reviewed on its own")
    if not (changes.plugins or changes.core or changes.bad_names or changes.protected):
        status = "ok" if changes.other else "failed"
        yield Finding("nothing", "pull request", status, f"no plugin is touched, {len(changes.other)} other files are")


def _removed(item: Touched) -> Finding:
    """A plugin may go, unless a frozen suite compares one of its tasks."""
    for suite in list_suites():
        for task in suite.tasks if item.tree == "neuco_tasks" else ():
            if task == item.name or task.startswith((item.name + "_", item.name + "-")):
                text = f"suite {suite.id!r} compares its task {task!r}"
                return Finding("removed", item.name, "failed", text, "Make a new suite without it first")
    return Finding("removed", item.name, "ok", "its records will be withdrawn, nothing else changes")


def score_pr(base: Path, head: Path, since: str, limits: Limits | None = None, kind: str = "") -> Report:
    """The report of a pull request."""
    return Scoring(base, head, since, limits, kind).run()
