"""The contract of a plugin as a whole: its files and tests, what it declares, and what importing it loads.

Continuous integration judges by the same functions; it runs in a sandbox what is run here in a process of its own.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from importlib.metadata import distribution as installed
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit
from urllib.request import url2pathname
from xml.etree import ElementTree

from neuco_core.contract.builtin import CAVEATS, HEAVY
from neuco_core.contract.checks.review import deceptive, odd_path, too_large
from neuco_core.contract.contract import Broken, Inapplicable, NoEvidence, Warn
from neuco_core.contract.subjects import Subject, TaskSubject
from neuco_core.env import is_checkout
from neuco_core.errors import DataError, NeucoError
from neuco_core.files import read_limited
from neuco_core.plugins.catalog import catalog
from neuco_core.plugins.discovery import CONTENT
from neuco_core.plugins.loading import Plugin
from neuco_core.specs import PUBLISHED, Dataset, Method, Remote, Spec, Task
from neuco_core.text import counted, join_names, one_line

OWN_PACKAGES = ("pkg://sklearn/",)
SECONDS = 600  # for a plugin's own tests
LARGEST_REPORT = 5_000_000  # bytes of what pytest writes about a run
# The project's own settings of pytest do not apply: the plugin may come from any project. The plugins of pytest that
# are switched off come with packages of neuco's: loading them takes four times as long as pytest itself.
PYTEST = ("-m", "pytest", "-q", "-c", os.devnull, "--import-mode=importlib", "-p", "no:cacheprovider")
UNUSED = ("-p", "no:zarr", "-p", "no:hypothesispytest")
ASSERTING = frozenset(("raises", "warns", "fail", "check_encoder", "contract", "tell"))
LOADED = """
import sys
from neuco_core.plugins.catalog import catalog

plugins, before = catalog().plugins, set(sys.modules)
plugins.load([candidate for candidate in plugins.candidates if candidate.source == sys.argv[1]][0])
print("", *(set(sys.modules) - before), sep="\\n")
"""


def files(subject: Subject) -> str:
    """A card that names the subject and that somebody wrote, and a test file with a test that can fail."""
    folder = subject.folder
    if folder is None:  # tests are not installed, the card is
        distribution = subject.spec.origin.distribution
        edited = _editable_card(distribution)
        shown = edited.read_text(encoding="utf-8", errors="replace") if edited else _installed_card(distribution)
        _require_card(subject, shown, edited or distribution, f"{distribution}'s README.md")
        return f"the card of {distribution}"
    card, test = folder / "README.md", folder / "test.py"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    _require_card(subject, text, card, f"{folder.name}/{card.name}")
    source = test.read_text(encoding="utf-8", errors="replace") if test.is_file() else ""
    if not asserts(source):
        expected = "test_contract = contract(…), or an assert"
        hint = f"add a test that asserts something to {folder.name}/test.py" if source else ""
        raise Broken("no test that asserts anything", where=test, expected=expected, hint=hint)
    return f"{card.name}, {test.name}"


def _require_card(subject: Subject, text: str, where: str | Path, file: str) -> None:
    if not text.strip():
        raise Broken("no card", where=where)
    if subject.id not in text:
        hint = f"write into {file} that it is of {subject.id}"
        raise Broken(f"the card does not name the {subject.noun}", where=where, expected=repr(subject.id), hint=hint)
    for asked in CAVEATS.values():
        if asked in text:
            hint = f"replace that sentence in {file} by the caveats, also if there is little to beware of"
            raise Broken(f"the card still asks: {asked}", where=where, hint=hint)


def _editable_card(distribution: str) -> Path | None:
    """README.md in the source folder of what `pip install -e` installed: its metadata is as old as that command."""
    with suppress(PackageNotFoundError, ValueError):
        direct = json.loads(installed(distribution).read_text("direct_url.json") or "{}")
        if direct.get("dir_info", {}).get("editable"):
            card = Path(url2pathname(urlsplit(direct["url"]).path), "README.md")
            return card if card.is_file() else None
    return None


def _installed_card(distribution: str) -> str:
    """The text that a package index shows: pyproject.toml names it as ``readme``."""
    try:
        return str(metadata(distribution).json.get("description", ""))
    except PackageNotFoundError as error:
        raise Inapplicable("it comes from a package of its own, of which nothing is installed") from error


def asserts(source: str) -> bool:
    """Whether a file of tests has one that can fail by what it finds, itself or by a function of the file."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    asserting = set(ASSERTING)
    for _ in functions:  # those that assert by those that they call
        asserting |= {function.name for function in functions if _asserts(function, asserting)}
    tests = {function.name for function in functions if function.name in asserting}
    for node in tree.body:  # test_contract = contract(…)
        if isinstance(node, ast.Assign) and _asserts(node, asserting):
            tests |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return any(name.startswith("test_") for name in tests)


def _asserts(tree: ast.AST, asserting: Collection[str]) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant):
            return True
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in asserting or name.startswith("assert"):
                return True
    return False


def review(subject: Subject) -> str:
    """Files that a reviewer can read, under names that are what they seem."""
    folder = _folder(subject)
    count = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder.parents[1]).as_posix()
        if "__pycache__" in name or (path.is_dir() and not path.is_symlink()):
            continue
        count += 1
        if path.is_symlink():
            raise Broken("a link, which hides its content", where=ascii(name))
        if large := too_large(name, path.stat().st_size):
            raise _if_contributed(folder)(large, where=ascii(name))
        if reason := odd_path(name) or deceptive(name, path.read_bytes()):
            raise Broken(reason, where=ascii(name))
    return counted(count, "file")


def _if_contributed(folder: Path) -> type[NeucoError]:
    """A plugin in a checkout is on its way to everybody; elsewhere its author may do what is refused there."""
    return Broken if is_checkout(folder.parents[1]) else Warn


def addresses(subject: Subject) -> str:
    """Declared files that can be fetched and verified without running anybody's code."""
    folder = _folder(subject)
    remotes: list[Remote] = []
    plugins = catalog().plugins
    for plugin in [plugins.load(item) for item in plugins.candidates if item.source == subject.spec.origin.source]:
        for noun, spec in plugin.specs if isinstance(plugin, Plugin) else ():
            if noun not in CONTENT:
                raise Broken(f"the plugin registers a {noun}, which is code that takes part in scoring")
            try:
                remotes += declared_sources(folder.parent.name, folder.name, spec)
            except DataError as error:
                raise _if_contributed(folder)(error.what, expected=error.expected, got=error.got) from error
    return counted(len(remotes), "declared file")


def declared_sources(tree: str, plugin: str, spec: Spec) -> list[Remote]:
    """The files that a plugin declares. Each must be on the network or in the plugin's own folder.

    ``pkg://`` imports the package that it names: any other, even one below the plugin, would be code that runs where
    it is judged; except a package that neuco itself imports. Labels that come with that one are a task's affair: a
    method has no business with them.
    """
    allowed = [*(f"{scheme}://" for scheme in PUBLISHED), f"pkg://{tree}.{plugin}/"]
    expected = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
    remotes: list[Remote] = []
    if isinstance(spec, Task):
        remotes = [spec.source]
        allowed += OWN_PACKAGES
    elif isinstance(spec, Dataset):
        remotes = [*spec.archives]
    elif isinstance(spec, Method):
        remotes = [*spec.files.values(), *spec.weights.values()]
    for url in (url for remote in remotes for url in remote.urls):
        if not url.startswith(tuple(allowed)):
            raise DataError(f"{spec.id} uses a file from elsewhere", expected=expected, got=url)
    return remotes


def imports(subject: Subject) -> str:
    """Nothing heavy is loaded by an import of the plugin, measured in a fresh process."""
    require_light(_loaded(subject.spec.origin.source))
    return "nothing heavy"


@cache
def _loaded(source: str) -> frozenset[str]:
    """The modules that registering a plugin loads, of those that listing plugins has not loaded before."""
    code, output = _python(["-c", LOADED, source], SECONDS)
    if code:
        raise Broken(f"the plugin cannot be imported in a fresh process: {one_line(output[-300:])}")
    return frozenset(output.splitlines())


def require_light(loaded: Collection[str]) -> None:
    heavy = [name for name in HEAVY if name in loaded]
    if heavy:
        what = f"importing the plugin loads {join_names(heavy)}, and everybody who lists plugins waits for it"
        raise Broken(what, hint="Import it inside the function that needs it")


def tests(subject: Subject) -> str:
    """The plugin's own tests pass."""
    folder = _folder(subject)
    if "PYTEST_CURRENT_TEST" in os.environ:
        raise Inapplicable("pytest is running: a plugin's tests do not run themselves")
    if find_spec("pytest") is None:
        raise NoEvidence("pytest is not installed", hint="Install it with: pip install pytest")
    code, output, report = _run_tests(folder)
    try:
        return outcome_of_tests(report, output, ok=code == 0)
    except Broken:
        if isinstance(subject, TaskSubject):
            subject.require_labels()  # without them nothing else can be said of its tests
        raise


@cache
def _run_tests(folder: Path) -> tuple[int, str, bytes]:
    """Once for all that a plugin registers."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "tests.xml"
        code, output = _python(pytest_command(folder, str(folder), str(report)), SECONDS)
        return code, output, read_report(report)


def pytest_command(folder: Path, place: str, report: str) -> list[str]:
    """What Python is to run, if it sees the plugin's folder at ``place``: all tests, also those beside ``test.py``."""
    paths = {path for name in ("test.py", "test_*.py") for path in folder.rglob(name) if path.is_file()}
    if not paths:
        raise Broken("there is no test.py", hint="Write one; `neuco new` does")
    names = sorted(f"{place}/{path.relative_to(folder).as_posix()}" for path in paths)
    root = PurePosixPath(place).parents[1]
    return [*PYTEST, *UNUSED, f"--junitxml={report}", f"--rootdir={root}", *names]


def read_report(path: Path) -> bytes:
    """What pytest wrote about a run; nothing if it wrote none that can be read."""
    with suppress(OSError, DataError):
        return read_limited(path, LARGEST_REPORT)
    return b""


def outcome_of_tests(report: bytes, output: str, *, ok: bool) -> str:
    """What a run of pytest found; raises unless a test passed and none failed."""
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    with suppress(ElementTree.ParseError, AttributeError, ValueError):
        suite = ElementTree.fromstring(report).find("testsuite")  # noqa: S314 - expat bounds the entities
        counts = {name: int(suite.get(name, "0")) for name in counts}  # type: ignore[union-attr]
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    detail = f"{passed} passed, {failed} failed, {counts['skipped']} skipped"
    if ok and passed > 0 and not failed:
        return detail
    if not counts["tests"]:
        last = " ".join(output.split())[-300:] or "nothing was printed"
        raise Broken(f"no tests were collected: {last}", hint="A test is a function named test_…")
    if ok and not failed:
        raise NoEvidence(f"no test was run: {detail}")
    lines = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))]
    hint = "Run `python -m pytest` on the plugin's tests"
    raise Broken(f"{detail}: {one_line(' | '.join(lines), 1500)}", hint=hint)


def _python(arguments: Sequence[str], seconds: float) -> tuple[int, str]:
    """How Python ended, and what it printed; it can import what this process can."""
    path = os.pathsep.join(filter(None, sys.path))
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:  # a pipe waits for grandchildren
        try:
            done = subprocess.run(
                [sys.executable, "-P", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                env={**os.environ, "PYTHONPATH": path},
            )
        except subprocess.TimeoutExpired as error:
            raise Broken(f"not done after {seconds:g} seconds", hint="Make the tests smaller") from error
        output.seek(0)
        return done.returncode, output.read()


def change(subject: Subject) -> str:
    """What only git can say is never said here."""
    raise Inapplicable("it needs git and main: `python -m ci score-pr` compares the two, here and for a pull request")


def _folder(subject: Subject) -> Path:
    if subject.folder is None:
        raise Inapplicable("it comes from a package of its own, which has its own files")
    return subject.folder
