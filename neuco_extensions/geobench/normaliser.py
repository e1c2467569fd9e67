"""Pinned normalisers: by dataset the two scores that become 0 and 1. A new submission moves nobody.

Values outside are not clipped: a better model than any before has more than 1. A file is never changed; new base
submissions make a new version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from neuco_core.errors import DataError, UnknownIdError
from neuco_core.jsonio import read_strictly
from neuco_core.paths import layers, registry_dir

GEOBENCH = "geobench-2-v1"
SHIPPED = Path(__file__).with_name("normalisers")
LARGEST = 1_000_000
Ends = Annotated[tuple[float, float], msgspec.Meta(description="what becomes 0 and what becomes 1")]


class Normaliser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``ends`` by dataset; ``base`` are the submissions whose least and largest single scores they are."""

    id: str
    ends: dict[str, Ends]
    base: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        for dataset, (low, high) in self.ends.items():
            if not high > low:
                raise ValueError(f"{dataset}: {high} is not above {low}")

    def __call__(self, dataset: str, scores: Sequence[float] | np.ndarray) -> np.ndarray:
        if dataset not in self.ends:
            raise DataError(f"the normaliser {self.id} has no dataset {dataset!r}", expected=", ".join(self.ends))
        low, high = self.ends[dataset]
        return np.asarray((np.asarray(scores, dtype=np.float64) - low) / (high - low))


def made_of(name: str, scores: Mapping[str, Sequence[float]], base: Sequence[str], source: str = "") -> Normaliser:
    """A normaliser from all single scores of each dataset."""
    ends = {dataset: (float(min(values)), float(max(values))) for dataset, values in sorted(scores.items())}
    return Normaliser(name, ends, tuple(base), source)


def folders() -> list[Path]:
    """Where normalisers are: in the registry, and those that came with neuco."""
    return [*(layer / "normalisers" for layer in layers(registry_dir())), SHIPPED]


def read_normaliser(path: Path) -> Normaliser:
    normaliser = read_strictly(path, Normaliser, "a normaliser", most=LARGEST)
    if normaliser.id != path.stem:
        raise DataError("bad id", where=path, expected="the name of the file", got=repr(normaliser.id))
    return normaliser


def load_normaliser(name: str) -> Normaliser:
    files = {path.stem: path for folder in reversed(folders()) for path in folder.glob("*.json")}
    if name not in files:
        raise UnknownIdError("normaliser", name, files)
    return read_normaliser(files[name])
