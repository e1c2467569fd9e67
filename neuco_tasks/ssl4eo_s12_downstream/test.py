"""The dataset's declaration, and what happens without the data and with a folder of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuco_core import load_dataset
from neuco_core.errors import DataError
from neuco_tasks.ssl4eo_s12_downstream import common, fake

VARIABLE = "NEUCO_DATASET_SSL4EO_S12_DOWNSTREAM"


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link of the person who runs the tests must not help them pass."""
    monkeypatch.setenv("NEUCO_CONFIG", str(tmp_path / "config"))
    monkeypatch.delenv(VARIABLE, raising=False)


def test_declares_27_bands_and_four_seasons() -> None:
    dataset = load_dataset("ssl4eo_s12_downstream")
    assert len(dataset.bands) == 27
    assert dataset.bands[0] == "s1/VV"
    assert "s2l1c/B10" in dataset.bands
    assert "s2l2a/B10" not in dataset.bands
    assert dataset.seasons == common.SEASONS
    assert not dataset.synthetic


def test_says_how_to_link_a_copy() -> None:
    cubes = load_dataset("ssl4eo_s12_downstream").cubes
    assert cubes is not None
    with pytest.raises(DataError, match="neuco data link ssl4eo_s12_downstream FOLDER"):
        cubes()


def test_reads_a_linked_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = fake.write_folder(tmp_path / "copy", count=2)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "copy"))
    cubes = load_dataset("ssl4eo_s12_downstream").cubes
    assert cubes is not None
    source = cubes()
    assert set(source.ids()) == set(ids)
    batch = source.read(ids)
    assert batch.bands == load_dataset("ssl4eo_s12_downstream").bands
    assert batch.values.shape == (2, 4, 27, 264, 264)
    expected = np.concatenate([fake.made_up(1, name, n, 264)[0] for name, n in fake.MODALITIES.items()], axis=1)
    assert np.array_equal(batch.values[1], expected.astype(np.float32))
