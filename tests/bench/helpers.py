"""What the tests of NeuCo-Bench's ways share."""

from __future__ import annotations

from pathlib import Path

from tests.command import Said
from tests.command import neuco_here as neuco

__all__ = ["SHARED", "bench", "neuco", "only"]

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def bench(case: Path, output: Path, *more: object, config: str = "config.yaml") -> Said:
    """``neuco bench`` on the parity case."""
    inputs = ("--annotation_path", case / "labels", "--submission_file", case / "embeddings.csv")
    return neuco("bench", *inputs, "--config", case / config, "--output_dir", output, *more)


def only(folder: Path) -> Path:
    """The one thing in a folder."""
    (path,) = folder.iterdir()
    return path
