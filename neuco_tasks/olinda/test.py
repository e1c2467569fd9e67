"""olinda: the contract of its tasks, the patches as a whole scene, and the blocks."""

from __future__ import annotations

import numpy as np
import pytest

from neuco_core import load_dataset, load_task, score
from neuco_core.errors import DataError
from neuco_core.tables.embeddings import make_embeddings
from neuco_core.testing import contract
from neuco_tasks.olinda.cubes import OlindaCubes

TASKS = ("olinda_elevation_mean", "olinda_elevation_std", "olinda_sea_level")

test_contract = contract("task", *TASKS)


def test_patches_are_neighbours_in_a_grid_of_43() -> None:
    """The seams between patches are no sharper than the pixels inside them: nothing was shuffled or skipped."""
    source = OlindaCubes()
    infrared = source.read(source.ids()).values[:, 0, 3].reshape(43, 43, 8, 8)
    inside = np.abs(np.diff(infrared, axis=3)).mean()
    assert np.abs(infrared[:, :-1, :, -1] - infrared[:, 1:, :, 0]).mean() < 1.1 * inside
    assert np.abs(infrared[:-1, :, -1, :] - infrared[1:, :, 0, :]).mean() < 1.1 * inside


def test_cubes_are_as_declared() -> None:
    dataset = load_dataset("olinda")
    source = OlindaCubes()
    batch = source.read(source.ids()[:3])
    assert (batch.bands, batch.seasons) == (dataset.bands, dataset.seasons)
    assert batch.values.shape == (3, 1, 6, 8, 8)
    assert batch.values.dtype == np.float32
    assert set(load_task("olinda_sea_level").labels().ids) == set(source.ids())


def test_sea_level_is_elevation_below_one_metre() -> None:
    elevation, sea = load_task("olinda_elevation_mean").labels(), load_task("olinda_sea_level").labels()
    assert np.array_equal(sea.values, elevation.values < 1)


def test_blocks_are_whole_squares_of_the_grid() -> None:
    groups = load_task("olinda_elevation_mean").labels().groups
    assert groups is not None
    grid = groups.reshape(43, 43)
    names, sizes = np.unique(grid, return_counts=True)
    assert len(names) == 64
    assert sizes.min() == 25
    assert sizes.max() == 36
    for name in names:
        rows, columns = np.nonzero(grid == name)
        assert len(rows) == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)


def test_random_splits_leak_and_blocks_do_not() -> None:
    """An embedding that knows nothing but where a patch lies: random splits reward it, blocks hardly do."""
    task = load_task("olinda_elevation_std")
    rows, columns = np.divmod(np.arange(1849), 43)
    random = np.random.default_rng(0)
    waves = random.normal(size=(200, 2)) * 0.6
    phase = np.stack([rows, columns], axis=1) @ waves.T + random.uniform(0, 6.28, 200)
    place = make_embeddings(task.labels().ids, np.cos(phase).astype(np.float32))
    by_chance = score(place, task, "ridge+k=10").mean
    by_block = score(place, task, "ridge+k=10,splitter=group").mean
    assert by_chance > 0.3
    assert by_block < by_chance - 0.2


def test_unknown_ids_are_refused() -> None:
    with pytest.raises(DataError, match="no sample 'nonsense'"):
        OlindaCubes().read(["nonsense"])
