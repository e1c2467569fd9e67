"""Networks of TorchGeo, by the name of their weights; one table has all of those for Sentinel-1 and Sentinel-2.

The table (``torchgeo.json``) is made from TorchGeo itself, so that methods can be listed without it, by ``python
benchmarks/torchgeo_table.py --write``; ``make test-models`` compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from neuco_core.errors import ChecksumError, UsageError
from neuco_core.specs import Method, Remote
from neuco_core.versions import versioned
from neuco_extensions.models.images import joined

TABLE = Path(__file__).with_name("torchgeo.json")
HEADS = ("fc.", "head.")  # the classifier of the pre-training, which a feature extractor has no use for
# Some files lack the last normalisation; TorchGeo then leaves it at its start, which changes nothing but the scale.
OPTIONAL = (*HEADS, "norm.", "fc_norm.")
TOLERANCE = 1e-4  # of the spread: what batches on a GPU may move


@dataclass(frozen=True)
class Weights:
    """A row of the table. ``lacking`` says why it cannot be run on cubes as it is, if so.

    ``view`` is what the library's own transforms do to an image; ``digits`` begin the file's sha256, if its name has
    them. ``assumed`` marks a processing level of Sentinel-2 that TorchGeo does not state.
    """

    weights: str
    model: str
    bands: tuple[str, ...]
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: int
    view: str
    url: str
    digits: str
    pretraining: str
    assumed: bool
    lacking: str

    @property
    def remote(self) -> Remote:
        """Where the weights are. Nobody has published their whole sha256: ``neuco data pin --method ID`` does it."""
        place = self.url.partition("://")[2].partition("/")[2]
        return Remote("hf://" + place.replace("/resolve/", "@", 1))

    def params(self) -> dict[str, str | int | float]:
        """The parameters of a method: the library's statistics, but the whole image and the mean of patches."""
        return {
            "weights": self.weights,
            "bands": joined(self.bands),
            "scale": self.scale,
            "offset": 0.0,
            "mean": joined(self.mean),
            "std": joined(self.std),
            "size": self.size,
            "view": "whole",
            "pooling": "mean",
            "seasons": "post",
            "dim": 1024,
            "reduction": "average",
        }


@cache
def table() -> Mapping[str, Weights]:
    """All weights of TorchGeo for Sentinel-1 and Sentinel-2, by name."""
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["weights"]
    lists = ("bands", "mean", "std")
    return {row["weights"]: Weights(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in rows}


def find_row(name: str) -> Weights:
    """A row that can be run; the error says what is lacking to run another."""
    row = table().get(name)
    if row is None:
        hint = "neuco_extensions.models.torchgeo.table() has all of them"
        raise UsageError(f"no weights {name!r} in the table of TorchGeo", hint=hint)
    if row.lacking:
        raise UsageError(f"weights {name!r} cannot be run on cubes: {row.lacking}")
    return row


def torchgeo_method(method_id: str, weights: str, **fields: Any) -> Method:
    """A method from a row of the table; ``params`` and any other field of ``Method`` may be given."""
    row = find_row(weights)
    params = {**row.params(), **fields.pop("params", {})}
    facts: dict[str, Any] = {
        "title": f"{row.model}, {weights.partition('.')[2]} (TorchGeo)",
        "encoder": torchgeo_encoder,
        "bands": row.bands,
        "requires": ("torch", "torchgeo"),
        "weights": {"checkpoint": row.remote},
        "pretraining": (row.pretraining,) if row.pretraining else None,
        "preprocessing": f"{params['view']} image at {params['size']} pixels, scale {params['scale']:g}",
        "tolerance": TOLERANCE,
    }
    return Method(id=method_id, params=params, **{**facts, **fields})


@versioned(1)
def torchgeo_encoder(
    weights: str,
    checkpoint: Path,
    bands: str,
    scale: float,
    offset: float,
    mean: str,
    std: str,
    size: int,
    view: str,
    pooling: str,
    seasons: str,
    dim: int,
    reduction: str,
) -> Any:
    """The encoder of weights in the table, given as a verified file."""
    from neuco_extensions.models.images import Images, numbers, words
    from neuco_extensions.models.network import NetworkEncoder

    row = find_row(weights)
    statistics = {"mean": numbers(mean, "mean"), "std": numbers(std, "std")}
    images = Images(words(bands), scale=scale, offset=offset, size=size, view=view, **statistics)
    return NetworkEncoder(
        lambda: torchgeo_network(row, checkpoint, images.bands),
        images,
        pooling=pooling,
        seasons=seasons,
        dim=dim,
        reduction=reduction,
    )


def torchgeo_network(row: Weights, checkpoint: Path, bands: tuple[str, ...]) -> Any:
    """The network without its classifier, with the weights of a file that is checked against TorchGeo's name for it."""
    from neuco_extensions.models.network import WithWavelengths
    from neuco_extensions.models.state import load_state, read_state

    check_digits(row, checkpoint)
    model = load_state(
        bare_network(row), read_state(checkpoint), drop=HEADS, optional=OPTIONAL, where=f"{row.weights}, {checkpoint}"
    )
    return WithWavelengths(model, bands) if row.model.startswith("dofa") else model


def bare_network(row: Weights) -> Any:
    """The network as TorchGeo builds it for these weights, with random numbers."""
    from neuco_core.encoders import import_torchvision

    import_torchvision()
    from torchgeo.models import get_model, get_weight  # type: ignore[import-not-found]

    meta = get_weight(row.weights).meta
    options = {"in_chans": len(meta["bands"])} if meta.get("in_chans") else {}
    options |= {"img_size": meta["img_size"]} if meta.get("img_size") and "vit" in row.model else {}
    return get_model(row.model, num_classes=0, **options)


def check_digits(row: Weights, checkpoint: Path) -> None:
    """TorchGeo's name for most files has the beginning of their sha256."""
    from neuco_core.fetch.cache import hash_file

    digest = hash_file(checkpoint) if row.digits else ""
    if not digest.startswith(row.digits):
        expected = f"a sha256 that begins with {row.digits}"
        raise ChecksumError(f"not the weights {row.weights}", where=checkpoint, expected=expected, got=digest)
