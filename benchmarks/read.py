"""Reading embeddings: time and peak memory beside pyarrow's own CSV reader, in the same run.

    python benchmarks/read.py [--rows 13260] [--dim 1024] [--rounds 5] [--json]

Every reading happens in a fresh process: first a tiny file, so that the libraries are loaded, then the file that
is measured. The readers take turns; the smallest time of each counts. Memory is the peak resident size during the
reading less the size before it; CPU seconds are those of all threads. Exit code 1 if CSV takes more than 1.3 times
pyarrow's time or 3 times the array.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TIME_LIMIT, MEMORY_LIMIT = 1.3, 3.0
READERS = ("pyarrow csv", "neuco csv", "neuco parquet", "neuco npz", "neuco npy")


def make(folder: Path, rows: int, dim: int) -> None:
    import numpy as np

    from neuco_core.tables.embeddings import make_embeddings, write_embeddings

    for name, n in (("warm", 3), ("data", rows)):
        values = np.random.default_rng(n).standard_normal((n, dim), dtype=np.float32)
        ids = [hashlib.sha256(str(row).encode()).hexdigest() for row in range(n)]
        embeddings = make_embeddings(ids, values)
        for suffix in ("csv", "parquet", "npz", "npy"):
            write_embeddings(embeddings, folder / f"{name}.{suffix}")


def status(field: str) -> int:
    """A size from the kernel's account of this process, in bytes."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(field + ":"))


def read(path: Path, reader: str) -> object:
    if reader == "pyarrow csv":
        import pyarrow.csv

        return pyarrow.csv.read_csv(path)
    from neuco_core.tables.embeddings import read_embeddings

    return read_embeddings(path)


def measure(folder: Path, reader: str) -> dict[str, float]:
    suffix = reader.split()[1]
    read(folder / f"warm.{suffix}", reader)
    before = status("VmRSS")
    start, cpu = time.perf_counter(), time.process_time()
    kept = read(folder / f"data.{suffix}", reader)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    del kept
    return {"seconds": seconds, "cpu": cpu, "bytes": status("VmHWM") - before}


def child(*arguments: str) -> str:
    return subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True).stdout


def compare(folder: Path, rounds: int, array: int) -> dict[str, dict[str, float]]:
    runs: dict[str, list[dict[str, float]]] = {reader: [] for reader in READERS}
    for _ in range(rounds):
        for reader in READERS:
            runs[reader].append(json.loads(child("--folder", str(folder), "--measure", reader)))
    fastest = {reader: min(run["seconds"] for run in found) for reader, found in runs.items()}
    largest = {reader: max(run["bytes"] for run in found) for reader, found in runs.items()}
    return {
        reader: {
            "seconds": round(fastest[reader], 3),
            "cpu_seconds": round(min(run["cpu"] for run in runs[reader]), 3),
            "time_ratio": round(fastest[reader] / fastest["pyarrow csv"], 2),
            "megabytes": round(largest[reader] / 1e6, 1),
            "memory_ratio": round(largest[reader] / array, 2),
        }
        for reader in READERS
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=13260)
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--measure", choices=READERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.folder, options.measure)))
        return 0
    if options.folder:
        make(options.folder, options.rows, options.dim)
        return 0
    with tempfile.TemporaryDirectory() as name:
        child("--folder", name, "--rows", str(options.rows), "--dim", str(options.dim))
        table = compare(Path(name), options.rounds, 4 * options.rows * options.dim)
    report(table, options)
    good = table["neuco csv"]["time_ratio"] <= TIME_LIMIT and table["neuco csv"]["memory_ratio"] <= MEMORY_LIMIT
    return 0 if good else 1


def report(table: dict[str, dict[str, float]], options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(table, indent=2, sort_keys=True))
        return
    print(f"{options.rows} × {options.dim}, float32 array {4e-6 * options.rows * options.dim:.1f} MB")
    print(f"{'reader':<14} {'seconds':>8} {'CPU':>8} {'× pyarrow':>10} {'MB':>8} {'× array':>8}")
    for reader, row in table.items():
        print(
            f"{reader:<14} {row['seconds']:>8.3f} {row['cpu_seconds']:>8.3f} {row['time_ratio']:>10.2f}"
            f" {row['megabytes']:>8.1f} {row['memory_ratio']:>8.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
