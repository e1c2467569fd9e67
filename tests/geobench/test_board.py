"""The board by capabilities: of the real submissions, of a suite of ours, and of what a contributor brings."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from neuco_core.boards.model import Board
from neuco_core.boards.published import Published, list_published
from neuco_core.boards.report import grid, to_csv
from neuco_core.boards.store import current
from neuco_core.cli.leaderboard import leaderboard
from neuco_core.errors import DataError, NeucoError, UnknownIdError, UsageError
from neuco_core.records.store import write_records
from neuco_core.site.board_page import board_page
from neuco_core.site.page_data import from_suite
from neuco_extensions.geobench.facts import CAPABILITIES, DATASETS
from neuco_extensions.geobench.published import of_submissions, parameters, row_id
from neuco_extensions.geobench.submission import RUNS, from_folder, write_submission
from tests.boards.helpers import real_record
from tests.geobench.parts import board_of, good_rows, renamed, run, spoiled, write

OFFICIAL = json.loads((Path(__file__).parent / "official.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def item(committed_registry: Path) -> Published:
    (item,) = (item for item in list_published(committed_registry) if item.id == "geobench-2")
    return item


@pytest.fixture(scope="module")
def board(item: Published) -> Board:
    return item.board()


def section(board: Board, title: str) -> dict[str, tuple[object, ...]]:
    (part,) = (part for part in board.sections if part.title == title)
    return {str(row[0]): row[1:] for row in part.rows}


def test_the_real_board(board: Board) -> None:
    assert len(board.rows) == 21
    assert len(board.ranked) == 17  # four lack the detection datasets
    assert [column.label for column in board.columns[:2]] == ["P(first)", "Core"]
    assert {column.label for column in board.columns[1:]} == {*CAPABILITIES, "Overall"}
    for row in board.rows:
        for key, value in row.values.items():
            if key != "best":
                assert row.intervals[key].low < value < row.intervals[key].high  # type: ignore[operator]
    for row in board.ranked:
        assert row.intervals["rank"].low <= row.rank <= row.intervals["rank"].high  # type: ignore[operator]
    assert board.groups
    assert {"clay_v1_base-2ce4a907", "convnext_xlarge_fb_in22k-114be1f0"} <= set(board.groups[0])
    lacking = next(row for row in board.rows if row.method.startswith("dofa_base"))
    assert "core" not in lacking.values
    assert "classification" in lacking.values
    assert sorted(lacking.lacks) == ["everwatch", "nzcattle", "pastis_r", "substation"]


def test_published_numbers_stand_beside_ours(board: Board) -> None:
    for name in ("114be1f0", "2ce4a907"):
        for backbone, cells in OFFICIAL[name]["raw"].items():
            (row,) = (row for row in board.rows if row.method == row_id(name, backbone))
            for dataset, (value, _) in cells.items():
                assert row.cells[dataset].values["score"] == pytest.approx(value, abs=1e-9)
                normalised = OFFICIAL[name]["normalised"][backbone][dataset][0]
                assert row.cells[dataset].values["iqm"] == pytest.approx(normalised, abs=1e-4)
    for method, (official, error, *_) in section(board, "Core as published and here").items():
        backbone, _, name = method.rpartition("-")
        assert [official, error] == OFFICIAL[name]["capabilities"][backbone]["Core"]


def test_runs_that_were_submitted_twice_cancel(board: Board) -> None:
    """Clay's detection runs are in both submissions: no draw sets one before the other."""
    rows = section(board, "Detection (Object/Instance)")
    one, two = (rows[f"clay_v1_base-{name}"] for name in ("114be1f0", "2ce4a907"))
    assert one == two  # rank, plausible ranks, score, chance of being first and all


def test_both_aggregations_and_where_they_disagree(item: Published, board: Board) -> None:
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
    (lead,) = (part.lead for part in board.sections if part.title == "Core")
    assert lead.endswith(f"By the mean of IQMs, {count} of 17 methods have another rank.")


def test_a_ranking_for_each_capability(item: Published, board: Board) -> None:
    """As if the board were ranked by it."""
    rankings = [part for part in board.sections if part.about == "column"]
    assert [part.title for part in rankings] == [*CAPABILITIES, "Overall"]
    other = item.board({"by": "classification"})
    ranking = section(board, "Classification")
    assert list(ranking) == [row.method for row in other.ranked]
    assert len(ranking) == 21  # also those who lack Core
    for row in other.ranked:
        rank, ranks, score, interval, best, letters, *_ = ranking[row.method]
        assert (rank, score, best) == (row.rank, row.values["classification"], row.values["best"])
        assert (ranks, interval) == (row.intervals["rank"], row.intervals["classification"])
        alike = {name for name in ranking if set(str(letters)) & set(str(ranking[name][5]))} - {row.method}
        assert alike == {name for group in other.groups or () if row.method in group for name in group} - {row.method}


def test_a_new_submission_moves_nobody(committed_registry: Path, tmp_path: Path, board: Board) -> None:
    """Neither scores nor intervals of the others: normaliser and draws do not depend on who takes part."""
    rows = good_rows()
    for row in rows:
        row["test metric"] = str(float(row["test metric"]) + 0.3)
    published = board_of(committed_registry, from_folder(write(tmp_path, rows), "new"))
    longer = published.board()
    before = {row.method: row for row in board.rows}
    assert set(longer.ranks) == set(board.ranks)  # it lacks Core
    for row in longer.rows:
        if row.method in before:
            assert {**row.values, "best": 0} == {**before[row.method].values, "best": 0} or "best" not in row.values
            caps = {key: ends for key, ends in row.intervals.items() if key != "rank"}
            assert caps == {key: ends for key, ends in before[row.method].intervals.items() if key != "rank"}
    first = published.board({"by": "classification", "replicates": 100})
    assert first.ranks["resnet50-new"] == 1
    assert first.rows[0].values["classification"] > 1  # type: ignore[operator]


def test_filters_and_options_that_cannot_be(item: Published, board: Board) -> None:
    small = item.board({"largest": 100, "decoder": "faster-rcnn", "replicates": 100})
    assert small.rows
    assert all(row.facts["n_parameters"] <= 100e6 for row in small.rows)  # type: ignore[operator]
    assert "only decoder faster-rcnn, at most 100 M parameters" in small.rule
    assert any("out of range" in note for note in small.notes)
    assert item.board({"tuning": "frozen"}).rows == ()
    assert "only" not in board.rule
    for name, value, words in (
        ("by", "colour", "no capability 'colour'"),
        ("aggregation", "median", "no such aggregation"),
        ("replicates", 5, "at least 100"),
        ("scheme", "mine", "geobench-2 or tags"),
    ):
        with pytest.raises(NeucoError, match=words):
            item.board({name: value})


def test_runs_that_do_not_vary_take_nobodys_interval(committed_registry: Path, tmp_path: Path) -> None:
    rows = [row | {"test metric": "0.5"} for row in good_rows(tuple(DATASETS)) if row["backbone"] == "resnet50"]
    board = board_of(committed_registry, from_folder(write(tmp_path, rows), "mine")).board({"replicates": 200})
    assert {row.method for row in board.ranked if "rank" not in row.intervals} == {"resnet50-mine"}
    assert "No interval, since the runs do not vary: resnet50-mine" in board.notes
    assert len(board.ranked) == 18
    assert board.groups


def test_rows_of_one_name_are_refused(tmp_path: Path) -> None:
    """A backbone ``x-mine`` of the submission ``a``, and ``x`` of ``mine-a``."""
    pairs = (("x-mine", "a"), ("x", "mine-a"))
    submissions = [from_folder(spoiled(tmp_path / name, renamed(backbone)), name) for backbone, name in pairs]
    with pytest.raises(DataError, match="two rows of one name"):
        of_submissions(submissions)


def test_facts_are_no_formulas_in_the_file_of_a_board(tmp_path: Path) -> None:
    """What lies in the registry of somebody else may not have been checked here."""
    submission = from_folder(write(tmp_path / "in"), "mine")
    path = write_submission(tmp_path / "registry", submission) / RUNS
    path.write_text(path.read_text().replace(",UNet,", ",=1+2,"))
    text = to_csv(grid(board_of(tmp_path / "registry").board({"by": "classification"})))
    assert ",'=1+2," in text
    assert ",=1+2," not in text


def test_sizes_as_people_write_them() -> None:
    sizes = {"300M": 300_000_000, "1.5 B": 1_500_000_000, "25m": 25_000_000, "86000000": 86_000_000}
    unknown = dict.fromkeys(("TBD", "", "9" * 400 + "M", "1e999M"))
    assert {text: parameters(text) for text in (*sizes, *unknown)} == {**sizes, **unknown}
    assert row_id("a" * 20, "Vi.T/" * 30) == "vi-t-" * 8 + "vi-" + "-" + "a" * 20


def test_the_command_and_where_a_folder_would_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    write_submission(tmp_path / "registry", from_folder(write(tmp_path / "a"), "theirs"))
    shown = run("board", "--capability", "class", "--with", write(tmp_path / "mine")).output
    assert "Resnet50-ImageNet · yours-1" in shown
    assert "Resnet50-ImageNet · theirs" in shown
    assert "Ranking: Classification" in shown
    assert "4 tasks: benv2" in shown
    assert "Left out" not in shown
    assert "Mixed" not in shown
    tuned = [row | {"frozen_or_full_ft": "full_ft"} for row in good_rows()]
    shown = run("board", "--capability", "class", "--with", write(tmp_path / "tuned", tuned)).output
    assert "Mixed: 2 frozen and 2 full_ft backbones are ranked together; the option tuning" in shown
    assert json.loads(run("board", "--json").output)["kind"] == "geobench"
    with pytest.raises(UnknownIdError, match="no capability 'm'"):
        run("board", "--capability", "m")


def test_a_registry_without_submissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    assert list_published(tmp_path) == []
    with pytest.raises(DataError, match="there is no submission"):
        run("board")


TASKS = ("olinda_elevation_mean", "olinda_elevation_std", "olinda_sea_level")


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite of two methods on three tasks, on each of which a split has 0.1 more than the other."""
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    for method, base in (("pca", 0.6), ("mosaiks", 0.4)):
        write_records(tmp_path, [real_record(method, task, [base, base + 0.1]) for task in TASKS])
    (tmp_path / "suites").mkdir()
    return tmp_path


def write_suite(registry: Path, options: str) -> None:
    lines = f'id = "trial"\ntitle = "Trial"\nversion = 1\nprotocol = "neuco-2025"\n{options}\n[tasks]\n'
    (registry / "suites/trial.toml").write_text(lines + "".join(f"{task} = 1\n" for task in TASKS))


def test_a_normaliser_of_our_own_records(registry: Path) -> None:
    write_suite(registry, 'kind = "geobench"\noptions = { normaliser = "trial-v1" }')
    assert "3 tasks, 2 methods" in run("normaliser", "trial", "--id", "trial-v1").output
    with pytest.raises(DataError, match="there is a normaliser of that name"):
        run("normaliser", "trial", "--id", "trial-v1")
    now = current(registry)
    board = now.board(now.suites["trial"])
    assert board.ranks == {"pca": 1, "mosaiks": 2}
    assert board.rows[0].values["overall"] == pytest.approx(2.5 / 3, abs=0.02)  # of 0.4 to 0.7
    ends = [{key: task.values[key] for key in ("low", "high")} for task in board.tasks]
    assert ends == [{"low": 0.4, "high": 0.7}] * 3
    assert board.tasks[0].values["spread"] == pytest.approx(1 / 3, abs=1e-9)  # between 1 / 6 and 5 / 6
    page = board_page(from_suite(now, now.suites["trial"]))
    assert all(f'id="{name}"' in page for name in ("capability-overall", "capability-texture", "profile"))


def test_a_suite_is_shown_by_another_kind(registry: Path) -> None:
    write_suite(registry, 'options = { weights = "equal" }')

    def shown(*words: str) -> Result:
        return CliRunner().invoke(leaderboard, ["show", "trial", *words], catch_exceptions=False)

    board = json.loads(shown("--kind", "geobench", "--by", "water", "--json").output)
    assert board["kind"] == "geobench"
    assert re.match("water: .*scores as they are", board["rule"])
    first, second = sorted(board["rows"], key=lambda row: row["rank"])
    assert (first["method"], second["method"]) == ("pca", "mosaiks")
    assert first["values"]["overall"] == pytest.approx(0.65, abs=0.002)  # of 0.6 and 0.7
    assert json.loads(shown("--json").output)["kind"] == "neuco"
    with pytest.raises(UnknownIdError, match=r"no capability 'terrain'\. Known are overall, texture, water"):
        shown("--kind", "geobench", "--by", "terrain")  # all tasks share it
    with pytest.raises(UnknownIdError, match="no board 'colours'"):
        shown("--kind", "colours")
    (registry / "mine.csv").touch()
    with pytest.raises(UsageError, match="the suite's own board"):
        shown("--kind", "geobench", "--with", str(registry / "mine.csv"))
