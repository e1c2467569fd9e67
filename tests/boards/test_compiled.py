"""The rule that browsers run is the rule that ranks boards: the same source, and the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.boards.anew import rule_of
from neuco_core.boards.stats.ranking import Rule, rank
from neuco_core.boards.views.site.compiled import script
from neuco_core.errors import DataError
from tests.boards.conftest import Reader
from tests.boards.site_source import made_source

BOARD = "boards/made/index.html"
RULES = [Rule(), Rule(weights="no-baselines"), Rule(spread="robust"), Rule(weights="equal"), Rule(ghost=0.5)]
RANK = (
    "cases => cases.map(({q, rule: own, baselines}) => {"
    "const found = rule.rank(arrays.array(q), own, arrays.array(baselines));"
    "return [found.final.data, found.ranks.data, found.weights.data, found.ghost]; })"
)


def test_a_browser_ranks_random_selections_as_python_does(reader: Reader) -> None:
    rng = np.random.default_rng(7)
    cases: list[dict[str, Any]] = []
    expected = []
    for number in range(150):
        q = rng.normal(size=rng.integers(1, 12, size=2))
        q = np.round(q, 1) if number % 3 == 0 else q  # ties
        rule, baselines = RULES[number % len(RULES)], rng.random(q.shape[1]) < 0.3
        found = rank(q, rule, baselines)
        expected.append(
            [found.final.tolist(), found.ranks.ravel().tolist(), found.weights.tolist(), float(found.ghost)]
        )
        own = {"weights": rule.weights, "spread": rule.spread, "ghost": rule.ghost}
        cases.append({"q": q.tolist(), "rule": own, "baselines": baselines.astype(int).tolist()})
    for got, wanted in zip(reader.open(BOARD).evaluate(RANK, cases), expected, strict=True):
        assert got[:2] == wanted[:2]
        assert got[2:] == [pytest.approx(part, abs=1e-12) for part in wanted[2:]]


def test_the_page_ranks_a_choice_as_python_does(reader: Reader) -> None:
    board = made_source().board
    known = rule_of(board)
    assert known is not None
    off, out = {"t01", "t03"}, {"m002", "m005"}
    tasks = [t for t, name in enumerate(known["tasks"]) if name not in off]
    methods = [m for m, name in enumerate(known["methods"]) if name not in out]
    q, baselines = np.array(known["q"])[np.ix_(tasks, methods)], np.array(known["baselines"])[methods]
    expected = dict(zip([known["methods"][m] for m in methods], rank(q, Rule(), baselines).final.tolist(), strict=True))
    page = reader.open(f"{BOARD}#off={','.join(off)}&out={','.join(out)}")
    shown = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#board tbody tr')].filter(r => !r.hidden)"
        ".map(r => [neuco.data.rows[r.dataset.i].id, Number(r.querySelector('.rank b')?.textContent || 0)]))"
    )
    assert {name: place for name, place in shown.items() if place} == expected
    assert list(shown)[:-1] == sorted(expected, key=lambda name: (expected[name], known["methods"].index(name)))


def test_a_board_of_another_kind_or_rule_is_not_ranked_anew() -> None:
    from msgspec.structs import replace

    board = made_source(methods=4, tasks=2).board
    assert rule_of(board) is not None
    assert rule_of(replace(board, kind="wins")) is None
    first, *rest = board.rows
    assert rule_of(replace(board, rows=(replace(first, rank=3), *rest))) is None


def loops(values: Any) -> Any:
    for value in values:
        values = value
    return values


def unknown_function(values: Any) -> Any:
    return np.fft.fft(values)


def unknown_option(values: Any) -> Any:
    return np.round(values, decimals=3)


@pytest.mark.parametrize("function", [loops, unknown_function, unknown_option])
def test_what_is_not_known_is_refused_by_line(function: Any) -> None:
    with pytest.raises(DataError, match=rf"test_compiled\.{function.__name__}, line \d+: no JavaScript is known for"):
        script(function)


def test_the_rule_is_made_from_the_source_of_the_ranking(site: Path) -> None:
    assert (site / "assets/rule.js").read_text(encoding="utf-8") == script(rank)
