"""Write a small folder in the layout of SSL4EO-S12-downstream, for tests: made-up numbers, true names and shapes."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neuco_tasks.ssl4eo_s12_downstream.common import L1C, SEASONS

SIDE = 264
MODALITIES = {"s1": 2, "s2l1c": len(L1C), "s2l2a": len(L1C) - 1}
# Every label file of the dataset, with a hyphen in one spelling of the heat island and without it in the other.
FILES = (
    "biomass_mean__regr.csv",
    "biomass_std__regr.csv",
    "crops__regr.csv",
    "landcover_agriculture__regr.csv",
    "landcover_forest__regr.csv",
    "clouds_reg__regr.csv",
    "heat-island_mean__regr.csv",
    "heatisland_std__regr.csv",
    "nodata__regr.csv",
    "random_reg__regr.csv",
    "random_cls__cls.csv",
)


def sample_ids(count: int) -> list[str]:
    return [hashlib.sha256(f"fake-{index}".encode()).hexdigest() for index in range(count)]


def truth(index: int) -> float:
    """What the labels tell and the cubes show: from 0 to 1, without order."""
    return (index * 7 % 31) / 30.0


def write_folder(root: Path, count: int = 24, files: Sequence[str] = FILES, side: int = SIDE) -> list[str]:
    """Cubes and labels of some samples; gives their ids."""
    ids = sample_ids(count)
    for index, name in enumerate(ids):
        for modality, bands in MODALITIES.items():
            path = root / "data" / modality / "part-000000" / f"{name}.zarr.zip"
            write_zarr_zip(path, made_up(index, modality, bands, side))
    for file in files:
        write_labels(root / "labels" / file, ids)
    return ids


def made_up(index: int, modality: str, bands: int, side: int) -> np.ndarray:
    """A flat cube, (1, 4, bands, side, side), brighter the higher the label is."""
    level = (-20.0 if modality == "s1" else 1000.0) * (1.0 - 0.5 * truth(index))
    steps = np.arange(4)[:, None] * 2.0 + np.arange(bands)[None, :] * 3.0
    dtype = "<f4" if modality == "s1" else "<i2"
    return np.broadcast_to((level + steps)[None, :, :, None, None], (1, 4, bands, side, side)).astype(dtype)


def write_labels(path: Path, ids: Sequence[str]) -> None:
    """Labels with the columns that the published files have beside ``id`` and ``label``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["id,label,cvpr_earthvision_phase_dev,cvpr_earthvision_phase_eval"]
    for index, name in enumerate(ids):
        label = f"{truth(index):.6f}" if "__regr" in path.name else str(int(truth(index) > 0.5))
        lines.append(f"{name},{label},{index % 2 == 0},{index % 2 == 1}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_zarr_zip(path: Path, bands: np.ndarray) -> None:
    """A zarr group of format 2 in a zip file, with the variable ``bands``, written out by hand.

    So it needs no zarr library and stays in format 2, whatever format a library would write today.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    chunks = [1, 1, *bands.shape[2:]]
    array = {
        "chunks": chunks,
        "compressor": {"id": "zlib", "level": 1},
        "dtype": bands.dtype.str,
        "fill_value": 0,
        "filters": None,
        "order": "C",
        "shape": list(bands.shape),
        "zarr_format": 2,
    }
    names = {"_ARRAY_DIMENSIONS": ["sample", "time", "band", "y", "x"]}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(".zgroup", json.dumps({"zarr_format": 2}))
        archive.writestr("bands/.zarray", json.dumps(array))
        archive.writestr("bands/.zattrs", json.dumps(names))
        for season in range(len(SEASONS)):
            archive.writestr(f"bands/0.{season}.0.0.0", zlib.compress(bands[:, season : season + 1].tobytes(), 1))
