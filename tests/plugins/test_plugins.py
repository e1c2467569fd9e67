"""What the plugin manager promises: who is found, what is imported for it, and whose an id is."""

from __future__ import annotations

import errno
import importlib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.plugins import make_packages
from neuco_core.env import switched_on
from neuco_core.errors import DuplicateIdError, PluginError, UnknownIdError, UsageError
from neuco_core.plugins.discovery import extended
from neuco_core.plugins.loading import Plugins
from neuco_core.specs import Dataset, Method, Task
from tests.command import python
from tests.plugins.helpers import ONE, Tree, only_problem


def test_a_directory_dropped_in_works_at_once(tree: Tree) -> None:
    tree.add("soil")
    task = tree.catalog().load(Task, "soil")
    assert task.origin is not None
    assert task.origin.source == str(tree.folder / "soil")


def test_an_installed_package_is_found_and_its_origin_stamped(tree: Tree) -> None:
    tree.install("acme-soil", {"neuco.tasks": {"soil": "acme_soil"}}, {"acme_soil": ONE.format(id="soil_ph")})
    origin = tree.catalog().load(Task, "soil_ph").origin
    assert origin is not None
    assert (origin.distribution, origin.version, origin.plugin) == ("acme-soil", "1.2", "soil")
    assert str(origin) == "acme-soil 1.2 (acme_soil)"


def test_a_plugin_cannot_choose_its_own_origin(tree: Tree) -> None:
    source = ONE.format(id="soil").replace("yield Task(", "yield Task(origin=Origin('other', 'elsewhere'), ")
    tree.add("soil", "from neuco_core.specs import Origin\n" + source)
    assert str(tree.catalog().load(Task, "soil").origin) == str(tree.folder / "soil")


def test_loading_one_task_imports_one_plugin(tree: Tree) -> None:
    for name in ("soil", "soil_ph", "sand", "broken"):
        tree.add(name, "raise RuntimeError('never imported')" if name == "broken" else None)
    tree.catalog().load(Task, "sand")
    assert tree.imported() == {"sand"}


def test_listing_runs_no_factory(tree: Tree) -> None:
    tree.add(
        "soil",
        """
        from neuco_core import Dataset, Method, Remote, Task, hookimpl

        def boom(*args, **kwargs):
            raise RuntimeError("a factory was run")

        @hookimpl
        def neuco_datasets():
            yield Dataset(id="soil", cubes=boom)

        @hookimpl
        def neuco_tasks():
            yield Task(id="soil_ph", dataset="soil", kind="regression", source=Remote("file:///x"), loader=boom)

        @hookimpl
        def neuco_methods():
            yield Method(id="soil_mean", encoder=boom)
        """,
    )
    catalog = tree.catalog()
    assert [list(catalog.all(cls)) for cls in (Dataset, Task, Method)] == [["soil"], ["soil_ph"], ["soil_mean"]]
    assert catalog.problems() == []


def test_an_unknown_id_is_a_typed_error_with_close_matches(tree: Tree) -> None:
    """No assertion, which ``python -O`` leaves out: ruff refuses those in the packages."""
    tree.add("biomass_mean")
    with pytest.raises(UnknownIdError, match="Did you mean 'biomass_mean'") as caught:
        tree.catalog().load(Task, "biomas_mean")
    assert caught.value.close == ["biomass_mean"]
    assert caught.value.exit_code == 3


def test_the_same_id_in_two_directories_is_an_error_that_names_both(tree: Tree) -> None:
    tree.add("soil", ONE.format(id="soil_ph"))
    tree.add("soil_ph")
    tree.add("sand")
    catalog = tree.catalog()
    with pytest.raises(DuplicateIdError) as caught:
        catalog.load(Task, "soil_ph")
    assert f"{tree.folder / 'soil'} and {tree.folder / 'soil_ph'}" in str(caught.value)
    assert list(catalog.all(Task)) == ["sand"]
    assert [(p.name, p.stage) for p in catalog.problems()] == [("soil_ph", "duplicate")]


@pytest.mark.parametrize("modules", [("acme_soil", "umbra_soil"), ("common", "common")])
def test_the_same_id_in_two_distributions_is_an_error_that_names_both(tree: Tree, modules: tuple[str, str]) -> None:
    for name, module in zip(("acme", "umbra"), modules, strict=True):
        tree.install(f"{name}-soil", {"neuco.tasks": {"soil": module}}, {module: ONE.format(id="soil")})
    with pytest.raises(
        DuplicateIdError, match=rf"acme-soil 1.2 \({modules[0]}\) and .*umbra-soil 1.2 \({modules[1]}\)"
    ):
        tree.catalog().load(Task, "soil")


def test_a_second_directory_of_the_same_name_is_reported_and_the_first_works(tree: Tree, tmp_path: Path) -> None:
    tree.add("soil")
    other = tmp_path / "elsewhere" / tree.package / "soil"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text(ONE.format(id="soil_mine"))
    importlib.import_module(tree.package).__path__.append(str(other.parent))
    (problem,) = tree.catalog().problems()
    assert problem.file == str(other)
    assert f"hidden by the plugin of the same name in {tree.folder / 'soil'}" in problem.error
    assert tree.catalog().load(Task, "soil").id == "soil"


REGISTERED = {
    "ids made in a loop": (
        ONE.format(id="soil").replace(
            "    yield Task(id='soil'", "    for name in ('ph', 'clay'):\n        yield Task(id=f'soil_{name}'"
        ),
        ["soil_clay", "soil_ph"],
    ),
    "no comment": (ONE.format(id="soil") + "    # yield Task(id='soil_old', dataset='any')\n", ["soil"]),
    "no module that has the name of a hook": ("import neuco_methods\n" + ONE.format(id="soil"), ["soil"]),
}


@pytest.mark.parametrize("name", REGISTERED)
def test_what_the_code_registers_is_found(name: str, tree: Tree) -> None:
    source, ids = REGISTERED[name]
    tree.add("soil", source)
    assert list(tree.catalog().all(Task)) == ids


def test_several_entry_points_may_share_a_module(tree: Tree) -> None:
    source = ONE.format(id="ph") + ONE.format(id="clay").strip().splitlines()[-1]
    tree.install("acme", {"neuco.tasks": {"ph": "acme", "clay": "acme"}}, {"acme": source})
    assert list(tree.catalog().all(Task)) == ["clay", "ph"]


def lock(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """What ``chmod 000`` does, for root too: nothing in the folder can be seen."""

    def locked(look: Any) -> Any:
        def refuse(path: Path, *args: Any, **kwargs: Any) -> Any:
            if folder in (path.parent, path if look.__name__ == "iterdir" else None):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return look(path, *args, **kwargs)

        return refuse

    for name in ("iterdir", "exists", "is_dir", "is_file"):
        monkeypatch.setattr(Path, name, locked(getattr(Path, name)))


def test_a_folder_that_cannot_be_read_is_reported(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "elsewhere" / tree.package
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder.parent))
    lock(monkeypatch, folder)
    package = importlib.import_module(tree.package)
    monkeypatch.setattr(package, "__path__", extended(package.__path__, tree.package))
    problem = only_problem(tree)
    assert (problem.name, problem.file) == (tree.package, str(folder))
    assert problem.error == "the folder cannot be read: Permission denied"


def test_a_directory_that_cannot_be_read_is_reported(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tree.add("rotten")
    lock(monkeypatch, path.parent)
    problem = only_problem(tree)
    assert (problem.file, problem.error) == (str(path.parent), "cannot be read: Permission denied")


def test_a_place_on_the_path_that_cannot_be_read_is_nobodys_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "locked"))
    lock(monkeypatch, tmp_path / "locked")
    assert extended([], "neuco_nothing") == []


def test_strict_makes_a_broken_plugin_an_error(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.add("good")
    tree.add("rotten", "raise RuntimeError('cheese')")
    monkeypatch.setenv("NEUCO_STRICT", "1")
    with pytest.raises(PluginError, match="plugin 'rotten' is broken, and NEUCO_STRICT is set: RuntimeError: cheese"):
        tree.catalog().all(Task)
    assert tree.catalog().load(Task, "good").id == "good"


def test_a_switch_understands_the_usual_words() -> None:
    for on, words in ((True, ("1", "true", "YES", "on", " 1 ")), (False, ("", "0", "False", "no", "off"))):
        assert [switched_on("NEUCO_STRICT", {"NEUCO_STRICT": word}) for word in words] == [on] * 5
    with pytest.raises(UsageError, match=r"NEUCO_STRICT: not a boolean; expected 1/true.* got 'maybe'"):
        switched_on("NEUCO_STRICT", {"NEUCO_STRICT": "maybe"})


LOAD_AND_LIST = """
import sys, neuco_core
print(neuco_core.load_task("plugin0150").origin.distribution, *(name for name in sys.modules if name[:6] == "plugin"))
print(sum(task.id.startswith("plugin0") for task in neuco_core.list_tasks()))
"""


def test_of_many_packages_one_is_imported_for_one_task_and_all_are_listed(tmp_path: Path) -> None:
    make_packages(tmp_path, 300)
    done = python("-c", LOAD_AND_LIST, path=tmp_path, env={"PYTHONDONTWRITEBYTECODE": "1"})
    assert done.out.split() == ["plugin0150", "plugin0150", "300"]


def test_a_look_up_asks_only_plugins_whose_namespace_it_lies_in(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("soil", "soil-wet", "soilwet", "wet", *(f"soil{i}" for i in range(20))):
        tree.add(name)
    plugins, asked = tree.plugins(), []
    load = Plugins.load
    monkeypatch.setattr(Plugins, "load", lambda self, item: asked.append(item.name) or load(self, item))
    assert plugins.find("task", "soil_wet_ph") is None
    assert asked == ["soil", "soil-wet"]
    spec = plugins.find("task", "soil")
    assert spec is not None
    assert asked == ["soil", "soil-wet", "soil"]
    assert plugins.find("task", "soil@1") == spec
    assert asked == ["soil", "soil-wet", "soil"], "what is known is not looked up again"
