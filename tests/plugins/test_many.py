"""Hundreds of packages: one is imported to load its task, all are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.plugins import make_packages
from neuco_core.plugins.loading import Plugins
from tests.command import neuco, python
from tests.plugins.helpers import Tree

COUNT = 300
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    make_packages(folder, COUNT)
    return folder


def test_loading_one_task_of_many_packages_imports_exactly_one(packages: Path) -> None:
    code = (
        "import sys, neuco_core\nprint(neuco_core.load_task('plugin0150').origin.distribution,"
        " *[name for name in sys.modules if name.startswith('plugin')])"
    )
    assert python("-c", code, path=packages, env=NO_BYTECODE).out.split() == ["plugin0150", "plugin0150"]


def test_listing_many_packages_lists_them_all(packages: Path) -> None:
    tasks = neuco("tasks", "--json", path=packages, env=NO_BYTECODE).json
    assert {f"plugin{i:04d}" for i in range(COUNT)} <= {task["id"] for task in tasks}


def test_a_look_up_asks_only_plugins_whose_namespace_it_lies_in(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("soil", "soil-wet", "soilwet", "wet", *(f"soil{i}" for i in range(20))):
        tree.add(name)
    plugins, asked = tree.plugins(), []
    load = Plugins.load
    monkeypatch.setattr(Plugins, "load", lambda self, item: asked.append(item.name) or load(self, item))
    assert plugins.find("task", "soil_wet_ph") is None
    assert asked == ["soil", "soil-wet"]
    found = plugins.find("task", "soil")
    assert found is not None
    assert asked == ["soil", "soil-wet", "soil"]
    assert plugins.find("task", "soil@1") == found
    assert asked == ["soil", "soil-wet", "soil"], "what is known is not looked up again"
