"""The ranking that browsers run is that of Python: the same ranks and weights on hundreds of random boards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from neuco_core.boards.stats.ranking import SPREADS, WEIGHTS, Rule, rank
from neuco_core.site.board_page import rerank_data
from tests.site.conftest import Reader
from tests.site.made_pages import made_source

BOARD = "boards/made/index.html"
BOARDS = 600
RULES = [Rule(weights, spread, ghost) for weights in WEIGHTS for spread in SPREADS for ghost in (0.0, 0.5)]
RANK = "cases => cases.map(({q, rule, baselines}) => rankMethods(q, rule, baselines))"


def test_a_browser_ranks_random_boards_as_python_does(reader: Reader) -> None:
    rng = np.random.default_rng(7)
    cases: list[dict[str, Any]] = []
    expected = []
    for number in range(BOARDS):
        q = rng.normal(size=rng.integers(1, 14, size=2)) * 10.0 ** rng.integers(-3, 4)
        if number % 3 == 0:
            q = np.round(q, 1)  # ties, and tasks without any spread
        rule, baselines = RULES[rng.integers(len(RULES))], rng.random(q.shape[1]) < 0.3
        expected.append(rank(q, rule, baselines))
        options = {"weights": rule.weights, "spread": rule.spread, "ghost": rule.ghost}
        cases.append({"q": q.tolist(), "rule": options, "baselines": baselines.astype(int).tolist()})
    for got, wanted in zip(reader.open(BOARD).evaluate(RANK, cases), expected, strict=True):
        assert got["final"] == wanted.final.tolist()
        assert got["ranks"] == wanted.ranks.tolist()
        assert got["weights"] == pytest.approx(wanted.weights, abs=1e-12)
        assert got["weighted"] == pytest.approx(wanted.weighted, abs=1e-9)
        assert got["ghost"] == pytest.approx(float(wanted.ghost), abs=1e-12)


def test_the_page_ranks_a_choice_as_python_does(reader: Reader) -> None:
    data = rerank_data(made_source().board)
    assert data is not None
    off, out = {"t01", "t03"}, {"m002", "m005"}
    tasks = [t for t, name in enumerate(data["tasks"]) if name not in off]
    methods = [m for m, name in enumerate(data["methods"]) if name not in out]
    q, baselines = np.array(data["q"])[np.ix_(tasks, methods)], np.array(data["baselines"])[methods]
    expected = dict(zip([data["methods"][m] for m in methods], rank(q, Rule(), baselines).final.tolist(), strict=True))
    page = reader.open(f"{BOARD}#off={','.join(off)}&out={','.join(out)}")
    shown = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#board tbody tr')].filter(r => !r.hidden)"
        ".map(r => [neuco.data.rows[r.dataset.i].id, Number(r.querySelector('.rank b')?.textContent || 0)]))"
    )
    assert {name: place for name, place in shown.items() if place} == expected
    assert list(shown)[:-1] == sorted(expected, key=lambda name: (expected[name], data["methods"].index(name)))


def test_a_board_of_another_kind_or_rule_is_not_ranked_anew() -> None:
    board = made_source(methods=4, tasks=2).board
    assert rerank_data(board) is not None
    assert rerank_data(replace(board, kind="wins")) is None
    first, *rest = board.rows
    assert rerank_data(replace(board, rows=(replace(first, rank=3), *rest))) is None
