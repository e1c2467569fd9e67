"""What is left of a method with fewer dimensions or bits: curves that ``neuco rate ablate --keep`` made."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from neuco_core.boards.cells import Cells
from neuco_core.boards.model import Id, Part, plain, read_part
from neuco_core.env import layers
from neuco_core.files import dump, write_atomic

WHOLE = "none"  # the reduction that is none
Count = Annotated[int, Meta(ge=1)]
Bits = Annotated[float, Meta(gt=0, lt=1e12)]
Number = Annotated[float, Meta(gt=-1e100, lt=1e100)]


class Line(NamedTuple):
    """How a line of curves is drawn: on a page with a colour of its style sheet, in a file by matplotlib."""

    label: str
    ink: str  # on a page, a colour of its style sheet
    path: str  # of the marker around 0, 0
    color: str  # the colours do not rely on red against green; markers repeat the distinction
    marker: str


FIXED = "fixed"  # whose points form no line
LINES = {
    "truncate": Line("first dimensions", "--c0", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "#0072b2", "o"),
    "pca": Line("PCA", "--c1", "M-3.5 -3.5h7v7h-7z", "#d55e00", "s"),
    "random": Line("random projection", "--c3", "M0 -4.5L4.3 3.5H-4.3z", "#009e73", "^"),
    "entropy": Line("all dimensions, entropy-coded", "--c2", "M0 -5L5 0L0 5L-5 0z", "#000000", "D"),
    FIXED: Line("all dimensions: float32, float16, int8, binary", "--soft", "M-4 -4L4 4M-4 4L4 -4", "#7a7a7a", "X"),
}


def line_of(reduction: str, rate: str) -> str:
    """Which line a variant belongs to; those of a full grid that are on no axis belong to none."""
    if reduction == WHOLE:
        coder = rate.partition("=")[0]
        return coder if coder in LINES else FIXED
    return reduction if rate == "float32" else ""


class AblationPoint(Part, frozen=True):
    reduction: str
    dim: Count
    rate: str
    bits: Bits
    q: Annotated[dict[Id, Number], Meta(min_length=1)]

    @property
    def mean_q(self) -> float:
        return fmean(self.q.values())

    @property
    def line(self) -> str:
        return line_of(self.reduction, self.rate)


class Ablation(Part, frozen=True, kw_only=True):
    schema: Literal[1]
    suite: Id
    method: Id
    version: Count
    protocol: str
    projection_seed: int
    points: Annotated[tuple[AblationPoint, ...], Meta(min_length=1)]

    def holds(self, cells: Cells) -> bool:
        """Whether it is about what the board shows: the whole embedding must have the very Q of the records."""
        whole = next((point for point in self.points if (point.reduction, point.rate) == (WHOLE, "float32")), None)
        if whole is None or (self.method, self.version) not in {(m.id, m.version) for m in cells.methods}:
            return False
        shown = {task.id: cells.cell(self.method, task.id).q for task in cells.tasks}
        # 2e-6 is how far Q of `efficientnet` moved between two processors, which round differently.
        return whole.q.keys() == shown.keys() and all(
            q is not None and math.isclose(whole.q[task], q, rel_tol=1e-5, abs_tol=1e-9) for task, q in shown.items()
        )


def write_ablation(registry: Path, ablation: Ablation) -> Path:
    path = registry / "ablations" / ablation.suite / f"{ablation.method}.json"
    write_atomic(path, dump(plain(ablation)))
    return path


def read_ablations(registry: Path, suite: str) -> dict[str, Ablation]:
    """By method, what is kept for a suite; an upper registry hides what lies below it."""
    ablations: dict[str, Ablation] = {}
    for layer in reversed(layers(registry)):
        for path in sorted((layer / "ablations" / suite).glob("*.json")):
            ablations[path.stem] = read_part(path, Ablation, "an ablation", "Make it again: neuco rate ablate … --keep")
    return ablations
