"""The numbers of every versioned component on small fixed inputs: ``python -m tests.golden.numbers`` checks them.

``golden.json`` keeps them by component and version. Whoever changes what a component gives raises its version where
it is defined, and adds its numbers with ``--write``; the old ones stay, so that it is seen what changed when.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from neuco_core import encoders
from neuco_core.cubes.archive import ImageArchive, pack_images
from neuco_core.cubes.folder import ImageFolder
from neuco_core.cubes.ssl4eo import SSL4EOCubes
from neuco_core.encode.encoding import one_thread
from neuco_core.encode.run import EncodeOptions, encode_dataset
from neuco_core.protocol import load_protocol
from neuco_core.scoring import metrics, spatial, splits
from neuco_core.scoring.scorer import score
from neuco_core.specs import Method, Remote
from neuco_core.tables.embeddings import Embeddings, make_embeddings
from neuco_core.tables.labels import Labels, labels_from_table
from neuco_core.tables.positions import Positions
from neuco_core.testing import LANDSAT_BANDS, TinyCubes
from neuco_core.versions import PACKAGE, parts_of, versioned
from neuco_tasks.ssl4eo_s12_downstream.fake import MODALITIES, write_zarr_zip

FILE = Path(__file__).with_name("golden.json")
WRITE = "python -m tests.golden.numbers --write"
# Sums may be reordered between processors; training in float32 multiplies the difference.
TOLERANCE = {
    "LinearProbe": 1e-4,
    "MLPProbe": 1e-3,
    "svm_probe": 1e-3,
    "logistic_probe": 1e-3,
    "FewShots": 1e-3,
    "score": 1e-4,
}


def components() -> dict[str, int]:
    """Every versioned component of neuco, found in the source."""
    versions: dict[str, int] = {}
    # To parse those without the word takes two seconds, in each of the many processes that ask.
    paths = [path for path in PACKAGE.rglob("*.py") if versioned.__name__ in path.read_text(encoding="utf-8")]
    for path in sorted(paths):
        module = ".".join(("neuco_core", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        versions |= parts_of(module).versions
    return versions


def _problem(kind: str) -> tuple[Embeddings, Labels]:
    random, count, dim = np.random.RandomState(5), 90, 6
    x = random.standard_normal((count, dim)).astype(np.float32) * 2 + 1
    y = x @ np.arange(1, dim + 1) + random.standard_normal(count)
    ids = [f"s{i}" for i in range(count)]
    texts = [repr(float(v)) for v in y] if kind == "regression" else [str(int(v > np.median(y))) for v in y]
    table = {"id": ids, "label": texts, "g": [f"g{i % 9}" for i in range(count)]}
    return make_embeddings(ids, x), labels_from_table(table, kind, task="golden", group_column="g")


def _values(embeddings: Embeddings, labels: Labels, protocol: str) -> list[float]:
    one = score(embeddings, labels, protocol)
    return [*one.per_split, one.mean, one.std, one.q]


def _scored(protocol: str) -> list[float]:
    """The scores of a regression and of a classification under a protocol."""
    return [value for kind in ("regression", "classification") for value in _values(*_problem(kind), protocol)]


def _ridge() -> list[float]:
    """Also with features that are nearly constant: one sample carries the first, and the second has one far value.

    And with rare classes: of 90 samples 12 and 20.
    """
    dense, labels = _problem("regression")
    values = dense.values.astype(np.float64)
    values[:, 0], values[3, 0] = 0, 1
    values[5, 1] = 50
    sparse = _values(make_embeddings(dense.ids, values), labels, "ridge+k=3")
    ranks = labels.values.argsort().argsort()
    three = replace(labels, kind="classification", values=np.searchsorted([12, 70], ranks, side="right").astype(float))
    return [*_scored("ridge+k=3"), *sparse, *_values(dense, three, "ridge+k=3")]


def _classes() -> tuple[Embeddings, Labels]:
    """Three classes, of which one has four samples."""
    embeddings, labels = _problem("regression")
    ranks = labels.values.argsort().argsort()
    values = np.searchsorted([4, 50], ranks, side="right").astype(float)
    return embeddings, replace(labels, kind="classification", values=values)


def _nearest() -> list[float]:
    weighted = _scored("knn+k=3,metric=l2,weights=distance")
    return [*_scored("knn+k=3"), *weighted, *_values(*_classes(), "knn+k=3,neighbors=2")]


def _shots() -> list[float]:
    return [*_scored("shots-5+k=3"), *_values(*_classes(), "shots-20+k=3")]


def _measured(*protocols: str) -> list[float]:
    """The scores of probes that predict no labels, and what else they measured."""
    found = [score(*_classes(), protocol) for protocol in protocols]
    return [value for one in found for row in (one.per_split, *one.metrics.values()) for value in row]


def _agreement() -> list[float]:
    random, _ = _drawn()
    return [metrics.v_measure(random.randint(0, 4, 60), random.rand(60, 3))]


def _drawn() -> tuple[np.random.RandomState, np.ndarray]:
    """What the inputs of all metrics are drawn from, and 40 numbers."""
    random = np.random.RandomState(7)
    return random, random.standard_normal(40)


def _regression_metric(name: str) -> list[float]:
    (random, truth), measure = _drawn(), getattr(metrics, name)
    return [measure(truth, truth + 0.5 * random.standard_normal(40)), measure(truth, truth)]


def _strict_r2() -> list[float]:
    """With a wild label, which puts the others below the thresholds of r2."""
    random, truth = _drawn()
    truth = (truth - truth.min()) / 1e4
    near = truth + 2e-5 * random.standard_normal(40)
    return [metrics.strict_r2(truth, near), metrics.strict_r2(truth, truth), metrics.r2(truth, near)]


def _kappa() -> list[float]:
    random, _ = _drawn()
    grades = random.randint(1, 6, 40)
    return [metrics.kappa(grades, grades + random.standard_normal(40)), metrics.kappa(grades, grades)]


def _multilabel_metric(name: str) -> list[float]:
    random, _ = _drawn()
    marks = (random.rand(60, 5) < 0.3).astype(float)
    return [getattr(metrics, name)(marks, np.round(0.4 * marks + 0.6 * random.rand(60, 5), 1))]


def _class_metric(name: str) -> list[float]:
    (random, _), values = _drawn(), []
    for classes in (2, 4):
        labels = random.randint(0, classes, 60)
        chances = random.dirichlet(np.ones(classes), 60) + 0.7 * np.eye(classes)[labels] * random.rand(60, 1)
        values.append(getattr(metrics, name)(labels, chances / chances.sum(axis=1, keepdims=True)))
    return values


def _splits(name: str) -> Iterable[np.ndarray]:
    """Those by group also with samples that are near another group."""
    parts = [("train", "test", "train")[i % 3] if name == "fixed" else f"g{i % 7}" for i in range(53)]
    near = [[f"{part}|g{i % 5}" for i, part in enumerate(parts)]] if "group" in name else []
    rules = load_protocol("neuco-2025+k=3")
    each = [split for groups in (parts, *near) for split in getattr(splits, name)(53, rules, np.array(groups))]
    return [side for split in each for side in split]


def _places(splitter: str) -> Iterable[np.ndarray]:
    """Splits by place of samples in a scene, and of others around the antimeridian and a pole."""
    random, sides = np.random.RandomState(9), []
    scene = random.uniform(0, 10, (53, 2))
    for places, rules in ((scene, ""), (scene * [36, 9] + [-180, 0], "km")):
        positions = Positions(places, on_earth=bool(rules))
        lengths = {"size": f"{2000 if rules else 3}{rules}", "margin": 0, "r": f"{500 if rules else 1}{rules}"}
        protocol = replace(load_protocol("ridge+k=3"), params={**lengths, "regions": 4})
        sides += [side for split in getattr(spatial, splitter)(53, protocol, None, positions) for side in split]
    return sides


IMAGES = np.random.RandomState(3).rand(2, 3, 7, 6).astype(np.float32)
TINY = TinyCubes(count=5, bands=LANDSAT_BANDS, seasons=("a", "b"), size=4)
PUBLISHED = TinyCubes(count=2)


def _regions() -> list[float]:
    names = [encoders.region(band) for band in (*PUBLISHED.bands, "etm/B4", "x/y")]
    return [float(sum(position * ord(char) for position, char in enumerate(name, 1))) for name in names]


def _fit_standardizer() -> list[np.ndarray]:
    fits = [encoders.fit_standardizer(source) for source in (TINY, PUBLISHED)]
    return [part for fit in fits for part in (fit.mean, fit.std)]


def _over_seasons() -> list[np.ndarray]:
    modes = ("pre", "post", "concat")
    return [encoders.over_seasons(IMAGES, mode, lambda images: images.mean(axis=(2, 3)) ** 2) for mode in modes]


class Mean:
    def encode(self, batch: Any) -> np.ndarray:
        return np.asarray(batch.values.mean(axis=(1, 3, 4)))


def _encoded() -> np.ndarray:
    options = EncodeOptions(progress=False, cached=False)
    return encode_dataset(Method(id="mean", encoder=Mean), TinyCubes(count=3).dataset(), {}, options).values


def _network() -> list[float]:
    """A small network with every view, pooling, reduction and treatment of seasons."""
    from neuco_extensions.models.images import Images
    from neuco_extensions.models.network import NetworkEncoder

    tiny, rows = TinyCubes(count=2, bands=("s1/VV", "s1/VH"), seasons=("a", "b"), size=9), []
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
            rows += encoder.encode(tiny.read(tiny.ids())).ravel().tolist()
    return rows


def _convolution(channels: int = 2) -> Any:
    import torch

    layer = torch.nn.Conv2d(channels, 7, 3)
    random = np.random.RandomState(11)
    with torch.no_grad():
        for part in layer.parameters():
            part.copy_(torch.from_numpy(random.standard_normal(part.shape).astype(np.float32)))
    return layer


def _torchgeo() -> np.ndarray:
    """An encoder of TorchGeo's table, with a small network in the place of its own."""
    import torch

    from neuco_extensions.models.torchgeo import find_row, torchgeo_encoder

    tiny, row = TinyCubes(count=2, size=9), find_row("ResNet50_Weights.SENTINEL2_ALL_SOFTCON")
    with (
        TemporaryDirectory() as folder,
        patch("neuco_extensions.models.torchgeo.bare_network", lambda row: _convolution(13)),
        one_thread(),
    ):
        file = Path(folder) / "weights.pth"
        torch.save(_convolution(13).state_dict(), file)
        encoder = torchgeo_encoder(checkpoint=file, **{**row.params(), "size": 6})
        encoder.fit(tiny)
        return encoder.encode(tiny.read(tiny.ids()))


def _ssl4eo() -> list[float]:
    """What is read of a folder in the published layout; each place in it has another value."""
    with TemporaryDirectory() as folder:
        for layer, (modality, bands) in enumerate(MODALITIES.items()):
            for sample in range(2):
                values = np.arange(4 * bands * 6, dtype="<f4").reshape(1, 4, bands, 2, 3) + 1000 * layer + 0.5 * sample
                write_zarr_zip(Path(folder, "data", modality, f"part-{sample}", f"s{sample}.zarr.zip"), values)
        sources = [SSL4EOCubes(folder), SSL4EOCubes(folder, 1000, ("s2l2a", "s1"), ("fall", "spring"))]
        read = [source.read(source.ids()).values.astype(np.float64) for source in sources]
    return [number for values in read for number in _sums(values)]


def _images(name: str) -> list[float]:
    """What is read of a folder of arrays, and of the archive that it is packed into."""
    read = []
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
            read.append(batch.values.astype(np.float64))
    if not all(np.array_equal(read[0], other) for other in read[1:]):
        raise ValueError(f"{name} reads types of numbers differently")
    return _sums(read[0])


def _sums(values: np.ndarray) -> list[float]:
    """Few numbers that change when any of many does, or when two of them change places."""
    weight = np.arange(1, values[0].size + 1).reshape(values.shape[1:]) / values[0].size
    return [*(values * weight).sum(axis=(1, 2, 3, 4)), *values.sum(axis=(0, 1, 3, 4))]


# Component → its numbers, of which lists of arrays are laid end to end; a new component needs an entry here.
NUMBERS: dict[str, Callable[[], Any]] = {
    "LinearProbe": partial(_scored, "neuco-2025+epochs=4,k=3,lr=0.01"),
    "MLPProbe": partial(_scored, "mlp-1+epochs=2,k=2,width=8"),
    "svm_probe": partial(_scored, "svm+k=2"),
    "NearestNeighbors": _nearest,
    "logistic_probe": lambda: [
        value for each in (_problem("classification"), _classes()) for value in _values(*each, "logistic+k=2")
    ],
    "FewShots": _shots,
    "Retrieval": partial(_measured, "retrieval+k=3", "retrieval+k=3,metric=l2,at=3,positives=2"),
    "Clustering": partial(_measured, "clustering+k=3"),
    "v_measure": _agreement,
    "score": partial(_scored, "neuco-strict+epochs=3,k=3,lr=0.01"),
    "RidgeProbe": _ridge,
    **{name: partial(_splits, name) for name in ("shuffle", "group", "each_group", "fixed")},
    **{name: partial(_places, name) for name in ("block_splits", "buffer_splits", "region_splits")},
    **{name: partial(_regression_metric, name) for name in ("r2", "mse", "mae")},
    **{name: partial(_class_metric, name) for name in ("accuracy", "f1", "precision", "recall", "roc_auc")},
    **{
        name: partial(_multilabel_metric, name)
        for name in ("average_precision", "f1_macro", "f1_micro", "mean_average_precision")
    },
    "strict_r2": _strict_r2,
    "kappa": _kappa,
    "region": _regions,
    "Standardizer": lambda: encoders.Standardizer(("a",) * 3, np.arange(3.0), np.arange(1, 4.0))(IMAGES),
    "fit_standardizer": _fit_standardizer,
    "spread_ids": lambda: [sorted(TINY.ids()).index(sample) for sample in encoders.spread_ids(TINY, 3)],
    "over_seasons": _over_seasons,
    "encode_each": lambda: encoders.encode_each(TINY.read(TINY.ids()), lambda one: one.mean(axis=(2, 3)).reshape(-1)),
    "bilinear": lambda: [encoders.bilinear(7, 3), encoders.bilinear(3, 8)],
    "bilinear_points": lambda: [*encoders.bilinear_points(7, 3), *encoders.bilinear_points(3, 8)],
    "resize": lambda: encoders.resize(IMAGES, 3, 4),
    "shrink": lambda: encoders.shrink(IMAGES, 3),
    "encode_dataset": _encoded,
    "NetworkEncoder": _network,
    "torchgeo_encoder": _torchgeo,
    "SSL4EOCubes": _ssl4eo,
    **{name: partial(_images, name) for name in ("ImageFolder", "ImageArchive")},
}


def numbers_of(name: str) -> list[float]:
    """The numbers of one component."""
    made = NUMBERS[name]()
    parts = made if isinstance(made, list) else [made]
    return [float(number) for part in parts for number in np.ravel(part)]


def problem(name: str, version: int, golden: Mapping[str, Mapping[str, list[float]]]) -> str:
    """What is wrong with a component, in words; empty if it gives the numbers of its version."""
    expected = golden.get(name, {}).get(str(version))
    if expected is None:
        return f"{name} has no golden numbers for version {version}: add them with `{WRITE}`"
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
    every = arguments in ([], ["--write"])
    chosen = {name: version for name, version in components().items() if every or name in arguments}
    if arguments == ["--write"]:
        for name, version in chosen.items():
            golden.setdefault(name, {}).setdefault(str(version), [round(number, 9) for number in numbers_of(name)])
        lines = [f"{json.dumps(name)}: {json.dumps(golden[name])}" for name in sorted(golden)]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    problems = [text for name, version in chosen.items() if (text := problem(name, version, golden))]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
