"""The benchmark of reading runs and reports what it promises; its figures are not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import missing

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_benchmark_of_reading() -> None:
    if not Path("/proc/self/status").exists():
        missing("/proc", "peak memory is read from there")
    command = [sys.executable, str(ROOT / "benchmarks" / "read.py"), "--rows", "40", "--dim", "3", "--rounds", "1"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode in (0, 1), done.stderr
    table = json.loads(done.stdout)
    assert set(table) == {"pyarrow csv", "neuco csv", "neuco parquet", "neuco npz", "neuco npy"}
    assert table["pyarrow csv"]["time_ratio"] == 1
    for row in table.values():
        assert set(row) == {"seconds", "cpu_seconds", "time_ratio", "megabytes", "memory_ratio"}
        assert row["seconds"] > 0
