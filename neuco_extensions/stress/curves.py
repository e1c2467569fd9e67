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

from neuco_core.boards.model import Id, Part, plain, read_part
from neuco_core.env import layers
from neuco_core.files import dump, write_atomic
from neuco_core.site.page_data import PageData
from neuco_extensions.stress.changes import KINDS, LEVELS

Share = Annotated[float, Meta(ge=0, le=1)]
Levels = Annotated[tuple[Share, ...], Meta(min_length=len(LEVELS), max_length=len(LEVELS))]


class Stress(Part, frozen=True, kw_only=True):
    """``curves`` are what is kept, by kind of damage; ``clean`` are scores by task, of the embeddings by dataset."""

    schema: Literal[1] = 1
    suite: Id
    method: Id
    samples: int
    embeddings: dict[Id, str]
    clean: dict[Id, float]
    curves: dict[str, Levels]

    @property
    def number(self) -> float:
        return fmean(value for values in self.curves.values() for value in values)


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


def panel(page: PageData, method: str) -> dict[str, Any] | None:
    """The curves of a method, if they are of the embeddings that its scores on this board are of."""
    if page.board.suite is None or page.registry is None or page.cells is None:
        return None
    stress = read_stress(page.registry, page.id, method)
    if stress is None:
        return None
    made = {t.dataset: page.cells.cell(method, t.id).embeddings for t in page.board.tasks if t.id in stress.clean}
    return {"stress": stress, "kinds": KINDS} if made == stress.embeddings else None
