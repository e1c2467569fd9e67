"""The suites that ship: what is in them, and why."""

from __future__ import annotations

from neuco_core import list_suites, list_tasks, load_protocol, load_suite, load_task
from neuco_core.plugins.catalog import catalog

# The columns of Table 4 of the NeuCo-Bench paper.
RANKED = {
    "biomass_mean",
    "biomass_std",
    "clouds",
    "crops",
    "heatisland_mean",
    "heatisland_std",
    "landcover_agriculture",
    "landcover_forest",
}


def test_every_suite_names_tasks_and_a_protocol_that_are_there() -> None:
    suites = list_suites()
    assert {suite.id for suite in suites} >= {"embedded", "mini", "neuco-real", "olinda", "olinda-blocks"}
    for suite in suites:
        assert catalog().suite_tasks(suite)
        assert load_protocol(suite.protocol).name == suite.protocol
        assert suite.title
        assert suite.description


def test_ranks_what_the_paper_ranks() -> None:
    assert set(load_suite("neuco-real").tasks) == RANKED
    assert set(load_suite("mini").tasks) == {f"mini_{name}" for name in RANKED}


def test_controls_are_never_ranked() -> None:
    for suite in list_suites():
        assert not [name for name in suite.tasks if load_task(name).control]


def test_embedded_is_all_that_works_offline_and_is_worth_ranking() -> None:
    offline = {
        task.id for task in list_tasks() if task.source.url.startswith("pkg://neuco_tasks.") and not task.control
    }
    assert set(load_suite("embedded").tasks) == offline - {"mini_nodata"}


def test_blocks_are_left_out_whole() -> None:
    blocks = load_suite("olinda-blocks")
    assert load_protocol(blocks.protocol).splitter == "group"
    assert all(load_task(name).group_column == "block" for name in blocks.tasks)


def test_baselines_of_embedded_tasks_use_the_protocol_of_their_suite() -> None:
    for name in load_suite("embedded").tasks:
        baseline = load_task(name).baseline
        assert baseline is not None
        assert baseline.protocol == load_suite("embedded").protocol
