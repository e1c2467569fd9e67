"""Contributed tests, run in the sandbox. Only the results that pytest wrote count; no results is a failure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from ci import sandbox
from ci.changed import TREES
from ci.overlay import LARGEST
from ci.sandbox import OUT, TREE, Limits, Ran
from neuco_core.contract.contract import Finding, Status

NAMES = ("tests", "failures", "errors", "skipped")


def arguments(files: Sequence[str]) -> tuple[str, ...]:
    """Arguments for Python. The project's own pytest settings do not apply: the plugin may come from any project."""
    options = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", "/dev/null")
    return ("-m", "pytest", *options, f"--junitxml={OUT}/tests.xml", f"--rootdir={TREE}", *files)


def judge(ran: Ran, out: Path) -> tuple[Status, str, str]:
    """Status, words and cure."""
    counts = _counts(out / "tests.xml")
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    words = f"{passed} passed, {failed} failed, {counts['skipped']} skipped"
    if ran.ok and passed > 0 and not failed:
        return "ok", words, ""
    if ran.status not in ("ok", "failed"):
        return "failed", f"stopped at the limit of {ran.status}; {words}", "Make the tests smaller"
    if not counts["tests"]:
        last = " ".join(ran.output.split())[-300:] or "nothing was printed"
        return "failed", f"no tests were collected: {last}", "A test is a function named test_…"
    lines = [line for line in ran.output.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))]
    return "failed", f"{words}: {' | '.join(lines)[-1500:]}", "Run `python -m pytest` on the plugin's test.py"


def _counts(path: Path) -> dict[str, int]:
    try:
        if path.stat().st_size > LARGEST:
            return dict.fromkeys(NAMES, 0)
        suite = ElementTree.parse(path).getroot().find("testsuite")  # noqa: S314 - expat bounds the entities
        return {name: int(suite.get(name, "0")) for name in NAMES}  # type: ignore[union-attr]
    except (OSError, ElementTree.ParseError, AttributeError, ValueError):
        return dict.fromkeys(NAMES, 0)


def test_everything(head: Path, scratch: Path, limits: Limits, kind: str) -> Finding:
    """A change to the core concerns every plugin: run the tests of all of them with it."""
    plugins = [path.parent for tree in TREES for path in sorted((head / tree).glob("*/test.py"))]
    files = [f"{TREE}/{folder.relative_to(head)}/test.py" for folder in plugins]
    if not files:
        return Finding("everything", "all plugins", "failed", "no plugin with tests is left", "Keep the plugins")
    out = scratch / "out" / "everything"
    ran = sandbox.run(arguments(files), read={TREE: head}, out=out, limits=limits, kind=kind)
    status, words, cure = judge(ran, out)
    return Finding("everything", f"{len(plugins)} plugins", status, f"with the changed core: {words}", cure)
