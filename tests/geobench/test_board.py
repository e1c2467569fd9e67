"""The board by capabilities: of the real submissions, of a suite of ours, and of what a contributor brings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from neuco_core.boards.build import build_board
from neuco_core.boards.from_registry import current
from neuco_core.boards.model import Board, Interval
from neuco_core.boards.published import list_published
from neuco_core.cli.leaderboard import leaderboard
from neuco_core.errors import DataError, UnknownIdError, UsageError
from neuco_core.records.store import write_records
from neuco_core.site.board_page import board_page
from neuco_core.site.page_data import from_suite
from neuco_extensions.geobench.board import Filter
from neuco_extensions.geobench.command import geobench
from neuco_extensions.geobench.exchange import from_folder
from neuco_extensions.geobench.facts import CAPABILITIES
from neuco_extensions.geobench.published import of_submissions, parameters, row_id
from neuco_extensions.geobench.submission import list_submissions
from tests.boards.helpers import make_suite, real_record
from tests.geobench.parts import good_info, good_rows, write

OFFICIAL = json.loads((Path(__file__).parent / "official.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def board(root: Path) -> Board:
    (item,) = (item for item in list_published(root / "registry") if item.id == "geobench-2")
    return item.board()


def section(board: Board, title: str) -> dict[str, tuple[object, ...]]:
    (found,) = (own for own in board.sections if own.title == title)
    return {str(row[0]): row[1:] for row in found.rows}


def run(*words: object) -> Result:
    return CliRunner().invoke(geobench, list(map(str, words)), catch_exceptions=False)


def test_the_real_board(board: Board) -> None:
    assert len(board.rows) == 21
    assert len(board.ranked) == 17  # four lack the detection datasets
    assert [column.label for column in board.columns[:2]] == ["P(first)", "Core"]
    assert {column.label for column in board.columns[1:]} == {*CAPABILITIES, "Overall"}
    for row in board.rows:
        for key, value in row.values.items():
            if key != "best":
                ends = row.intervals[key]
                assert ends.low < value < ends.high  # type: ignore[operator]
    lacking = next(row for row in board.rows if row.method.startswith("dofa_base"))
    assert "core" not in lacking.values
    assert "classification" in lacking.values
    assert sorted(lacking.lacks) == ["everwatch", "nzcattle", "pastis_r", "substation"]


def test_cells_are_raw_and_normalised(board: Board) -> None:
    for name in ("114be1f0", "2ce4a907"):
        for backbone, cells in OFFICIAL[name]["raw"].items():
            (row,) = (row for row in board.rows if row.method == row_id(name, backbone))
            for dataset, (value, _) in cells.items():
                assert row.cells[dataset].values["score"] == pytest.approx(value, abs=1e-9)
                normalised = OFFICIAL[name]["normalised"][backbone][dataset][0]
                assert row.cells[dataset].values["iqm"] == pytest.approx(normalised, abs=1e-4)


def test_published_numbers_stand_beside_ours(board: Board) -> None:
    for method, (official, error, ours, own_error) in section(board, "Core as published and here").items():
        backbone, _, name = method.rpartition("-")
        assert [official, error] == OFFICIAL[name]["capabilities"][backbone]["Core"]
        assert own_error == pytest.approx(10 * error, rel=0.35)  # type: ignore[operator]
        assert abs(ours - official) < 4 * error  # type: ignore[operator]


def test_runs_that_were_submitted_twice_cancel(root: Path) -> None:
    """Clay's detection runs are in both submissions: no draw sets one before the other."""
    (item,) = (item for item in list_published(root / "registry") if item.id == "geobench-2")
    ranked = {row.method: row for row in item.board({"by": "detection-object-instance"}).ranked}
    one, two = (ranked[f"clay_v1_base-{name}"] for name in ("114be1f0", "2ce4a907"))
    assert one.rank == two.rank
    assert one.values["best"] == two.values["best"]
    assert one.intervals["rank"] == two.intervals["rank"]


def test_ranks_have_intervals_and_groups(board: Board) -> None:
    for row in board.ranked:
        ends = row.intervals["rank"]
        assert isinstance(ends, Interval)
        assert ends.low <= row.rank <= ends.high  # type: ignore[operator]
    assert board.groups
    assert {"clay_v1_base-2ce4a907", "convnext_xlarge_fb_in22k-114be1f0"} <= set(board.groups[0])


def test_both_aggregations_and_where_they_disagree(root: Path, board: Board) -> None:
    (item,) = (item for item in list_published(root / "registry") if item.id == "geobench-2")
    other = item.board({"aggregation": "mean"})
    core = section(board, "Core")
    assert {method: row[-1] for method, row in core.items()} == other.ranks
    assert {method: row[-2] for method, row in core.items()} == {r.method: r.values["core"] for r in other.ranked}
    moved = {method: (row[0], row[-1]) for method, row in core.items() if row[0] != row[-1]}
    assert len(moved) >= 2
    pairs, count, farthest = section(board, "Where the mean of IQMs disagrees")["Core"]
    assert pairs == 5
    assert count == len(moved)
    assert isinstance(farthest, dict)
    assert farthest.items() <= moved.items()
    said = run("board").output
    assert f"By the mean of IQMs, {count} of 17 methods have another rank." in said


def test_a_ranking_for_each_capability(root: Path, board: Board) -> None:
    """As if the board were ranked by it."""
    (item,) = (item for item in list_published(root / "registry") if item.id == "geobench-2")
    rankings = [part for part in board.sections if part.about == "column"]
    assert [part.title for part in rankings] == [*CAPABILITIES, "Overall"]
    other = item.board({"by": "classification"})
    own = section(board, "Classification")
    assert list(own) == [row.method for row in other.ranked]
    assert len(own) == 21  # also those who lack Core
    for row in other.ranked:
        rank, ranks, score, interval, best, letters, *_ = own[row.method]
        assert (rank, score, best) == (row.rank, row.values["classification"], row.values["best"])
        assert (ranks, interval) == (row.intervals["rank"], row.intervals["classification"])
        alike = {name for name in own if set(str(letters)) & set(str(own[name][5]))} - {row.method}
        assert alike == {name for group in other.groups or () if row.method in group for name in group} - {row.method}


def test_a_new_submission_moves_nobody(root: Path, tmp_path: Path, board: Board) -> None:
    """Neither scores nor intervals of the others: normaliser and draws do not depend on who takes part."""
    rows = good_rows()
    for row in rows:
        row["test metric"] = str(float(row["test metric"]) + 0.3)
    new = from_folder(write(tmp_path, rows, good_info()), "new")
    published = of_submissions([*list_submissions(root / "registry"), new])
    assert published is not None
    longer = published.board()
    before = {row.method: row for row in board.rows}
    assert set(longer.ranks) == set(board.ranks)  # it lacks Core
    for row in longer.rows:
        if row.method in before:
            assert {**row.values, "best": 0} == {**before[row.method].values, "best": 0} or "best" not in row.values
            caps = {key: ends for key, ends in row.intervals.items() if key != "rank"}
            assert caps == {key: ends for key, ends in before[row.method].intervals.items() if key != "rank"}
    first = published.board({"by": "classification"})
    assert first.ranks["resnet50-new"] == 1
    assert first.rows[0].values["classification"] > 1  # type: ignore[operator]


def test_filters(root: Path) -> None:
    (item,) = (item for item in list_published(root / "registry") if item.id == "geobench-2")
    small = item.board({"largest": 100})
    assert all(row.facts["n_parameters"] <= 100e6 for row in small.rows)  # type: ignore[operator]
    assert "only at most 100 M parameters" in small.rule
    assert any("out of range" in note for note in small.notes)
    assert item.board({"tuning": "frozen"}).rows == ()
    boxes = item.board({"decoder": "faster-rcnn", "smallest": 300})
    assert {row.method for row in boxes.rows} <= {row.method for row in item.board({"smallest": 300}).rows}
    with pytest.raises(UnknownIdError, match="capability"):
        item.board({"by": "colour"})
    with pytest.raises(UsageError, match="no such aggregation"):
        item.board({"aggregation": "median"})
    with pytest.raises(UsageError, match="at least 100"):
        item.board({"replicates": 5})
    with pytest.raises(UsageError, match="geobench-2 or tags"):
        item.board({"scheme": "mine"})
    assert Filter().describe() == ""


def test_sizes_as_people_write_them() -> None:
    assert [parameters(text) for text in ("300M", "1.5 B", "25m", "86000000", "TBD", "")] == [
        300_000_000, 1_500_000_000, 25_000_000, 86_000_000, None, None,
    ]  # fmt: skip
    assert row_id("a" * 20, "Vi.T/" * 30) == "vi-t-" * 8 + "vi-" + "-" + "a" * 20


def test_a_suite_of_ours_by_the_tags_of_its_tasks() -> None:
    tasks = ("olinda_elevation_mean", "olinda_elevation_std", "olinda_sea_level")
    records = [
        real_record(method, task, [base + 0.01 * i for i in range(4)])
        for method, base in (("pca", 0.6), ("mosaiks", 0.4))
        for task in tasks
    ]
    board = build_board(records, make_suite(*tasks, kind="geobench"))
    assert board.ranks == {"pca": 1, "mosaiks": 2}
    assert board.columns[1].label == "Overall"
    assert board.rows[0].values["overall"] == pytest.approx(0.615, abs=0.002)
    assert "scores as they are" in board.rule


def test_the_command_and_where_a_folder_would_stand(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", good_rows(), good_info())
    said = run("board", "--capability", "class", "--with", folder).output
    assert "Resnet50-ImageNet · yours-1" in said
    assert "Ranking: Classification" in said
    assert "Left out" not in said
    assert json.loads(run("board", "--json").output)["kind"] == "geobench"
    with pytest.raises(UnknownIdError, match="no capability 'm'"):
        run("board", "--capability", "m")


def test_a_registry_without_submissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    assert list_published(tmp_path) == []
    with pytest.raises(DataError, match="there is no submission"):
        run("board")


def test_a_normaliser_of_our_own_records(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = tmp_path / "registry"
    monkeypatch.setenv("NEUCO_REGISTRY", str(registry))
    tasks = ("olinda_elevation_mean", "olinda_elevation_std")
    for method, base in (("pca", 0.6), ("mosaiks", 0.4)):
        for task in tasks:
            write_records(registry, [real_record(method, task, [base, base + 0.1])])
    (registry / "suites").mkdir()
    options = 'kind = "geobench"\noptions = { normaliser = "trial-v1" }\nid = "trial"\ntitle = "Trial"\nversion = 1\n'
    lines = "".join(f"{task} = 1\n" for task in tasks)
    (registry / "suites/trial.toml").write_text(f'{options}protocol = "neuco-2025"\n[tasks]\n{lines}')
    assert "2 tasks, 2 methods" in run("normaliser", "trial", "--id", "trial-v1").output
    with pytest.raises(DataError, match="there is a normaliser of that name"):
        run("normaliser", "trial", "--id", "trial-v1")
    now = current(registry)
    board = now.board(now.suites["trial"])
    assert board.ranks == {"pca": 1, "mosaiks": 2}
    assert board.rows[0].values["overall"] == pytest.approx(2.5 / 3, abs=0.02)  # of 0.4 to 0.7
    ends = [{key: task.values[key] for key in ("low", "high")} for task in board.tasks]
    assert ends == [{"low": 0.4, "high": 0.7}] * 2
    assert board.tasks[0].values["spread"] == pytest.approx(1 / 3, abs=1e-9)  # between 1 / 6 and 5 / 6
    page = board_page(from_suite(now, now.suites["trial"]))
    assert all(f'id="{name}"' in page for name in ("capability-overall", "capability-texture", "profile"))


def test_a_suite_is_shown_by_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = tmp_path / "registry"
    monkeypatch.setenv("NEUCO_REGISTRY", str(registry))
    for method, base in (("pca", 0.6), ("mosaiks", 0.4)):
        for task in ("olinda_elevation_mean", "olinda_elevation_std", "olinda_sea_level"):
            write_records(registry, [real_record(method, task, [base, base + 0.1])])
    (registry / "suites").mkdir()
    lines = 'id = "trial"\ntitle = "Trial"\nversion = 1\nprotocol = "neuco-2025"\noptions = { weights = "equal" }\n'
    tasks = "olinda_elevation_mean = 1\nolinda_elevation_std = 1\nolinda_sea_level = 1\n"
    (registry / "suites/trial.toml").write_text(f"{lines}[tasks]\n{tasks}")

    def shown(*words: str) -> Result:
        return CliRunner().invoke(leaderboard, ["show", *words], catch_exceptions=False)

    found = json.loads(shown("trial", "--kind", "geobench", "--by", "water", "--json").output)
    assert found["kind"] == "geobench"
    assert found["rule"].startswith("water: ")
    assert json.loads(shown("trial", "--json").output)["kind"] == "neuco"
    with pytest.raises(UnknownIdError, match=r"no capability 'terrain'\. Known are overall, texture, water"):
        shown("trial", "--kind", "geobench", "--by", "terrain")  # all tasks share it
    with pytest.raises(UnknownIdError, match="no board 'colours'"):
        shown("trial", "--kind", "colours")
    file = tmp_path / "mine.csv"
    file.touch()
    with pytest.raises(UsageError, match="the suite's own board"):
        shown("trial", "--kind", "geobench", "--with", str(file))
