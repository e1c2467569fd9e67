"""The experiment of ``benchmarks/ladder.py``, in small: the ladder stops an attacker whom rounding does not stop."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import decoys, ladder

WAYS = [("spoil", "2 digits"), ("spoil", "ladder"), ("sacrifice 20", "ladder")]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SAMPLES": 150, "DIM": 4, "TASKS": 1, "K": 10, "FRESH": 3}.items():
        monkeypatch.setattr(ladder, name, value)


def gained(attack: str, rule: str) -> float:
    return float(np.mean([ladder.gains(attack, rule, seed, [60])[0] for seed in range(3)]))


@pytest.mark.slow
def test_an_attacker_gains_less_on_the_ladder_and_rounding_does_not_help() -> None:
    without, rounded, small_steps, leaps = (
        gained(*way) for way in (("climb", "as it is"), ("climb", "2 digits"), ("climb", "ladder"), ("leap", "ladder"))
    )
    assert rounded > 0.8 * without > 0.5
    assert max(small_steps, leaps) < 0.5 * rounded


def test_restoring_and_spoiling_an_id_shows_less_on_the_ladder() -> None:
    shares = decoys.differing(0, size=1, tries=12)
    assert shares["2 digits"].min() > 0.5
    assert shares["ladder"].max() < 0.3


@pytest.mark.slow
def test_what_is_known_of_ids_is_one_of_them_for_each_answer() -> None:
    """Who spoils ids learns nothing. Who holds good embeddings back for it learns at most one id a submission."""
    known = {way: decoys.known(*way, submissions=31, seed=0) for way in WAYS}
    assert known["spoil", "2 digits"] > 0.54
    assert known["spoil", "ladder"] == 0.5
    # 30 of 300 ids known, the others not: 0.5 + 30 / 300 / 2, give or take how many of them have labels
    assert known["sacrifice 20", "ladder"] < 0.5 + 30 / 300 / 2 + 0.01
