"""What the tests of NeuCo-Bench's ways share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.command import Said
from tests.command import neuco_here as neuco

__all__ = ["SEARCH", "SHARED", "bench", "neuco", "only", "results"]

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


def bench(case: Path, output: Path, *options: object, **config: str) -> Said:
    """``neuco bench`` on the parity case, with other values of some keys of its config."""
    lines = [line for line in (case / "config.yaml").read_text().splitlines() if line.partition(":")[0] not in config]
    path = output.with_suffix(".yaml")
    path.write_text("\n".join([*lines, *(f"{key}: {value}" for key, value in config.items())]))
    inputs = ("--annotation_path", case / "labels", "--submission_file", case / "embeddings.csv")
    return neuco("bench", *inputs, "--config", path, "--output_dir", output, *options)


def results(case: Path, output: Path, *options: object, **config: str) -> Path:
    """The folder of a run that ends well."""
    ran = bench(case, output, *options, **config)
    assert ran.code == 0, ran.err
    return only(output / "results")


def only(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path
