"""The experiment of ``benchmarks/ladder.py``, in small: the ladder stops an attacker whom rounding does not stop."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import ladder


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SAMPLES": 150, "DIM": 4, "TASKS": 1, "K": 10, "FRESH": 3}.items():
        monkeypatch.setattr(ladder, name, value)


def gained(attack: str, rule: str) -> float:
    return float(np.mean([ladder.gains(attack, rule, seed, [60])[0] for seed in range(3)]))


def test_an_attacker_gains_less_on_the_ladder_and_rounding_does_not_help() -> None:
    without, rounded, small_steps, leaps = (
        gained(*way) for way in (("climb", "as it is"), ("climb", "2 digits"), ("climb", "ladder"), ("leap", "ladder"))
    )
    assert rounded > 0.8 * without > 0.5
    assert max(small_steps, leaps) < 0.5 * rounded


def test_restoring_and_spoiling_an_id_shows_less_on_the_ladder() -> None:
    shares = ladder.differing(0, size=1, tries=12)
    assert shares["2 digits"].min() > 0.5
    assert shares["ladder"].max() < 0.3
