"""Reading embeddings: time and peak memory beside pandas, polars and pyarrow, in the same run.

    python benchmarks/read.py [--rows 13260] [--dim 1024] [--rounds 5] [--json]

Every reading happens in a fresh process: first a smaller file, so that the libraries are loaded, then the file that
is measured. The readers take turns; the smallest time of each counts, of all threads for CPU seconds. Memory is the
peak resident size during the reading less the size before it.
polars takes part if it is installed; neuco does not need it. Exit code 1 if CSV takes more than 1.1 times the seconds
or the CPU seconds of the best of the others, or 2.5 times the memory of the array.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

TIME_LIMIT, MEMORY_LIMIT = 1.1, 2.5
OTHERS = ("pandas csv", "pyarrow csv", *(["polars csv"] if find_spec("polars") else []))
READERS = (*OTHERS, "neuco csv", "neuco parquet", "neuco npz", "neuco npy")
WARM_BYTES = 6_000_000  # a smaller CSV file is read without the compiled code


def make(folder: Path, rows: int, dim: int) -> None:
    import numpy as np

    from neuco_core.tables.embeddings import make_embeddings, write_embeddings

    for name, n in (("warm", WARM_BYTES // (10 * dim)), ("data", rows)):
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
    library = reader.split(maxsplit=1)[0]
    if library == "neuco":
        from neuco_core.tables.embeddings import read_embeddings

        return read_embeddings(path)
    if library == "pyarrow":
        import pyarrow.csv

        return pyarrow.csv.read_csv(path)
    return import_module(library).read_csv(path)


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
    command = [sys.executable, __file__, *arguments]
    folder = arguments[arguments.index("--folder") + 1]
    env = {**os.environ, "NEUCO_CACHE": f"{folder}/cache"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout


def compare(folder: Path, rounds: int, array: int) -> dict[str, dict[str, float]]:
    runs: dict[str, list[dict[str, float]]] = {reader: [] for reader in READERS}
    for _ in range(rounds):
        for reader in READERS:
            runs[reader].append(json.loads(child("--folder", str(folder), "--measure", reader)))
    fastest = {reader: min(run["seconds"] for run in own) for reader, own in runs.items()}
    cpu = {reader: min(run["cpu"] for run in own) for reader, own in runs.items()}
    largest = {reader: max(run["bytes"] for run in own) for reader, own in runs.items()}
    best = {name: min(times[reader] for reader in OTHERS) for name, times in (("wall", fastest), ("cpu", cpu))}
    return {
        reader: {
            "seconds": round(fastest[reader], 3),
            "cpu_seconds": round(cpu[reader], 3),
            "time_ratio": round(fastest[reader] / best["wall"], 2),
            "cpu_ratio": round(cpu[reader] / best["cpu"], 2),
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
    ours = table["neuco csv"]
    quick = max(ours["time_ratio"], ours["cpu_ratio"]) <= TIME_LIMIT
    return 0 if quick and ours["memory_ratio"] <= MEMORY_LIMIT else 1


def report(table: dict[str, dict[str, float]], options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(table, indent=2, sort_keys=True))
        return
    print(f"{options.rows} × {options.dim}, float32 array {4e-6 * options.rows * options.dim:.1f} MB")
    print(f"ratios are to the best of {', '.join(OTHERS)}; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"{'reader':<16} {'seconds':>8} {'CPU':>8} {'× best':>8} {'× CPU':>8} {'MB':>8} {'× array':>8}")
    for reader, row in table.items():
        print(
            f"{reader:<16} {row['seconds']:>8.3f} {row['cpu_seconds']:>8.3f} {row['time_ratio']:>8.2f}"
            f" {row['cpu_ratio']:>8.2f} {row['megabytes']:>8.1f} {row['memory_ratio']:>8.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
