"""The benchmark of reading runs and reports what it promises; its figures are not judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import python
from tests.parts import missing


@pytest.mark.slow
def test_benchmark_of_reading(root: Path) -> None:
    if not Path("/proc/self/status").exists():
        missing("/proc", "peak memory is read from there")
    done = python("benchmarks/read.py", "--rows", "2000", "--dim", "30", "--rounds", "1", "--json", cwd=root)
    assert done.code in (0, 1), done.err
    table = json.loads(done.out)
    ours = {"neuco csv", "neuco parquet", "neuco npz", "neuco npy"}
    assert set(table) - {"polars csv"} == {"pandas csv", "pyarrow csv", *ours}
    assert min(row["time_ratio"] for name, row in table.items() if name not in ours) == 1
    for row in table.values():
        assert set(row) == {"seconds", "cpu_seconds", "time_ratio", "cpu_ratio", "megabytes", "memory_ratio"}
        assert row["seconds"] > 0
