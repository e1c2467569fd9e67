"""olinda: the contract of its tasks, the patches as a whole scene, and the blocks."""

from __future__ import annotations

import numpy as np
import pytest

from neuco_core import load_dataset, load_protocol, load_task
from neuco_core.errors import DataError
from neuco_core.scoring.splits import group
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


def blocks_by_patch() -> list[list[str]]:
    """The block of each patch, and behind it those that it is near to."""
    groups = load_task("olinda_elevation_mean").labels().groups
    assert groups is not None
    return [name.split("|") for name in groups]


def test_blocks_are_whole_squares_of_the_grid() -> None:
    grid = np.array([own for own, *_ in blocks_by_patch()]).reshape(43, 43)
    names, sizes = np.unique(grid, return_counts=True)
    assert len(names) == 64
    assert sizes.min() == 25
    assert sizes.max() == 36
    for name in names:
        rows, columns = np.nonzero(grid == name)
        assert len(rows) == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)


def test_a_patch_names_the_blocks_within_three_patches() -> None:
    named = blocks_by_patch()
    rows, columns = np.divmod(np.arange(1849), 43)
    own = np.array([each[0] for each in named])
    for patch, each in enumerate(named):
        near = (abs(rows - rows[patch]) <= 3) & (abs(columns - columns[patch]) <= 3)
        assert sorted(each) == sorted(set(own[near]))


def test_no_training_patch_is_within_three_patches_of_a_tested_block() -> None:
    groups = load_task("olinda_elevation_mean").labels().groups
    for train, test in group(1849, load_protocol("ridge+splitter=group"), groups):
        apart = np.abs(np.array(np.divmod(train[:, None], 43)) - np.array(np.divmod(test, 43))[:, None])
        assert apart.max(axis=0).min() > 3


def test_unknown_ids_are_refused() -> None:
    with pytest.raises(DataError, match="no sample 'nonsense'"):
        OlindaCubes().read(["nonsense"])
