"""What a team can learn beside its mean Q: tested from the side of those who try."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import decoys, ladder
from neuco_core.errors import DataError, UnknownIdError
from neuco_core.tables.embeddings import make_embeddings, write_embeddings
from neuco_extensions.challenge.board import history, live_board
from neuco_extensions.challenge.host import Host, visible_at
from neuco_extensions.challenge.journal import MESSAGES
from neuco_extensions.challenge.workers import evaluate_waiting
from tests.challenge.parts import BAD, DEV, IDS, InProcess, bad_file, embed, labelled, make_challenge, truth, work

MANY = {"per_day = 3\nin_all = 6": "per_day = 99\nin_all = 99"}
DECOYS = [n for n in range(len(IDS)) if n not in set(labelled())]


def perturbed(host: Host, folder: Path, rows: list[int], how: str) -> list[float]:
    """What the team is told when it sends its embeddings with one id after the other changed."""
    values = truth() + 0.3 * np.random.default_rng(1).normal(size=truth().shape)
    write_embeddings(make_embeddings(IDS, values), folder / "honest.npz")
    host.submit("alpha", "dev", folder / "honest.npz", now=DEV)
    for row in rows:
        changed = values.copy()
        changed[row] = {"zero": 0.0, "wild": 1e8, "noise": values[row] + 3.0, "other": values[row - 1]}[how]
        write_embeddings(make_embeddings(IDS, changed), folder / f"{row}.npz")
        host.submit("alpha", "dev", folder / f"{row}.npz", now=DEV)
    return feedback(host)


def feedback(host: Host) -> list[float]:
    work(host)
    entries = host.journal.submissions()
    assert {entry.state for entry in entries} == {"scored"}
    return [entry.feedback["mean_q"] for entry in entries]


@pytest.mark.parametrize("how", ["zero", "wild", "noise", "other"])
def test_who_perturbs_ids_cannot_tell_decoys_from_labelled_ones(tmp_path: Path, how: str) -> None:
    step = {**MANY, "k = 4": "k = 20\nstep = 2"}  # one of 60 labels weighs more than one of thousands
    with Host(make_challenge(tmp_path / "c", step)) as host:
        numbers = perturbed(host, tmp_path, [*labelled()[:8], *DECOYS[:8]], how)
    assert len(set(numbers)) == 1


@pytest.mark.parametrize("rule", ["step = 0", 'feedback = "rounded"'])
def test_one_standard_error_alone_or_rounding_would_tell_them_apart(tmp_path: Path, rule: str) -> None:
    """And decoys still do nothing."""
    with Host(make_challenge(tmp_path / "c", {**MANY, "k = 4": f"k = 4\n{rule}"})) as host:
        numbers = perturbed(host, tmp_path, [*labelled()[:8], *DECOYS[:8]], "noise")
    assert len(set(numbers[:9])) > 1
    assert "step" in rule or set(numbers[9:]) == {numbers[0]}


def test_who_climbs_from_far_below_gets_few_numbers(tmp_path: Path) -> None:
    """Each answer is a bit at most, whether it climbed; a number comes with it once for each step above the floor."""
    with Host(make_challenge(tmp_path / "c", {**MANY, "k = 4": "k = 20\nstep = 2\nfloor = 0"})) as host:
        for number, noise in enumerate(np.geomspace(1e4, 0.01, 25)):
            host.submit("alpha", "dev", embed(tmp_path / f"{number}.npz", noise, number), now=DEV)
        numbers = feedback(host)
    assert numbers[0] == 0.0
    assert numbers == sorted(numbers)
    steps = np.diff(sorted(set(numbers)))
    assert len(steps) >= 1
    assert steps.min() >= 2 - 0.01


def test_order_and_format_of_the_file_change_nothing(host: Host, tmp_path: Path) -> None:
    values, order = np.float32(truth()), np.random.default_rng(3).permutation(len(IDS))
    verdicts = []
    for name, rows in (("a.npz", range(len(IDS))), ("b.csv", order), ("c.parquet", order[::-1])):
        write_embeddings(make_embeddings([IDS[n] for n in rows], values[list(rows)]), tmp_path / name)
        verdicts.append(host.evaluate("test", tmp_path / name))
    assert verdicts[0].code == "scored"
    assert len({tuple(sorted(one.scores.items())) for one in verdicts}) == 1
    assert len({record.per_split for one in verdicts for record in one.records}) == len(verdicts[0].records)


def test_the_time_of_an_answer_follows_from_the_time_of_receipt(host: Host, tmp_path: Path) -> None:
    entry = host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV + timedelta(seconds=17.3))
    times = {
        visible_at(entry._replace(finished=(DEV + timedelta(seconds=17.3 + took)).isoformat()), 60)
        for took in (0.01, 1.0, 20.0, 59.0)
    }
    assert times == {DEV + timedelta(minutes=2)}
    late = entry._replace(finished=(DEV + timedelta(minutes=7, seconds=3)).isoformat())
    assert visible_at(late, 60) == DEV + timedelta(minutes=8)
    assert visible_at(entry, 60) is None


def answers(host: Host, numbers: list[int], now: datetime) -> list[dict[str, object]]:
    seen = [host.answer(number, "alpha", now=now) for number in numbers]
    return [{k: v for k, v in one.items() if k not in ("submission", "sha256", "receipt", "received")} for one in seen]


def test_answers_are_of_one_format_and_no_duration_is_in_them(tmp_path: Path) -> None:
    long = {"end = 2026-02": "end = 2999-02", "start = 2026-02": "start = 2999-02", "end = 2026-03": "end = 2999-03"}
    with Host(make_challenge(tmp_path / "c", {**MANY, **long})) as host:
        now = datetime.now(UTC)
        for kind in BAD[:-1]:
            host.submit("alpha", "dev", bad_file(tmp_path / "1.csv", kind), now=now)
        host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=now)
        numbers = [entry.id for entry in host.journal.submissions()]
        waiting = answers(host, numbers, now)
        next(evaluate_waiting(host, InProcess(), 1))
        assert answers(host, numbers, now) == waiting  # evaluated, and not to be seen before the tick
        work(host)
        assert answers(host, numbers, now) == waiting
        assert [row.method for row in live_board(host, "dev", now=now).rows] == []
        seen = answers(host, numbers, now + timedelta(minutes=3))
        assert {tuple(one) for one in seen} == {tuple(waiting[0])}
        assert {one["message"] for one in seen} <= set(MESSAGES.values())
        assert [one["state"] for one in seen] == ["failed"] * len(BAD[:-1]) + ["scored"]
        assert [row.method for row in live_board(host, "dev", now=now + timedelta(minutes=3)).rows] == ["alpha"]
        with pytest.raises(UnknownIdError):
            host.answer(numbers[0], "beta")


def test_the_board_of_an_open_phase_has_nothing_by_task(tmp_path: Path) -> None:
    with Host(make_challenge(tmp_path / "c", {**MANY, 'after = ["dev"]': ""})) as host:
        for team, noise in (("alpha", 0.2), ("beta", 2.0)):
            host.submit(team, "test", embed(tmp_path / f"{team}.npz", noise), now=DEV + timedelta(days=31))
        work(host)
        board = live_board(host, "test")
        exact = [entry.mean_q for entry in host.journal.submissions()]
    text = repr(board)
    assert [row.method for row in board.rows] == ["alpha", "beta"]
    assert (board.tasks, board.cells, board.suite and board.suite.tasks) == ((), "", {})
    assert not any(secret in text for secret in ("height", "water", "seed"))
    assert {row.values["mean_q"] for row in board.rows}.isdisjoint(exact)
    assert all(row.cells == {} and set(row.values) == {"mean_q", "submissions"} for row in board.rows)


def test_a_phase_without_feedback_tells_nothing(tmp_path: Path) -> None:
    mute = {**MANY, "k = 4": 'k = 4\nfeedback = "none"\nvisible = false'}
    with Host(make_challenge(tmp_path / "c", mute)) as host:
        for number in range(3):
            host.submit("alpha", "dev", embed(tmp_path / f"{number}.npz", number), now=DEV)
        work(host)
        seen = answers(host, [1, 2, 3], datetime.now(UTC))
        assert seen[0] == seen[1] == seen[2]
        assert seen[0]["mean_q"] is None
        for make in (live_board, partial(history, final=False)):
            with pytest.raises(DataError, match="not shown before its end"):
                make(host, "dev")
        assert history(host, "dev", final=True)[-1].ranks == {"alpha": 1}


@pytest.mark.parametrize("row", [labelled()[0], DECOYS[0]])
def test_values_that_could_make_a_probe_fail_are_refused_for_decoys_too(host: Host, tmp_path: Path, row: int) -> None:
    values = np.float32(truth())
    values[row, 0] = 3e38
    write_embeddings(make_embeddings(IDS, values), tmp_path / "x.npz")
    assert host.evaluate("dev", tmp_path / "x.npz").code == "format"


# The experiments of ``benchmarks/ladder.py`` and ``decoys.py``, in small.
WAYS = [("spoil", "2 digits"), ("spoil", "ladder"), ("sacrifice 20", "ladder")]


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SAMPLES": 150, "DIM": 4, "TASKS": 1, "K": 10, "FRESH": 3}.items():
        monkeypatch.setattr(ladder, name, value)


def gained(attack: str, rule: str) -> float:
    return float(np.mean([ladder.gains(attack, rule, seed, [60])[0] for seed in range(3)]))


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
def test_an_attacker_gains_less_on_the_ladder_and_rounding_does_not_help() -> None:
    without, rounded, nudged, pushed, higher = (
        gained(*way)
        for way in (
            ("nudge", "as it is"),
            ("nudge", "2 digits"),
            ("nudge", "ladder"),
            ("push", "ladder"),
            ("push", "ladder 0.5"),
        )
    )
    assert rounded > 0.8 * without > 0.5
    assert higher < max(nudged, pushed) < 0.5 * rounded


@pytest.mark.usefixtures("_small")
def test_restoring_and_spoiling_an_id_shows_less_on_the_ladder() -> None:
    shares = decoys.differing(0, size=1, tries=12)
    assert shares["2 digits"].min() > 0.5
    assert shares["ladder"].max() < 0.3


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
def test_what_is_known_of_ids_is_one_of_them_for_each_answer() -> None:
    """Who spoils ids learns nothing. Who holds good embeddings back for it learns at most one id a submission."""
    known = {way: decoys.known(*way, submissions=31, seed=0) for way in WAYS}
    assert known["spoil", "2 digits"] > 0.54
    assert known["spoil", "ladder"] == 0.5
    # 30 of 300 ids known, the others not: 0.5 + 30 / 300 / 2, give or take how many of them have labels
    assert known["sacrifice 20", "ladder"] < 0.5 + 30 / 300 / 2 + 0.01
