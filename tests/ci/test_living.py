"""Living suites are made from what is registered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ci.living import living_suites, write_living

from neuco_core.errors import SpecError
from neuco_core.plugins.catalog import Catalog, catalog, read_suite
from neuco_core.specs import Dataset, Task, to_json
from tests.ci.helpers import ROOT


def rows(**changes: Any) -> list[dict[str, Any]]:
    """What the shipped plugins register; ``changes`` are fields of olinda's sea level."""
    tasks = [to_json(task) for task in catalog().all(Task).values()]
    tasks += [{**task, **changes} for task in tasks if task["id"] == "olinda_sea_level" and changes]
    datasets = [to_json(dataset) for dataset in catalog().all(Dataset).values()]
    return [{"noun": "task", "spec": task} for task in tasks] + [{"noun": "dataset", "spec": d} for d in datasets]


def test_every_dataset_has_a_suite_of_all_its_tasks(tmp_path: Path) -> None:
    """Made here and not what ships: between a merge and its publishing, that may well lack a task."""
    files = living_suites(rows(), ROOT / "registry")
    write_living(tmp_path, files)
    known = Catalog(registry=tmp_path)
    tasks = [task for name in files for task in known.suite_tasks(known.suite(name.removesuffix(".toml")))]
    assert {task.label for task in tasks} == {task.label for task in catalog().all(Task).values() if not task.control}
    shipped = [read_suite(path) for path in (ROOT / "registry" / "suites").glob("all-*.toml")]
    assert shipped
    assert all(suite.living for suite in shipped)


def test_a_new_task_or_version_makes_the_next_version_of_the_suite(tmp_path: Path) -> None:
    assert write_living(tmp_path, living_suites(rows(), tmp_path))
    assert not write_living(tmp_path, living_suites(rows(), tmp_path))
    assert write_living(tmp_path, living_suites(rows(version=2), tmp_path))
    suite = read_suite(tmp_path / "suites" / "all-olinda.toml")
    assert (suite.version, suite.tasks["olinda_sea_level"], suite.living) == (2, 2, True)
    assert write_living(tmp_path, living_suites(rows(id="olinda_more"), tmp_path))
    suite = read_suite(tmp_path / "suites" / "all-olinda.toml")
    assert (suite.version, "olinda_more" in suite.tasks) == (3, True)


def test_the_protocol_is_the_datasets_own_or_the_usual_one(tmp_path: Path) -> None:
    def protocol(declared: str, registry: Path) -> str:
        found = rows()
        for row in found:
            if row["noun"] == "dataset":
                row["spec"]["protocol"] = declared
        write_living(tmp_path, living_suites(found, registry))
        return read_suite(tmp_path / "suites" / "all-mini.toml").protocol

    assert protocol("neuco-2025", ROOT / "registry") == "neuco-2025"
    assert protocol("", ROOT / "registry") == "ridge"
    assert protocol("", tmp_path / "empty") == "neuco-2025"


def test_a_dataset_without_tasks_has_no_suite(tmp_path: Path) -> None:
    write_living(tmp_path, living_suites(rows(), tmp_path))
    left = [row for row in rows() if row["spec"].get("dataset") != "digits"]
    assert write_living(tmp_path, living_suites(left, tmp_path))
    assert not (tmp_path / "suites" / "all-digits.toml").exists()


@pytest.mark.parametrize("title", ["\x7f", '"\\', "\n[tasks]", "long " * 1_000_000, "\U0001f30d"])
def test_no_title_of_a_dataset_makes_a_suite_that_nobody_can_read(title: str, tmp_path: Path) -> None:
    """It would hold up the publishing of everybody."""
    own = [{"noun": "dataset", "spec": {"id": "own", "title": title, "protocol": title}}]
    task = {"noun": "task", "spec": {"id": "own_task", "version": 1, "dataset": "own"}}
    write_living(tmp_path, living_suites([*own, task], tmp_path))
    assert dict(read_suite(tmp_path / "suites" / "all-own.toml").tasks) == {"own_task": 1}


def test_the_id_of_a_dataset_leaves_room_for_that_of_its_suite(tmp_path: Path) -> None:
    longest = Dataset(id="a" * 60)
    row = {"noun": "task", "spec": {"id": "own_task", "version": 1, "dataset": longest.id}}
    write_living(tmp_path, living_suites([row], tmp_path))
    assert read_suite(tmp_path / "suites" / f"all-{longest.id}.toml").living
    with pytest.raises(SpecError, match="at most 60 characters"):
        Dataset(id="a" * 61)


def test_a_frozen_suite_cannot_be_called_living(tmp_path: Path) -> None:
    """Then a pull request could thaw it: what it compares could go without a word."""
    path = tmp_path / "own.toml"
    path.write_text('id = "own"\nliving = true\n[tasks]\nown_task = 1\n')
    with pytest.raises(SpecError, match="only publishing writes living suites"):
        read_suite(path)
