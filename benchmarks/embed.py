"""How fast cubes of the true size are read and encoded, beside unpacking alone and a DataLoader.

    python benchmarks/embed.py     # 200 samples with zlib and with blosc; some minutes, 1 GB of disk

Each row is a process of its own and the median of some rounds, in which all kinds take turns. The cubes are made: slow
waves and noise that shrink to three quarters, as measured on the real ones. A few are written, the others are links to
them, so all reading is from memory and tells what the processor costs. Networks have random weights.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
MODALITIES = {"s1": 2, "s2l1c": 13, "s2l2a": 12}
SIDE, DISTINCT = 264, 8
# Kind → the part of the samples that it is run on: what takes a second each needs no 200.
KINDS = {
    "unpack": 1.0,
    "read": 1.0,
    "averaging": 1.0,
    "loader+averaging": 1.0,
    "unpack s2l2a": 1.0,
    "read s2l2a": 1.0,
    "vit": 0.1,
    "loader+vit": 0.1,
    "mosaiks": 0.1,
}


def write_cubes(root: Path, codec: Any, count: int) -> None:
    for index in range(count):
        name = hashlib.sha256(f"made-{index}".encode()).hexdigest()
        for modality, bands in MODALITIES.items():
            folder = root / "data" / modality / "part-000000"
            folder.mkdir(parents=True, exist_ok=True)
            if index < DISTINCT:
                _write(folder / f"{name}.zarr.zip", _made(index, modality, bands), codec)
            else:
                first = hashlib.sha256(f"made-{index % DISTINCT}".encode()).hexdigest()
                os.link(folder / f"{first}.zarr.zip", folder / f"{name}.zarr.zip")


def _made(index: int, modality: str, bands: int) -> np.ndarray:
    random = np.random.default_rng([index, bands])
    y, x = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    a = random.normal(size=(4, 1, 4, bands, 1, 1))
    waves = a[0] * np.sin(6 * x * a[1]) + a[2] * np.cos(7 * y * a[3])
    noise = random.standard_normal(waves.shape, np.float32)
    scaled = -12 + 4 * waves + 2 * noise if modality == "s1" else 1500 + 400 * waves + 150 * noise
    return np.asarray(scaled, "<f4" if modality == "s1" else "<i2")


def _write(path: Path, values: np.ndarray, codec: Any) -> None:
    words = {"chunks": [1, 1, *values.shape[2:]], "compressor": codec.get_config(), "dtype": values.dtype.str}
    words |= {"fill_value": 0, "filters": None, "order": "C", "shape": list(values.shape), "zarr_format": 2}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(".zgroup", '{"zarr_format": 2}')
        archive.writestr("bands/.zarray", json.dumps(words))
        for season in range(4):
            data = bytes(codec.encode(np.ascontiguousarray(values[:, season : season + 1])))
            archive.writestr(f"bands/0.{season}.0.0.0", data)


def unpack(path: Path) -> int:
    """A file's values, and nothing done with them."""
    import numcodecs

    with zipfile.ZipFile(path) as archive:
        codec = numcodecs.get_codec(json.loads(archive.read("bands/.zarray"))["compressor"])
        return sum(memoryview(codec.decode(archive.read(f"bands/0.{season}.0.0.0"))).nbytes for season in range(4))


class Nothing:
    """An encoder that takes the samples and does nothing with them."""

    def encode(self, batch: Any) -> np.ndarray:
        return np.ones((len(batch.ids), 1), np.float32)


class Vit:
    """ViT-S/16 on 256 × 256 pixels of 12 bands: the mean of its tokens, over the seasons."""

    def __init__(self) -> None:
        import torch

        torch.manual_seed(0)
        self.patches = torch.nn.Conv2d(12, 384, 16, 16)
        layer = torch.nn.TransformerEncoderLayer(384, 6, 1536, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).eval()

    def encode(self, batch: Any) -> np.ndarray:
        return self.rows(batch.values)

    def rows(self, values: np.ndarray) -> np.ndarray:
        import torch

        with torch.inference_mode():
            images = torch.from_numpy(values[..., 4:-4, 4:-4] / np.float32(5000)).flatten(0, 1)
            tokens = self.layers(self.patches(images).flatten(2).transpose(1, 2))
            return np.asarray(tokens.mean(dim=1).reshape(len(values), -1, 384).mean(dim=1).numpy())


class Samples:
    """One sample of all modalities as float32, for a DataLoader: read with xarray's own library for zarr."""

    def __init__(self, root: Path, names: list[str], modalities: tuple[str, ...]) -> None:
        self.root, self.names, self.modalities = root, names, modalities

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> np.ndarray:
        from zarr import open_group
        from zarr.storage import ZipStore

        parts = []
        for modality in self.modalities:
            path = self.root / "data" / modality / "part-000000" / f"{self.names[index]}.zarr.zip"
            with ZipStore(str(path), mode="r") as store:
                group: Any = open_group(store, mode="r")
                parts.append(np.asarray(group["bands"][0], np.float32))
        return np.concatenate(parts, axis=1)


def loop(root: Path, count: int, modalities: tuple[str, ...], encode: Callable[[np.ndarray], Any]) -> None:
    """Read by a DataLoader with a process per core and encoded batch by batch, as NeuCo-Bench's script does."""
    import torch

    names = sorted(path.name.partition(".")[0] for path in (root / "data" / "s1").rglob("*.zip"))[:count]
    samples: Any = Samples(root, names, modalities)
    loader = torch.utils.data.DataLoader(samples, batch_size=8, num_workers=cores())
    for batch in loader:
        encode(batch.numpy())


def cores() -> int:
    return len(os.sched_getaffinity(0))


def measure(kind: str, root: Path, count: int) -> None:
    """Run one kind in this process and print seconds of wall and processor, and the peak of memory in MB."""
    from neuco_core.cubes.ssl4eo import SSL4EOCubes

    source = SSL4EOCubes(root)
    ids, modalities = source.ids()[:count], ("s2l2a",) if kind.endswith(("s2l2a", "vit")) else tuple(MODALITIES)
    paths = [source._find(modality, name) for name in ids for modality in modalities]
    work = _work(kind, source, root, paths, ids, modalities)
    start, before = time.perf_counter(), time.process_time()
    seconds = work() or time.perf_counter() - start
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = time.process_time() - before + children.ru_utime + children.ru_stime
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + children.ru_maxrss * (
        cores() if children.ru_maxrss else 0
    )
    print(json.dumps({"seconds": seconds, "cpu": used, "peak": peak / 1024, "samples": count}))


def _work(kind: str, source: Any, root: Path, paths: list[Path], ids: Any, modalities: tuple[str, ...]) -> Any:
    """What is to be timed, with everything imported and made before."""
    import numcodecs  # noqa: F401

    if kind.startswith("unpack"):
        pool = ThreadPoolExecutor(cores())

        def unpack_all() -> None:
            sum(pool.map(unpack, paths))

        return unpack_all
    import torch

    from neuco_core.encode.encoding import Clock, one_thread
    from neuco_core.encode.run import EncodeOptions, encode_dataset
    from neuco_core.plugins.catalog import load_method
    from neuco_core.specs import Dataset, Method

    if kind.startswith("loader"):
        torch.set_num_threads(cores())
        if kind.endswith("vit"):
            vit = Vit()
            return lambda: loop(root, len(ids), modalities, vit.rows)
        from neuco_core.cubes.cubes import CubeBatch

        encoder = load_method("averaging").encoder(**load_method("averaging").params)  # type: ignore[misc]
        encoder.fit(source)

        def encode(values: np.ndarray) -> Any:
            with one_thread():
                return encoder.encode(CubeBatch(("",) * len(values), values, source.bands, source.seasons))

        return lambda: loop(root, len(ids), modalities, encode)
    some = type("Some", (), {"__getattr__": lambda self, name: getattr(source, name), "ids": lambda self: ids})()
    some.version = "1"  # the directories of the files are not what is measured
    data = Dataset(id="made", bands=source.bands, seasons=source.seasons, cubes=lambda: some)
    torch_too = {"requires": ("torch",), "tolerance": 1e-4} if kind == "vit" else {}
    own = {"vit": Vit, "read": Nothing, "read s2l2a": Nothing}
    bands = modalities if len(modalities) == 1 else ()
    method = Method(id="x", encoder=own[kind], bands=bands, **torch_too) if kind in own else load_method(kind)
    clock = Clock()

    def work() -> float:
        encode_dataset(method, data, {}, EncodeOptions(cached=False, progress=False, clock=clock))
        return clock.seconds

    return work


def run(kind: str, root: Path, count: int) -> dict[str, float]:
    words = [sys.executable, __file__, "--child", kind, "--root", str(root), "--samples", str(count)]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{kind}: {done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def rows(root: Path, given: argparse.Namespace) -> Iterator[tuple[str, dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(given.rounds):
        for kind, part in KINDS.items():
            if kind not in given.skip:
                found.setdefault(kind, []).append(run(kind, root, max(8, int(given.samples * part))))
    for kind, values in found.items():
        yield kind, {name: statistics.median(value[name] for value in values) for name in values[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codec", nargs="*", default=["zlib", "blosc"])
    parser.add_argument("--skip", nargs="*", default=[], choices=list(KINDS))
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        measure(given.child, given.root, given.samples)
        return
    from numcodecs import Blosc, Zlib

    codecs = {"zlib": Zlib(1), "blosc": Blosc("lz4", 5, Blosc.SHUFFLE)}
    print(f"{cores()} cores, load {os.getloadavg()[0]:.1f}, {given.samples} samples, {given.rounds} rounds")
    for name in given.codec:
        with tempfile.TemporaryDirectory(prefix="neuco-embed-") as folder:
            write_cubes(Path(folder), codecs[name], given.samples)
            show(name, dict(rows(Path(folder), given)))


def show(codec: str, found: dict[str, dict[str, float]]) -> None:
    """Ratios are to unpacking the same files on all cores, by the clock and by the processor's time.

    The clock leaves out what an encoder learns first, the processor's time does not: for mosaiks look at the clock.
    """
    print(f"\n{codec:18}  samples/s  CPU s/sample  x unpacking (clock)  (CPU)  peak MB")
    for kind, row in found.items():
        base = found["unpack s2l2a" if kind.endswith(("s2l2a", "vit")) else "unpack"]
        count = row["samples"]
        wall, cpu = ((row[key] / count) / (base[key] / base["samples"]) for key in ("seconds", "cpu"))
        each = f"{count / row['seconds']:9.2f}  {row['cpu'] / count:12.3f}"
        print(f"{kind:18}  {each}  {wall:19.2f}  {cpu:5.2f}  {row['peak']:7.0f}")


if __name__ == "__main__":
    main()
