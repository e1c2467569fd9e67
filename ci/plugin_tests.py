"""Contributed tests, run in the sandbox. What counts is the file of results, and no results is a failure.

All of ``test.py`` and ``test_*.py`` are run. A test shares its process with pytest, so it can write that file itself.
Contributed tests help the contributor and the reviewer; no score depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from ci import sandbox
from ci.changed import TREES
from ci.environments import PACKAGES, install, with_packages
from ci.plugin_sandbox import PluginData, PluginSandbox
from ci.sandbox import OUT, TREE, Limits, Ran
from ci.stub_tree import LARGEST
from neuco_core.contract.contract import Finding, Status
from neuco_core.encode.lock import FILE
from neuco_core.errors import DataError
from neuco_core.text import one_line

# Plugins of pytest that come with packages of neuco's: loading them takes four times as long as pytest itself.
UNUSED = ("-p", "no:zarr", "-p", "no:hypothesispytest")


def arguments(files: Sequence[str]) -> tuple[str, ...]:
    """Arguments for Python. The project's own pytest settings do not apply: the plugin may come from any project."""
    options = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", "/dev/null", *UNUSED)
    return ("-m", "pytest", *options, f"--junitxml={OUT}/tests.xml", f"--rootdir={TREE}", *files)


def test_files(plugin: Path) -> list[str]:
    """The files of a plugin that hold tests, within it: a failing one beside ``test.py`` must not be overlooked."""
    paths = [*plugin.rglob("test.py"), *plugin.rglob("test_*.py")]
    return sorted(str(path.relative_to(plugin)) for path in paths if path.is_file())


def judge(ran: Ran, out: Path) -> tuple[Status, str, str]:
    """Status, words and cure."""
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    path = out / "tests.xml"
    try:
        if path.stat().st_size <= LARGEST:
            suite = ElementTree.parse(path).getroot().find("testsuite")  # noqa: S314 - expat bounds the entities
            counts = {name: int(suite.get(name, "0")) for name in counts}  # type: ignore[union-attr]
    except (OSError, ElementTree.ParseError, AttributeError, ValueError):
        pass
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    detail = f"{passed} passed, {failed} failed, {counts['skipped']} skipped"
    if ran.ok and passed > 0 and not failed:
        return "ok", detail, ""
    if ran.status not in ("ok", "failed"):
        return "failed", f"stopped at the limit of {ran.status}; {detail}", "Make the tests smaller"
    if not counts["tests"]:
        last = " ".join(ran.output.split())[-300:] or "nothing was printed"
        return "failed", f"no tests were collected: {last}", "A test is a function named test_…"
    lines = [line for line in ran.output.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))]
    return "failed", f"{detail}: {one_line(' | '.join(lines), 1500)}", "Run `python -m pytest` on the plugin's tests"


def run_tests(boxes: PluginSandbox, plugin: PluginData) -> None:
    """The tests of one plugin."""
    if not (plugin.folder / "test.py").is_file():
        plugin.say("tests", "failed", "there is no test.py", "Write one; `neuco new` does")
        return
    files = [f"{TREE}/{plugin.touched.folder}/{name}" for name in test_files(plugin.folder)]
    ran, out = boxes.run(plugin, "tests", *arguments(files))
    plugin.say("tests", *judge(ran, out))


def test_everything(head: Path, scratch: Path, limits: Limits, warm: Mapping[str, Path]) -> list[Finding]:
    """A change to the core concerns every plugin: run the tests of all of them with it.

    Those that have packages of their own run one by one, with these. ``warm`` are compiled kernels that fit ``head``.
    """
    plugins = [path.parent for tree in TREES for path in sorted((head / tree).glob("*/test.py"))]
    if not plugins:
        return [Finding("everything", "all plugins", "failed", "no plugin with tests is left", "Keep the plugins")]
    alone = [folder for folder in plugins if (folder / FILE).is_file()]
    together = [folder for folder in plugins if folder not in alone]
    findings = []
    for name, folders in ((f"{len(together)} plugins", together), *((folder.name, [folder]) for folder in alone)):
        if not folders:
            continue
        files = [f"{TREE}/{folder.relative_to(head)}/{file}" for folder in folders for file in test_files(folder)]
        run = arguments(files)
        read, out = {TREE: head, **warm}, scratch / "out" / "everything" / name
        try:
            if folders is not together:
                read[PACKAGES], run = install(folders[0] / FILE), with_packages(run)
            ran = sandbox.run(run, read=read, out=out, limits=limits)
            status, detail, cure = judge(ran, out)
        except DataError as error:  # its packages cannot be installed
            status, detail, cure = "failed", str(error), ""
        findings.append(Finding("everything", name, status, f"with the changed core: {detail}", cure))
    return findings
