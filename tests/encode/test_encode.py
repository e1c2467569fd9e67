"""From a method to embeddings: the cache, an interrupted run, and wrong uses in one clear line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.encode.run import CHUNK, EncodeOptions, encode_dataset
from neuco_core.errors import DataError, DependencyError, NeucoError, PluginError, UsageError
from neuco_core.specs import Dataset, Method
from neuco_core.testing import LANDSAT_BANDS, TinyCubes, check_encoder
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
    assert sorted(log[1:]) == ["encode 2", "encode 4", "encode 4"]  # threads: the last batch may come before another


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


def test_an_interrupted_run_is_continued(log: list[str]) -> None:
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
    assert log == ["fit", "encode 10", "encode 10"]  # the first chunk was there; another batch size does not matter
    assert embeddings.sha256 == encode_dataset(MEAN, source.dataset(), {}, EncodeOptions(cached=False)).sha256


def test_a_damaged_cache_is_made_again(tmp_path: Path, log: list[str]) -> None:
    dataset = cubes().dataset()
    whole = encode_dataset(MEAN, dataset, {})
    (file,) = (tmp_path / "cache").rglob("*.npz")
    for damage in (b"", b"PK\x03\x04 nonsense", file.read_bytes()[:200]):
        file.write_bytes(damage)
        log.clear()
        assert encode_dataset(MEAN, dataset, {}).sha256 == whole.sha256
        assert log[0] == "fit"


def test_nothing_but_the_result_stays_in_the_cache(tmp_path: Path) -> None:
    encode_dataset(MEAN, cubes(CHUNK + 1).dataset(), {})
    assert [path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [".npz"]


def give(value: Any) -> Any:
    class Odd:
        def encode(self, batch: CubeBatch) -> Any:
            if isinstance(value, Exception):
                raise value
            return value

    return lambda: Odd()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros((10, 2, 2), np.float32), r"expected numbers \(10, dim\), got float32 \(10, 2, 2\)"),
        (np.zeros((9, 2), np.float32), r"got float32 \(9, 2\)"),
        (np.zeros((10, 2), "U1"), "expected numbers"),
        (np.zeros((10, 1025), np.float32), "expected 1 to 1024 values, got 1025"),
        (np.full((10, 2), np.nan), r"non-finite values for 10 samples \(.* and 5 more\)"),
        (ZeroDivisionError("oops"), "its encoder failed with ZeroDivisionError: oops"),
    ],
)
def test_an_encoder_that_gives_nonsense_is_named(value: Any, words: str) -> None:
    with pytest.raises(NeucoError, match=words) as caught:
        encode_dataset(Method(id="odd", encoder=give(value)), cubes().dataset(), {}, EncodeOptions(cached=False))
    assert "method 'odd'" in str(caught.value)
    assert isinstance(caught.value, PluginError | DataError)


def test_a_dataset_without_cubes() -> None:
    with pytest.raises(DataError, match=r"dataset 'bare' has no cubes, so the encoder 'mean' cannot be run on it"):
        encode_dataset(MEAN, Dataset(id="bare"), {})


def test_a_thirteen_band_method_on_six_bands() -> None:
    bands = tuple(f"s2l1c/B{i:02d}" for i in range(1, 14))
    method = Method(id="wide", encoder=make, bands=bands)
    words = r"'wide' needs 13 bands and dataset 'tiny' has 6: 13 are missing \(s2l1c/B01, .*B05 and 8 more\)"
    with pytest.raises(DataError, match=words):
        encode_dataset(method, cubes().dataset(), {})
    with pytest.raises(DataError, match="needs 1 bands"):
        encode_dataset(Method(id="radar", encoder=make, bands=("s1",)), cubes().dataset(), {})
    assert len(encode_dataset(Method(id="etm", encoder=make, bands=("etm", "etm/B3")), cubes().dataset(), {})) == 10


def test_a_missing_package_comes_with_the_command() -> None:
    method = Method(id="needy", encoder=make, requires=("no-such-package>=2",))
    with pytest.raises(DependencyError, match=r"needs the package no-such-package.*pip install 'no-such-package>=2'"):
        encode_dataset(method, cubes().dataset(), {})


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"depth": 3}, "method 'mean' has no parameter depth; it has: scale"),
        ({"scale": "big"}, "bad parameter scale of method 'mean'; expected a number, got 'big'"),
        ({"scale": True}, "expected a number, got True"),
    ],
)
def test_wrong_parameters(params: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        encode_dataset(MEAN, cubes().dataset(), params)


def test_a_whole_number_will_do_for_a_number() -> None:
    assert len(encode_dataset(MEAN, cubes().dataset(), {"scale": 2})) == 10


def test_no_samples_is_an_error() -> None:
    with pytest.raises(DataError, match="no sample"):
        encode_dataset(MEAN, cubes(0).dataset(), {})


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


def test_the_check_finds_an_encoder_that_goes_by_names() -> None:
    with pytest.raises(PluginError, match="when the samples have other names"):
        check_encoder(Naming, cubes())
    assert check_encoder(Naming, cubes(), uses_ids=True).shape == (10, 6)


def test_the_check_finds_an_encoder_that_depends_on_the_batch() -> None:
    with pytest.raises(PluginError, match="another batch size"):
        check_encoder(Drifting, cubes())
    assert check_encoder(Mean, cubes()).shape == (10, 6)
