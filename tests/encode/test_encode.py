"""From a method to embeddings: the cache, an interrupted run, damaged images, and wrong uses in one clear line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.cubes.folder import ImageFolder
from neuco_core.encode.run import CHUNK, EncodeOptions, encode_dataset
from neuco_core.errors import DataError, DependencyError, NeucoError, PluginError, UsageError
from neuco_core.specs import Dataset, Method
from neuco_core.testing import LANDSAT_BANDS, TinyCubes, check_encoder
from tests.command import neuco_here
from tests.encode.mean import MEAN, Mean, make


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    Mean.log = []
    return Mean.log


def cubes(count: int = 10, **options: Any) -> TinyCubes:
    return TinyCubes(count, LANDSAT_BANDS, ("scene",), 4, **options)


def test_rows_are_those_of_the_encoder_in_the_order_of_the_source(log: list[str]) -> None:
    source = cubes()
    embeddings = encode_dataset(MEAN, source.dataset(), {}, EncodeOptions(batch_size=4))
    assert embeddings.ids == source.ids()
    assert np.allclose(embeddings.values, source.read(source.ids()).values.mean(axis=(1, 3, 4)), rtol=1e-6)
    assert log[0] == "fit"
    # Threads: the last batch may come before another. Eight samples are encoded again.
    assert sorted(log[1:4]) == ["encode 2", "encode 4", "encode 4"]
    assert log[4:] == ["encode 4", "encode 4"]


def test_the_second_time_comes_from_the_cache(log: list[str]) -> None:
    dataset = cubes().dataset()
    first = encode_dataset(MEAN, dataset, {})
    log.clear()
    second = encode_dataset(MEAN, dataset, {}, EncodeOptions(batch_size=3))
    assert log == []
    assert second.sha256 == first.sha256
    encode_dataset(MEAN, dataset, {}, EncodeOptions(cached=False))
    assert log[0] == "fit"


CHANGES: dict[str, tuple[Method, Dataset, dict[str, Any]]] = {
    "method version": (Method(id="mean", encoder=make, params={"scale": 1.0}, version=2), cubes().dataset(), {}),
    "method": (Method(id="mean2", encoder=make, params={"scale": 1.0}), cubes().dataset(), {}),
    "params": (MEAN, cubes().dataset(), {"scale": 2.0}),
    "source version": (MEAN, cubes(version="2").dataset(), {}),
    "dataset version": (MEAN, Dataset(id="tiny", cubes=cubes, version=2), {}),
    "dataset": (MEAN, cubes().dataset("other"), {}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_may_change_the_values_is_in_the_key(what: str, log: list[str]) -> None:
    encode_dataset(MEAN, cubes().dataset(), {})
    log.clear()
    method, dataset, params = CHANGES[what]
    encode_dataset(method, dataset, params)
    assert log[0] == "fit"


def test_an_encoder_without_a_file_is_not_cached(log: list[str]) -> None:
    namespace: dict[str, Any] = {"Mean": Mean, "__name__": "typed_in"}
    exec("def make():\n    return Mean()", namespace)
    method = Method(id="typed", encoder=namespace["make"])
    for _ in range(2):
        encode_dataset(method, cubes().dataset(), {})
    assert log.count("fit") == 2


def test_an_interrupted_run_is_continued_and_leaves_nothing_but_the_result(tmp_path: Path, log: list[str]) -> None:
    source = cubes(CHUNK + 20)
    stop = source.ids()[CHUNK + 5]

    class Stopping(TinyCubes):
        def read(self, ids: Sequence[str]) -> CubeBatch:
            if stop in ids:
                raise KeyboardInterrupt
            return super().read(ids)

    stopping = Stopping(CHUNK + 20, LANDSAT_BANDS, ("scene",), 4)
    with pytest.raises(KeyboardInterrupt):
        encode_dataset(MEAN, stopping.dataset(), {}, EncodeOptions(batch_size=64))
    log.clear()
    embeddings = encode_dataset(MEAN, source.dataset(), {}, EncodeOptions(batch_size=10))
    assert [path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [".npz"]
    # Eight of them are encoded again.
    assert log == [
        "fit",
        "encode 10",
        "encode 10",
        "encode 8",
    ]  # the first chunk was there; another batch size does not matter
    assert embeddings.sha256 == encode_dataset(MEAN, source.dataset(), {}, EncodeOptions(cached=False)).sha256


def give(value: Any) -> Any:
    class Odd:
        def encode(self, batch: CubeBatch) -> Any:
            if isinstance(value, Exception):
                raise value
            return value

    return lambda: Odd()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((10, 2, 2), np.float32), r"expected numbers \(10, dim\), got float32 \(10, 2, 2\)"),
        (np.zeros((9, 2), np.float32), r"got float32 \(9, 2\)"),
        (np.zeros((10, 2), "U1"), "expected numbers"),
        (np.zeros((10, 1025), np.float32), "expected 1 to 1024 values, got 1025"),
        (np.full((10, 2), np.nan), r"non-finite values for 10 samples \(.* and 5 more\)"),
        (ZeroDivisionError("oops"), "its encoder failed with ZeroDivisionError: oops"),
    ],
)
def test_an_encoder_that_gives_nonsense_is_named(value: Any, message: str) -> None:
    with pytest.raises(NeucoError, match=message) as caught:
        encode_dataset(Method(id="odd", encoder=give(value)), cubes().dataset(), {}, EncodeOptions(cached=False))
    assert "method 'odd'" in str(caught.value)
    assert isinstance(caught.value, PluginError | DataError)


WIDE = Method(id="wide", encoder=make, bands=tuple(f"s2l1c/B{i:02d}" for i in range(1, 14)))
NEEDY = Method(id="needy", encoder=make, requires=("no-such-package>=2",))


@pytest.mark.parametrize(
    ("method", "dataset", "params", "error", "message"),
    [
        (MEAN, Dataset(id="bare"), {}, DataError, "'bare' has no cubes, so the encoder 'mean' cannot be run on it"),
        (MEAN, cubes(0).dataset(), {}, DataError, "no sample"),
        (WIDE, None, {}, DataError, r"needs 13 bands and dataset 'tiny' has 6: 13 are .*B01, .*B05 and 8 more"),
        (Method(id="radar", encoder=make, bands=("s1",)), None, {}, DataError, "needs 1 bands"),
        (NEEDY, None, {}, DependencyError, "needs the package no-such-package.*pip install 'no-such-package>=2'"),
        (MEAN, None, {"depth": 3}, UsageError, "method 'mean' has no parameter depth; it has: scale"),
        (MEAN, None, {"scale": "big"}, UsageError, "bad parameter scale of method .*; expected a number, got 'big'"),
        (MEAN, None, {"scale": True}, UsageError, "expected a number, got True"),
    ],
)
def test_what_cannot_be_encoded_says_why(
    method: Method, dataset: Dataset | None, params: dict[str, Any], error: type[NeucoError], message: str
) -> None:
    with pytest.raises(error, match=message):
        encode_dataset(method, dataset or cubes().dataset(), params)


def test_bands_by_name_and_modality_and_a_whole_number_for_a_number_will_do() -> None:
    method = Method(id="etm", encoder=make, params={"scale": 1.0}, bands=("etm", "etm/B3"))
    assert len(encode_dataset(method, cubes().dataset(), {"scale": 2})) == 10


def test_cubes_are_not_read_for_a_method_that_does_not_look_at_them() -> None:
    class Closed(TinyCubes):
        def read(self, ids: Sequence[str]) -> CubeBatch:
            raise AssertionError("read")

    from neuco_methods.random import make_encoder

    method = Method(id="blind", encoder=make_encoder)
    assert encode_dataset(method, Closed(3).dataset(), {}).values.shape == (3, 1024)


class Drifting(Mean):
    def encode(self, batch: CubeBatch) -> np.ndarray:
        return super().encode(batch) - np.float32(batch.values.mean())


class Naming(Mean):
    def encode(self, batch: CubeBatch) -> np.ndarray:
        return super().encode(batch) + np.float32([[len(name)] for name in batch.ids])


def test_the_check_finds_an_encoder_that_goes_by_names_or_depends_on_the_batch() -> None:
    for encoder, message in ((Naming, "when the samples have other names"), (Drifting, "another batch size")):
        with pytest.raises(PluginError, match=message):
            check_encoder(encoder, cubes())
    assert check_encoder(Naming, cubes(), uses_ids=True).shape == (10, 6)
    assert check_encoder(Mean, cubes()).shape == (10, 6)


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
