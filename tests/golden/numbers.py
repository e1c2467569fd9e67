"""The numbers of every versioned component on small fixed inputs: ``python -m tests.golden.numbers`` checks them.

``golden.json`` keeps them by component and version. Whoever changes what a component gives raises its version where
it is defined, and adds its numbers with ``--write``; the old ones stay, so that it is seen what changed when.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.versions import PACKAGE, component_versions, versioned

if TYPE_CHECKING:
    from neuco_core.tables.embeddings import Embeddings

FILE = Path(__file__).with_name("golden.json")
# Sums may be reordered between processors; training in float32 multiplies the difference.
TOLERANCE = {"LinearProbe": 1e-4, "MLPProbe": 1e-3, "svm_probe": 1e-3, "score": 1e-4}


def components() -> dict[str, int]:
    """Every versioned component of neuco, found in the source."""
    found: dict[str, int] = {}
    # To parse those without the word takes two seconds, in each of the many processes that ask.
    paths = [path for path in PACKAGE.rglob("*.py") if versioned.__name__ in path.read_text(encoding="utf-8")]
    for path in sorted(paths):
        module = ".".join(("neuco_core", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        found |= component_versions(module)
    return found


def _problem(n: int = 90, dim: int = 6) -> tuple[Any, Any]:
    from neuco_core.tables.embeddings import make_embeddings

    random = np.random.RandomState(5)
    x = random.standard_normal((n, dim)).astype(np.float32) * 2 + 1
    y = x @ np.arange(1, dim + 1) + random.standard_normal(n)
    ids = [f"s{i}" for i in range(n)]
    return make_embeddings(ids, x), (ids, y)


def _labels(kind: str) -> Any:
    from neuco_core.tables.labels import labels_from_table

    ids, y = _problem()[1]
    values = y if kind == "regression" else (y > np.median(y)).astype(int)
    groups = [f"g{i % 9}" for i in range(len(ids))]
    table = {"id": ids, "label": [repr(float(v)) if kind == "regression" else str(v) for v in values], "g": groups}
    return labels_from_table(table, kind, task="golden", group_column="g")


def _scored(protocol: str) -> Callable[[], list[float]]:
    """The scores of a regression and of a classification under a protocol."""

    def numbers() -> list[float]:
        return [value for kind in ("regression", "classification") for value in _values(_problem()[0], kind, protocol)]

    return numbers


def _values(embeddings: Embeddings, kind: str, protocol: str) -> list[float]:
    from neuco_core.scoring.scorer import score

    found = score(embeddings, _labels(kind), protocol)
    return [*found.per_split, found.mean, found.std, found.q]


def _ridge(protocol: str) -> list[float]:
    """Also with features that are nearly constant: one sample carries the first, and the second has one far value."""
    from neuco_core.tables.embeddings import make_embeddings

    dense = _problem()[0]
    values = dense.values.astype(np.float64)
    values[:, 0], values[3, 0] = 0, 1
    values[5, 1] = 50
    rare = make_embeddings(dense.ids, values)
    return [*_scored(protocol)(), *_values(rare, "regression", protocol)]


def _metric(name: str) -> list[float]:
    from neuco_core.scoring import metrics

    random = np.random.RandomState(7)
    truth = random.standard_normal(40)
    if name == "strict_r2":  # with a wild label, which puts the others below the thresholds of r2
        truth = (truth - truth.min()) / 1e4
        near = truth + 2e-5 * random.standard_normal(40)
        return [metrics.strict_r2(truth, near), metrics.strict_r2(truth, truth), metrics.r2(truth, near)]
    if name in ("r2", "mse", "mae"):
        return [
            getattr(metrics, name)(truth, truth + 0.5 * random.standard_normal(40)),
            getattr(metrics, name)(truth, truth),
        ]
    if name == "kappa":
        grades = random.randint(1, 6, 40)
        return [metrics.kappa(grades, grades + random.standard_normal(40)), metrics.kappa(grades, grades)]
    if name in ("average_precision", "f1_macro", "f1_micro"):
        marks = (random.rand(60, 5) < 0.3).astype(float)
        return [getattr(metrics, name)(marks, np.round(0.4 * marks + 0.6 * random.rand(60, 5), 1))]
    values = []
    for classes in (2, 4):
        labels = random.randint(0, classes, 60)
        chances = random.dirichlet(np.ones(classes), 60) + 0.7 * np.eye(classes)[labels] * random.rand(60, 1)
        values.append(getattr(metrics, name)(labels, chances / chances.sum(axis=1, keepdims=True)))
    return values


def _splits(name: str) -> list[float]:
    from neuco_core.protocol import load_protocol
    from neuco_core.scoring import splits

    groups = np.array([("train", "test", "train")[i % 3] if name == "fixed" else f"g{i % 7}" for i in range(53)])
    found = getattr(splits, name)(53, load_protocol("neuco-2025+k=3"), groups)
    return [float(index) for part in found for side in part for index in side]


def _toolkit(name: str) -> list[float]:
    from neuco_core import encoders
    from neuco_core.testing import LANDSAT_BANDS, TinyCubes

    values = np.random.RandomState(3).rand(2, 3, 7, 6).astype(np.float32)
    tiny = TinyCubes(count=5, bands=LANDSAT_BANDS, seasons=("a", "b"), size=4)
    published = TinyCubes(count=2)
    numbers: dict[str, Callable[[], Any]] = {
        "region": lambda: [hash_of(encoders.region(band)) for band in (*published.bands, "etm/B4", "x/y")],
        "Standardizer": lambda: encoders.Standardizer(("a",) * 3, np.arange(3.0), np.arange(1, 4.0))(values),
        "fit_standardizer": lambda: [
            part
            for source in (tiny, published)
            for fit in [encoders.fit_standardizer(source)]
            for part in (fit.mean, fit.std)
        ],
        "spread_ids": lambda: [[sorted(tiny.ids()).index(sample) for sample in encoders.spread_ids(tiny, 3)]],
        "over_seasons": lambda: [
            encoders.over_seasons(values, mode, lambda images: images.mean(axis=(2, 3)) ** 2)
            for mode in ("pre", "post", "concat")
        ],
        "encode_each": lambda: encoders.encode_each(
            tiny.read(tiny.ids()), lambda one: one.mean(axis=(2, 3)).reshape(-1)
        ),
        "bilinear": lambda: [encoders.bilinear(7, 3), encoders.bilinear(3, 8)],
        "bilinear_points": lambda: [*encoders.bilinear_points(7, 3), *encoders.bilinear_points(3, 8)],
        "resize": lambda: encoders.resize(values, 3, 4),
        "shrink": lambda: encoders.shrink(values, 3),
    }
    found = numbers[name]()
    return [float(number) for part in (found if isinstance(found, list) else [found]) for number in np.ravel(part)]


def hash_of(text: str) -> float:
    return float(sum(place * ord(char) for place, char in enumerate(text, 1)))


def _encoded() -> list[float]:
    from neuco_core.encode.run import EncodeOptions, encode_dataset
    from neuco_core.specs import Method
    from neuco_core.testing import TinyCubes

    class Mean:
        def encode(self, batch: Any) -> np.ndarray:
            return np.asarray(batch.values.mean(axis=(1, 3, 4)))

    method = Method(id="mean", encoder=Mean)
    found = encode_dataset(method, TinyCubes(count=3).dataset(), {}, EncodeOptions(progress=False, cached=False))
    return [float(value) for value in found.values.ravel()]


def _network() -> list[float]:
    """A small network with every view, pooling, reduction and treatment of seasons."""
    from neuco_core.encode.encoder import one_thread
    from neuco_core.testing import TinyCubes
    from neuco_extensions.models.images import Images
    from neuco_extensions.models.network import NetworkEncoder

    tiny, found = TinyCubes(count=2, bands=("s1/VV", "s1/VH"), seasons=("a", "b"), size=9), []
    images = {view: Images(("s1",), 2.0, 1.0, (-10.0, -20.0), (5.0,), 6, view) for view in ("whole", "tiles", "crop")}
    images["native"] = Images(("s1/VH", "s1/VV"), view="native")
    for number, part in enumerate(images.values()):
        options = {
            "pooling": ("mean", "max")[number % 2],
            "seasons": ("post", "pre", "concat", "post")[number],
            "reduction": ("average", "project")[number // 2],
        }
        encoder = NetworkEncoder(_convolution, part, dim=4, **options)
        with one_thread():
            encoder.fit(tiny)
            found += encoder.encode(tiny.read(tiny.ids())).ravel().tolist()
    return found


def _convolution(channels: int = 2) -> Any:
    import torch

    layer = torch.nn.Conv2d(channels, 7, 3)
    random = np.random.RandomState(11)
    with torch.no_grad():
        for part in layer.parameters():
            part.copy_(torch.from_numpy(random.standard_normal(part.shape).astype(np.float32)))
    return layer


def _torchgeo() -> list[float]:
    """An encoder of TorchGeo's table, with a small network in the place of its own."""
    import tempfile
    from unittest.mock import patch

    import torch

    from neuco_core.encode.encoder import one_thread
    from neuco_core.testing import TinyCubes
    from neuco_extensions.models.torchgeo import find_row, torchgeo_encoder

    tiny, row = TinyCubes(count=2, size=9), find_row("ResNet50_Weights.SENTINEL2_ALL_SOFTCON")
    with (
        tempfile.TemporaryDirectory() as folder,
        patch("neuco_extensions.models.torchgeo.bare_network", lambda row: _convolution(13)),
        one_thread(),
    ):
        file = Path(folder) / "weights.pth"
        torch.save(_convolution(13).state_dict(), file)
        encoder = torchgeo_encoder(checkpoint=file, **{**row.params(), "size": 6})
        encoder.fit(tiny)
        return list(encoder.encode(tiny.read(tiny.ids())).ravel().tolist())


def _ssl4eo() -> list[float]:
    """What is read of a folder in the published layout; each place in it has another value."""
    from tempfile import TemporaryDirectory

    from neuco_core.cubes.ssl4eo import SSL4EOCubes
    from neuco_tasks.ssl4eo_s12_downstream.fake import MODALITIES, write_zarr_zip

    with TemporaryDirectory() as folder:
        for place, (modality, bands) in enumerate(MODALITIES.items()):
            for sample in range(2):
                values = np.arange(4 * bands * 6, dtype="<f4").reshape(1, 4, bands, 2, 3) + 1000 * place + 0.5 * sample
                write_zarr_zip(Path(folder, "data", modality, f"part-{sample}", f"s{sample}.zarr.zip"), values)
        found = [SSL4EOCubes(folder), SSL4EOCubes(folder, 1000, ("s2l2a", "s1"), ("fall", "spring"))]
        read = [source.read(source.ids()).values.astype(np.float64) for source in found]
    weights = [np.arange(1, values[0].size + 1).reshape(values.shape[1:]) / values[0].size for values in read]
    return [float(number) for values, weight in zip(read, weights, strict=True) for number in _sums(values, weight)]


def _images(name: str) -> list[float]:
    """What is read of a folder of arrays, and of the archive that it is packed into."""
    import hashlib
    from tempfile import TemporaryDirectory

    from neuco_core.cubes.archive import ImageArchive, pack_images
    from neuco_core.cubes.folder import ImageFolder
    from neuco_core.specs import Remote

    found = []
    for kind in ("uint16", "int32", "float64"):
        with TemporaryDirectory() as folder:
            for sample in range(3):
                values = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5) + 1000 * sample
                np.save(Path(folder, f"s{sample}.npy"), values.astype(kind))
            source, out = ImageFolder(folder), Path(folder, "x.zip")
            pack_images(source, out)
            remote = Remote(out.as_uri(), sha256=hashlib.sha256(out.read_bytes()).hexdigest())
            archive = ImageArchive(remote, bands=source.bands, seasons=source.seasons)
            batch = (source if name == "ImageFolder" else archive).read(source.ids())
            found.append(batch.values.astype(np.float64))
    if not all(np.array_equal(found[0], other) for other in found[1:]):
        raise ValueError(f"{name} reads types of numbers differently")
    return _sums(found[0], np.arange(1, found[0][0].size + 1).reshape(found[0].shape[1:]) / found[0][0].size)


def _sums(values: np.ndarray, weight: np.ndarray) -> list[float]:
    """Few numbers that change when any of many does, or when two of them change places."""
    return [*(values * weight).sum(axis=(1, 2, 3, 4)), *values.sum(axis=(0, 1, 3, 4))]


def numbers_of(name: str) -> list[float]:
    """The numbers of one component; a new one needs an entry here."""
    probes = {
        "LinearProbe": "neuco-2025+epochs=4,k=3,lr=0.01",
        "MLPProbe": "mlp-1+epochs=2,k=2,width=8",
        "svm_probe": "svm+k=2",
        "score": "neuco-strict+epochs=3,k=3,lr=0.01",
    }
    if name == "RidgeProbe":
        return _ridge("ridge+k=3")
    if name in probes:
        return _scored(probes[name])()
    if name in ("shuffle", "group", "fixed"):
        return _splits(name)
    if name == "encode_dataset":
        return _encoded()
    if name == "NetworkEncoder":
        return _network()
    if name == "torchgeo_encoder":
        return _torchgeo()
    if name == "SSL4EOCubes":
        return _ssl4eo()
    if name in ("ImageFolder", "ImageArchive"):
        return _images(name)
    return _metric(name) if name in component_versions("neuco_core.scoring.metrics") else _toolkit(name)


def problem(name: str, version: int, golden: Mapping[str, Mapping[str, list[float]]]) -> str:
    """What is wrong with a component, in words; empty if it gives the numbers of its version."""
    expected = golden.get(name, {}).get(str(version))
    if expected is None:
        how = "add them with `python -m tests.golden.numbers --write`"
        return f"{name} has no golden numbers for version {version}: {how}"
    numbers = numbers_of(name)
    limit = TOLERANCE.get(name, 1e-6)
    if len(numbers) == len(expected) and np.allclose(numbers, expected, rtol=limit, atol=limit):
        return ""
    return (
        f"{name} gives other numbers than its version {version} did. If that is meant, raise it to "
        f"@versioned({version + 1}), so that the records made with it become stale, and add the new numbers"
    )


def main(arguments: list[str]) -> int:
    golden: dict[str, dict[str, list[float]]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    chosen = {
        name: version
        for name, version in components().items()
        if name in arguments or len(arguments) < 1 or arguments == ["--write"]
    }
    if arguments == ["--write"]:
        for name, version in chosen.items():
            golden.setdefault(name, {}).setdefault(str(version), [round(number, 9) for number in numbers_of(name)])
        lines = [f"{json.dumps(name)}: {json.dumps(golden[name])}" for name in sorted(golden)]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    found = [text for name, version in chosen.items() if (text := problem(name, version, golden))]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
