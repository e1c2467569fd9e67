"""What the tests of NeuCo-Bench's ways share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.command import Said
from tests.command import neuco_here as neuco

__all__ = ["SEARCH", "SHARED", "bench", "neuco", "only"]

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"

# The keys of NeuCo-Bench's sample config, with a shorter search.
SEARCH: dict[str, Any] = {
    "C_start_end": [0.001, 1000],
    "epsilon_list": [0.01, 0.05, 0.1, 0.5],
    "kernel_degree_list": [2, 3],
    "kernel_gamma_start_end": [0.0001, 10],
    "kernel_coef0_start_end": [-1, 2],
    "opt_params": {
        **{"n_iter": 4, "n_jobs": 1, "n_points": 1, "verbose": 1},
        "optimizer_kwargs": {"base_estimator": "RF", "n_initial_points": 3},
    },
}


def bench(case: Path, output: Path, *more: object, config: str = "config.yaml") -> Said:
    """``neuco bench`` on the parity case."""
    inputs = ("--annotation_path", case / "labels", "--submission_file", case / "embeddings.csv")
    return neuco("bench", *inputs, "--config", case / config, "--output_dir", output, *more)


def only(folder: Path) -> Path:
    """The one thing in a folder."""
    (path,) = folder.iterdir()
    return path
