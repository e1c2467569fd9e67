"""``neuco doctor``: is this installation in order?"""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import metadata
from textwrap import shorten

import click
from packaging.requirements import Requirement

from neuco_core import __version__
from neuco_core.boards.store import current
from neuco_core.cli import plugin_problems
from neuco_core.cli.output import echo_rows, json_option
from neuco_core.env import PACKAGE, layers, registry_dir
from neuco_core.errors import NeucoError
from neuco_core.fetch.cache import cache_dir
from neuco_core.fetch.fetch import read_pins, shipped_pins, user_pins
from neuco_core.fetch.links import without_labels
from neuco_core.plugins.catalog import catalog, list_tasks, load_protocol
from neuco_core.plugins.compiled import is_kept
from neuco_core.scoring.warm import compile_all, kernels
from neuco_core.text import counted

DEVELOPERS = ("ci", "dev", "docs", "release", "test")
Row = tuple[str, str, str]  # what was looked at, its status, and the detail


@click.command()
@click.option("--compile", "now", is_flag=True, help="Compile neuco's own kernels now, so that no score waits for it.")
@json_option
def doctor(now: bool, as_json: bool) -> None:
    """Check the installation: versions, extras, folders, pins, plugins, suites, records.

    Ends with 5 if a plugin is broken.
    """
    rows = [*_environment(), *_kernels(now), *_extras(), *_registered(), *_records()]
    names = ("check", "status", "detail")
    echo_rows(as_json, [dict(zip(names, row, strict=True)) for row in rows], names, rows)
    failed = {check for check, status, _ in rows if status == "failed"}
    if failed:
        # A broken plugin has an exit code of its own, so that a script can tell it from a broken installation.
        sys.exit(5 if any(check.startswith("plugin") for check in failed) else 1)


def _environment() -> Iterator[Row]:
    yield "neuco", "ok", f"{__version__} in {PACKAGE.parent}"
    yield "python", "ok", f"{platform.python_version()} on {platform.platform()}"
    registry = layers(registry_dir())
    suites = any((layer / "suites").is_dir() for layer in registry)
    yield "registry", "ok" if suites else "failed", " over ".join(map(str, registry))
    yield _attempt("cache", lambda: f"{cache_dir()}{'' if cache_dir().exists() else ' (created on first use)'}")
    yield _attempt("pins", lambda: f"{len(read_pins(shipped_pins()))} in {shipped_pins()}")
    yield _attempt("own pins", lambda: f"{len(read_pins(user_pins()))} in {user_pins()}")


def _kernels(now: bool) -> Iterator[Row]:
    """Whether the first score, and the first large CSV file, will wait for the compiler."""
    if now:
        compile_all()
    for name, function in kernels().items():
        folder = function.stats.cache_path
        if folder is None:
            yield f"kernel {name}", "missing", "no folder for compiled code can be written: every process compiles it"
        elif is_kept(function):
            yield f"kernel {name}", "ok", f"compiled in {folder}"
        else:
            yield f"kernel {name}", "missing", "will be compiled when it is first needed: neuco doctor --compile"


def _attempt(check: str, detail: Callable[[], str]) -> Row:
    try:
        return check, "ok", detail()
    except NeucoError as error:
        return check, "failed", str(error)


def _extras() -> Iterator[Row]:
    try:
        needs = [Requirement(line) for line in metadata.requires("neuco") or ()]
        extras = sorted(metadata.metadata("neuco").get_all("Provides-Extra") or ())
    except metadata.PackageNotFoundError:
        yield "extras", "missing", "neuco is on the Python path but not installed: pip install -e ."
        return
    for extra in extras:
        wanted = [need for need in needs if need.marker and need.marker.evaluate({"extra": extra})]
        lacking = [f"{need.name}{need.specifier}" for need in wanted if not _satisfied(need)]
        if not lacking:
            names = ", ".join(f"{need.name} {metadata.version(need.name)}" for need in wanted)
            yield f"extra {extra}", "ok", shorten(names, 60, placeholder=" …")
        elif extra in DEVELOPERS:  # theirs is a checkout, and a list of thirty packages helps nobody
            yield f"extra {extra}", "missing", f"pip install -e '.[{extra}]', in a checkout"
        else:
            yield f"extra {extra}", "missing", f"pip install {' '.join(map(repr, lacking))}"


def _satisfied(need: Requirement) -> bool:
    try:
        return need.specifier.contains(metadata.version(need.name), prereleases=True)
    except Exception:  # not installed, or with damaged metadata, which show themselves in many ways
        return False


def _records() -> Iterator[Row]:
    """The records, and those of tasks and methods that are not registered here: no board counts them."""
    try:
        now = current(registry_dir())
    except NeucoError as error:
        yield "records", "failed", str(error)
        return
    yield "records", "ok", f"{len(now.records)} of registered tasks and methods"
    if now.not_compared:
        yield "records", "missing", now.not_compared
    for name, count in now.unregistered.items():
        yield "records", "missing", f"{counted(count, 'record')} of {name}, not registered here: on no board"


def _registered() -> Iterator[Row]:
    working, _ = catalog().plugins.survey()
    yield "plugins", "ok", f"{len(working)} loaded, {sum(len(plugin.specs) for plugin in working)} specs registered"
    for problem in plugin_problems():
        yield f"plugin {problem.name}", "failed", f"{problem.file or problem.source}: {problem.error}"

    def tasks(name: str) -> str:
        suite = catalog().suite(name)
        load_protocol(suite.protocol)
        return f"{len(catalog().suite_tasks(suite))} tasks"

    with suppress(NeucoError):  # what is wrong with pins is said above
        for dataset, count in Counter(task.dataset for task in without_labels(list_tasks())).items():
            yield "labels", "missing", f"{counted(count, 'task')} of {dataset}, not downloaded: `neuco data pin TASK`"
    good, bad = catalog().survey_suites()
    for name in sorted([*good, *bad]):
        yield _attempt(f"suite {name}", partial(tasks, name))
