"""What ``benchmarks/bench.py`` runs on: files of the paper's sizes, and processes whose cost is counted."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TASKS = {
    "biomass_mean": 2415,
    "biomass_std": 2415,
    "clouds_reg": 1140,
    "crops": 3355,
    "heatisland_mean": 1659,
    "heatisland_std": 1659,
    "landcover_agriculture": 4691,
    "landcover_forest": 4691,
}


@dataclass(frozen=True)
class Usage:
    """What one process cost."""

    wall: float
    cpu: float
    peak_mb: float = 0.0

    def __str__(self) -> str:
        return f"{self.wall:8.2f} {self.cpu:8.2f} {self.peak_mb:8.0f}"


def write_workload(folder: Path, rows: int, dim: int, splits: int, epochs: int) -> None:
    """Embeddings with a signal in them, so that training does what it does on real ones."""
    import pyarrow as pa
    from pyarrow import csv

    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(0)
    ids = [f"{i:064x}" for i in range(rows)]
    values = np.round(random.standard_normal((rows, dim)), 6)
    columns = {"id": ids, **{str(j): values[:, j] for j in range(dim)}}
    csv.write_csv(pa.table(columns), folder / "embeddings.csv")
    (folder / "labels").mkdir()
    for name, size in TASKS.items():
        chosen = random.choice(rows, min(size, rows), replace=False)
        labels = values[chosen] @ random.standard_normal(dim) / np.sqrt(dim) + random.standard_normal(len(chosen))
        lines = [f"{ids[i]},{label:.6f}" for i, label in zip(chosen, labels, strict=True)]
        (folder / "labels" / f"{name}__regr.csv").write_text("\n".join(["id,label", *lines]) + "\n")
    write_config(folder / "config.yaml", splits, epochs)


def write_config(path: Path, splits: int, epochs: int) -> None:
    """A config that ``neuco bench`` and NeuCo-Bench both take: without plots, with the score of every split."""
    lines = [
        f"k_folds: {splits}",
        "probe_type: linear",
        f"probe_params: {{batch_size: 64, epochs: {epochs}, learning_rate: 0.001}}",
        "enable_plots: false",
        "update_leaderboard: false",
        "output_fold_results: true",
    ]
    path.write_text("\n".join(lines) + "\n")


def spend(command: list[str], cwd: Path, env: Mapping[str, str] | None = None) -> Usage:
    """Run a command and read its own resource use, not that of this process."""
    start = time.perf_counter()
    settings = {**os.environ, **(env or {})}
    # What it says goes to a file: NeuCo-Bench reports its progress on stderr, and only an error is worth reading.
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, cwd=cwd, env=settings) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            print(said.read()[-2000:], file=sys.stderr)
            raise SystemExit(f"{' '.join(command)} ended with exit code {child.returncode}")
    return Usage(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def options(folder: Path, name: str = "config", out: str = "out") -> list[str]:
    """What both commands are told, in the same words: the files, the config ``name``, and where results go."""
    words = ["--annotation_path", folder / "labels", "--submission_file", folder / "embeddings.csv"]
    words += ["--config", folder / f"{name}.yaml", "--output_dir", folder / out]
    return [*map(str, words)]


def run(
    folder: Path, cache: Path, threads: int | None = None, tree: Path = ROOT, told: list[str] | None = None
) -> Usage:
    """One ``neuco bench`` of the clone ``tree``."""
    command = [sys.executable, "-m", "neuco_core.cli", "bench", *(told or options(folder))]
    command += ["--threads", str(threads)] if threads else []
    return spend(command, tree, {"NEUCO_CACHE": str(cache)})


def least(runs: list[Usage]) -> Usage:
    return Usage(min(r.wall for r in runs), min(r.cpu for r in runs), max(r.peak_mb for r in runs))
