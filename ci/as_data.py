"""A tree in which every plugin is data (see ``stub``): code that runs there imports no plugin of anybody."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from ci.boxes import Boxes, PluginData
from ci.changed import TREES
from ci.extract import describe
from ci.sandbox import Limits
from ci.stub import write_stub
from ci.warm import copy_code

CORE = ("neuco_core", "ci", "registry/suites", "registry/schema", "registry/published", "registry/pins.json")


def describe_all(boxes: Boxes) -> list[PluginData]:
    """All plugins of a tree, each described in a sandbox of its own; one that fails has a ``problem``."""
    plugins = [boxes.plugin(tree, name) for tree in TREES for name in boxes.folders[tree]]
    for plugin in plugins:
        describe(boxes, plugin)
        boxes.clear(plugin)
    return plugins


def write_tree(target: Path, base: Path, plugins: Sequence[PluginData], parts: Sequence[str] = CORE) -> None:
    """The core of ``base``, and a stub for each plugin that could be described."""
    for name in parts:
        source = base / name
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if name in ("neuco_core", "ci"):
            copy_code(source, target / name)
        elif source.is_dir():
            shutil.copytree(source, target / name)
        elif source.is_file():
            shutil.copyfile(source, target / name)
    for package in TREES:
        (target / package).mkdir()
        (target / package / "__init__.py").touch()
    for plugin in plugins:
        if not plugin.problem:
            write_stub(target / plugin.touched.folder, plugin.folder, plugin.rows, plugin.made)


def write_data_tree(tree: Path, target: Path, *, scratch: Path, limits: Limits, kind: str) -> dict[str, str]:
    """``tree`` as data at ``target``, with its whole registry. Gives why plugins could not be described, by folder."""
    plugins = describe_all(Boxes(tree, scratch, limits, kind))
    write_tree(target, tree, plugins, ("neuco_core", "ci", "registry"))
    return {plugin.touched.folder: plugin.problem for plugin in plugins if plugin.problem}
