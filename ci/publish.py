"""After a merge: add the pull request's records, withdraw those of removed plugins, rebuild boards and site.

Reports are checked before anything happens. The new registry is then made in the sandbox (see ``apply``), because
that imports main's plugins, and they need not run beside the right to push; it takes the place of the old one only
when it is complete. With ``push`` all this is done on what main is at that moment, and done again if someone else was
faster: records are one file per cell, so two merges never write the same one.
"""

from __future__ import annotations

import filecmp
import secrets
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ci import sandbox
from ci.changed import changed, git
from ci.overlay import read_json
from ci.report import parse
from ci.sandbox import OUT, TREE, Limits
from neuco_core.errors import DataError

TRIES = 20
MESSAGE = "Update the registry: records, boards"
# What publishing makes; suites, schemas and published tables change only by pull request.
MADE = ("results", "withdrawn", "leaderboards")
LIMITS = Limits(seconds=3600, files=2_000_000, written=50 << 30)


def publish(
    repo: Path, given: Sequence[tuple[bytes, str]], *, site: Path | None = None, push: bool = False, since: str = ""
) -> list[str]:
    """Apply reports to a checkout of main; with ``push``, to main itself, and the checkout stays as it is.

    With each report comes the commit that it must be about, if that is known. ``since`` is the commit before the
    merge: with it, only plugins that the merge touched may be in the reports.
    """
    touched = {item.folder for item in changed(repo, since).plugins} if since.strip("0") else None
    for data, head in given:
        _accept(data, head, touched)
    reports = [data for data, _ in given]
    with tempfile.TemporaryDirectory(prefix="neuco-publish-", ignore_cleanup_errors=True) as scratch:
        if push:
            return _push(repo, reports, site, Path(scratch))
        return _apply(repo, reports, site, Path(scratch))


def _accept(data: bytes, head: str, touched: set[str] | None) -> None:
    """Refuse a report that may not change the registry."""
    report, records = parse(data)
    if not report.green:
        raise DataError("a report that is not green is not published", got=report.head)
    if records and report.sandbox != "bubblewrap":
        raise DataError("records made without bubblewrap are not published", got=report.sandbox)
    if head and report.head != head:
        raise DataError("the report is about another commit", expected=head, got=report.head)
    for plugin in report.plugins:
        if touched is not None and f"{plugin.tree}/{plugin.name}" not in touched:
            raise DataError(f"the report is about {plugin.name!r}, which the merge did not touch")


def _push(repo: Path, reports: Sequence[bytes], site: Path | None, scratch: Path) -> list[str]:
    for number in range(TRIES):
        start = _main(repo)
        tree = scratch / f"tree{number}"
        git(repo, "worktree", "add", "--quiet", "--detach", str(tree), start)
        try:
            lines = _apply(tree, reports, site, scratch / f"try{number}")
            git(tree, "add", "--all", "--force", "registry")
            if not git(tree, "status", "--porcelain", "registry"):
                return [*lines, "nothing to publish"]
            git(tree, "commit", "--quiet", "-m", MESSAGE)
            git(tree, "push", "--quiet", "origin", "HEAD:main")
        except DataError:
            if _main(repo) == start:
                raise
            time.sleep(secrets.randbelow(1000) / 1000)  # main moved: start again from what it is now
        else:
            return [*lines, "pushed"]
        finally:
            git(repo, "worktree", "remove", "--force", str(tree))
    raise DataError(f"main moved {TRIES} times during publishing", hint="Run it again when it is quieter")


def _main(repo: Path) -> str:
    git(repo, "fetch", "--quiet", "origin", "main")
    return git(repo, "rev-parse", "FETCH_HEAD").strip()


def _apply(tree: Path, reports: Sequence[bytes], site: Path | None, scratch: Path) -> list[str]:
    """Make the new registry with the code and the plugins of ``tree``, and put it there."""
    (scratch / "reports").mkdir(parents=True)
    for number, data in enumerate(reports):
        (scratch / "reports" / f"{number}.json").write_bytes(data)
    read = {TREE: tree.resolve(), "/reports": scratch / "reports"}
    arguments = ("-m", "ci.apply", OUT, "/reports", *(("--site",) if site else ()))
    ran = sandbox.run(arguments, read=read, out=scratch / "out", limits=LIMITS)
    if not ran.ok:
        raise DataError(f"publishing failed: {' '.join(ran.output.split())[-500:] or ran.status}", where=tree)
    lines = [str(line) for line in read_json(scratch / "out" / "lines.json")]
    for name in MADE:
        _mirror(scratch / "out" / "registry" / name, tree / "registry" / name)
    if site is not None:
        _mirror(scratch / "out" / "site", site)
    return lines


def _mirror(source: Path, target: Path) -> None:
    """Make ``target`` like ``source``; files that are equal stay untouched."""
    if not source.is_dir():
        return
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    for inside in sorted(wanted):
        place = target / inside
        if not (place.is_file() and filecmp.cmp(source / inside, place, shallow=False)):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / inside, place)
    for path in sorted(target.rglob("*"), reverse=True):
        if path.is_file() and path.relative_to(target) not in wanted:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
