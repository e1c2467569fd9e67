"""Plugins made by the tests: directories of a throw-away package, and installed distributions."""

from __future__ import annotations

import importlib.metadata
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from neuco_core.plugins.catalog import Catalog
from neuco_core.plugins.discovery import BrokenPlugin
from neuco_core.plugins.loading import Plugins
from neuco_core.specs import Task

ONE = """
from neuco_core import Remote, Task, hookimpl

@hookimpl
def neuco_tasks():
    yield Task(id={id!r}, dataset="any", kind="regression", source=Remote("https://example.org/{id}.csv"))
"""


class Tree:
    """A package of plugin directories, and a folder of installed packages beside it."""

    def __init__(self, folder: Path, package: str) -> None:
        self.package = package
        self.folder = folder / package
        self.installed = folder / "site-packages"
        self.registry = folder / "registry"
        (self.registry / "suites").mkdir(parents=True)
        self.folder.mkdir()
        self.installed.mkdir()
        (self.folder / "__init__.py").touch()

    def add(self, name: str, source: str | None = None) -> Path:
        """A plugin directory; without a source it registers one task with the directory's name."""
        path = self.folder / name / "__init__.py"
        path.parent.mkdir()
        path.write_text(textwrap.dedent(source if source is not None else ONE.format(id=name)))
        return path

    def install(self, distribution: str, entries: dict[str, dict[str, str]], modules: dict[str, str]) -> None:
        """An installed distribution: entries are group → name → value, modules are name → source."""
        info = self.installed / f"{distribution.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        lines = [
            line
            for group, names in entries.items()
            for line in (f"[{group}]", *(f"{name} = {value}" for name, value in names.items()))
        ]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        for name, source in modules.items():
            (self.installed / f"{name}.py").write_text(textwrap.dedent(source))

    def plugins(self, builtin: Iterable[str] = ()) -> Plugins:
        distributions = importlib.metadata.distributions(path=[str(self.installed)])
        entries = [entry for distribution in distributions for entry in distribution.entry_points]
        return Plugins((self.package,), builtin, importlib.metadata.EntryPoints(entries))

    def catalog(self) -> Catalog:
        return Catalog(self.plugins(), self.registry)

    def imported(self) -> set[str]:
        prefix = self.package + "."
        return {name.removeprefix(prefix) for name in sys.modules if name.startswith(prefix)}


def only_problem(tree: Tree) -> BrokenPlugin:
    """The single problem of a tree; the plugin ``good`` beside it must not be hurt by it."""
    tree.add("good")
    catalog = tree.catalog()
    assert list(catalog.all(Task)) == ["good"]
    assert catalog.load(Task, "good").id == "good"
    (problem,) = catalog.problems()
    return problem
