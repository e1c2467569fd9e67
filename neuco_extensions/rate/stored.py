"""What is left of a method with fewer dimensions or bits: curves that ``neuco rate ablate --keep`` made."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal

from msgspec import Meta

from neuco_core.boards.cells import Cells
from neuco_core.boards.model import Id, Part, plain, read_part
from neuco_core.files import write_atomic
from neuco_core.jsonio import dump
from neuco_core.paths import layers

WHOLE = "none"  # the reduction that is none
Series = Literal["truncate", "pca", "random", "entropy", "fixed"]
Count = Annotated[int, Meta(ge=1)]
Bits = Annotated[float, Meta(gt=0, lt=1e12)]
Number = Annotated[float, Meta(gt=-1e100, lt=1e100)]


class AblationPoint(Part, frozen=True):
    """A variant of the embedding, its bits per sample, and Q by task."""

    reduction: str
    dim: Count
    rate: str
    bits: Bits
    q: Annotated[dict[Id, Number], Meta(min_length=1)]

    @property
    def mean_q(self) -> float:
        return fmean(self.q.values())

    @property
    def series(self) -> Series | None:
        return series(self.reduction, self.rate)

    @property
    def whole(self) -> bool:
        """Whether it is the embedding as it is."""
        return (self.reduction, self.rate) == (WHOLE, "float32")


class Ablation(Part, frozen=True, kw_only=True):
    """The curves of one method on all tasks of a suite."""

    schema: Literal[1]
    suite: Id
    method: Id
    version: Count
    protocol: str
    projection_seed: int
    points: Annotated[tuple[AblationPoint, ...], Meta(min_length=1)]

    def holds(self, cells: Cells) -> bool:
        """Whether it is about what the board shows: the whole embedding must have the very Q of the records."""
        whole = next((point for point in self.points if point.whole), None)
        if whole is None or (self.method, self.version) not in {(own.id, own.version) for own in cells.methods}:
            return False
        shown = {task.id: cells.cell(self.method, task.id).q for task in cells.tasks}
        return whole.q.keys() == shown.keys() and all(
            q is not None and math.isclose(whole.q[task], q, rel_tol=1e-6, abs_tol=1e-9) for task, q in shown.items()
        )


def series(reduction: str, rate: str) -> Series | None:
    """Which line a variant belongs to; those of a full grid that are on no axis belong to none."""
    if reduction == WHOLE:
        return "entropy" if rate.startswith("entropy") else "fixed"
    names: dict[str, Series] = {"truncate": "truncate", "pca": "pca", "random": "random"}
    return names.get(reduction) if rate == "float32" else None


def write_ablation(registry: Path, own: Ablation) -> Path:
    path = registry / "ablations" / own.suite / f"{own.method}.json"
    write_atomic(path, dump(plain(own)))
    return path


def read_ablations(registry: Path, suite: str) -> dict[str, Ablation]:
    """By method, what is kept for a suite; an upper registry hides what lies below it."""
    found: dict[str, Ablation] = {}
    for layer in reversed(layers(registry)):
        for path in sorted((layer / "ablations" / suite).glob("*.json")):
            found[path.stem] = read_part(path, Ablation, "an ablation", "Make it again: neuco rate ablate … --keep")
    return found
