"""What changed between two boards of a suite, and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from neuco_core.boards.build import build_board
from neuco_core.boards.diff import Change, changes
from neuco_core.records.model import Record
from tests.boards.helpers import SCORES, SUITE, make_records, make_suite


def lines_after(change: Callable[[list[Record]], list[Record]]) -> list[str]:
    old, new = build_board(make_records(SCORES), SUITE), build_board(change(make_records(SCORES)), SUITE)
    return [str(found) for found in changes(old, new)]


def test_changes_have_causes() -> None:
    new = make_records({"delta": {"first": 0.99, "second": 0.99}})
    lines = lines_after(lambda records: [*records, *new])
    assert any(line.startswith("delta is new, at rank 1: P(first)") for line in lines)
    assert any(line.startswith("gamma moves from rank 3 to 4: caused by others: delta is new") for line in lines)
    lines = lines_after(lambda records: [r for r in records if r.method != "alpha"])
    assert any("alpha" in line and "no longer ranked" in line for line in lines)
    better = make_records({"gamma": {"first": 0.99, "second": 0.99}})
    lines = lines_after(lambda records: [*(r for r in records if r.method != "gamma"), *better])
    assert any(line.startswith("gamma has new scores: first Mean score 0.199 → 0.989") for line in lines)
    assert any(line.startswith("gamma moves from rank 3 to 1: its own scores changed") for line in lines)
    assert lines_after(lambda records: records) == []


def test_tasks_and_rules_change() -> None:
    records = make_records(SCORES)
    old = build_board(records, SUITE)
    fewer = build_board(records, make_suite("first"))
    assert "task second is no longer used" in map(str, changes(old, fewer))
    assert "task second is new" in map(str, changes(fewer, old))
    other = build_board(records, SUITE, {"weights": "equal"})
    assert changes(old, other)[0].kind == "rule"


def test_other_tasks_are_the_cause_of_what_moves() -> None:
    records = make_records({"alpha": {"first": 0.9, "second": 0.1}, "beta": {"first": 0.5, "second": 0.8}})
    old, new = (build_board(records, make_suite(*tasks)) for tasks in (("first",), ("second",)))
    moved = [str(change) for change in changes(old, new) if change.kind == "moved"]
    assert moved[0] == "beta moves from rank 2 to 1: task second is new; task first is no longer used"


def test_weights_that_reorder_strangers_are_named_as_the_cause() -> None:
    """A newcomer that is bad on one task gives that task weight, and two others swap."""
    scores = {"alpha": {"first": 0.9, "second": 0.5}, "beta": {"first": 0.3, "second": 0.6}}
    old = build_board(make_records(scores), SUITE)
    bad = make_records({"zeta": {"first": 0.2, "second": -60.0}})
    new = build_board([*make_records(scores), *bad], SUITE)
    assert old.ranks == {"alpha": 1, "beta": 2}
    assert new.ranks == {"alpha": 2, "beta": 1, "zeta": 3}
    (line,) = [str(found) for found in changes(old, new) if found.kind == "moved" and found.subject == "alpha"]
    assert "caused by others: the weights changed with the pool, and it swapped with beta" in line


def test_a_change_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind of change"):
        Change("zap", "x")
