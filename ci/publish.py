"""After a merge: take over the records of the pull request, withdraw what is gone, rebuild boards and site.

Everything is checked before anything is written. With ``push`` the work is done on what main is at that moment, and
done again if someone else was faster: records are one file per cell, so two merges never write the same one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ci.changed import git
from ci.report import parse
from neuco_core.errors import DataError
from neuco_core.results.record import Record

TRIES = 10
MESSAGE = "Update the registry: records, boards"


def publish(repo: Path, reports: Sequence[bytes], *, site: Path | None = None, push: bool = False) -> list[str]:
    """Apply reports to a checkout of main; with ``push``, commit and push until it is through."""
    if not push:
        return apply(repo, reports, site)
    for _ in range(TRIES):
        git(repo, "fetch", "--quiet", "origin", "main")
        git(repo, "reset", "--quiet", "--hard", "origin/main")
        lines = _apply_fresh(repo, reports, site)
        git(repo, "add", "--all", "registry")
        if not git(repo, "status", "--porcelain", "registry"):
            return [*lines, "nothing to publish"]
        git(repo, "commit", "--quiet", "-m", MESSAGE)
        try:
            git(repo, "push", "--quiet", "origin", "HEAD:main")
        except DataError:
            continue  # main moved meanwhile: start again from what it is now
        return [*lines, "pushed"]
    raise DataError(f"main moved {TRIES} times during publishing", hint="Run it again when it is quieter")


def _apply_fresh(repo: Path, reports: Sequence[bytes], site: Path | None) -> list[str]:
    """In a process of its own, because main's plugins may be others than those that were imported here."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [sys.executable, "-m", "ci", "publish", "--repo", str(repo), "--no-push"]
        for number, data in enumerate(reports):
            path = Path(folder) / f"{number}.json"
            path.write_bytes(data)
            arguments += ["--report", str(path)]
        arguments += ["--site", str(site.absolute())] if site else []
        environment = {**os.environ, "PYTHONPATH": str(repo.resolve())}
        done = subprocess.run(arguments, cwd=repo, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise DataError(done.stderr.strip().removeprefix("ci: error: ") or "publishing failed", where=repo)
    return done.stdout.splitlines()


def apply(repo: Path, reports: Sequence[bytes], site: Path | None = None) -> list[str]:
    """Change the registry of a checkout; all is checked first, so a bad report changes nothing."""
    from neuco_core.results.plan import stale_records
    from neuco_core.results.record import read_all, record_path, write_record

    registry = repo / "registry"
    os.environ["NEUCO_REGISTRY"] = str(registry.resolve())
    parsed = [parse(data) for data in reports]
    for report, _ in parsed:
        if not report.green:
            raise DataError("a report that is not green is not published", got=report.head)
    records = {record.key: record for _, found in parsed for record in found}
    stale = stale_records(records.values())
    lines = [f"left out {method} on {task}: {reason}" for (method, task, _), reason in stale.items()]
    kept = [record for key, record in records.items() if key not in stale]
    gone = _unregistered(read_all(registry))
    for record in kept:
        write_record(record, registry)
    for record in gone:
        path = record_path(registry, *record.key)
        target = registry / "withdrawn" / path.relative_to(registry / "results")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)
    lines.append(f"{len(kept)} records taken over, {len(gone)} withdrawn")
    return [*lines, *_rebuild(registry, site)]


def _unregistered(records: Sequence[Record]) -> list[Record]:
    """Records of methods or tasks that are no longer registered."""
    from neuco_core.catalog import catalog
    from neuco_core.specs import Method, Task

    methods, tasks = catalog().all(Method), catalog().all(Task)
    return [record for record in records if record.method not in methods or record.task not in tasks]


def _rebuild(registry: Path, site: Path | None) -> list[str]:
    from neuco_core.leaderboard.current import current
    from neuco_core.leaderboard.files import write_board

    now = current(registry)
    lines = []
    for suite in now.choose():
        changes = write_board(registry, now.board(suite))
        lines.append(f"board {suite.id}: {'; '.join(changes) if changes else 'unchanged'}")
    if site is not None:
        from neuco_core.leaderboard.site.source import gather
        from neuco_core.leaderboard.site.write import write_site

        lines.append(f"site: {write_site(gather(registry, ()), site)} pages")
    return lines
