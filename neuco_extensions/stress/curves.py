"""What a method keeps of its scores when test images get worse, as it was measured and stored, and the panel of it.

A probe learns from embeddings of clean images and is tested on others that are worse. What is kept is the score as a
part of that on clean test images, at least 0, averaged over the tasks. One number is the mean over kinds and levels. It
is never part of a rank.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from msgspec import Meta

from neuco_core.boards.model import BoardRow, Id, Part, plain, read_part
from neuco_core.env import layers
from neuco_core.files import dump, write_atomic
from neuco_core.site.page_data import PageData
from neuco_core.site.render import TableCell
from neuco_extensions.stress.changes import KINDS, LEVELS

Number = Annotated[float, Meta(gt=-1e100, lt=1e100)]
Levels = Annotated[tuple[Number, ...], Meta(min_length=len(LEVELS), max_length=len(LEVELS))]


class Stress(Part, frozen=True, kw_only=True):
    """``scores`` are by task and kind of change, one for each level; ``embeddings`` are the clean ones by dataset."""

    schema: Literal[1] = 1
    suite: Id
    method: Id
    version: int
    samples: int
    embeddings: dict[Id, str]
    clean: dict[Id, Number]
    scores: dict[Id, dict[str, Levels]]

    def kept(self, kind: str, level: int) -> float:
        """The mean over the tasks of what is kept."""
        parts = [min(max(self.scores[task][kind][level], 0.0) / clean, 1.0) for task, clean in self.clean.items()]
        return fmean(parts)

    def curves(self) -> dict[str, tuple[float, ...]]:
        return {kind: tuple(self.kept(kind, number) for number in range(len(LEVELS))) for kind in KINDS}

    @property
    def number(self) -> float:
        return fmean(value for values in self.curves().values() for value in values)


def write_stress(registry: Path, stress: Stress) -> Path:
    path = registry / "stress" / stress.suite / f"{stress.method}.json"
    write_atomic(path, dump(plain(stress)))
    return path


def read_stress(registry: Path, suite: str, method: str) -> Stress | None:
    """What is stored, here or in a registry that lies below."""
    for layer in layers(registry):
        path = layer / "stress" / suite / f"{method}.json"
        if path.exists():
            return read_part(path, Stress, "a stress test", f"Run `neuco stress {method} --suite {suite} --keep`")
    return None


WIDTH, HEIGHT, LEFT, BASE = 340, 190, 38, 150


def panel(page: PageData, method: str) -> dict[str, Any] | None:
    """The curves of a method, if they are of the embeddings that its scores on this board are of."""
    if page.board.suite is None or page.registry is None or page.cells is None:
        return None
    stress = read_stress(page.registry, page.id, method)
    row = next((row for row in page.board.rows if row.method == method), BoardRow(method))
    if stress is None or row.version != stress.version:
        return None
    made = {t.dataset: page.cells.cell(method, t.id).embeddings for t in page.board.tasks if t.id in stress.clean}
    if made != stress.embeddings:
        return None
    curves = stress.curves()
    lines = []
    for number, (kind, values) in enumerate(curves.items()):
        points = [(LEFT, 0.0), *((LEFT + 56 * level, 1 - value) for level, value in zip(LEVELS, values, strict=True))]
        drawn = " ".join(f"{x:.0f},{20 + (BASE - 20) * y:.1f}" for x, y in points)
        lines.append((kind, drawn, f"var(--c{number % 4})", ("", "6 3")[number // 4]))
    rows = [
        [TableCell(kind), TableCell(KINDS[kind]), *(TableCell(f"{value:.0%}", "number") for value in values)]
        for kind, values in curves.items()
    ]
    return {"stress": stress, "lines": lines, "rows": rows, "levels": LEVELS, "frame": (WIDTH, HEIGHT, LEFT, BASE)}
