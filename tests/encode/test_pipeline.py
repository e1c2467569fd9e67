"""Reading and encoding side by side: the same rows whatever the threads and batches, bounded memory, devices."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.contract.repeatability import apart, disagreement
from neuco_core.cubes.cubes import CubeBatch, CubeSource, Selection
from neuco_core.cubes.ssl4eo import SSL4EOCubes
from neuco_core.encode import device, encoding
from neuco_core.encode.encoding import Clock
from neuco_core.encode.run import EncodeOptions, encode_dataset
from neuco_core.errors import DataError, PluginError, UsageError
from neuco_core.plugins.catalog import load_method
from neuco_core.specs import Dataset, Method
from neuco_core.testing import TinyCubes, check_encoder
from neuco_tasks.ssl4eo_s12_downstream import fake
from tests.encode.mean import Mean, make
from tests.encode.networks import NETWORK, Network

SHAPES = [(1, 1), (1, 7), (2, 1), (2, 7), (2, 64)]


def embed(method: Method, source: CubeSource, **options: Any) -> np.ndarray:
    dataset = Dataset(id="tiny", bands=source.bands, seasons=source.seasons, cubes=lambda: source)
    return encode_dataset(method, dataset, {}, EncodeOptions(cached=False, progress=False, **options)).values


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cubes")
    fake.write_folder(root, count=15, files=(), side=24)
    return root


@pytest.mark.parametrize("name", ["averaging", "band_statistics", "mosaiks"])
def test_exact_encoders_give_the_same_bits_on_any_cores_and_batches(name: str, folder: Path) -> None:
    method = load_method(name)
    if "filters" in method.params:
        method = replace(method, params={**method.params, "filters": 16})  # 512 would take seconds
    whole = embed(method, SSL4EOCubes(folder), threads=1, batch_size=64)
    for threads, batch in SHAPES:
        assert np.array_equal(embed(method, SSL4EOCubes(folder), threads=threads, batch_size=batch), whole)


def test_a_network_stays_within_its_tolerance() -> None:
    whole = embed(NETWORK, TinyCubes(80), threads=1, batch_size=64)
    largest = max(apart(whole, embed(NETWORK, TinyCubes(80), threads=t, batch_size=b)) for t, b in SHAPES)
    assert largest <= NETWORK.tolerance
    assert np.array_equal(
        whole, embed(NETWORK, TinyCubes(80), threads=2, batch_size=64)
    )  # two runs alike: the same bits
    check_encoder(Network, tolerance=1e-4)


def test_a_network_that_depends_on_its_batch_is_found_out() -> None:
    with pytest.raises(PluginError, match=r"at most 0\.0001 of the spread, as declared, got different values: off by"):
        check_encoder(lambda: Network(training=True), tolerance=1e-4)


def test_agreement() -> None:
    values = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    moved = values + np.float32(1e-5)
    assert disagreement(values, moved, 0.0)
    assert not disagreement(values, moved, 1e-4)
    assert disagreement(values, moved, 1e-6)
    assert disagreement(values, values[:, :7], 0.5)


@contextmanager
def alone(lock: threading.Lock) -> Iterator[None]:
    assert lock.acquire(blocking=False), "called by two threads at once"
    try:
        yield
    finally:
        lock.release()


class Watched(TinyCubes):
    """Counts the samples that are in memory: read, and not yet encoded."""

    held = most = 0
    lock = threading.Lock()

    def read(self, ids: Sequence[str]) -> CubeBatch:
        with self.lock:
            Watched.held += len(ids)
            Watched.most = max(Watched.most, Watched.held)
        return super().read(ids)


class Releasing(Mean):
    parallel = True

    def encode(self, batch: CubeBatch) -> np.ndarray:
        with Watched.lock:
            Watched.held -= len(batch.ids)
        return super().encode(batch)


class Alone(Releasing):
    parallel = False
    inside = threading.Lock()

    def encode(self, batch: CubeBatch) -> np.ndarray:
        with alone(self.inside):
            return super().encode(batch)


@pytest.mark.parametrize(("encoder", "most"), [(Releasing, 3 + encoding.AHEAD), (Alone, 2 + encoding.AHEAD)])
def test_few_batches_are_in_memory_at_a_time_and_they_are_small(
    encoder: type[Releasing], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Watched(60)
    monkeypatch.setattr(encoding, "CPU_BYTES", 3 * 4 * 4 * 27 * 16 * 16)
    Watched.held, Watched.most, Mean.log = -1, 0, []  # -1: one sample is read to see how large it is
    rows = embed(Method(id="watched", encoder=encoder), source, threads=3, batch_size=64)
    assert max(int(words.split()[1]) for words in Mean.log if words != "fit") == 3
    assert Watched.most <= 3 * most
    assert np.allclose(rows, source.read(source.ids()).values.mean(axis=(1, 3, 4)), rtol=1e-5)


class Shy(TinyCubes):
    """Has one file, and cannot read at two places of it."""

    parallel = False
    inside = threading.Lock()

    def read(self, ids: Sequence[str]) -> CubeBatch:
        with alone(self.inside):
            return super().read(ids)


def test_a_source_may_ask_to_be_read_by_one_thread_at_a_time() -> None:
    expected = embed(Method(id="mean", encoder=make), TinyCubes(30))
    assert np.array_equal(embed(Method(id="mean", encoder=make), Shy(30), threads=4, batch_size=2), expected)
    some = Method(id="mean", encoder=make, bands=("s1",))
    assert embed(some, Shy(30), threads=4, batch_size=2).shape == (30, 2)


class Crowded(Mean):
    """Has memory for four samples."""

    error: type[Exception] = MemoryError

    def encode(self, batch: CubeBatch) -> np.ndarray:
        if len(batch.ids) > 4:
            raise self.error("CUDA out of memory. Tried to allocate 20.00 MiB")
        return super().encode(batch)


def test_out_of_memory_halves_the_batch(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    import torch

    for error in (MemoryError, torch.OutOfMemoryError, RuntimeError):
        monkeypatch.setattr(Crowded, "error", error)
        Mean.log = []
        rows = embed(Method(id="crowded", encoder=Crowded), TinyCubes(40), threads=1, batch_size=16)
        assert np.array_equal(rows, embed(Method(id="mean", encoder=make), TinyCubes(40)))
        assert max(int(words.split()[1]) for words in Mean.log[:11] if words != "fit") == 4
    assert "out of memory with 16 samples at once: going on with half" in caplog.text
    monkeypatch.setattr(Crowded, "error", ValueError)
    with pytest.raises(PluginError, match="ValueError"):
        embed(Method(id="crowded", encoder=Crowded), TinyCubes(40), batch_size=16)


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device.choose_device(NETWORK) == "cpu"
    assert device.choose_device(load_method("averaging")) == "cpu"
    for wanted, words in (("cuda", "torch finds no device 'cuda' here; expected cpu"), ("tpu", "unknown device")):
        with pytest.raises(UsageError, match=words):
            device.choose_device(NETWORK, wanted)
    monkeypatch.setattr(device, "found_devices", lambda: ("cuda", "cpu"))
    assert device.choose_device(NETWORK) == "cuda"
    assert device.choose_device(NETWORK, "cuda:1") == "cuda:1"
    assert device.choose_device(load_method("averaging")) == "cpu"
    with pytest.raises(UsageError, match="runs on the CPU only: its numbers are exact"):
        device.choose_device(load_method("mosaiks"), "cuda")
    monkeypatch.setenv("NEUCO_DEVICE", "cpu")
    assert device.choose_device(NETWORK) == "cpu"


def test_an_encoder_is_moved_by_its_own_function() -> None:
    encoder = Network()
    encoder.fit(TinyCubes(2))
    assert (
        device.move(NETWORK, encoder, "meta", asked=True) == "meta"
    )  # shapes without numbers: what torch has on a CPU
    assert {str(part.device) for part in encoder.model.parameters()} == {"meta"}
    assert device.move(NETWORK, Mean(), "cuda", asked=False) == "cpu"
    with pytest.raises(UsageError, match=r"has no to\(device\)"):
        device.move(NETWORK, Mean(), "cuda", asked=True)


def test_precision_is_a_parameter_and_is_told() -> None:
    clock = Clock()
    rough = replace(NETWORK, params={**NETWORK.params, "precision": "bfloat16"})
    whole, rows = embed(NETWORK, TinyCubes(8)), embed(rough, TinyCubes(8), clock=clock)
    assert 1e-4 < apart(whole, rows) < 0.2
    assert (clock.made_with["device"], clock.made_with["precision"]) == ("cpu", "bfloat16")
    assert set(clock.made_with["packages"]) == {"numpy", "torch"}
    with pytest.raises(UsageError, match="bad parameter precision; expected one of float32, bfloat16, float16"):
        embed(replace(NETWORK, params={**NETWORK.params, "precision": "float8"}), TinyCubes(8))


def test_operations_of_a_network_are_those_of_a_sample_and_of_others_nobody_counts_any() -> None:
    clock, other, source = Clock(), Clock(), TinyCubes(8)
    assert np.array_equal(embed(NETWORK, source, clock=clock), embed(NETWORK, source))
    batch = source.read(source.ids()[:1])
    inner = (batch.size[0] - 2) * (batch.size[1] - 2)  # a convolution of 3 × 3, with 16 channels
    assert clock.made_with["flops"] == 2 * len(batch.seasons) * len(batch.bands) * 9 * 16 * inner
    embed(load_method("averaging"), source, clock=other)
    assert "flops" not in other.made_with


def test_only_what_a_method_names_is_read(folder: Path, tmp_path: Path) -> None:
    source = SSL4EOCubes(folder)
    for path in (folder / "data" / "s1").rglob("*.zip"):
        path.rename(tmp_path / path.name)  # listed already: whoever opens one now fails
        path.touch()
    whole = SSL4EOCubes(folder, modalities=("s2l1c", "s2l2a"))
    method = Method(id="some", encoder=make, bands=("s2l2a", "s2l1c/B04"), seasons=("fall", "spring"))
    expected = whole.read(source.ids()).select(["s2l1c/B04", "s2l2a"], ["spring", "fall"])
    assert np.array_equal(embed(method, source), expected.values.mean(axis=(1, 3, 4)))
    batch = Selection(source, method.bands, method.seasons).read(source.ids()[:2])
    assert (batch.bands, batch.seasons) == (expected.bands, ("spring", "fall"))
    assert batch.nbytes == 2 * 2 * 13 * 24 * 24 * 2  # 16-bit integers, as they are stored
    assert (batch.values.dtype, next(iter(batch.samples())).dtype) == (np.float32, np.float32)
    with pytest.raises(DataError, match="damaged cube"):
        embed(Method(id="all", encoder=make), source)
    with pytest.raises(DataError, match="needs the seasons monsoon"):
        embed(replace(method, seasons=("monsoon",)), source)
