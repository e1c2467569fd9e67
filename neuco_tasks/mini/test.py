"""mini: what it promises about its cubes and labels, checked on the cubes and labels themselves."""

from __future__ import annotations

import csv
import hashlib
from importlib import resources

import numpy as np
import pytest

from neuco_core import load_dataset, load_task
from neuco_core.errors import DataError
from neuco_core.testing import contract
from neuco_tasks.mini import FILES, TASKS
from neuco_tasks.mini.cubes import MiniCubes, cube, pool_indices, sample_id, scene
from neuco_tasks.mini.labels import label_text
from neuco_tasks.mini.scene import POOLS, SAMPLES
from neuco_tasks.mini.spectra import BANDS, FOREST
from neuco_tasks.mini.stable import Stream, decay, decibel, fields, power

# Means of SSL4EO-S12 (dB and DN): S1, then L1C, then L2A.
TRUE_MEANS = {
    "s1": (-11.834, -19.243),
    "s2l1c": (1635, 1403, 1290, 1281, 1535, 2272, 2631, 2588, 2889, 976, 20, 2109, 1350),
    "s2l2a": (802, 917, 1130, 1211, 1588, 2356, 2650, 2788, 2860, 2922, 2221, 1550),
}

test_contract = contract("task", *(f"mini_{name}" for name in TASKS))


def test_is_said_to_be_synthetic_everywhere() -> None:
    dataset = load_dataset("mini")
    assert dataset.synthetic
    assert "ynthetic" in dataset.title
    for name in TASKS:
        task = load_task(f"mini_{name}")
        assert "synthetic" in task.title
        assert "synthetic" in task.tags
        assert task.control == name.startswith("random")


def test_has_the_tasks_and_bands_of_the_real_dataset() -> None:
    real = load_dataset("ssl4eo_s12_downstream")
    assert load_dataset("mini").bands == real.bands == BANDS == MiniCubes.bands
    for name in TASKS:
        task, model = load_task(f"mini_{name}"), load_task(name)
        assert (task.kind, task.metric, task.unit) == (model.kind, model.metric, model.unit)


def test_pools_keep_the_proportions_of_the_real_ones() -> None:
    real = {"biomass": 2415, "crops": 3355, "landcover": 4691, "clouds": 1140, "heatisland": 1659}
    assert SAMPLES == 1200
    for name, size in POOLS.items():
        assert size == pytest.approx(1200 * real[name] / 13260, abs=0.6)


@pytest.mark.parametrize("file", list(FILES))
def test_labels_are_made_again_byte_for_byte(file: str) -> None:
    committed = resources.files("neuco_tasks.mini").joinpath(f"labels/{file}.csv").read_bytes()
    assert label_text(file).encode() == committed
    assert (hashlib.sha256(committed).hexdigest(), len(committed)) == FILES[file]


def test_cubes_are_the_same_bits_on_every_machine() -> None:
    """If this fails because the generator was changed, the version of the cubes must change with it."""
    digest = hashlib.sha256()
    for index in range(0, SAMPLES, 150):
        digest.update(cube(index).astype("<f4").tobytes())
    assert digest.hexdigest() == "af6a5c5003c42db6fe42a362d803e8fe78e08b8f7eef99e912f8f3c037e6f70e"
    assert MiniCubes.version == "1"


def test_a_sample_does_not_depend_on_order_or_batch() -> None:
    source = MiniCubes()
    some = [source.ids()[index] for index in (999, 3, 500)]
    together = source.read(some).values
    for row, name in enumerate(some):
        assert np.array_equal(source.read([name]).values[0], together[row])


def test_band_means_are_within_15_percent_of_the_true_ones() -> None:
    means = np.mean([cube(index).mean(axis=(0, 2, 3), dtype=np.float64) for index in range(0, SAMPLES, 4)], axis=0)
    true = np.concatenate([np.array(values, dtype=float) for values in TRUE_MEANS.values()])
    assert np.all(np.abs(means / true - 1) < 0.15)


def test_zero_pixels_are_those_without_data() -> None:
    seen = 0
    for index in range(0, 120):
        if scene(index).lit.all():
            continue
        seen += 1
        optical = cube(index)[:, 2:]
        assert np.array_equal((optical == 0).all(axis=1).reshape(4, -1), ~scene(index).lit)
        assert _label("nodata", "nodata", index) == pytest.approx(float(np.mean(optical == 0)), abs=5e-5)
    assert seen > 5


def test_biomass_darkens_swir_and_brightens_radar() -> None:
    pairs = []
    for index in pool_indices("biomass"):
        what = scene(index)
        woods = (what.classes == FOREST) & what.lit[1] & (what.clouds[1] == 0)
        if woods.sum() > 200:
            summer = cube(index)[1].reshape(27, -1)[:, woods]
            pairs.append([what.biomass[woods].mean(), summer[BANDS.index("s2l2a/B12")].mean(), summer[1].mean()])
    biomass, swir, radar = np.array(pairs).T
    assert len(pairs) > 80
    assert np.corrcoef(biomass, swir)[0, 1] < -0.3
    assert np.corrcoef(biomass, radar)[0, 1] > 0.3


def test_clouds_whiten_optical_bands_and_not_radar() -> None:
    index = next(
        i for i in pool_indices("clouds") if scene(i).lit.all() and 0.3 < np.mean(scene(i).clouds[1] > 0.8) < 0.7
    )
    summer, thick = cube(index)[1].reshape(27, -1), scene(index).clouds[1] > 0.8
    clear = scene(index).clouds[1] == 0
    blue = BANDS.index("s2l1c/B02")
    assert summer[blue, thick].mean() > 2 * summer[blue, clear].mean()
    assert abs(summer[0, thick].mean() - summer[0, clear].mean()) < 6


def test_unknown_ids_are_refused() -> None:
    with pytest.raises(DataError, match="no sample 'nonsense'"):
        MiniCubes().read(["nonsense"])


def test_own_functions_agree_with_the_library_s() -> None:
    x = np.linspace(0, 40, 4001)
    assert np.allclose(decay(x), np.exp(-x), rtol=1e-7)
    assert np.allclose(decibel(np.exp(-x / 4)), 10 * np.log10(np.exp(-x / 4)), atol=1e-6)
    assert np.allclose(power(-x), 10 ** (-x / 10), rtol=1e-7)


def test_random_surfaces_have_mean_0_and_variance_1() -> None:
    for grids in ((3,), (3, 5), (3, 5, 9), (3, 6, 11)):
        values = np.stack([fields(Stream(index), 8, grids) for index in range(60)])
        assert abs(values.mean()) < 0.05
        assert 0.85 < values.var() < 1.15
    grain = Stream(0).grain(4, 1000)
    assert abs(float(grain.mean())) < 0.05
    assert 0.95 < float(grain.var()) < 1.05


def _label(file: str, column: str, index: int) -> float:
    text = resources.files("neuco_tasks.mini").joinpath(f"labels/{file}.csv").read_text(encoding="utf-8")
    return next(float(row[column]) for row in csv.DictReader(text.splitlines()) if row["id"] == sample_id(index))
