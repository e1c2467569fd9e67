"""The leaderboard's numbers, digit for digit, error bars that are errors, and the figures and commands of the pages."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from benchmarks import geobench
from benchmarks.geobench import HEADS
from neuco_core.errors import DataError, UnknownIdError
from neuco_core.plugins.catalog import load_board
from neuco_extensions.geobench import command
from neuco_extensions.geobench.facts import CAPABILITIES, COLUMNS, KEYS, RMSE_FACTOR
from neuco_extensions.geobench.iqm import (
    GEOBENCH,
    OURS,
    ComparedScore,
    Normaliser,
    capability_table,
    iqm,
    load_normaliser,
    score,
)
from neuco_extensions.geobench.search import INNER, SHARE, TEST_SIZE
from neuco_extensions.geobench.submission import GeobenchSubmission, list_submissions
from tests import console
from tests.fetch.helpers import own_settings
from tests.geobench.parts import spoiled, write

OFFICIAL = json.loads((Path(__file__).parent / "official.json").read_text(encoding="utf-8"))
IDS = ("114be1f0", "2ce4a907")


@pytest.fixture(scope="module")
def submissions(committed_registry: Path) -> dict[str, GeobenchSubmission]:
    return {item.about.id: item for item in list_submissions(committed_registry)}


@pytest.fixture(scope="module")
def pairs(submissions: dict[str, GeobenchSubmission]) -> dict[str, dict[str, dict[str, ComparedScore]]]:
    return {name: capability_table(submissions[name], load_normaliser(GEOBENCH)) for name in IDS}


@pytest.mark.parametrize("name", IDS)
def test_interquartile_means_by_dataset_are_theirs(submissions: dict[str, GeobenchSubmission], name: str) -> None:
    scores, normaliser = submissions[name].scores(), load_normaliser(GEOBENCH)
    for backbone, cells in OFFICIAL[name]["normalised"].items():
        for dataset, (value, _) in cells.items():
            ours = iqm(normaliser(dataset, scores[backbone, dataset]))
            assert ours == pytest.approx(value, abs=1e-9, rel=0)


@pytest.mark.parametrize("name", IDS)
def test_capability_scores_with_their_draws_are_theirs(pairs: dict[str, Any], name: str) -> None:
    expected = OFFICIAL[name]["capabilities"]
    assert set(expected) == set(pairs[name])
    for backbone, cells in expected.items():
        assert set(pairs[name][backbone]) == set(cells)  # the same ones are missing
        for capability, (value, error) in cells.items():
            pair = pairs[name][backbone][capability]
            assert (round(pair.official, 10), round(pair.official_error, 10)) == (value, error)


def test_our_score_is_the_limit_of_theirs(
    submissions: dict[str, GeobenchSubmission], pairs: dict[str, dict[str, dict[str, ComparedScore]]]
) -> None:
    """Their resampling carried on: the mean of 20,000 resamples is our score to 0.001, their spread our error."""
    rng, normaliser = np.random.default_rng(3), load_normaliser(GEOBENCH)
    for name in IDS:
        values = {key: normaliser(key[1], seeds) for key, seeds in submissions[name].scores().items()}
        for backbone, by_capability in pairs[name].items():
            for capability, pair in by_capability.items():
                cells = [values[backbone, dataset] for dataset in CAPABILITIES[capability]]
                drawn = [seeds[rng.integers(len(seeds), size=(20_000, len(seeds)))] for seeds in cells]
                pooled = iqm(np.concatenate(drawn, axis=1))
                assert pair.ours.value == pytest.approx(pooled.mean(), abs=0.001)
                assert pair.ours.error == pytest.approx(pooled.std(), rel=0.06)


def test_their_scores_differ_by_what_100_resamples_leave_open(pairs: dict[str, Any], root: Path) -> None:
    """Of 181 scores 15 are off by more than 2 errors of a mean of 100 and 2 by more than 3, where 8 and 1 are expected.
    That is bad luck of their seeds 100 to 199, not a fault: of 40 other series of 100 seeds, two have as many beyond 2,
    and two have a score that is as far off."""
    every = [pair for name in IDS for row in pairs[name].values() for pair in row.values()]
    pulls = np.array([geobench.off_by(pair) for pair in every])
    assert len(pulls) == 181
    assert np.sum(pulls > 2) <= 16
    assert np.sum(pulls > 3) <= 2
    assert pulls.max() < 3.5
    assert np.sqrt(np.mean(pulls**2)) == pytest.approx(1, abs=0.1)
    most = max(abs(pair.official - pair.ours.value) for pair in every)
    assert f"up to {most:.3f}." in " ".join((root / "docs/why/geobench.md").read_text(encoding="utf-8").split())
    assert np.median([pair.ours.error / pair.official_error for pair in every]) == pytest.approx(10, rel=0.1)


def test_the_error_is_the_spread_of_the_resamples() -> None:
    cells = [[0.1, 0.2, 0.3, 0.4, 0.5]]
    ours = score(cells, replicates=20_000)
    rng = np.random.RandomState(7)
    plain = iqm(np.array(cells[0])[rng.randint(0, 5, size=(20_000, 5))])
    assert ours.error == pytest.approx(plain.std(ddof=1), rel=0.02)
    assert ours.value == pytest.approx(0.3, abs=0.001)
    assert ours.low < ours.value - 2 * ours.error
    assert ours.freedom == pytest.approx(4)
    ours = score([[0.5] * 5, [0.5] * 5])  # no spread is no error
    assert (ours.value, ours.error, ours.low, ours.high) == (0.5, 0.0, 0.5, 0.5)


def test_a_dataset_that_is_cut_off_adds_nothing_to_the_error() -> None:
    steady = [[0.5, 0.51, 0.49, 0.5, 0.52]] * 3
    wild = [[9.0, 5.0, 7.0, 3.0, 8.0]]
    without, with_wild = score(steady), score(steady + wild)
    assert with_wild.error < 3 * without.error
    mean = score(steady + wild, pooled=False)
    assert mean.error > 30 * without.error


@pytest.mark.slow
def test_intervals_hold_the_score_of_other_seeds() -> None:
    """Few draws here; ``python benchmarks/geobench.py`` makes more. The published ± holds it in one of seven cases."""
    boards = geobench.table(sets=25, seed=3)
    shares = np.array([geobench.covered(board)[0] for board in boards.values()])
    assert 0.93 < shares[:, 0].mean() < 0.97
    assert shares[:, 0].min() > 0.9
    assert shares[:, 2].mean() < 0.25
    assert np.mean([geobench.ranked(board)[0] for board in boards.values()]) > 0.95


def test_an_interval_sees_that_a_next_seed_may_fall_into_the_middle() -> None:
    """The wild dataset lies above the middle half with all five seeds, so that plain resamples do not notice it."""
    cells = [[0.40, 0.41, 0.42, 0.43, 0.44], [0.56, 0.57, 0.58, 0.59, 0.60], [0.70, 0.71, 0.72, 0.73, 0.74]]
    steady, wild = ([*cells, fourth] for fourth in ([0.97, 0.98, 0.99, 1.0, 1.01], [0.76, 0.85, 0.95, 1.25, 1.14]))
    assert score(wild).error == pytest.approx(score(steady).error, rel=0.1)
    assert score(wild).high - score(wild).low > 1.2 * (score(steady).high - score(steady).low)


def test_splits_that_overlap_tell_less_than_seeds() -> None:
    """What they share moves all of them: s² times the overlap is added to the variance (Nadeau and Bengio)."""
    cells = [[0.1, 0.3, 0.2, 0.5, 0.4, 0.3, 0.2, 0.4]]
    seeds, splits = score(cells, replicates=20_000), score(cells, overlaps=[1 / 9], replicates=20_000)
    assert (splits.value, splits.error, round(splits.freedom, 9)) == (seeds.value, seeds.error, 7)
    quantile = stdtrit(seeds.freedom, 0.975)
    added = ((splits.high - splits.value) ** 2 - (seeds.high - seeds.value) ** 2) / quantile**2
    assert added == pytest.approx(np.var(cells, ddof=1) / 9, rel=0.06)


def test_the_normaliser_is_that_of_the_base_submissions(submissions: dict[str, GeobenchSubmission]) -> None:
    pinned = load_normaliser(GEOBENCH)
    scores: dict[str, list[float]] = {}
    for name in pinned.base:
        for (_, dataset), seeds in submissions[name].scores().items():
            scores.setdefault(dataset, []).extend(seeds)
    assert pinned.ends == {dataset: (min(seeds), max(seeds)) for dataset, seeds in scores.items()}
    assert pinned("benv2", pinned.ends["benv2"]).tolist() == [0, 1]
    assert pinned("benv2", [1.0])[0] > 1  # not clipped


def test_normalisers_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    with pytest.raises(UnknownIdError, match=GEOBENCH):
        load_normaliser("geobench-2-v2")
    with pytest.raises(DataError, match="no dataset 'soil'"):
        load_normaliser(GEOBENCH)("soil", [1.0])
    with pytest.raises(ValueError, match="not above"):
        Normaliser("flat", {"a": (1.0, 1.0)})
    (tmp_path / "normalisers").mkdir()
    file = tmp_path / "normalisers/own.json"
    file.write_text('{"id": "own", "ends": {"a": [0, 2]}}')
    assert load_normaliser("own")("a", [1.0]).tolist() == [0.5]
    file.write_text('{"id": "other", "ends": {}}')
    with pytest.raises(DataError, match="name of the file"):
        load_normaliser("own")
    file.write_text('{"id": "own", "ends": {"a": [2, 1]}}')
    with pytest.raises(DataError, match=r"not a normaliser: a: 1\.0 is not above 2.0"):
        load_normaliser("own")


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return (root / "docs/howto/geobench.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def why(root: Path) -> str:
    return (root / "docs/why/geobench.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_command_prints_what_the_page_shows(
    text: str, root: Path, committed_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    own_settings(tmp_path, monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(root))
    shutil.copytree(committed_registry / "geobench", tmp_path / "registry/geobench")
    shutil.copytree(committed_registry / "suites", tmp_path / "registry/suites")
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    write(tmp_path / "mine")

    def spoil(rows: list[dict[str, str]], info: dict[str, object]) -> None:
        rows[0]["lr"] = "0,0003"
        rows[7]["test metric"] = "61.2"
        info["Code Repository Link"] = info.pop("Code Repository Link ")

    spoiled(tmp_path / "broken", spoil)
    failures = console.play(text, tmp_path, {"HOME": str(tmp_path / "home"), "COLUMNS": "200"}, {})
    assert not failures, "\n\n".join(failures)


def test_every_command_is_run(text: str) -> None:
    run = [step.command for step in console.steps(text)]
    assert [
        name for name in command.geobench.commands if not any(f"neuco geobench {name}" in line for line in run)
    ] == []
    assert any("neuco geobench tune" in line for line in run)


def test_figures_are_those_of_the_code(text: str, why: str, root: Path) -> None:
    tables = "".join((root / f"docs/ref/{name}.md").read_text(encoding="utf-8") for name in ("boards", "formats"))
    plain = " ".join((text + why + tables).split())
    assert f"{len(COLUMNS)} columns" in plain
    assert all(f"`{column}`" in plain for column in COLUMNS)
    assert f"{len(KEYS)} keys" in plain
    assert f"1 − rmse × {RMSE_FACTOR}" in plain
    assert f"{OURS:,} resamples" in plain
    assert f"`{GEOBENCH}`" in plain
    assert f"{len(CAPABILITIES)} capabilities" in plain
    assert f"{100 * TEST_SIZE:.0f} % of the samples" in plain
    assert f"{INNER} splits" in plain
    assert f"{100 * SHARE:.0f} % of the training part" in plain
    options = set(re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE))
    assert set(load_board("geobench").options) <= options


def test_the_table_of_coverage_is_one_that_the_benchmark_prints(why: str, root: Path) -> None:
    header = why[why.index("| capability | ± published") :].partition("\n")[0]
    assert header == f"| {' | '.join(HEADS)} |"
    _, printed = (root / "benchmarks/printed/geobench.txt").read_text(encoding="utf-8").split(f"{header}\n")
    _, *lines = printed.splitlines()
    assert [row for row in re.findall(r"^\| [A-Zal].*\d.*$", why, re.MULTILINE) if row not in lines] == []
    rows = {
        cells[1]: dict(zip(HEADS, cells[1:], strict=False)) for cells in (re.split(r"\s*\|\s*", ln) for ln in lines)
    }
    assert list(rows) == [*CAPABILITIES, "all"]
    assert all(93 <= float(row["interval"].rstrip("%")) <= 97 for row in rows.values())
    assert all(float(row["ranks"].partition("%")[0]) > 95 for row in rows.values())
