"""Selectors, suites, and the errors that help."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from neuco_core.errors import PluginError, SpecError, UnknownIdError, UsageError
from neuco_core.plugins.catalog import Catalog, read_suite
from tests.plugins.helpers import Tree

SOIL = """
from neuco_core import Dataset, Remote, Task, hookimpl

@hookimpl
def neuco_datasets():
    yield Dataset(id="soil")

@hookimpl
def neuco_tasks():
    source = Remote("https://example.org/x.csv")
    yield Task(id="soil_ph", dataset="soil", kind="regression", tags=("chemistry", "eo"), source=source)
    yield Task(id="soil_sand", dataset="soil", kind="classification", tags=("eo",), source=source, version=2)
    yield Task(id="soil_clay", dataset="soil", kind="regression", source=source)
"""


@pytest.fixture
def catalog(tree: Tree) -> Catalog:
    tree.add("soil", SOIL)
    tree.add("sand")
    folder = tree.registry / "suites"
    (folder / "small.toml").write_text('id = "small"\n[tasks]\nsoil_ph = 1\nsoil_sand = 2\n')
    (folder / "old.toml").write_text('id = "old"\n[tasks]\nsoil_sand = 1\n')
    return tree.catalog()


@pytest.mark.parametrize(
    ("ids", "selectors", "expected"),
    [
        ((), {}, ["sand", "soil_clay", "soil_ph", "soil_sand"]),
        (("soil_*",), {}, ["soil_clay", "soil_ph", "soil_sand"]),
        (("soil_ph", "s?nd"), {}, ["sand", "soil_ph"]),
        ((), {"kind": "regression"}, ["sand", "soil_clay", "soil_ph"]),
        ((), {"tag": "eo"}, ["soil_ph", "soil_sand"]),
        ((), {"tag": ("eo", "chemistry")}, ["soil_ph"]),
        ((), {"dataset": "soil"}, ["soil_clay", "soil_ph", "soil_sand"]),
        ((), {"suite": "small"}, ["soil_ph", "soil_sand"]),
        (("*_s*",), {"kind": "classification", "tag": "eo", "dataset": "soil", "suite": "small"}, ["soil_sand"]),
        (("sand",), {"suite": "small"}, []),
    ],
)
def test_selectors_are_anded(
    catalog: Catalog, ids: tuple[str, ...], selectors: dict[str, str], expected: list[str]
) -> None:
    assert [task.id for task in catalog.tasks(*ids, **selectors)] == expected


@pytest.mark.parametrize(
    ("ids", "selectors", "error", "text"),
    [
        (("soil_hp",), {}, UnknownIdError, "Did you mean 'soil_ph'"),
        (("x*",), {}, UnknownIdError, "no task 'x\\*'"),
        ((), {"kind": "nonsense"}, UsageError, "one of regression, classification, multilabel, got 'nonsense'"),
        ((), {"tag": "chemisty"}, UnknownIdError, "Did you mean 'chemistry'"),
        ((), {"dataset": "solo"}, UnknownIdError, "no dataset 'solo'"),
        ((), {"suite": "smal"}, UnknownIdError, "Did you mean 'small'"),
        ((), {"suite": "old"}, PluginError, "expected version 1, got 2"),
    ],
)
def test_a_selector_that_cannot_match_is_an_error(
    catalog: Catalog, ids: tuple[str, ...], selectors: dict[str, str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        catalog.tasks(*ids, **selectors)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = ", "not a suite"),
        ('id = "x"\ncolour = "red"\n[tasks]\na = 1', "not a suite.*colour"),
        ('id = "other"\n[tasks]\na = 1', "expected 'x', got 'other'"),
        ('id = "x"\n[tasks]\n', "at least one task"),
        ('id = "x"\n[tasks]\na = 1' + 5000 * "0", "not a suite"),
    ],
)
def test_a_bad_suite_file_is_refused_with_its_name(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(SpecError, match=expected):
        read_suite(path)


def test_a_bad_suite_file_hurts_only_what_needs_it(catalog: Catalog, tree: Tree) -> None:
    folder = tree.registry / "suites"
    (folder / "rotten.toml").write_text("id = ")
    os.mkfifo(folder / "pipe.toml")
    (folder / "deep.toml").write_text("id = " + "[" * 100_000)
    (folder / "large.toml").write_text("#" * 1_000_001)
    assert [task.id for task in catalog.tasks(suite="small")] == ["soil_ph", "soil_sand"]
    for needs_it in (lambda: catalog.suite("rotten"), lambda: catalog.tasks(suite="rotten")):
        with pytest.raises(SpecError, match=r"^not a suite: .*rotten\.toml"):
            needs_it()
    with pytest.raises(SpecError, match="not a suite"):
        catalog.suites()
    good, bad = catalog.survey_suites()
    assert (list(good), list(bad)) == (["old", "small", "all-any", "all-soil"], ["deep", "large", "pipe", "rotten"])
    assert "not a suite: not a regular file" in str(bad["pipe"])
    assert "not a suite: larger than 1000000 bytes" in str(bad["large"])


def test_a_suite_whose_tasks_are_not_there_is_a_problem_that_names_file_task_and_version(
    catalog: Catalog, tree: Tree
) -> None:
    folder = tree.registry / "suites"
    (folder / "gone.toml").write_text('id = "gone"\n[tasks]\nclaay = 1\n')
    (folder / "rotten.toml").write_text("id = ")
    problems = sorted(catalog.suite_warnings())
    assert len(problems) == 3
    assert problems[0] == f"suite 'gone' cannot be used: no task 'claay' ({folder / 'gone.toml'}). Run `neuco tasks`"
    words = f"suite 'old' cannot be used: task 'soil_sand' ({tree.folder / 'soil'}) is not the version"
    end = f"that the suite compares; expected version 1, got 2 ({folder / 'old.toml'}). A suite is frozen"
    assert problems[1].startswith(f"{words} {end}")
    assert problems[2].startswith("suite 'rotten' cannot be used: not a suite: ")
