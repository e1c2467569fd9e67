"""Numbers and claims of the pages on boards. What a benchmark printed has its command beside it; the rest is here."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import neuco_core
from benchmarks import intervals, rank_intervals
from neuco_core import list_methods
from neuco_core.boards.model import EXACT, RANDOM, SCHEMA
from neuco_core.boards.published import read_published
from neuco_core.boards.stats.uncertainty import LEVEL, REPLICATES
from neuco_core.plugins.catalog import load_board
from neuco_core.scoring.f1_variance import LARGEST, variance_factor
from tests import console
from tests.fetch.helpers import own_settings
from tests.terminal import neuco_in_terminal, unstyled

BETWEEN = re.compile(r"(\d+\.\d) %")
PRINTED = Path(__file__).parents[2] / "benchmarks/printed"


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    pages = ("howto/leaderboard", "ref/boards", "why/ranking", "why/certainty")
    return "\n".join((root / f"docs/{page}.md").read_text(encoding="utf-8") for page in pages)


def table_of(text: str, name: str, header: str) -> list[str]:
    """The rows that a benchmark printed; those that the page shows are among them."""
    _, printed = (PRINTED / name).read_text(encoding="utf-8").split(header)
    rows = printed.splitlines()[2:]
    shown = text.split(header)[1].split("\n\n", maxsplit=1)[0].splitlines()[2:]
    assert len(shown) >= 3
    assert [row for row in shown if row not in rows] == []
    return rows


def says(text: str, words: str) -> bool:
    return " ".join(words.split()) in " ".join(text.split())


def test_commands_and_python_do_what_the_page_shows(
    text: str, committed_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_settings(tmp_path, monkeypatch)
    monkeypatch.setenv("NEUCO_REGISTRY", str(committed_registry))  # which is only read
    monkeypatch.chdir(tmp_path)
    assert len(console.steps(text)) == 2
    names = {public: getattr(neuco_core, public) for public in neuco_core.__all__}
    assert console.play(text, tmp_path, {"HOME": str(tmp_path / "home"), "COLUMNS": "200"}, names) == []


# The page counts the methods that are not ranked, and those of one folder are made by an extension.
@pytest.mark.parametrize("columns", [pytest.param(80, marks=pytest.mark.extensions), 120])
def test_a_board_fits_its_terminal_and_the_page_shows_it(text: str, committed_registry: Path, columns: int) -> None:
    """Where it differs and the boards were rebuilt: the page shows what this command prints at 80 columns."""
    shown = neuco_in_terminal("leaderboard", "show", "mini", columns=columns, NEUCO_REGISTRY=str(committed_registry))
    assert max(map(len, unstyled(shown).splitlines())) <= columns
    assert shown != unstyled(shown)
    best = [line for line in shown.splitlines()[3:] if "\x1b[1m" in line]
    assert bool(best) == (columns == 120), "at 80 columns there is no room for tasks"
    if columns == 80:
        block = re.search(r"^A table is never.*?```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        assert block
        assert console.matches(tuple(block[1].splitlines()), unstyled(shown))


def test_p_first_says_too_much_where_noise_decides_and_the_page_says_so(text: str) -> None:
    world = next(world for world in rank_intervals.worlds(None) if world.name == "noise decides")
    said, true = rank_intervals.measure_first(world, 40, 8)
    assert 25 < said < 45
    assert true < said / 1.5
    assert says(text, "33.7 and 11.5 % where noise decides")


def test_what_the_baseline_does_to_the_table_of_the_paper(text: str, committed_registry: Path) -> None:
    published = read_published(committed_registry / "published/neuco-paper-table-4.json")
    board = published.board()
    weights = [
        {task.id: task.values["weight"] for task in ranking.tasks}["clouds"]
        for ranking in (published.board({"weights": "no-baselines"}), board)
    ]
    (robustness,) = (section for section in board.sections if section.about == "robustness")
    moved = re.search(r"leaving out method averaging moves (\d) methods", robustness.lead)
    numbers = {"5": "five", "6": "six", "7": "seven", "8": "eight"}
    assert moved
    assert says(
        text,
        f"On {len(board.rows)} rows of the paper's Table 4 the averaging baseline alone lifts the weight of `clouds` "
        f"from {weights[0]:.3f} to {weights[1]:.3f}, and without it {numbers[moved[1]]} methods change places",
    )


def test_constants_are_those_of_the_code(text: str, root: Path) -> None:
    assert load_board("neuco").options["replicates"] == REPLICATES
    assert says(text, f"resampled {REPLICATES:,} times")
    assert says(text, f"What a board says, all at {LEVEL:.0%}".replace("%", " %"))
    assert says(text, f"the middle {100 * LEVEL:.0f} % of its ranks in the replicates")
    assert says(
        text, f"(schema {SCHEMA}), one row per line; floats are rounded to {EXACT} decimals, and to {RANDOM} where"
    )
    lines = (root / "tests/boards/outside/neuco_wins.py").read_text(encoding="utf-8").count("\n")
    assert says(text, f"`tests/boards/outside/neuco_wins.py` is a whole kind in {lines} lines")


def test_the_factor_of_f1_is_as_told(text: str) -> None:
    clear, usual = variance_factor(0.97, 1 / 3, 0.1), variance_factor(0.6, 1 / 3, 0.1)
    assert says(
        text,
        f"It is {clear:.1f} for a well separated task, {usual:.1f} for an F1 of 0.6 with a third of the samples "
        f"positive, and at most {LARGEST:g}.",
    )


def test_methods_that_depend_on_the_machine_are_named(text: str) -> None:
    *first, last = (f"`{method.id}`" for method in list_methods() if method.machine_spread)
    assert says(text, f"this holds for {', '.join(first)} and {last}")


def test_the_table_of_intervals_is_one_that_the_benchmark_prints_and_shows_what_is_said(text: str) -> None:
    header = f"| samples | labels | {' | '.join(intervals.COLUMNS)} |"
    rows = table_of(text, "intervals.txt", header)
    table = {tuple(row.split(" | ")[:2]): [float(share) for share in BETWEEN.findall(row)] for row in rows}
    scenes = [f"| 400 in {count} scenes{how}" for how in ("", ", split by scene") for count in (40, 16)]
    plain_rows = [(f"| {count}", kind) for count in (100, 400) for kind in intervals.KINDS]
    assert [*table] == [*plain_rows, *((name, kind) for name in scenes for kind in intervals.SOME_KINDS)]
    column = intervals.COLUMNS.index("score")
    held = [table[row][column] for row in plain_rows if row[1].startswith("F1")]
    plain = [table[row][column + 1] for row in plain_rows if row[1] == "F1, 1/3"]
    differences = [table[row][intervals.COLUMNS.index("difference")] for row in plain_rows if row[1] == "F1, 1/3"]
    q = intervals.COLUMNS.index("Q")
    cut = [values for (name, _), values in table.items() if name.endswith("scenes")]
    scores, qs = sorted(values[column] for values in cut), sorted(values[q] for values in cut)
    assert says(text, f"intervals of a score hold {scores[0]:.1f} to {scores[-1]:.1f} %, ")
    assert says(text, f"those of Q {qs[0]:.1f} to {qs[-1]:.1f} %.")
    assert min(held) >= 93.5, "intervals of F1 cover"
    assert max(plain) < 91, "and would not without the factor"
    assert min(differences) >= 95


def test_the_level_of_groups_holds_by_the_table_of_the_benchmark(text: str) -> None:
    lines = table_of(text, "pairs.txt", "| world | level: scores | Q | power: scores | Q |")
    table = {name.strip(): values for _, name, *values, _ in (line.split("|") for line in lines)}
    assert [*table] == [world.name for world in rank_intervals.worlds_of_equals()]
    shares = {name: [float(value.split()[0]) for value in values if value.strip()] for name, values in table.items()}
    assert [name for name, (level, *_) in shares.items() if level > 5] == ["drawn, R², scenes, random splits"]
    assert says(text, f"The level holds in {len(shares) - 1} of {len(shares)} worlds")
    powers = [values[2:] for name, values in shares.items() if len(values) == 4 and name != "drawn, F1, 1/10"]
    assert all(power > power_by_q for power, power_by_q in powers)


@pytest.mark.slow
def test_equal_methods_stay_together_and_others_come_apart_on_a_small_scale() -> None:
    worlds = {world.name: world for world in rank_intervals.worlds_of_equals()}
    level, _ = rank_intervals.power(worlds["15 × 1"], 60, 30)["scores"]
    steps = rank_intervals.power(worlds["three steps of 0.02"], 20, 30)
    assert level <= 10
    assert steps["scores"][1] > 5 * steps["Q"][1]


def test_the_table_of_ranks_is_one_that_the_benchmark_prints_and_shows_what_is_said(text: str) -> None:
    lines = table_of(text, "rank_intervals.txt", "| world | held | worst | ranks | plain: held | worst | ranks |")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    table = {name: [float(value.split()[0]) for value in values] for name, *values in cells}
    names = [world.name for world in rank_intervals.worlds(None)]
    assert [name for name in table if name != "GEO-Bench-2"] == names
    folded = {name: values for name, values in table.items() if "copies ranked" not in name}
    low = min(held for held, *_ in folded.values())
    assert low >= 95
    assert says(text, "On average over the methods they held at least 95 % in every world in which copies are folded")
    boards = [name for name in folded if ("," in name and "×" not in name) or name in ("mini", "embedded", "Table 4")]
    worst = min(folded[name][1] for name in boards)
    assert says(text, f"no method of a shipped or published board less often than {worst:.0f} %")
    wide = sum(held > 99 for held, *_ in table.values())
    assert says(text, f"in {wide} of {len(table)} worlds they held more than 99 %")
    assert table["olinda-blocks, copies ranked"][0] >= 95
    assert says(text, f"the worst true place, an end of the ranking, was held in {table['noise decides'][1]} %")


@pytest.mark.slow
def test_intervals_of_ranks_hold_for_every_method_of_a_shipped_board_on_a_small_scale() -> None:
    (world,) = (world for world in rank_intervals.worlds(None) if world.name == "olinda-blocks, folded")
    measured = rank_intervals.measure(world, 60, seed=7)
    held, worst, ranks, _ = measured["held"]
    assert held >= 90
    assert worst >= 80
    assert held >= measured["plain"][0]
    assert worst >= measured["plain"][1]
    assert ranks < 5  # of 8


@pytest.mark.slow
def test_the_benchmark_runs_and_intervals_of_f1_cover_on_a_small_scale() -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        covered = intervals.coverage(intervals.World(0, 100), 3)
    assert {kind: [*shares] for kind, shares in covered.items()} == {
        kind: [*intervals.COLUMNS] for kind in intervals.KINDS
    }
    for kind in ("F1, 1/2", "F1, 1/3", "F1, 1/10"):
        assert covered[kind]["score"] >= 0.9
        assert covered[kind]["score"] > covered[kind]["score, uncorrected"]
    assert covered["F1, 1/3"]["difference"] >= 0.9
