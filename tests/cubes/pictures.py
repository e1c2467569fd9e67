"""Folders of small images, as a user might have them; what their labels can be read from is in the pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

COUNT = 200
BANDS = ("B02", "B03", "B04", "B08")


def levels(count: int = COUNT) -> np.ndarray:
    """How bright each image is, from 0 to 1."""
    return np.random.default_rng(3).uniform(0, 1, count)


def pixels(place: int, level: float, bands: int, side: int) -> np.ndarray:
    """Grey noise around the level, and a gradient from top to bottom that is the same for all."""
    noise = np.random.default_rng(place).normal(0, 0.05, (bands, side, side))
    return np.asarray(0.2 + 0.5 * level + noise + np.linspace(0.2, 0, side)[:, None])


def write_tiffs(folder: Path, count: int = COUNT, side: int = 8) -> Path:
    """Compressed GeoTIFFs with named bands, each at its own place."""
    import rasterio
    from rasterio.transform import Affine

    folder.mkdir(parents=True)
    form = {"driver": "GTiff", "height": side, "width": side, "count": len(BANDS), "dtype": "uint16"}
    for place, level in enumerate(levels(count)):
        corner = Affine(10, 0, 500_000 + 80 * place, 0, -10, 4_600_000)
        path = folder / f"plot-{place:03d}.tif"
        with rasterio.open(path, "w", **form, crs="EPSG:32631", transform=corner, compress="lzw") as file:
            file.write((10_000 * pixels(place, level, len(BANDS), side)).clip(0, 65_535).astype("uint16"))
            file.descriptions = BANDS
    return folder


def write_pngs(folder: Path, count: int = COUNT, side: int = 8) -> Path:
    """Colour images in two folders."""
    from PIL import Image

    for place, level in enumerate(levels(count)):
        values = (255 * pixels(place, level, 3, side)).clip(0, 255).astype("uint8")
        path = folder / ("even" if place % 2 == 0 else "odd") / f"scene_{place:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.moveaxis(values, 0, 2)).save(path)
    return folder


def labels(folder: Path, suffix: str = "") -> str:
    """A table of labels for the images of a folder: brightness with some noise, a class and a group for each."""
    random = np.random.default_rng(9)
    names = sorted(path.stem for path in folder.rglob("*.*"))
    rows = ["id,label,class,stars,tile"]
    for place, (name, level) in enumerate(zip(names, levels(len(names)), strict=True)):
        kind = ("dark", "grey", "bright")[int(3 * level)]
        value = level + 0.1 * random.standard_normal()
        rows.append(f"{name}{suffix},{value:.4f},{kind},{1 + int(5 * level)},tile{place // 10}")
    return "\n".join(rows) + "\n"
