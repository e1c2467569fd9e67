"""How long mini takes to make, and how near its band means are to the true ones: `python benchmarks/mini.py`."""

from __future__ import annotations

import os
import resource
import time

import numpy as np

from neuco_core.cubes.cubes import batches
from neuco_tasks.mini.cubes import MiniCubes
from neuco_tasks.mini.test import TRUE_MEANS


def main() -> None:
    source = MiniCubes()
    wall, cpu = time.perf_counter(), time.process_time()
    means = [batch.values.mean(axis=(1, 3, 4), dtype=np.float64) for batch in batches(source, 64)]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    count = len(source.ids())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count} samples: {wall:.1f} s on {os.cpu_count()} cores, {cpu:.1f} s of CPU, peak memory {peak:.0f} MB")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    found = np.concatenate(means).mean(axis=0)
    true = np.concatenate([np.array(values, dtype=float) for values in TRUE_MEANS.values()])
    print(f"{'band':12} {'mini':>9} {'SSL4EO-S12':>10} {'ratio':>6}")
    for band, here, there in zip(source.bands, found, true, strict=True):
        print(f"{band:12} {here:9.2f} {there:10.2f} {here / there:6.3f}")


if __name__ == "__main__":
    main()
