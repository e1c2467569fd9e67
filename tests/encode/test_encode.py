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
    assert log == ["fit", "encode 10", "encode 10"]  # the first chunk was there; another batch size does not matter
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
