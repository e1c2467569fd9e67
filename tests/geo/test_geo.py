"""What the geo extension shows on the real boards of olinda: gaps, orders under other protocols, controls and maps."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from neuco_core import load_protocol, load_task
from neuco_core.boards.cells import Cells, by_protocol
from neuco_core.boards.store import Current, current
from neuco_core.scoring.splits import splits_of
from neuco_core.site.board_page import board_page
from neuco_core.site.item_pages import strips, task_page
from neuco_core.site.page_data import PageData, from_suite
from neuco_core.specs import Suite
from neuco_extensions.geo.gap import gaps, pairs
from neuco_extensions.geo.place import gap_rows, located, scores_by_place, space_scores
from neuco_extensions.geo.protocols import agreement, protocols, tau
from tests.boards.helpers import make_record

GROUP = "ridge+splitter=group"


@pytest.fixture(scope="module")
def now(committed_registry: Path) -> Current:
    return current(committed_registry)


@pytest.fixture(scope="module")
def pages(now: Current) -> dict[str, PageData]:
    return {name: from_suite(now, now.suites[name]) for name in ("olinda", "olinda-blocks", "all-digits")}


@pytest.mark.parametrize("name", ["olinda", "olinda-blocks"])
def test_a_board_has_the_gap_of_its_methods_as_a_column(name: str, pages: dict[str, PageData]) -> None:
    board = pages[name].board
    column = board.columns[-1]
    assert (column.key, column.label) == ("gap", "Gap to group")
    assert GROUP in column.help
    means = [{row.method: row.values.get("mean_score") for row in pages[one].board.ranked} for one in pages]
    for row in board.ranked:
        gap, interval = row.values["gap"], row.intervals["gap"]
        by_chance, by_place = means[0][row.method], means[1][row.method]
        assert gap == pytest.approx(by_chance - by_place)  # type: ignore[operator]
        assert interval.low < gap < interval.high  # type: ignore[operator]


def test_a_board_of_one_protocol_has_no_gap_no_tab_and_no_map(pages: dict[str, PageData]) -> None:
    page = pages["all-digits"]
    assert "gap" not in {column.key for column in page.board.columns}
    assert protocols(page) is None
    assert scores_by_place(page, page.board.tasks[0].id) is None


def made_cells(**scores: tuple[float, ...]) -> Cells:
    suite = Suite(id="made", protocol="ridge", tasks={"first": 1})
    records = [make_record(name, "first", values, protocol="ridge") for name, values in scores.items()]
    return by_protocol(records, suite)["ridge"]


def test_a_gap_needs_both_scores_and_one_split_has_no_interval() -> None:
    by_chance = made_cells(a=(0.8, 0.9, 1.0), b=(0.5, 0.6, 0.7))
    found = gaps(by_chance, made_cells(a=(0.3, 0.5, 0.7)), by_chance.tasks)
    assert list(found) == ["a"]
    assert found["a"][:3] == pytest.approx((0.9, 0.5, 0.4))
    reach = [4.302653 * s * np.sqrt(1 / 3 + 1 / 9) for s in (0.1, 0.2)]  # Student's t with two degrees of freedom
    assert found["a"].high - 0.4 == pytest.approx(np.hypot(*reach), rel=1e-5)
    once = gaps(by_chance, made_cells(a=(0.3,)), by_chance.tasks)["a"]
    assert once.value == pytest.approx(0.6)
    assert np.isnan(once.low)


def test_protocols_are_paired_if_only_their_splits_differ() -> None:
    blocks = "ridge+size=5,splitter=blocks"
    names = ["ridge", GROUP, blocks, "knn", "ridge+k=10", "knn+splitter=region", "knn+neighbors=3", "nobody+k=3"]
    assert pairs(names) == [
        ("ridge", GROUP),
        ("ridge", blocks),
        ("knn", "knn+splitter=region"),
        ("ridge+k=10", GROUP),
        ("ridge+k=10", blocks),
    ]


def test_the_location_alone_is_a_baseline_under_the_same_splits(pages: dict[str, PageData]) -> None:
    rows = {str(row[0].text): row for row in gap_rows(pages["olinda"], "olinda_elevation_mean", "ridge", GROUP)}
    assert len(rows) == 9  # eight methods and the nearest neighbour in space
    gap, by_chance, by_place = (str(cell.text) for cell in rows["Nearest neighbour in space (baseline)"][1:])
    value, reach = map(float, gap.split(" ± "))
    assert float(by_chance) - float(by_place) == pytest.approx(value, abs=0.0011)
    assert 0 < reach < value
    assert "Position in the scene (baseline)" in rows
    found = located("olinda_elevation_mean")
    assert found is not None
    labels, positions = found
    by_hand = []
    for train, test in splits_of(labels, load_protocol("ridge"))[:3]:
        nearest = train[positions.distances(test[:, None], train).argmin(axis=1)]
        residual = labels.values[test] - labels.values[nearest]
        by_hand.append(1 - (residual**2).sum() / ((labels.values[test] - labels.values[test].mean()) ** 2).sum())
    # Neighbours at the same distance are told apart in another order, but all are good.
    assert space_scores("olinda_elevation_mean", "ridge")[:3] == pytest.approx(by_hand, abs=0.1)


def test_the_tab_has_ranks_agreement_and_one_sentence(pages: dict[str, PageData]) -> None:
    page = pages["olinda"]
    data = protocols(page)
    assert data is not None
    least, _, verdict = data["sentence"].partition("; ")
    of_tau = r"[−\d.]+ \([−\d.]+ to [−\d.]+\)"
    assert re.search(rf"is that under {re.escape(GROUP)}: τ = {of_tau} over 8 methods$", least)
    assert "two orders" in verdict
    assert data["heads"] == ["Method", ("ridge", "number"), (GROUP, "number")]
    shown = {str(row[0].href): str(row[2].text) for row in data["ranks"]}
    assert re.fullmatch(of_tau, shown.pop(""))
    ranks = pages["olinda-blocks"].board.ranks
    for method, before in page.board.ranks.items():
        assert shown[f"method/{method}.html"] == f"{before} → {ranks[method]}"
    html = board_page(page)
    assert 'href="#geo-protocols"' in html
    assert html.count('data-key="gap"') == 1


def test_tau_is_that_of_the_weighted_ranks_also_with_ties() -> None:
    random = np.random.RandomState(0)
    for _ in range(20):
        first, second = random.rand(2, 1, 7).round(1)
        assert tau(first, second) == pytest.approx(kendalltau(first[0], second[0]).statistic)


def test_the_interval_of_tau_holds_it() -> None:
    random = np.random.RandomState(1)
    q = random.standard_normal((5, 10))
    assert agreement(q, q) == pytest.approx((1, 1, 1))
    of_all, low, high = agreement(q, q + 0.5 * random.standard_normal(q.shape))
    assert -1 <= low < of_all < high <= 1
    assert low > 0
    _, low, high = agreement(q, random.standard_normal(q.shape))
    assert low < 0 < high


def test_the_map_has_a_dot_for_each_sample_and_says_scores_by_region(pages: dict[str, PageData]) -> None:
    page, task = pages["olinda"], load_task("olinda_elevation_mean")
    data = scores_by_place(page, task.id)
    assert data is not None
    ((name, rows, drawn, regions),) = data["found"]
    assert (name, len(rows), len(regions)) == (GROUP, 9, 64)
    assert sum(path.count("M") for _, path in drawn.paths) == 1849
    assert [shade for shade, _ in drawn.paths] == [0, 1, 2, 3, 4]
    scores = [float(str(row[2].text).replace("−", "-")) for row in regions]
    assert scores == sorted(scores)
    assert sum(int(str(row[1].text)) for row in regions) == 1849
    board_task = next(each for each in page.board.tasks if each.id == task.id)
    html = task_page(page, board_task, strips(page))
    assert html.count('class="places"') == 6  # the map, and its key of five shades
    assert "style=" not in html  # the page's policy allows none
