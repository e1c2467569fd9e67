"""``neuco bench`` from the start of the process to the results on disk, on a workload of the paper's size.

    python benchmarks/bench.py [--rows 13260] [--dim 1024] [--splits 40] [--epochs 20] [--repeat 2]

Writes random embeddings (CSV) and eight label files of the paper's sizes to a temporary folder, runs the command in a
process of its own, and prints wall-clock time, CPU seconds and peak memory as the operating system counted them.
Before the measured runs a small one fills the compile cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

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
    peak_mb: float


def write_workload(folder: Path, rows: int, dim: int, splits: int, epochs: int) -> None:
    """Embeddings with a signal in them, so that training does what it does on real ones."""
    import pyarrow as pa
    from pyarrow import csv

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
    config = {"k_folds": splits, "epochs": epochs, "batch_size": 64, "learning_rate": 0.001, "enable_plots": "false"}
    (folder / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in config.items()))


def run(folder: Path, threads: int | None) -> Usage:
    """Run the command and read its own resource use, not that of this process."""
    command = [sys.executable, "-m", "neuco_core.cli", "bench", "--annotation_path", str(folder / "labels")]
    command += ["--submission_file", str(folder / "embeddings.csv"), "--config", str(folder / "config.yaml")]
    command += ["--output_dir", str(folder / "out"), *(["--threads", str(threads)] if threads else [])]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"neuco bench ended with exit code {child.returncode}")
    return Usage(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", 13260), ("dim", 1024), ("splits", 40), ("epochs", 20), ("repeat", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        small, folder = Path(name) / "small", Path(name) / "whole"
        small.mkdir()
        folder.mkdir()
        write_workload(small, 100, 16, 2, 2)
        warming = run(small, None)
        print(f"warming up: {warming.wall:.1f} s, {warming.cpu:.1f} s of CPU, {warming.peak_mb:.0f} MB")
        write_workload(folder, given.rows, given.dim, given.splits, given.epochs)
        size = (folder / "embeddings.csv").stat().st_size / 1e6
        print(
            f"{given.rows} x {given.dim} values ({size:.0f} MB of CSV), {len(TASKS)} tasks with {sum(TASKS.values())}"
        )
        print(f"labels, {given.splits} splits, {given.epochs} epochs; load of the machine {os.getloadavg()[0]:.1f}")
        print("threads    wall s     CPU s   peak MB")
        for threads in (1, 2):
            for _ in range(given.repeat):
                used = run(folder, threads)
                print(f"{threads:7d} {used.wall:9.1f} {used.cpu:9.1f} {used.peak_mb:9.0f}")


if __name__ == "__main__":
    main()
