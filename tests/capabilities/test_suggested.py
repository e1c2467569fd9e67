"""``neuco score --suggested``: of the tasks asked for, those that tell most, by the records of others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from neuco_core.capabilities.own import of_board, of_records, suggested
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import list_tasks, load_method, load_protocol
from neuco_core.runs.plan import Plan, make_plan
from tests.command import Said, neuco_here
from tests.fetch.helpers import own_settings

NEW = "pca"


@pytest.fixture
def registry(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The registry as if one method had never been scored."""
    copied = tmp_path / "registry"
    shutil.copytree(root / "registry", copied)
    packs = json.loads((copied / "records.json").read_text(encoding="utf-8"))
    packs["packs"] = [pack for pack in packs["packs"] if pack["method"] != NEW]
    (copied / "records.json").write_text(json.dumps(packs), encoding="utf-8")
    own_settings(tmp_path, monkeypatch)
    monkeypatch.setenv("NEUCO_REGISTRY", str(copied))
    return copied


def score(*words: str) -> Said:
    return neuco_here("score", "--jobs", "1", *words)


def test_the_first_tasks_of_a_new_method_then_others_then_none(registry: Path) -> None:
    first = score("--method", NEW, "--suite", "olinda", "--suggested", "1", "--json")
    (made,) = first.json["cells"]
    assert f"suggested for {NEW}: {made['task']}, predicted" in first.err
    rest = score("--method", NEW, "--suite", "olinda", "--suggested", "5", "--dry-run")
    assert rest.err.count("suggested for") == 2
    assert f": {made['task']}," not in rest.err
    done = score("--method", "averaging", "--suite", "olinda", "--suggested", "2")
    assert done.code == 0
    assert "nothing is left to suggest for averaging: 3 cached" in done.err
    assert "olinda_sea_level" in done.out  # what is on record is served


@pytest.mark.parametrize(
    "words",
    [
        ("--method", "averaging*"),
        ("--all",),
        ("--method", NEW, "--limit", "50"),
        ("--method", NEW, "--param", "dim=3"),
    ],
)
def test_it_is_for_one_method_with_records(registry: Path, words: tuple[str, ...]) -> None:
    said = score(*words, "--suite", "olinda", "--suggested", "1")
    assert said.code == 2
    assert "--suggested is for one --method as it is registered" in said.err


def plans(registry: Path, suite: str = "olinda") -> list[Plan]:
    return [make_plan([load_method(NEW)], list_tasks(suite=suite), load_protocol("ridge"), registry)]


def test_a_board_serves_where_records_are_away(registry: Path) -> None:
    from neuco_core.boards.current import current
    from neuco_core.boards.store import stored_board

    now = current(registry)
    others = [score for score in of_board(stored_board(registry, "mini")) if score[0][0] != NEW]
    by_board = suggested(plans(registry, "mini"), others, 3)
    by_records = suggested(plans(registry, "mini"), of_records(now.records), 3)
    assert [one.task for one in by_board[1]] == [one.task for one in by_records[1]]
    assert [cell.task.id for cell in by_board[0][0].cells] == sorted(one.task for one in by_board[1])


def test_nothing_known_and_nothing_to_do_are_told_apart(registry: Path) -> None:
    with pytest.raises(DataError, match=r"nothing to go by: too few scores .*got 0, of 0 other methods"):
        suggested(plans(registry), [], 1)
    (plan,) = plans(registry)
    assert suggested([Plan(plan.protocol, ())], [], 1) == ([], [])


def test_what_nobody_has_run_is_not_suggested(registry: Path) -> None:
    tasks = [task.id for task in list_tasks(suite="mini")]
    scores = [
        ((f"m{i}", task, "ridge"), i * 0.1 + j * 0.01, True) for i in range(4) for j, task in enumerate(tasks[:2])
    ]
    _, found = suggested(plans(registry, "mini"), scores, 5)
    assert {one.task for one in found} == {*tasks[:2]}


def test_where_lower_is_better_predictions_are_turned_back(registry: Path) -> None:
    tasks = [task.id for task in list_tasks(suite="mini")]
    cells = [(f"m{i}", task, 3 + i * 0.1 + j) for i in range(6) for j, task in enumerate(tasks)]
    up, down = ([((m, t, "ridge"), value, better) for m, t, value in cells] for better in (True, False))
    (first,), (second,) = (suggested(plans(registry, "mini"), scores, 1)[1] for scores in (up, down))
    assert first.predicted > 0
    assert second.predicted > 0
    assert second.low < second.predicted < second.high
