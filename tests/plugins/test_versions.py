"""Two versions of a task and of a method side by side: which one each way to ask for them gives."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import neuco_methods
import neuco_tasks
from neuco_core import load_method, load_task
from neuco_core.errors import UnknownIdError
from neuco_core.fetch.fetch import users
from neuco_core.plugins.catalog import catalog, list_methods, list_tasks
from neuco_core.studies.sources import gather
from tests.command import neuco_here

SAMPLES = 40
TASKS = """
from neuco_core import Dataset, Remote, Task, hookimpl

@hookimpl
def neuco_datasets():
    yield Dataset(id="twin")

@hookimpl
def neuco_tasks():
    shared = {{"id": "twin", "dataset": "twin", "kind": "regression"}}
    for version, column, url, sha256 in {rows!r}:
        tags = ("old",) if version == 1 else ("new",)
        yield Task(**shared, version=version, columns=(column,), source=Remote(url, sha256=sha256), tags=tags)
"""
METHODS = """
from neuco_core import Method, Remote, hookimpl

@hookimpl
def neuco_methods():
    for version in (1, 2):
        yield Method(id="twin", version=version, files={{"twin": Remote({url!r}, sha256={sha256!r})}})
"""


def write(path: Path, rows: list[str]) -> tuple[str, str]:
    path.write_text("\n".join(rows) + "\n")
    return path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module", autouse=True)
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The task's versions have files and columns of their own: version 1 is noise, version 2 is the embeddings."""
    folder, rng = tmp_path_factory.mktemp("twin"), np.random.default_rng(0)
    values = rng.normal(size=(SAMPLES, 2))
    embeddings = write(folder / "x.csv", ["id,0,1", *(f"s{i},{a},{b}" for i, (a, b) in enumerate(values))])
    first = write(folder / "first.csv", ["id,a", *(f"s{i},{y}" for i, y in enumerate(rng.normal(size=SAMPLES)))])
    second = write(folder / "second.csv", ["id,b", *(f"s{i},{y}" for i, y in enumerate(values.sum(axis=1)))])
    sources = {
        "neuco_tasks": TASKS.format(rows=[(1, "a", *first), (2, "b", *second)]),
        "neuco_methods": METHODS.format(url=embeddings[0], sha256=embeddings[1]),
    }
    with pytest.MonkeyPatch.context() as patch:
        for package in (neuco_tasks, neuco_methods):
            plugin = folder / package.__name__ / "twin"
            plugin.mkdir(parents=True)
            (plugin / "__init__.py").write_text(sources[package.__name__])
            patch.setattr(package, "__path__", [*package.__path__, str(plugin.parent)])
        for name in ("cache", "config", "registry"):
            patch.setenv(f"NEUCO_{name.upper()}", str(folder / name))
        (folder / "registry" / "suites").mkdir(parents=True)
        (folder / "registry" / "suites" / "past.toml").write_text('id = "past"\n[tasks]\ntwin = 1\n')
        # Workers are processes of their own, and find the plugins by the path.
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", str(folder))
        catalog.cache_clear()
        yield folder
    catalog.cache_clear()
    for name in ("neuco_tasks.twin", "neuco_methods.twin"):
        sys.modules.pop(name, None)


def test_an_id_is_the_newest_and_a_version_is_that_one() -> None:
    assert [load_task(name).version for name in ("twin", "twin@1", "twin@2")] == [2, 1, 2]
    assert [load_method(name).version for name in ("twin", "twin@1", "twin@2")] == [2, 1, 2]
    assert (load_task("twin@1").columns, load_task("twin").columns) == (("a",), ("b",))


@pytest.mark.parametrize("name", ["twin@9", "twin@", "twin@01", "twin@1@2"])
def test_a_version_that_is_not_there_is_unknown(name: str) -> None:
    with pytest.raises(UnknownIdError, match=rf"no task '{name}'. Did you mean .*'twin@[12]'"):
        load_task(name)
    for words in (("show", name), ("explain", "twin", name), ("score", "--method", "twin", "--task", name)):
        done = neuco_here(*words)
        assert (done.code, done.out) == (3, "")
        assert "'twin@" in done.err.partition("Did you mean")[2]


def versions(*ids: str, **conditions: str) -> list[int]:
    return sorted(task.version for task in list_tasks(*ids, dataset="twin", **conditions))


def test_all_conditions_hold_for_versions_too() -> None:
    assert versions() == versions("twin") == versions("tw*") == [2]
    assert versions("twin@1") == versions("twin@1", "twin@1") == versions("twin", suite="past") == [1]
    assert versions("twin@1", "twin") == versions("twin@1", "tw*") == [1, 2]
    assert versions("twin@2", suite="past") == versions("twin@1", tag="new") == []
    assert versions("twin@1", suite="past") == versions("twin@1", tag="old") == [1]
    assert [method.version for method in list_methods("twin@1")] == [1]


def test_each_version_is_scored_with_its_own_labels() -> None:
    words = ("score", "--method", "twin@1", "--task", "twin@1", "--task", "twin", "--protocol", "ridge+k=3")
    done = neuco_here(*words, "--jobs", "1", "--json")
    assert done.code == 0, done.err
    means = {(cell["method"], cell["task"]): cell["record"]["mean"] for cell in done.json["cells"]}
    assert set(means) == {("twin", "twin"), ("twin", "twin@2")}
    assert means["twin", "twin"] < 0.5 < 0.9 < means["twin", "twin@2"]
    table = neuco_here(*words).out.splitlines()
    assert [line.split()[0] for line in table[2:4]] == ["twin", "twin@2"]
    explained = neuco_here("explain", "twin@1", "twin@1").out
    assert "next: neuco score --method twin@1 --task twin@1" in explained
    assert "there are records under ridge+k=3: give --protocol" in explained
    assert "there are records under ridge+k=3" in neuco_here("explain", "twin@1", "twin").out
    assert "there are records" not in neuco_here("explain", "twin", "twin").out


def test_a_version_asked_for_and_not_scored_is_a_failure() -> None:
    """Beside another task that has a score: that one must not hide it."""
    from neuco_core.cli.score_show import PlannedOutcome, verdict
    from neuco_core.plugins.catalog import load_protocol
    from neuco_core.runs.plan import Planner

    planner = Planner(load_protocol("ridge"), {})
    cells = [planner.cell(load_method("twin"), load_task(name)) for name in ("twin@1", "twin@2")]
    results = [PlannedOutcome(cell, None, cell.state, cell.reason) for cell in cells]
    for asked, named in (("twin@1", "twin"), ("twin@2", "twin@2"), ("twin", "twin, twin@2")):
        assert verdict(results, [asked]).endswith(f"could not be scored: {named}")


def test_studies_take_the_labels_of_each_version() -> None:
    samples = gather([load_task("twin@1"), load_task("twin@2")])
    assert [item.labels.columns for item in samples if item.labels is not None] == [("a",), ("b",)]


def test_files_of_all_versions_are_in_use() -> None:
    assert sorted(name for names in users().values() for name in names if "twin" in name) == [
        "twin", "twin", "twin@2", "twin@2",
    ]  # fmt: skip


def test_versions_are_shown_and_completed() -> None:
    shown = neuco_here("show", "twin@1", "--json").json
    assert [(item["noun"], item["version"]) for item in shown] == [("dataset", 1), ("task", 1), ("method", 1)]
    env = {"_NEUCO_COMPLETE": "bash_complete", "COMP_WORDS": "neuco score --task twin@", "COMP_CWORD": "3"}
    assert neuco_here(env=env).out.splitlines() == ["plain,twin@1", "plain,twin@2"]
