"""``neuco doctor``: is this installation in order?"""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata

import click

from neuco_core.cli.output import echo_json, json_option, table
from neuco_core.errors import NeucoError

# Extra → the package that it brings, and what it is for.
EXTRAS = {
    "torch": ("torch", "encoders and MLP probes"),
    "cubes": ("zarr", "SSL4EO data cubes"),
    "plots": ("matplotlib", "plots"),
    "rates": ("constriction", "entropy-coded rates"),
    "dask": ("distributed", "scoring on several machines"),
}
Finding = tuple[str, str, str]


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Check the installation: versions, extras, folders, plugins, suites. Ends with 5 if a plugin is broken."""
    findings = [*_environment(), *_extras(), *_plugins(), *_suites()]
    if as_json:
        echo_json([{"check": check, "status": status, "detail": detail} for check, status, detail in findings])
    else:
        click.echo(table(("check", "status", "detail"), findings))
    failed = {check for check, status, _ in findings if status == "failed"}
    if failed:
        # A broken plugin has an exit code of its own, so that a script can tell it from a broken installation.
        sys.exit(5 if any(check.startswith("plugin") for check in failed) else 1)


def _environment() -> Iterator[Finding]:
    from neuco_core import __version__, paths
    from neuco_core.data.cache import cache_dir

    yield "neuco", "ok", f"{__version__} in {paths.PACKAGE.parent}"
    yield "python", "ok", f"{platform.python_version()} on {platform.platform()}"
    registry = paths.registry_dir()
    yield "registry", "ok" if (registry / "suites").is_dir() else "failed", str(registry)
    yield _attempt("cache", lambda: f"{cache_dir()}{'' if cache_dir().exists() else ' (made when it is first needed)'}")


def _attempt(check: str, detail: Callable[[], str]) -> Finding:
    try:
        return check, "ok", detail()
    except NeucoError as error:
        return check, "failed", str(error)


def _extras() -> Iterator[Finding]:
    for extra, (package, use) in EXTRAS.items():
        if importlib.util.find_spec(package):
            yield f"extra {extra}", "ok", f"{package} {metadata.version(package)}: {use}"
        else:
            yield f"extra {extra}", "missing", f"for {use}: pip install 'neuco[{extra}]'"


def _plugins() -> Iterator[Finding]:
    from neuco_core.catalog import catalog

    working, _ = catalog().plugins.survey()
    yield "plugins", "ok", f"{len(working)} loaded, {sum(len(plugin.specs) for plugin in working)} things registered"
    for problem in catalog().problems():
        yield f"plugin {problem.name}", "failed", f"{problem.file or problem.source}: {problem.error}"


def _suites() -> Iterator[Finding]:
    from neuco_core.catalog import catalog, load_protocol

    def tasks(name: str) -> str:
        suite = catalog().suite(name)
        load_protocol(suite.protocol)
        return f"{len(catalog().suite_tasks(suite))} tasks"

    good, bad = catalog().survey_suites()
    for name in sorted([*good, *bad]):
        yield _attempt(f"suite {name}", partial(tasks, name))
