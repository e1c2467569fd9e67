"""Networks of the TerraTorch library that take several satellites at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method, Remote

S2 = ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B11", "B12")
BANDS = (*(f"s2l2a/{name}" for name in S2), "s1/VV", "s1/VH")
# Of TerraMind's pre-training, as TerraTorch 1.2.11 has them: Sentinel-2 L2A, then Sentinel-1 GRD.
MEAN = (
    "1390.458 1503.317 1718.197 1853.91 2199.1 2779.975 2987.011 3083.234 3132.22 3162.988 2424.884 1857.648 "
    "-12.599 -20.293"
)
STD = (
    "2106.761 2141.107 2038.973 2134.138 2085.321 1889.926 1820.257 1871.918 1753.829 1797.379 1434.261 1334.311 "
    "5.195 5.89"
)


def make_encoder(
    backbone: str,
    checkpoint: Path,
    bands: str,
    mean: str,
    std: str,
    offset: float = 0.0,
    size: int = 224,
    view: str = "whole",
    pooling: str = "mean",
    seasons: str = "post",
    merge: str = "mean",
) -> Any:
    from neuco_methods.terratorch.encoder import terramind

    return terramind(backbone, checkpoint, bands, mean, std, offset, size, view, pooling, seasons, merge)


@hookimpl
def neuco_methods() -> Iterator[Method]:
    for name, seasons, words in (
        ("terratorch_terramind_base", "post", "averaged over the seasons"),
        ("terratorch_terramind_base_pre", "pre", "of the seasons' mean image"),
    ):
        yield Method(
            id=name,
            title="TerraMind 1.0 base" + ("" if seasons == "post" else ", seasons averaged first"),
            description=f"Patch tokens of Sentinel-2 L2A and Sentinel-1 together, their mean over the image, {words}.",
            license="Apache-2.0",
            citation="Jakubik, J. et al. (2025): TerraMind: Large-Scale Generative Multimodality for Earth "
            "Observation, arXiv:2504.11171",
            tags=("pretrained", "sentinel-1", "sentinel-2"),
            encoder=make_encoder,
            params={
                "backbone": "terramind_v1_base",
                "bands": " ".join(BANDS),
                "mean": MEAN,
                "std": STD,
                "offset": 0.0,
                "size": 224,
                "view": "whole",
                "pooling": "mean",
                "seasons": seasons,
                "merge": "mean",
            },
            bands=BANDS,
            requires=("torch", "terratorch"),
            weights={"checkpoint": Remote("hf://ibm-esa-geospatial/TerraMind-1.0-base@main/TerraMind_v1_base.pt")},
            dim=768,
            tolerance=1e-4,
            pretraining=("TerraMesh", "SSL4EO-S12"),
            n_parameters=87_707_904,
            preprocessing="whole image at 224 pixels, TerraMind's own statistics",
        )
