"""TerraMind: the bands of each satellite are an input of their own."""

from __future__ import annotations

from pathlib import Path

from neuco_core.errors import UsageError
from neuco_extensions.models.images import Images, numbers, words
from neuco_extensions.models.libraries import terratorch_network, terratorch_prefix
from neuco_extensions.models.network import NetworkEncoder

INPUTS = {"s2l2a": "S2L2A", "s2l1c": "S2L1C", "s1": "S1GRD"}  # of TerraMind, by modality of a cube


def terramind(
    backbone: str,
    checkpoint: Path,
    bands: str,
    mean: str,
    std: str,
    offset: float,
    size: int,
    view: str,
    pooling: str,
    seasons: str,
    merge: str,
) -> NetworkEncoder:
    images = inputs(words(bands), numbers(mean, "mean"), numbers(std, "std"), offset, size, view)
    options = {"modalities": list(images), "merge_method": merge}
    return NetworkEncoder(
        lambda: terratorch_network(backbone, checkpoint, **options),
        images,
        pooling=pooling,
        prefix=terratorch_prefix(backbone),
        seasons=seasons,
    )


def inputs(
    bands: tuple[str, ...], mean: tuple[float, ...], std: tuple[float, ...], offset: float, size: int, view: str
) -> dict[str, Images]:
    """The inputs by TerraMind's names, in the order of the bands; the offset is of Sentinel-2 alone."""
    if not len(bands) == len(mean) == len(std):
        got = f"{len(bands)} bands, {len(mean)} means, {len(std)} deviations"
        raise UsageError("bad parameters bands, mean and std", expected="as many of each", got=got)
    found: dict[str, Images] = {}
    for modality in dict.fromkeys(band.partition("/")[0] for band in bands):
        if modality not in INPUTS:
            raise UsageError("bad parameter bands", expected=f"bands of {', '.join(INPUTS)}", got=modality)
        rows = [row for row, band in enumerate(bands) if band.partition("/")[0] == modality]
        names, means, deviations = ([part[row] for row in rows] for part in (bands, mean, std))
        found[INPUTS[modality]] = Images(
            tuple(map(str, names)),
            offset=0.0 if modality == "s1" else offset,
            mean=tuple(map(float, means)),
            std=tuple(map(float, deviations)),
            size=size,
            view=view,
        )
    return found
