"""One damaged image among many: it is named with all others that were met, or left out and counted."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from neuco_core.cubes.folder import ImageFolder
from neuco_core.encode.run import CHUNK, EncodeOptions, encode_dataset
from neuco_core.errors import DataError
from neuco_core.specs import Dataset, Method
from tests.command import neuco_here
from tests.encode.mean import MEAN

COUNT = CHUNK + 44
BAD = {"p003": b"", "p100": b"\x93NUMPY nothing", f"p{CHUNK + 1:03}": b"x"}


class Learning:
    """Takes the mean of all samples away, so it reads them all before the first is encoded."""

    def fit(self, source: ImageFolder) -> None:
        self.mean = source.read(source.ids()).values.mean()

    def encode(self, batch: object) -> np.ndarray:
        return np.asarray(batch.values.mean(axis=(1, 3, 4)) - self.mean)  # type: ignore[attr-defined]


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "images"
    folder.mkdir()
    for place in range(COUNT):
        np.save(folder / f"p{place:03}.npy", np.full((2, 4, 4), place, np.float32))
    for name, data in BAD.items():
        (folder / f"{name}.npy").write_bytes(data)
    return Dataset(id="pictures", cubes=partial(ImageFolder, folder))


def test_all_damaged_samples_that_were_met_are_named(dataset: Dataset) -> None:
    with pytest.raises(DataError, match=rf"2 of {CHUNK} samples looked at so far cannot be read") as caught:
        encode_dataset(MEAN, dataset, {}, EncodeOptions(progress=False))
    assert "p003.npy" in str(caught.value)
    assert "p100.npy" in str(caught.value)
    assert "--leave-out-damaged" in str(caught.value)


@pytest.mark.parametrize("method", [MEAN, Method(id="learning", encoder=Learning)])
def test_they_are_left_out_on_demand_and_the_rest_is_as_ever(method: Method, dataset: Dataset) -> None:
    left_out: dict[str, str] = {}
    reported: list[int] = []
    options = EncodeOptions(progress=lambda done, total: reported.append(done), left_out=left_out)
    made = encode_dataset(method, dataset, {}, options)
    assert set(left_out) == set(BAD)
    assert "unknown version of the NumPy format" in left_out["p100"]
    numbers = [place for place in range(COUNT) if f"p{place:03}" not in BAD]
    assert made.ids == tuple(f"p{place:03}" for place in numbers)
    base = np.mean(numbers) if method is not MEAN else 0.0
    assert np.allclose(made.values, np.array(numbers)[:, None] - base, atol=1e-3)
    assert max(reported) <= COUNT
    again: dict[str, str] = {}
    assert encode_dataset(method, dataset, {}, EncodeOptions(progress=False, left_out=again)).sha256 == made.sha256
    assert again == left_out, "a cache of some samples is not taken for one of all"


def test_the_command_names_what_it_left_out(dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuco_core.encode.run.load_dataset", lambda name: dataset)
    words = ("embed", "--method", "averaging", "--dataset", "pictures", "--out", tmp_path / "a.npz")
    refused = neuco_here(*words)
    assert (refused.code, len(refused.err.splitlines())) == (4, 1), refused.err
    assert not (tmp_path / "a.npz").exists()
    made = neuco_here(*words, "--leave-out-damaged")
    assert made.code == 0, made.err
    assert f"a.npz: {COUNT - 3} rows of " in made.out
    assert f"left out: 3 of {COUNT} samples, which cannot be read\n  p003: " in made.out
    assert "the local engine only" in neuco_here(*words, "--leave-out-damaged", "--engine", "dask", "--force").err


def test_a_folder_of_which_nothing_can_be_read(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.npy").write_bytes(b"x")
    dataset = Dataset(id="pictures", bands=("image/1",), seasons=("scene",), cubes=partial(ImageFolder, tmp_path))
    with pytest.raises(DataError, match="damaged image"):
        encode_dataset(MEAN, dataset, {}, EncodeOptions(progress=False, left_out={}))
