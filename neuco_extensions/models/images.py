"""From digital numbers to what a network was trained on: bands in order, scale, statistics, resolution, view.

All of it is in a method's parameters, and so in every record: wrong statistics or a crop move scores by points and
leave no other trace.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuco_core.errors import UsageError

VIEWS = ("whole", "tiles", "crop", "native")
CROP = 7 / 8  # of the width that stays, as usual for networks of photographs: 224 of 256 pixels

# By band of Sentinel-2 and Sentinel-1: its central wavelength in µm, as DOFA wants it (ESA's nominal ones; for radar it
# takes 5.405), and its name in TerraTorch.
BANDS: Mapping[str, tuple[float, str]] = {
    "B01": (0.443, "COASTAL_AEROSOL"),
    "B02": (0.49, "BLUE"),
    "B03": (0.56, "GREEN"),
    "B04": (0.665, "RED"),
    "B05": (0.705, "RED_EDGE_1"),
    "B06": (0.74, "RED_EDGE_2"),
    "B07": (0.783, "RED_EDGE_3"),
    "B08": (0.842, "NIR_BROAD"),
    "B8A": (0.865, "NIR_NARROW"),
    "B09": (0.945, "WATER_VAPOR"),
    "B10": (1.375, "CIRRUS"),
    "B11": (1.61, "SWIR_1"),
    "B12": (2.19, "SWIR_2"),
    "VV": (5.405, "VV"),
    "VH": (5.405, "VH"),
}


@dataclass(frozen=True)
class Images:
    """``((x + offset) / scale - mean) / std`` of some bands, seen at ``size`` × ``size`` pixels.

    ``bands`` are names or whole modalities, in the network's order; ``mean`` and ``std`` have one number for all of
    them or one for each. A ``view`` is the ``whole`` image resized, the average over ``tiles`` that cover it at its own
    resolution, the central ``crop`` that the image networks of most libraries take (it leaves a quarter of the image
    out), or ``native``: the image as it is.
    """

    bands: tuple[str, ...]
    scale: float = 1.0
    offset: float = 0.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    size: int = 224
    view: str = "whole"

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("bands", bool(self.bands), "at least one band or modality"),
            ("scale", math.isfinite(self.scale) and self.scale != 0, "a number other than 0"),
            ("offset", math.isfinite(self.offset), "a number"),
            ("mean", bool(self.mean) and all(map(math.isfinite, self.mean)), "numbers"),
            ("std", bool(self.std) and all(math.isfinite(part) and part > 0 for part in self.std), "numbers above 0"),
            ("size", self.size >= 1, "at least 1"),
            ("view", self.view in VIEWS, "one of " + ", ".join(VIEWS)),
        ):
            if not good:
                raise UsageError(f"bad parameter {name}", expected=expected, got=repr(getattr(self, name)))

    def check(self, count: int) -> None:
        """Raise unless there are statistics for so many bands."""
        for name in ("mean", "std"):
            given = len(getattr(self, name))
            if given not in (1, count):
                raise UsageError(
                    f"bad parameter {name}", expected=f"1 or {count} numbers, one for each band", got=given
                )

    def prepare(self, images: Any) -> tuple[Any, int]:
        """A tensor (image, band, y, x) of digital numbers: what the network sees, and how many views of each image."""
        import torch

        views = self._views(images.float())
        count = len(views) // max(len(images), 1)
        mean, std = (torch.tensor(part, device=views.device).reshape(-1, 1, 1) for part in (self.mean, self.std))
        return ((views + self.offset) / self.scale - mean) / std, count

    def _views(self, images: Any) -> Any:
        import torch

        if self.view == "native":
            return images
        if self.view == "whole":
            return resized(images, self.size)
        if self.view == "crop":
            wide = resized(images, round(self.size / CROP))
            start = (wide.shape[-1] - self.size) // 2
            return wide[..., start : start + self.size, start : start + self.size]
        if min(images.shape[-2:]) < self.size:
            images = resized(images, self.size)
        height, width = images.shape[-2:]
        tiles = [
            images[..., top : top + self.size, left : left + self.size]
            for top in tile_starts(height, self.size)
            for left in tile_starts(width, self.size)
        ]
        return torch.stack(tiles, dim=1).flatten(0, 1)


def resized(images: Any, size: int) -> Any:
    """Bilinear with antialiasing, pixel centres on pixel centres: what torchvision's ``Resize`` does to a tensor."""
    import torch

    if images.shape[-2:] == (size, size):
        return images
    return torch.nn.functional.interpolate(images, (size, size), mode="bilinear", antialias=True)


def tile_starts(length: int, size: int) -> list[int]:
    """Where as few tiles as can cover a line begin, evenly spaced: two of 224 on 264 pixels begin at 0 and 40."""
    count = math.ceil(length / size)
    return [round(step * (length - size) / max(count - 1, 1)) for step in range(count)]


def words(text: str) -> tuple[str, ...]:
    """Parameters are plain values: several of them stand in one text, with blanks between."""
    return tuple(text.split())


def numbers(text: str, name: str) -> tuple[float, ...]:
    """``"0.485 0.456 0.406"`` as numbers."""
    try:
        return tuple(float(word) for word in text.split())
    except ValueError as error:
        raise UsageError(f"bad parameter {name}", expected="numbers with blanks between", got=repr(text)) from error


def joined(values: Sequence[object]) -> str:
    """The text of several values, which ``words`` and ``numbers`` read."""
    return " ".join(
        f"{value:g}" if isinstance(value, float) and value == float(f"{value:g}") else str(value) for value in values
    )
