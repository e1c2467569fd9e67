"""What the plugin manager promises: who is found, what is imported for it, and whose an id is."""

from __future__ import annotations

import errno
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from neuco_core.env import switched_on
from neuco_core.errors import DuplicateIdError, PluginError, UnknownIdError, UsageError
from neuco_core.plugins.catalog import Catalog
from neuco_core.plugins.discovery import BUILTIN, extended
from neuco_core.plugins.loading import Plugins
from neuco_core.specs import Dataset, Engine, Method, Metric, Origin, Probe, Task
from tests.plugins.helpers import ONE, Tree, only_problem


def test_every_spec_has_the_origin_that_its_plugin_has(tree: Tree) -> None:
    """A directory that is dropped in works at once, as a package does; neither chooses what it says of itself."""
    chosen = ONE.format(id="sand").replace("yield Task(", "yield Task(origin=Origin('other', 'elsewhere'), ")
    tree.add("sand", "from neuco_core.specs import Origin\n" + chosen)
    tree.install("acme-soil", {"neuco.tasks": {"soil": "acme_soil"}}, {"acme_soil": ONE.format(id="soil_ph")})
    assert tree.catalog().load(Task, "sand").origin == Origin("sand", str(tree.folder / "sand"))
    origin = tree.catalog().load(Task, "soil_ph").origin
    assert origin == Origin("soil", "acme_soil", "acme-soil", "1.2")
    assert str(origin) == "acme-soil 1.2 (acme_soil)"


def test_listing_runs_no_factory(tree: Tree) -> None:
    boom = "from neuco_core import Dataset, Method\n\ndef boom(*_):\n    raise RuntimeError('a factory was run')\n"
    hooks = {"datasets": "Dataset(id='soil', cubes=boom)", "methods": "Method(id='soil_mean', encoder=boom)"}
    for name, made in hooks.items():
        boom += f"\n@hookimpl\ndef neuco_{name}():\n    yield {made}\n"
    tree.add("soil", ONE.format(id="soil_ph").replace("source=", "loader=boom, source=") + boom)
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


def test_what_comes_with_neuco_keeps_its_id(tree: Tree) -> None:
    """Else a package could end the scoring of everybody who has it installed."""
    taken = """
from neuco_core import hookimpl
from neuco_core.specs import Engine, Metric, Probe

@hookimpl
def neuco_metrics():
    yield Metric(id="f1", kinds=("classification",), function=print)
    yield Metric(id="f1_mine", kinds=("classification",), function=print)

@hookimpl
def neuco_probes():
    yield Probe(id="ridge", factory=print)

@hookimpl
def neuco_engines():
    yield Engine(id="local", factory=print)
"""
    ids = {"metric": "f1", "probe": "ridge", "engine": "local"}
    tree.install("acme", {f"neuco.{noun}s": {name: "acme"} for noun, name in ids.items()}, {"acme": taken})
    catalog = Catalog(tree.plugins(builtin=BUILTIN))
    for cls, name in ((Metric, "f1"), (Probe, "ridge"), (Engine, "local")):
        assert catalog.load(cls, name).origin == Origin("neuco_core.builtin", "neuco_core.builtin")
        assert catalog.all(cls)[name].origin == Origin("neuco_core.builtin", "neuco_core.builtin")
    assert catalog.load(Metric, "f1_mine").origin.distribution == "acme"
    problems = [problem for problem in catalog.problems() if problem.stage == "duplicate"]
    assert [problem.error.partition(":")[0] for problem in problems] == [
        f"{noun} {name!r} comes with neuco, whose own is used" for noun, name in ids.items()
    ]


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


def test_a_switch_understands_the_usual_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for on, words in ((True, ("1", "true", "YES", "on", " 1 ")), (False, ("", "0", "False", "no", "off"))):
        for word in words:
            monkeypatch.setenv("NEUCO_STRICT", word)
            assert switched_on("NEUCO_STRICT") is on
    monkeypatch.setenv("NEUCO_STRICT", "maybe")
    with pytest.raises(UsageError, match=r"NEUCO_STRICT: not a boolean; expected 1/true.* got 'maybe'"):
        switched_on("NEUCO_STRICT")


def test_a_look_up_imports_only_plugins_whose_namespace_it_lies_in(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("soil", "soil-wet", "soilwet", "wet", "broken"):
        tree.add(name, "raise RuntimeError('never imported')" if name == "broken" else None)
    for name in ("soil_dry", "sand"):
        tree.install(f"acme-{name}", {"neuco.tasks": {name: f"acme_{name}"}}, {f"acme_{name}": ONE.format(id=name)})
    plugins, asked = tree.plugins(), []
    load = Plugins.load
    monkeypatch.setattr(Plugins, "load", lambda self, item: asked.append(item.name) or load(self, item))
    assert plugins.find("task", "soil_wet_ph") is None
    assert asked == ["soil", "soil-wet"]
    assert tree.imported() == {"soil", "soil-wet"}
    spec = plugins.find("task", "sand")
    assert spec is not None
    assert plugins.find("task", "sand@1") == spec
    assert asked == ["soil", "soil-wet", "sand"], "what is known is not looked up again"
    assert "acme_soil_dry" not in sys.modules
