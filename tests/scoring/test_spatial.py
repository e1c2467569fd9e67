"""Splits by place, and positions: on the earth with its seam and poles, and in a scene."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core import load_dataset, load_method, load_task
from neuco_core.boards.stats.uncertainty import TaskScores, mean_interval
from neuco_core.encode.run import why_not
from neuco_core.errors import DataError, ScoreError, UsageError
from neuco_core.plugins import catalog
from neuco_core.protocol import load_protocol
from neuco_core.records.fingerprint import CellInputs
from neuco_core.scoring.scorer import score
from neuco_core.scoring.spatial import _block_numbers, regions_of
from neuco_core.scoring.splits import splits_of
from neuco_core.specs import Dataset
from neuco_core.tables.embeddings import make_embeddings
from neuco_core.tables.labels import Labels, read_labels
from neuco_core.tables.positions import DEGREE, RADIUS, Positions, dataset_positions, positions_of
from neuco_methods.position.waves import Waves
from tests.installed import install
from tests.scoring.make import embed, label, names

LON_LAT = {"lon": ["10", "11", "12.5"], "lat": ["50", "51", "52"]}


def located(values: np.ndarray, places: np.ndarray, columns: tuple[str, str] = ("x", "y")) -> Labels:
    labels = label(values)
    table = dict(zip(columns, places.T.tolist(), strict=True))
    return Labels(labels.task, labels.kind, labels.ids, labels.values, labels.sha256, places=table)


def on_earth(count: int, seed: int = 0) -> np.ndarray:
    """Longitudes and latitudes of random points, evenly over the sphere."""
    random = np.random.RandomState(seed)
    return np.column_stack([random.uniform(-180, 180, count), np.degrees(np.arcsin(random.uniform(-1, 1, count)))])


def globe(count: int = 1500) -> Labels:
    return located(np.arange(count, dtype=float), on_earth(count), ("lon", "lat"))


# --- positions


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lat": ["50", "nan", "52"]}, "sample s00001: a position that is not finite; expected two finite numbers"),
        ({"lat": ["50", "", "52"]}, "sample s00001: lat is not a number; expected a number, got nothing"),
        ({"lon": ["10", "ten", "12"]}, "sample s00001: lon is not a number; expected a number, got 'ten'"),
        (
            {"lat": ["50", "91", "52"]},
            "sample s00001: a latitude beyond the poles; expected -90 to 90 degrees, got 11, 91",
        ),
        ({"lon": ["500", "11", "12"]}, "sample s00000: a longitude beyond once around; .*got 500, 50"),
        ({"lat": ["-122", "-121", "-120"]}, "sample s00000: longitude and latitude seem to be swapped; .*got 10, -122"),
        ({"lon": ["7", "7", "7"], "lat": ["8", "8", "8"]}, "all samples are at the same place; got 3 times"),
        ({"year": ["2020", "late", "2021"]}, "sample s00001: year is not a number"),
    ],
)
def test_bad_coordinates_of_a_label_file_are_one_clear_error(
    tmp_path: Path, changes: dict[str, list[str]], message: str
) -> None:
    columns = {"id": names(3), "label": ["1", "2", "4"], **LON_LAT, **changes}
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(map(",".join, [list(columns), *zip(*columns.values(), strict=True)])) + "\n")
    labels = read_labels(path, "regression")
    assert splits_of(labels, load_protocol("ridge"))  # nobody asked where they are
    with pytest.raises(DataError, match=message):
        splits_of(labels, load_protocol("ridge+splitter=buffer,r=5km"))


def test_a_label_file_may_carry_places_and_years(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("id,label,lon,lat,year\na,1,10,50,2019\nb,,11,51,2020\nc,3,190,-52,2021-07-03\n")
    labels = read_labels(path, "regression")
    positions = positions_of(labels)
    assert positions.on_earth
    assert positions.values.tolist() == [[10, 50], [190, -52]]
    assert positions.years is not None
    assert positions.years.tolist() == [2019, 2021]
    assert positions_of(labels.only(["c"])).values.tolist() == [[190, -52]]


def test_distances_know_the_antimeridian_and_the_poles() -> None:
    places = Positions(np.array([[179.9, 0], [-179.9, 0], [0, 90], [135, 90], [0, 0], [180, 0], [0, -90], [360, 0]]))
    first, second = np.array([0, 2, 4, 4, 2, 4]), np.array([1, 3, 5, 2, 6, 7])
    expected = [0.2 * DEGREE, 0, 180 * DEGREE, 90 * DEGREE, 180 * DEGREE, 0]
    assert places.distances(first, second) == pytest.approx(expected, abs=1e-6)
    assert places.nearer(np.array([0, 2, 4]), np.array([1, 3]), 25).tolist() == [True, True, False]
    assert places.nearer(np.array([4]), np.array([5]), 1e6).tolist() == [True]  # farther than the earth is wide
    straight = np.linalg.norm(places.xyz[first] - places.xyz[second], axis=1)
    assert 2 * RADIUS * np.arcsin(straight / (2 * RADIUS)) == pytest.approx(expected, abs=1e-6)


def test_waves_of_positions_run_through_the_antimeridian() -> None:
    """Two points a little apart have nearly the same waves, on whichever side of the seam they are."""
    places = Positions(np.array([[179.99, 10], [-179.99, 10], [170, 0], [-170, 20]]))
    waves = Waves(8).encode(places)
    assert waves.shape == (4, 63)
    assert np.abs(waves[0] - waves[1]).max() < 0.05
    assert np.abs(waves[2] - waves[3]).max() > 1


def test_a_method_of_positions_is_computed_for_a_dataset_that_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_soil(tmp_path, monkeypatch)
    position = load_method("position")
    assert position.embeddings("soil").ids == ("a", "b")
    assert position.embeddings("soil").values.shape == (2, 63)
    assert why_not(position, "soil") == ""
    assert why_not(position, "mini") == "position has no file for dataset mini"
    assert position.embeddings("olinda").sha256 == "042ca18aad16d6f5522a1e63d7d0f61882609212188e017521f76f98f6c4bda6"
    catalog.catalog.cache_clear()


def test_olinda_has_a_grid_and_ssl4eo_says_why_it_has_nothing() -> None:
    dataset = load_dataset("olinda")
    ids, positions = dataset_positions(dataset)
    assert ids == dataset.ids()
    assert not positions.on_earth
    assert positions.values.tolist() == [[i % 43, 42 - i // 43] for i in range(1849)]
    labels = Labels("biomass_mean", "regression", ("a",), np.zeros(1), "0" * 64, dataset="ssl4eo_s12_downstream")
    message = "'ssl4eo_s12_downstream' has no positions: it is published without coordinates, by design. Choose splits"
    for splitter in ("blocks,size=5km", "buffer,r=5km", "region"):
        with pytest.raises(DataError, match=message):
            splits_of(labels, load_protocol(f"ridge+splitter={splitter}"))
    with pytest.raises(DataError, match=r"'mini' has no positions: its plugin brings no positions\.csv"):
        dataset_positions(load_dataset("mini"))


def test_positions_decide_a_record_only_where_splits_need_them() -> None:
    method, task = load_method("pca"), load_task("olinda_sea_level")
    assert "positions_from" not in CellInputs(load_protocol("ridge+splitter=group")).of(method, task)
    assert CellInputs(load_protocol("ridge+splitter=buffer,r=2")).of(method, task)["positions_from"]


# --- splitters


@pytest.mark.parametrize(
    "rules", ["blocks,size=2000km,margin=500km", "blocks,size=20deg,margin=5deg", "buffer,r=300km"]
)
def test_no_training_sample_is_near_a_tested_one(rules: str) -> None:
    labels, protocol = globe(), load_protocol(f"ridge+k=5,splitter={rules}")
    positions = positions_of(labels)
    least = positions.length("r", rules.rpartition("=")[2])
    splits = splits_of(labels, protocol)
    assert len(splits) == 5
    for train, test in splits:
        assert not set(train) & set(test)
        assert positions.distances(train[:, None], test).min() >= least
        lost = np.setdiff1d(np.arange(len(labels)), [*train, *test])
        assert positions.distances(lost[:, None], test).min(axis=1).max() < least  # nobody else is left out
    again = splits_of(labels, protocol)
    assert all(np.array_equal(a, b) for pair in zip(splits, again, strict=True) for a, b in zip(*pair, strict=True))
    other = splits_of(labels, protocol.with_(seed=7))
    assert set(other[0][1]) != set(splits[0][1])


@pytest.mark.parametrize("size", ["1000km", "10deg"])
def test_blocks_have_no_seam_and_are_whole_at_the_poles(size: str) -> None:
    """Of many laid grids, two points 1 km apart are in one block nearly always: also across the antimeridian."""
    pairs = np.array([[179.9955, 10], [-179.9955, 10], [0, 89.9955], [180, 89.9955], [30, 0], [30.009, 0]])
    positions, random = Positions(pairs), np.random.RandomState(0)
    together = np.zeros(3)
    for _ in range(300):
        numbers = _block_numbers(positions, positions.length("size", size), random.random_sample(2), "deg" in size)
        together += (numbers[::2] == numbers[1::2]).all(axis=1)
    assert (together > 295).all()


def test_blocks_in_km_are_about_as_wide_as_high() -> None:
    places = on_earth(200_000)
    numbers = _block_numbers(Positions(places), 1000, np.array([0.3, 0.6]), in_degrees=False)
    names, member, counts = np.unique(numbers, axis=0, return_inverse=True, return_counts=True)
    rows = np.array([np.abs(places[member.ravel() == block, 1]).max() for block in range(len(names))])
    inner = counts[rows < 80]
    area = 4 * np.pi * RADIUS**2 / 200_000
    assert np.median(inner) * area == pytest.approx(1e6, rel=0.1)
    assert inner.max() < 1.5 * np.median(inner)


def test_each_region_is_tested_once_and_regions_do_not_end_at_the_antimeridian() -> None:
    around = np.array([[179.5, 60], [-179.5, 60.5], [-170, 61], [10, -40], [11, -41], [12, -40]])
    labels, protocol = located(np.arange(6.0), around, ("lon", "lat")), load_protocol("ridge+splitter=region,regions=2")
    assert [sorted(test) for _, test in splits_of(labels, protocol)] == [[0, 1, 2], [3, 4, 5]]
    assert all(len(train) + len(test) == 6 for train, test in splits_of(labels, protocol))
    regions = regions_of(positions_of(globe()), load_protocol("ridge+regions=12"))
    assert sorted(set(regions)) == list(range(12))
    assert np.bincount(regions).min() > 1500 / 12 / 3


def test_groups_may_be_the_regions() -> None:
    labels = label(np.arange(6.0), groups=np.array(["a", "a|b", "b", "b", "c", "c"]))
    splits = splits_of(labels, load_protocol("ridge+splitter=region-group"))
    assert [sorted(test) for _, test in splits] == [[0, 1], [2, 3], [4, 5]]
    assert [sorted(train) for train, _ in splits] == [[2, 3, 4, 5], [0, 4, 5], [0, 1, 2, 3]]


def test_what_is_lost_is_counted_and_random_splits_count_nothing() -> None:
    embeddings, task = make_embeddings(load_dataset("olinda").ids(), np.random.RandomState(0).rand(1849, 3)), "olinda"
    labels = load_task(f"{task}_elevation_mean").labels()
    found = score(embeddings, labels, "ridge+k=3,splitter=blocks,size=5,margin=3").samples
    assert found["lost"] > 200
    assert found["train"] + found["test"] + found["lost"] == pytest.approx(1849, abs=1)
    assert "lost" not in score(embeddings, labels, "ridge+k=3").samples


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ("blocks", UsageError, "blocks without a size"),
        ("blocks,size=5", UsageError, "bad size of a splitter; expected a length such as 50km or 0.5deg, got 5"),
        ("blocks,size=wide", UsageError, "bad size of a splitter; .*got 'wide'"),
        ("buffer,r=9000km", ScoreError, "no training sample is left: each is nearer to a tested one than 9000"),
        ("region,regions=1", UsageError, "bad regions of a splitter; expected a whole number from 2 to 1500"),
        ("region,regions=9999", UsageError, "bad regions of a splitter"),
    ],
)
def test_wrong_parameters_are_refused(rules: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        splits_of(globe(), load_protocol(f"ridge+splitter={rules}"))


def test_a_length_in_a_scene_has_no_unit() -> None:
    labels = located(np.arange(9.0), np.array(list(np.ndindex(3, 3)), float))
    assert splits_of(labels, load_protocol("ridge+splitter=buffer,r=1"))
    with pytest.raises(UsageError, match="expected a number, in the unit of the scene, got '5km'"):
        splits_of(labels, load_protocol("ridge+splitter=buffer,r=5km"))


def test_a_parameter_that_neither_probe_nor_splitter_has_is_refused() -> None:
    catalog.check_variant(load_protocol("ridge+splitter=blocks,size=5km"))
    for rules in ("ridge+splitter=blocks,r=5km", "ridge+size=5"):
        with pytest.raises(UsageError, match="neither the protocol nor its probe 'ridge' has"):
            catalog.check_variant(load_protocol(rules))


# --- what splits by place are for


def field(places: np.ndarray, length: float, seed: int) -> np.ndarray:
    """A smooth random function of the place whose values are alike within ``length``: a Gaussian field of waves."""
    random = np.random.RandomState(seed)
    waves = random.standard_normal((400, 2)) / length
    return np.cos(places @ waves.T + random.uniform(0, 2 * np.pi, 400)).sum(axis=1) / np.sqrt(200)


@pytest.fixture(scope="module")
def land() -> np.ndarray:
    return np.random.RandomState(3).uniform(0, 1000, (1500, 2))


BUFFER = "ridge+k=5,r=120,splitter=buffer,test_size=0.02"


def test_labels_of_the_place_alone_are_found_by_random_splits_and_not_beyond_a_buffer(land: np.ndarray) -> None:
    """Images that know their place in detail, such as by its colours, and nothing else; so does the control."""
    labels = located(field(land, 40, seed=1), land)
    images = embed(np.column_stack([field(land, 40, seed) for seed in range(2, 302)]))
    control = embed(Waves(24).encode(Positions(land, on_earth=False)))
    for embeddings, least in ((images, 0.6), (control, 0.6)):
        assert score(embeddings, labels, "ridge+k=5").mean > least
        assert score(embeddings, labels, BUFFER).mean <= 0.05


def test_labels_of_the_image_alone_have_no_gap(land: np.ndarray) -> None:
    random = np.random.RandomState(4)
    seen = random.standard_normal((len(land), 12))
    labels = located(seen @ random.standard_normal(12) + 2 * random.standard_normal(len(land)), land)
    images = embed(seen)
    by_chance, by_place = (score(images, labels, rules) for rules in ("ridge", BUFFER))
    reach = 0.0
    for found in (by_chance, by_place):
        ratio = found.samples["test"] / found.samples["train"]
        ends = mean_interval(TaskScores(np.array([found.per_split]), ratio))
        reach = np.hypot(reach, (ends.high - ends.low).item() / 2)
    assert abs(by_chance.mean - by_place.mean) < min(reach, 0.1)


# --- a stranger's splitter

SIDES = """
from neuco_core import Splitter, hookimpl


def sides(n, protocol, groups, positions):
    import numpy as np

    x = positions.values[:, 0]
    width = positions.length("width", protocol.params["width"])
    west, east = np.flatnonzero(x < np.median(x) - width), np.flatnonzero(x > np.median(x) + width)
    return [(west, east), (east, west)]


@hookimpl
def neuco_splitters():
    yield Splitter(id="sides", function=sides, needs_positions=True, params={"width": 0})
"""


def test_a_strangers_splitter_gets_positions_and_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(SIDES.strip().splitlines()) <= 40
    install(tmp_path, "neuco_sides", SIDES, "splitters")
    monkeypatch.syspath_prepend(str(tmp_path))
    catalog.catalog.cache_clear()
    task = load_task("olinda_elevation_mean")
    got = score(make_embeddings(load_dataset("olinda").ids(), np.eye(1849, 5)), task, "ridge+splitter=sides,width=3")
    assert (got.samples["train"], got.samples["test"], got.samples["lost"]) == (774, 774, 301)
    catalog.catalog.cache_clear()


def write_soil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin with a dataset and its positions."""
    package = tmp_path / "neuco_tasks" / "soil"
    package.mkdir(parents=True)
    source = (
        "from neuco_core import Dataset, hookimpl\n@hookimpl\ndef neuco_datasets():\n    yield Dataset(id='soil')\n"
    )
    (package / "__init__.py").write_text(source)
    (package / "positions.csv").write_text("id,lon,lat,year\na,1,2,2020\nb,3,4,2021\n")
    import neuco_tasks

    monkeypatch.setattr(neuco_tasks, "__path__", [*neuco_tasks.__path__, str(package.parent)])
    catalog.catalog.cache_clear()


def test_a_dataset_in_a_plugin_of_its_own_brings_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_soil(tmp_path, monkeypatch)
    dataset: Any = catalog.catalog().load(Dataset, "soil")
    assert dataset_positions(dataset, ["b", "a"])[1].values.tolist() == [[3, 4], [1, 2]]
    with pytest.raises(DataError, match="no position of sample 'c'"):
        dataset_positions(dataset, ["a", "c"])
    catalog.catalog.cache_clear()
