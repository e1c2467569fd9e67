"""One image in a file: GeoTIFF, PNG, JPEG or NumPy's format, with its bands, its size and, if it has one, its place."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuco_core.env import how_to_install
from neuco_core.errors import DataError, DependencyError
from neuco_core.tables.limits import check_unpacked, load_array, readable

MODALITY = "image"  # of bands whose file names none
SCENE = "scene"  # the season of an image that has no seasons
MODES = {"L": ("grey",), "RGB": ("red", "green", "blue"), "RGBA": ("red", "green", "blue", "alpha")}


@dataclass(frozen=True)
class Place:
    """Where an image lies: its coordinate system, and the six numbers from (column, row) to coordinates, as GDAL's.

    x = t[0] + column · t[1] + row · t[2], y = t[3] + column · t[4] + row · t[5], of the corner of a pixel.
    """

    crs: str
    transform: tuple[float, ...]

    def __post_init__(self) -> None:
        numbers = self.transform
        if len(numbers) != 6 or not all(type(value) in (int, float) and math.isfinite(value) for value in numbers):
            raise DataError("bad georeference", expected="six finite numbers", got=repr(numbers))

    def centres(self, height: int, width: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The coordinates (x, y) of the pixels' centres; None of an image that is turned, which has no such axes."""
        left, across, skew, top, turn, down = self.transform
        if skew or turn:
            return None
        return left + across * (np.arange(width) + 0.5), top + down * (np.arange(height) + 0.5)


@dataclass(frozen=True)
class Image:
    """``values`` is (season, band, y, x) in the type of the file, the first row at the top."""

    values: np.ndarray
    bands: tuple[str, ...]
    place: Place | None = None


def read_image(path: Path) -> Image:
    """Read a file whole; whatever is wrong with it is one error that names it."""
    reader = READERS[path.suffix.lower()]
    with readable(path, "image"):
        image = reader(path)
    if image.values.dtype.kind not in "iuf" or not image.values.size:
        raise DataError("not an image of numbers", where=path, got=f"{image.values.dtype} {image.values.shape}")
    if image.values.dtype.kind == "f" and not (np.abs(image.values) <= np.finfo(np.float32).max).all():
        hint = "Replace them: no encoder can use them"
        raise DataError("an image with values that are not finite as float32", where=path, hint=hint)
    return image


def _tiff(path: Path) -> Image:
    try:
        import rasterio
        from rasterio.errors import NotGeoreferencedWarning
    except ImportError as error:
        raise DependencyError("GeoTIFF needs rasterio", where=path, hint=f"Run `{how_to_install('images')}`") from error
    # An image without a place is an ordinary one. Not in a context, which other threads would share.
    warnings.filterwarnings("ignore", category=NotGeoreferencedWarning)
    with rasterio.open(path, driver="GTiff") as file:
        itemsize = max(np.dtype(name).itemsize for name in file.dtypes)
        check_unpacked(file.count * file.height * file.width * itemsize, path)
        names = [str(name or "").strip() for name in file.descriptions]
        bands = names if all(names) and len(set(names)) == len(names) else [str(n + 1) for n in range(file.count)]
        crs = file.crs.to_string() if file.crs else ""
        place = Place(crs, tuple(map(float, file.transform.to_gdal()))) if crs else None
        return Image(file.read()[None], named(bands), place)


def _picture(path: Path) -> Image:
    """PNG and JPEG: colours by their names. A palette stands for colours, so these are what is kept."""
    import PIL.Image  # heavy: folders of GeoTIFF do without it

    with PIL.Image.open(path, formats=("PNG", "JPEG")) as file:
        check_unpacked(file.width * file.height * 4, path)
        if file.mode.startswith("I;16") or file.mode == "I":  # 16 bits of grey
            return Image(np.asarray(file).astype(np.uint16)[None, None], named(MODES["L"]))
        mode = {"1": "L", "P": "RGBA" if "transparency" in file.info else "RGB"}.get(file.mode, file.mode)
        if mode not in MODES:
            raise DataError("colours of a kind that is not read", where=path, expected=", ".join(MODES), got=file.mode)
        pixels = np.asarray(file if mode == file.mode else file.convert(mode))
    return Image(np.moveaxis(np.atleast_3d(pixels), 2, 0)[None], named(MODES[mode]))


def _array(path: Path) -> Image:
    """(y, x), (band, y, x) or (season, band, y, x)."""
    values = load_array(path.read_bytes(), path)
    if not 2 <= values.ndim <= 4:
        expected = "(y, x), (band, y, x) or (season, band, y, x)"
        raise DataError("an array of the wrong shape", where=path, expected=expected, got=values.shape)
    if values.ndim == 3 and values.shape[2] < min(values.shape[:2]):
        hint = "Save it with the bands first: np.moveaxis(array, -1, 0)"
        raise DataError("bands seem to come last", where=path, expected="(band, y, x)", got=values.shape, hint=hint)
    values = values.reshape((1,) * (4 - values.ndim) + values.shape)
    return Image(values, named([str(n + 1) for n in range(values.shape[1])]))


def named(bands: Sequence[str]) -> tuple[str, ...]:
    """Bands as ``modality/BAND``."""
    return tuple(band if "/" in band else f"{MODALITY}/{band}" for band in bands)


READERS: dict[str, Callable[[Path], Image]] = {
    ".tif": _tiff,
    ".tiff": _tiff,
    ".png": _picture,
    ".jpg": _picture,
    ".jpeg": _picture,
    ".npy": _array,
}
SUFFIXES = tuple(READERS)


def without_suffix(name: str) -> str:
    """An id without the suffix of an image file: ``x.tif`` → ``x``."""
    stem, dot, suffix = name.rpartition(".")
    return stem if stem and dot + suffix.lower() in READERS else name
