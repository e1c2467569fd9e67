"""Boards from records: who is ranked, who is not and why, byte-stable files, history."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from ci.evaluate import boards as make_boards
from neuco_core.boards.build import TooManyCellsError, build_board
from neuco_core.boards.history import changes
from neuco_core.boards.model import Board, number, plain
from neuco_core.boards.store import board_path, check_board, history_path, read_board, read_history, write_board
from neuco_core.errors import DataError, UsageError
from neuco_core.jsonio import dump
from neuco_core.records.model import Record
from neuco_core.records.store import read_all, write_record
from tests.boards.helpers import make_record, make_records, make_suite

SCORES = {
    "alpha": {"first": 0.9, "second": 0.7},
    "beta": {"first": 0.8, "second": 0.8},
    "gamma": {"first": 0.2, "second": 0.1},
}
SUITE = make_suite("first", "second")


def dumped(board: Board) -> bytes:
    return dump(plain(board))


def test_rows_are_in_order_and_hold_everything() -> None:
    board = build_board(make_records(SCORES), SUITE)
    assert [row.method for row in board.rows][-1] == "gamma"
    row = board.rows[0]
    assert set(row.values) == {"best", "weighted_rank", "mean_q", "mean_score", "borda", "dim"}
    assert set(row.cells) == {"first", "second"}
    cell = row.cells["first"]
    assert cell.intervals["score"].low < cell.values["score"]  # type: ignore[operator]
    assert sum(task.values["weight"] or 0 for task in board.tasks) == pytest.approx(1)
    assert board.kind == "neuco"
    assert board.options["coverage"] == "complete"
    assert "every task" in board.rule
    assert sum(row.values["best"] or 0 for row in board.rows) == pytest.approx(1, abs=1e-3)


def test_the_order_of_records_does_not_matter() -> None:
    records = make_records(SCORES)
    assert dumped(build_board(records, SUITE)) == dumped(build_board(records[::-1], SUITE))


def test_renaming_methods_in_the_same_order_changes_names_only() -> None:
    board = build_board(make_records(SCORES), SUITE)
    renamed = build_board(make_records({f"x-{name}": row for name, row in SCORES.items()}), SUITE)
    first, second = plain(board.rows), plain(renamed.rows)
    assert [row.pop("method") for row in second] == ["x-" + row.pop("method") for row in first]
    for row in (*first, *second):
        for cell in row["cells"].values():
            cell.pop("fingerprint")
    assert first == second


def test_a_method_that_lacks_a_task_is_shown_with_the_reason() -> None:
    failed = make_record("delta", "second", status="failed", failure="memory", reason="needed 9 GB")
    records = [*make_records(SCORES), *make_records({"delta": {"first": 0.5}}), failed]
    board = build_board(records, SUITE)
    assert "delta" not in board.ranks
    (row,) = board.unranked
    assert [(task, cell.status, cell.reason) for task, cell in row.lacks.items()] == [
        ("second", "failed", "memory: needed 9 GB")
    ]
    assert row.cells["first"].values
    assert row in board.shown


def test_the_common_subset_ranks_everybody_on_fewer_tasks() -> None:
    records = [*make_records(SCORES), *make_records({"delta": {"first": 0.95}})]
    board = build_board(records, SUITE, {"coverage": "common"})
    assert board.ranks["delta"] == 1
    assert [task.id for task in board.tasks] == ["first"]
    assert "Not counted: task second, which delta lack" in board.notes
    assert board.options["coverage"] == "common"


def stale_reasons(board: Board) -> set[str]:
    return {cell.reason for row in board.rows for cell in row.lacks.values() if cell.status == "stale"}


def test_stale_records_never_rank() -> None:
    records = make_records(SCORES)
    board = build_board(records, SUITE, stale=lambda r: "the labels changed" if r.method == "alpha" else None)
    assert "alpha" not in board.ranks
    assert stale_reasons(board) == {"the labels changed"}


@pytest.mark.parametrize(
    ("field", "words"), [("task_version", "version 2 of the task"), ("method_version", "there is")]
)
def test_another_version_is_stale(field: str, words: str) -> None:
    other = make_record("alpha", "second", (0.5, 0.6), **{field: 2})
    records = [record for record in make_records(SCORES) if (record.method, record.task) != ("alpha", "second")]
    board = build_board([*records, other], SUITE)
    assert any(words in reason for reason in stale_reasons(board))
    assert "alpha" not in board.ranks


def test_an_old_version_stays_until_its_successor_is_there() -> None:
    """A new version that has a score on one task only does not push the old one off the board."""
    records = make_records(SCORES)
    second = [make_record("alpha", task, (0.8, 0.9), method_version=2) for task in ("first", "second")]
    board = build_board([*records, second[0]], SUITE)
    assert board.ranks == build_board(records, SUITE).ranks
    assert {row.version for row in board.rows if row.method == "alpha"} == {1}
    board = build_board([*records, *second], SUITE)
    assert {row.version for row in board.rows if row.method == "alpha"} == {2}
    assert len(board.ranks) == len(SCORES)
    # As many scores, but not where the old version has them.
    partly = [r for r in records if (r.method, r.task) != ("alpha", "second")]
    board = build_board([*partly, second[1]], SUITE)
    assert {row.version for row in board.rows if row.method == "alpha"} == {1}
    outdated = build_board([*records, *second], SUITE, stale=lambda r: "x" if r.method_version == 2 else None)
    assert outdated.ranks == build_board(records, SUITE).ranks


def test_records_of_other_protocols_and_tasks_are_another_matter() -> None:
    records = make_records(SCORES)
    others = [make_record("alpha", "first", (0.1, 0.2), protocol="ridge"), make_record("omega", "third", (0.1, 0.2))]
    assert dumped(build_board([*records, *others], SUITE)) == dumped(build_board(records, SUITE))


def test_baselines_can_be_kept_out_of_the_weights() -> None:
    records = [
        *make_records(SCORES),
        *(make_record("base", t, (-9.0, -8.0), baseline=True) for t in ("first", "second")),
    ]
    board = build_board(records, SUITE, {"weights": "no-baselines"})
    assert "no baselines" in board.rule
    assert board.ranks["base"] == 4
    board = build_board(records, SUITE)
    assert "No baselines" in [column.label for column in board.sections[0].columns]


def test_an_empty_board_says_so() -> None:
    board = build_board([], SUITE)
    assert board.rows == ()
    assert [task.values for task in board.tasks] == [{}, {}]
    dumped(board)


def test_one_method_with_one_split() -> None:
    board = build_board([make_record("solo", task, (0.5,)) for task in ("first", "second")], SUITE)
    assert board.ranks == {"solo": 1}
    assert board.uncertainty is None


def test_two_records_of_one_cell_are_refused() -> None:
    with pytest.raises(UsageError, match="two records"):
        build_board([*make_records(SCORES), *make_records(SCORES)], SUITE)


def test_no_nan_and_no_minus_zero() -> None:
    assert number(math.nan) is None
    assert math.copysign(1, number(-0.0) or 0.0) == 1
    with pytest.raises(ValueError, match="JSON"):
        dump({"x": math.nan})


def test_built_twice_is_byte_identical(tmp_path: Path) -> None:
    for name in ("one", "two"):
        for record in make_records(SCORES):
            write_record(record, tmp_path / name)
        write_board(tmp_path / name, build_board(read_all(tmp_path / name), SUITE))
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one/leaderboards").iterdir())
    assert len(files) == 2
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    before = {file: (tmp_path / "one" / file).stat().st_mtime_ns for file in files}
    assert write_board(tmp_path / "one", build_board(read_all(tmp_path / "one"), SUITE)) == []
    assert before == {file: (tmp_path / "one" / file).stat().st_mtime_ns for file in files}


def test_check_accepts_what_build_wrote_and_nothing_else(tmp_path: Path) -> None:
    board = build_board(make_records(SCORES), SUITE)
    with pytest.raises(DataError, match="leaderboard build"):
        check_board(tmp_path, board)
    write_board(tmp_path, board)
    check_board(tmp_path, board)
    path = board_path(tmp_path, "made")
    edited = path.read_text(encoding="utf-8").replace('"rank": 3', '"rank": 2', 1)
    path.write_text(edited, encoding="utf-8")
    with pytest.raises(DataError, match="not what the records give"):
        check_board(tmp_path, board)
    write_board(tmp_path, board)
    history_path(tmp_path, "made").write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match="history"):
        check_board(tmp_path, board)


def test_check_names_what_differs(tmp_path: Path) -> None:
    write_board(tmp_path, build_board(make_records(SCORES), SUITE))
    more = build_board(make_records(SCORES | {"delta": {"first": 0.99, "second": 0.99}}), SUITE)
    with pytest.raises(DataError, match="delta is new, at rank 1"):
        check_board(tmp_path, more)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 9}', "nonsense", "[" * 100_000])
def test_a_board_file_that_is_none(tmp_path: Path, text: str) -> None:
    path = board_path(tmp_path, "made")
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError):
        read_board(path)


def _lines(change: Callable[[list[Record]], list[Record]]) -> list[str]:
    old, new = build_board(make_records(SCORES), SUITE), build_board(change(make_records(SCORES)), SUITE)
    return [str(found) for found in changes(old, new)]


def test_history_says_what_changed_and_why() -> None:
    new = make_records({"delta": {"first": 0.99, "second": 0.99}})
    lines = _lines(lambda records: [*records, *new])
    assert any(line.startswith("delta is new, at rank 1: P(first)") for line in lines)
    assert any(line.startswith("gamma moves from rank 3 to 4: caused by others: delta is new") for line in lines)
    lines = _lines(lambda records: [r for r in records if r.method != "alpha"])
    assert any("alpha" in line and "no longer ranked" in line for line in lines)
    better = make_records({"gamma": {"first": 0.99, "second": 0.99}})
    lines = _lines(lambda records: [*(r for r in records if r.method != "gamma"), *better])
    assert any(line.startswith("gamma has new scores: first Mean score 0.199 → 0.989") for line in lines)
    assert any(line.startswith("gamma moves from rank 3 to 1: its own scores changed") for line in lines)
    assert _lines(lambda records: records) == []


def test_history_of_tasks_and_rules() -> None:
    records = make_records(SCORES)
    old = build_board(records, SUITE)
    fewer = build_board(records, make_suite("first"))
    assert "task second is no longer used" in map(str, changes(old, fewer))
    assert "task second is new" in map(str, changes(fewer, old))
    other = build_board(records, SUITE, {"weights": "equal"})
    assert changes(old, other)[0].kind == "rule"


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


def test_the_history_file_grows_by_one_for_each_new_board(tmp_path: Path) -> None:
    write_board(tmp_path, build_board(make_records(SCORES), SUITE))
    write_board(tmp_path, build_board(make_records({name: SCORES[name] for name in ("alpha", "beta")}), SUITE))
    history = read_history(history_path(tmp_path, "made"))
    assert [entry.version for entry in history] == [1, 2]
    assert history[1].changes[0].kind == "gone-method"
    assert json.loads(history_path(tmp_path, "made").read_text(encoding="utf-8")) == plain(history)


def test_a_board_of_too_many_cells_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuco_core.boards.build.LARGEST", 5)
    with pytest.raises(TooManyCellsError, match=r"at most 5, got 6.*fewer tasks"):
        build_board(make_records(SCORES), SUITE)
    for record in make_records(SCORES):
        write_record(record, tmp_path)
    (tmp_path / "suites").mkdir()
    for name, tasks in (("small", ("first",)), ("large", ("first", "second"))):
        rows = "".join(f"{task} = 1\n" for task in tasks)
        text = f'id = "{name}"\ntitle = "x"\nprotocol = "{SUITE.protocol}"\n\n[tasks]\n{rows}'
        (tmp_path / "suites" / f"{name}.toml").write_text(text)
    assert "board large is not made: suite large: too many cells" in make_boards(tmp_path, tmp_path / "site")[0]
    assert board_path(tmp_path, "small").exists()
    assert (tmp_path / "site" / "boards" / "small").is_dir()
    assert not board_path(tmp_path, "large").exists()
