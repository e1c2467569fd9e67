"""What the figures of one task cost (40 splits, 330 test samples each), beside drawing each of them anew."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from neuco_core.figures import Frames, blank, save

SPLITS, SAMPLES = 40, 330


def main() -> None:
    rng = np.random.default_rng(0)
    parts = rng.random((SPLITS, SAMPLES, 2))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.png")
        figure, _ = blank(5, 5)
        save(figure, path)  # the first one loads fonts
        once = _seconds(lambda: _together(parts, path))
        anew = _seconds(lambda: _anew(parts, path))
    print(f"{SPLITS} figures: {once:.1f} s of CPU together, {anew:.1f} s one by one, {anew / once:.1f} times as long")


def _together(parts: np.ndarray, path: Path) -> None:
    figure, axes = blank(5, 5)
    dots, title = axes.scatter([], [], s=16, label="test sample"), axes.set_title("task")
    axes.set(xlabel="true value", ylabel="predicted value", xlim=(0, 1), ylim=(0, 1))
    axes.legend(frameon=False, loc="upper left")
    frames = Frames(figure, (dots, title))
    for index, part in enumerate(parts):
        dots.set_offsets(part)
        title.set_text(f"task, split {index}")
        frames.save(path)


def _anew(parts: np.ndarray, path: Path) -> None:
    for index, part in enumerate(parts):
        figure, axes = blank(5, 5)
        axes.scatter(*part.T, s=16, label="test sample")
        axes.set(xlabel="true value", ylabel="predicted value", xlim=(0, 1), ylim=(0, 1), title=f"task, split {index}")
        axes.legend(frameon=False, loc="upper left")
        save(figure, path)


def _seconds(work: object) -> float:
    begun = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - begun


if __name__ == "__main__":
    main()
