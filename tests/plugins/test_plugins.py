"""What the plugin manager promises, a test for each promise."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from neuco_core.errors import DuplicateIdError, PluginError, UnknownIdError
from neuco_core.plugins.discovery import BrokenPlugin
from neuco_core.specs import Dataset, Method, Task
from tests.command import python
from tests.plugins.helpers import ONE, Tree


def only_problem(tree: Tree) -> BrokenPlugin:
    """The single problem of a tree; the plugin ``good`` beside it must not be hurt by it."""
    tree.add("good")
    catalog = tree.catalog()
    assert list(catalog.all(Task)) == ["good"]
    assert catalog.load(Task, "good").id == "good"
    (problem,) = catalog.problems()
    return problem


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


def test_one_directory_may_hold_several_tasks_and_ids_made_in_a_loop_are_found(tree: Tree) -> None:
    tree.add(
        "soil",
        ONE.format(id="soil").replace(
            "    yield Task(id='soil'", "    for name in ('ph', 'clay'):\n        yield Task(id=f'soil_{name}'"
        ),
    )
    assert list(tree.catalog().all(Task)) == ["soil_clay", "soil_ph"]


def test_a_commented_out_registration_is_not_found(tree: Tree) -> None:
    tree.add("soil", ONE.format(id="soil") + "    # yield Task(id='soil_old', dataset='any', kind='regression')\n")
    assert list(tree.catalog().all(Task)) == ["soil"]


def test_an_unknown_id_is_a_typed_error_with_close_matches(tree: Tree) -> None:
    tree.add("biomass_mean")
    with pytest.raises(UnknownIdError, match="Did you mean 'biomass_mean'") as caught:
        tree.catalog().load(Task, "biomas_mean")
    assert caught.value.close == ["biomass_mean"]
    assert caught.value.exit_code == 3


def test_an_unknown_id_is_an_error_under_python_O_too() -> None:
    code = "from neuco_core import *\ntry: load_task('olinda_elevation_maen')\nexcept NeucoError as e: print(e)"
    assert "Did you mean 'olinda_elevation_mean'" in python("-O", "-c", code).out


def test_an_unknown_id_says_that_broken_plugins_could_not_be_searched(tree: Tree) -> None:
    tree.add("rotten", "raise RuntimeError")
    with pytest.raises(UnknownIdError, match="1 broken plugin"):
        tree.catalog().load(Task, "soil")


def test_the_same_id_twice_in_one_file_is_an_error(tree: Tree) -> None:
    path = tree.add("soil", ONE.format(id="soil") + ONE.format(id="soil").strip().splitlines()[-1])
    catalog = tree.catalog()
    with pytest.raises(DuplicateIdError, match="registered twice") as caught:
        catalog.load(Task, "soil")
    assert str(path) in str(caught.value)
    assert catalog.problems()[0].stage == "duplicate"


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


def test_the_same_id_in_two_distributions_is_an_error_that_names_both(tree: Tree) -> None:
    for name in ("acme", "umbra"):
        tree.install(f"{name}-soil", {"neuco.tasks": {"soil": f"{name}_soil"}}, {f"{name}_soil": ONE.format(id="soil")})
    with pytest.raises(DuplicateIdError, match=r"acme-soil 1.2 \(acme_soil\) and .*umbra-soil 1.2 \(umbra_soil\)"):
        tree.catalog().load(Task, "soil")


def test_a_stranger_cannot_take_the_id_of_another_plugin(tree: Tree) -> None:
    tree.add("biomass_mean")
    tree.install("acme", {"neuco.tasks": {"acme": "acme"}}, {"acme": ONE.format(id="biomass_mean")})
    catalog = tree.catalog()
    assert str(catalog.load(Task, "biomass_mean").origin) == str(tree.folder / "biomass_mean")
    assert list(catalog.all(Task)) == ["biomass_mean"]
    assert "outside the plugin 'acme'" in catalog.problems()[0].error


def test_several_entry_points_may_share_a_module(tree: Tree) -> None:
    source = ONE.format(id="ph") + ONE.format(id="clay").strip().splitlines()[-1]
    tree.install("acme", {"neuco.tasks": {"ph": "acme", "clay": "acme"}}, {"acme": source})
    assert list(tree.catalog().all(Task)) == ["clay", "ph"]


def test_a_plugin_that_raises_at_import_is_reported(tree: Tree) -> None:
    path = tree.add("rotten", "import os\nraise RuntimeError('out of\\ncheese')")
    problem = only_problem(tree)
    assert (problem.name, problem.stage) == ("rotten", "import")
    assert problem.file == f"{path}:2"
    assert problem.error == "RuntimeError: out of cheese"
    with pytest.raises(PluginError) as caught:
        tree.catalog().load(Task, "rotten_x")
    words = "task 'rotten_x' cannot be loaded: its plugin 'rotten' failed to import: RuntimeError: out of cheese"
    assert str(caught.value) == f"{path}:2: {words}. Run `neuco plugins`"


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("def broken(:", "SyntaxError"),
        ("import sys; sys.exit(3)", "SystemExit"),
        ("import no_such_module", "ModuleNotFoundError"),
    ],
)
def test_whatever_happens_at_import_is_reported(tree: Tree, source: str, error: str) -> None:
    path = tree.add("rotten", source)
    problem = only_problem(tree)
    assert problem.error.startswith(error)
    assert problem.file == f"{path}:1"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import pytest\npytest.importorskip('no_such_module')", "Skipped: could not import"),
        (
            "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\nraise Mute",
            "Mute, without a message",
        ),
        ("raise GeneratorExit('gone')", "GeneratorExit: gone"),
    ],
)
def test_even_what_is_no_ordinary_error_is_reported(tree: Tree, source: str, words: str) -> None:
    tree.add("rotten", source)
    assert words in only_problem(tree).error


def test_a_spec_that_goes_round_its_checks_is_reported(tree: Tree) -> None:
    source = ONE.format(id="rotten").replace("@hookimpl", "class Loose(Task):\n    __post_init__ = print\n\n@hookimpl")
    tree.add("rotten", source.replace("yield Task(", "yield Loose("))
    assert only_problem(tree).error == "neuco_tasks must yield Task, not Loose"


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


def test_a_misspelled_hook_is_reported(tree: Tree) -> None:
    tree.add("rotten", ONE.format(id="rotten").replace("def neuco_tasks", "def neuco_task"))
    problem = only_problem(tree)
    assert "neuco_task" in problem.error
    assert problem.stage == "register"


def test_a_hook_without_its_mark_is_reported_even_beside_one_that_has_it(tree: Tree) -> None:
    path = tree.add("rotten", ONE.format(id="rotten") + "\n\ndef neuco_methods():\n    return []\n")
    problem = only_problem(tree)
    assert (problem.name, problem.stage) == ("rotten", "register")
    assert problem.error == "neuco_methods is a hook without @hookimpl: add it"
    assert problem.file == f"{path}:9"


def test_a_module_that_has_the_name_of_a_hook_is_no_hook(tree: Tree) -> None:
    tree.add("soil", "import neuco_methods\n" + ONE.format(id="soil"))
    assert list(tree.catalog().all(Task)) == ["soil"]


def test_a_hook_with_an_argument_that_does_not_exist_is_reported(tree: Tree) -> None:
    tree.add("rotten", ONE.format(id="rotten").replace("neuco_tasks()", "neuco_tasks(registry)"))
    assert "registry" in only_problem(tree).error


def test_a_hook_that_raises_half_way_registers_nothing_and_is_reported(tree: Tree) -> None:
    path = tree.add("rotten", ONE.format(id="rotten") + "    raise KeyError('half-way')\n")
    problem = only_problem(tree)
    assert (problem.stage, problem.error) == ("collect", "KeyError: 'half-way'")
    assert problem.file.startswith(f"{path}:")


@pytest.mark.parametrize("value", ["yield 'soil'", "return 3", "return Task", "yield None", "yield neuco_tasks"])
def test_a_hook_that_yields_the_wrong_type_is_reported(tree: Tree, value: str) -> None:
    path = tree.add("rotten", f"from neuco_core import Task, hookimpl\n@hookimpl\ndef neuco_tasks():\n    {value}\n")
    problem = only_problem(tree)
    assert "must yield" in problem.error
    assert problem.file.startswith(str(path))


def test_a_hook_that_yields_another_noun_is_reported(tree: Tree) -> None:
    tree.add("rotten", ONE.format(id="rotten").replace("neuco_tasks", "neuco_methods"))
    assert only_problem(tree).error == "neuco_methods must yield Method, not Task"


def test_a_spec_with_a_bad_value_is_reported(tree: Tree) -> None:
    tree.add("rotten", ONE.format(id="rotten").replace("regression", "astrology"))
    assert (
        "bad kind; expected one of regression, classification, multilabel, got 'astrology'" in only_problem(tree).error
    )


def test_an_id_that_differs_from_the_directory_is_reported(tree: Tree) -> None:
    path = tree.add("rotten", ONE.format(id="fresh"))
    problem = only_problem(tree)
    assert "task 'fresh' is outside the plugin 'rotten'" in problem.error
    assert problem.file == f"{path}:4"


@pytest.mark.parametrize(
    ("name", "reason"), [("_draft", "start with '_'"), ("With-Capitals", "must be an id"), ("spa ce", "must be an id")]
)
def test_a_directory_with_an_unusable_name_is_reported_not_ignored(tree: Tree, name: str, reason: str) -> None:
    tree.add(name, ONE.format(id="x"))
    problem = only_problem(tree)
    assert problem.file == str(tree.folder / name)
    assert reason in problem.error


def test_a_directory_without_a_registration_is_reported_not_ignored(tree: Tree) -> None:
    path = tree.add("empty", "")
    problem = only_problem(tree)
    assert problem.error == "no function with @hookimpl, so nothing is registered"
    assert problem.file == str(path)


def test_a_directory_without_init_and_a_stray_file_are_reported(tree: Tree) -> None:
    (tree.folder / "bare").mkdir()
    (tree.folder / "stray.py").write_text("x = 1")
    assert [(p.name, p.error) for p in tree.catalog().problems()] == [
        ("bare", "no __init__.py, so nothing can be registered"),
        ("stray.py", "a plugin is a directory; this is a file"),
    ]


def test_a_hook_without_its_entry_point_group_is_reported(tree: Tree) -> None:
    tree.install("acme", {"neuco.methods": {"soil": "acme"}}, {"acme": ONE.format(id="soil")})
    assert "without an entry point in the group neuco.tasks" in only_problem(tree).error


def test_an_entry_point_to_nothing_is_reported(tree: Tree) -> None:
    tree.install("acme", {"neuco.tasks": {"soil": "acme_gone:plugin"}}, {})
    problem = only_problem(tree)
    assert problem.error.startswith("ModuleNotFoundError")
    assert "acme 1.2" in problem.source


def test_what_a_plugin_prints_does_not_reach_stdout(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("loud", "print('hello')\n" + ONE.format(id="loud"))
    assert list(tree.catalog().all(Task)) == ["loud"]
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


def test_a_broken_plugin_is_tried_once(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("rotten", "print('tried')\nraise RuntimeError")
    plugins = tree.plugins()
    plugins.collect("task")
    plugins.collect("method")
    assert capsys.readouterr().err == "tried\n"
