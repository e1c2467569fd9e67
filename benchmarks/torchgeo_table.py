"""Make the table of TorchGeo's weights from TorchGeo: ``python benchmarks/torchgeo_table.py --write``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuco_extensions.models.torchgeo import TABLE

SENTINEL = re.compile(r"SENTINEL[12]")
# Weights for both satellites that do not name them. DOFA takes any bands; here all of Sentinel-2 L1C.
ANY_BANDS = ("DOFABase16_Weights", "DOFALarge16_Weights")
OTHER_INPUTS = ("CROMABase_Weights", "CROMALarge_Weights", "Panopticon_Weights", "CopernicusFM_Base_Weights")
L1C = ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B10", "B11", "B12")


def rows() -> list[dict[str, Any]]:
    """One row for each weights of Sentinel-1 and Sentinel-2, in TorchGeo's order."""
    return [_row(model, entry) for model, entry in _entries()]


def _entries() -> Iterator[tuple[str, Any]]:
    from neuco_core.encoders import import_torchvision

    import_torchvision()
    from torchgeo.models import get_model_weights, list_models  # type: ignore[import-not-found]

    for model in list_models():
        try:
            weights = get_model_weights(model)
        except KeyError:
            continue  # a network without weights
        for entry in weights:
            if SENTINEL.search(entry.name) or type(entry).__name__ in (*ANY_BANDS, *OTHER_INPUTS):
                yield model, entry


def _row(model: str, entry: Any) -> dict[str, Any]:
    bands, assumed = _bands(entry)
    scale, mean, std = _statistics(entry)
    if type(entry).__name__ in ANY_BANDS:
        scale, mean, std = _published(bands)
    size, view = _view(entry)
    digits = re.search(r"-([0-9a-f]{8})\.\w+$", entry.url)
    return {
        "weights": str(entry),
        "model": model,
        "bands": bands,
        "scale": scale,
        "mean": mean,
        "std": std,
        "size": size,
        "view": view,
        "url": entry.url,
        "digits": digits[1] if digits else "",
        "pretraining": entry.meta.get("dataset") or "",
        "assumed": assumed,
        "lacking": _lacking(entry),
    }


def _bands(entry: Any) -> tuple[list[str], bool]:
    """The bands under the names of cubes. TorchGeo states no level: with B10 it is L1C, as for SSL4EO-S12."""
    if type(entry).__name__ in ANY_BANDS:
        return [f"s2l1c/{name}" for name in L1C], True
    names = [_name(str(name)) for name in entry.meta.get("bands") or ()]
    if "VV" in names:
        return [f"s1/{name}" for name in names], False
    sure = "B10" in names or entry.meta.get("dataset") == "SSL4EO-S12"
    return [f"{'s2l1c' if sure else 's2l2a'}/{name}" for name in names], bool(names) and not sure


def _name(band: str) -> str:
    """``B1``, ``B8a`` and ``B04`` as ``B01``, ``B8A`` and ``B04``."""
    short = re.fullmatch(r"B(\d)", band)
    return f"B0{short[1]}" if short else band.upper()


def _statistics(entry: Any) -> tuple[float, list[float], list[float]]:
    """The library's normalisations, one after the other, as one: (x / scale - mean) / std."""
    import torch

    mean, std = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    for part in _parts(entry):
        if type(part).__name__ == "Normalize":
            mean = mean + std * torch.tensor(part.mean, dtype=torch.float64)
            std = std * torch.tensor(part.std, dtype=torch.float64)
    if len(mean) == len(std) == 1 and mean == 0:
        return float(std), [0.0], [1.0]
    return 1.0, [_short(value) for value in mean.tolist()], [_short(value) for value in std.tolist()]


def _published(bands: list[str]) -> tuple[float, list[float], list[float]]:
    """TorchGeo has no statistics for networks that take any bands: those of SSL4EO-S12."""
    from neuco_core.encoders import PUBLISHED_STATISTICS

    pairs = [PUBLISHED_STATISTICS[band] for band in bands]
    return 1.0, [mean for mean, _ in pairs], [std for _, std in pairs]


def _short(value: float) -> float:
    return float(f"{value:.9g}")


def _view(entry: Any) -> tuple[int, str]:
    """What the library does to an image: its size at last, and whether it is cut."""
    sizes = [(type(part).__name__, part.size[0]) for part in _parts(entry) if hasattr(part, "size")]
    names = [name for name, _ in sizes]
    if not sizes:
        return 224, "native"
    if "CenterCrop" not in names:
        return sizes[-1][1], "whole"
    return sizes[-1][1], "crop" if "Resize" in names else "centre"


def _parts(entry: Any) -> list[Any]:
    return list(entry.transforms.children()) if hasattr(entry.transforms, "children") else []


def _lacking(entry: Any) -> str:
    kind = type(entry).__name__
    if kind in OTHER_INPUTS:
        return "it takes more than images, such as wavelengths, places or two satellites by name"
    if kind == "Unet_Weights":
        return "a network for maps of field borders, from images of two dates"
    if "NDVI" in (entry.meta.get("bands") or ()):
        return "it needs the NDVI as a band"
    if kind == "EarthLoc_Weights" or entry.name.endswith(("_SATLAS", "_RGB_SECO")):
        return "it was trained on images of 8 bits, which cubes do not hold"
    return ""


def text() -> str:
    """The table as it is in the file, one row on a line."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows())
    return f'{{"torchgeo": "{metadata.version("torchgeo")}", "weights": [\n{lines}\n]}}\n'


def main() -> int:
    made = text()
    if "--write" in sys.argv:
        TABLE.write_text(made, encoding="utf-8")
        return 0
    same = TABLE.is_file() and TABLE.read_text(encoding="utf-8") == made
    print(f"{TABLE.name}: {'as TorchGeo has it' if same else 'out of date; write it with --write'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
