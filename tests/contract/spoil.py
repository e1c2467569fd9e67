"""Ways to spoil the good task and the good method of ``helpers``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.contract.helpers import COUNT

Spoil = Callable[[Path], None]
TASK, METHOD = "neuco_tasks/good/__init__.py", "neuco_methods/plain/__init__.py"


def edit(name: str, old: str, new: str) -> Spoil:
    """Replace some text of a file; it must be there, or the test would test nothing."""

    def spoil(folder: Path) -> None:
        text = (folder / name).read_text()
        if old not in text:
            raise AssertionError(f"{old!r} is not in {name}")
        (folder / name).write_text(text.replace(old, new))

    return spoil


def write(name: str, text: str) -> Spoil:
    return lambda folder: (folder / name).write_text(text) and None


def new_labels(text: str) -> Spoil:
    """Other labels, properly declared."""

    def spoil(folder: Path) -> None:
        (folder / "neuco_tasks/good/labels.csv").write_text(text)
        path = folder / "neuco_tasks/good/__init__.py"
        digest = hashlib.sha256(text.encode()).hexdigest()
        source = re.sub(r'sha256="\w+", size=\d+', f'sha256="{digest}", size={len(text.encode())}', path.read_text())
        path.write_text(source)

    return spoil


def column(value: Callable[[int], object]) -> str:
    return "\n".join(["id,label", *(f"s{i:03d},{value(i)}" for i in range(COUNT)), ""])


def statistic(function: str) -> str:
    """Labels that a plain statistic of the image tells exactly."""
    images = [np.random.default_rng(i).standard_normal((1, 1, 4, 4)).astype("float32") for i in range(150)]
    values = [float(getattr(image.astype(float), function)()) for image in images]
    return "\n".join(["id,label", *(f"s{i:03d},{value:.6f}" for i, value in enumerate(values)), ""])


def only_good(folder: Path) -> None:
    """A band that no other dataset has, so that the method is run on this one alone."""
    for name in (TASK, METHOD, "neuco_tasks/good/cubes.py"):
        edit(name, "grey/0", "odd/0")(folder)


def judged_by(metric: str, score: float, tolerance: float = 0.1) -> Spoil:
    """The good task with another metric, and a baseline measured with it."""

    def spoil(folder: Path) -> None:
        edit(TASK, 'unit="1"', f'unit="1", metric="{metric}"')(folder)
        edit(TASK, "score=0.84, tolerance=0.05", f"score={score}, tolerance={tolerance}")(folder)

    return spoil
