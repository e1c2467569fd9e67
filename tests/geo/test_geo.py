"""What the geo extension shows on the real boards of olinda: gaps, orders under other protocols, controls and maps."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from neuco_core import load_protocol, load_task
from neuco_core.scoring.splits import splits_of
from neuco_core.site.board_page import board_page
from neuco_core.site.item_pages import strips, task_page
from neuco_core.site.page_data import PageData, gather
from neuco_extensions.geo.board import CONTROL, agreement, cells_by_protocol, gaps_to, kendall, protocols
from neuco_extensions.geo.control import located, space_scores
from neuco_extensions.geo.place import scores_by_place

GROUP = "ridge+splitter=group"


@pytest.fixture(scope="module")
def pages(committed_registry: Path) -> dict[str, PageData]:
    return {page.id: page for page in gather(committed_registry, ["olinda", "olinda-blocks", "all-digits"])}


def test_a_gap_is_the_random_score_less_the_other_on_both_boards(pages: dict[str, PageData]) -> None:
    for name in ("olinda", "olinda-blocks"):
        page = pages[name]
        gaps = {gap.name: gap for gap in gaps_to(page, cells_by_protocol(page), GROUP, ("olinda_elevation_mean",))}
        means = {
            board.board.suite.protocol: {
                row.method: row.value("olinda_elevation_mean", "score") for row in board.board.rows
            }
            for board in (pages["olinda"], pages["olinda-blocks"])
            if board.board.suite
        }
        assert len(gaps) == 9  # eight methods and the nearest neighbour in space
        for method in ("mosaiks", "position", "averaging"):
            gap = gaps[page.method_title(method)]
            assert gap.means == pytest.approx((means["ridge"][method], means[GROUP][method]))
            assert gap.gap == pytest.approx(gap.means[0] - gap.means[1])
            assert gap.low < gap.gap < gap.high
        assert gaps_to(page, cells_by_protocol(page), "ridge") == []


def test_the_location_alone_is_a_baseline_under_the_same_splits(pages: dict[str, PageData]) -> None:
    page = pages["olinda"]
    gaps = gaps_to(page, cells_by_protocol(page), GROUP)
    location = [gap for gap in gaps if gap.knows_place]
    assert [gap.name for gap in location] == ["Position in the scene", CONTROL]
    assert all(gap.baseline and gap.gap > 0 for gap in location)
    assert location[1].low > 0
    found = located("olinda_elevation_mean")
    assert found is not None
    labels, positions = found
    by_hand = []
    for train, test in splits_of(labels, load_protocol("ridge"))[:3]:
        nearest = train[positions.distances(test[:, None], train).argmin(axis=1)]
        residual = labels.values[test] - labels.values[nearest]
        by_hand.append(1 - (residual**2).sum() / ((labels.values[test] - labels.values[test].mean()) ** 2).sum())
    # Neighbours at the same distance are told apart in another order, but all are good.
    assert space_scores("olinda_elevation_mean", load_protocol("ridge"))[:3] == pytest.approx(by_hand, abs=0.1)


def test_the_tab_has_ranks_agreement_and_one_sentence(pages: dict[str, PageData]) -> None:
    page = pages["olinda"]
    data = protocols(page)
    assert data is not None
    least, _, verdict = data["sentence"].partition("; ")
    tau = r"[−\d.]+ \([−\d.]+ to [−\d.]+\)"
    assert re.search(rf"is that under {re.escape(GROUP)}: τ = {tau} over 8 methods$", least)
    assert "two orders" in verdict
    assert "may know where and not what: MOSAIKS, post-encoding average;" in data["location"]
    head, rows = data["ranks"]
    assert head == ["Method", ("ridge", "number"), (GROUP, "number")]
    shown = {str(row[0].href): str(row[2].text) for row in rows}
    assert re.fullmatch(tau, shown.pop(""))
    ranks = pages["olinda-blocks"].board.ranks
    for method, before in page.board.ranks.items():
        assert shown[f"method/{method}.html"] == f"{before} → {ranks[method]}"
    html = board_page(page)
    assert 'href="#geo-protocols"' in html
    assert html.count("<caption>Gap of each method to") == 1


def test_a_board_of_one_protocol_has_no_tab_and_no_map(pages: dict[str, PageData]) -> None:
    page = pages["all-digits"]
    assert protocols(page) is None
    assert scores_by_place(page, page.board.tasks[0].id) is None


def test_tau_is_that_of_scipy_also_with_ties_and_for_many_at_once() -> None:
    random = np.random.RandomState(0)
    first, second = random.rand(2, 30, 1, 7).round(1)
    found = kendall(first, second)
    expected = [kendalltau(a[0], b[0]).statistic for a, b in zip(first, second, strict=True)]
    assert found == pytest.approx(expected)


def test_the_interval_of_tau_holds_it() -> None:
    random = np.random.RandomState(1)
    q = random.standard_normal((5, 10))
    assert agreement(q, q) == pytest.approx((1, 1, 1))
    tau, low, high = agreement(q, q + 0.5 * random.standard_normal(q.shape))
    assert -1 <= low < tau < high <= 1
    assert low > 0
    tau, low, high = agreement(q, random.standard_normal(q.shape))
    assert low < 0 < high


def test_the_map_has_a_dot_for_each_sample_and_says_scores_by_region(pages: dict[str, PageData]) -> None:
    page, task = pages["olinda"], load_task("olinda_elevation_mean")
    data = scores_by_place(page, task.id)
    assert data is not None
    ((name, gaps, drawn, regions),) = data["found"]
    assert (name, len(gaps), len(regions)) == (GROUP, 9, 64)
    assert sum(path.count("M") for _, path in drawn.paths) == 1849
    assert [shade for shade, _ in drawn.paths] == [0, 1, 2, 3, 4]
    scores = [float(str(row[2].text).replace("−", "-")) for row in regions]
    assert scores == sorted(scores)
    assert sum(int(str(row[1].text)) for row in regions) == 1849
    board_task = next(each for each in page.board.tasks if each.id == task.id)
    html = task_page(page, board_task, strips(page))
    assert html.count('class="places"') == 6  # the map, and its key of five shades
    assert "style=" not in html  # the page's policy allows none
