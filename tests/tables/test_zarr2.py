"""The cubes with the older line of the zarr library, which may be what a user has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import missing

ROOT = Path(__file__).parents[2]
# What zarr 2 needs beside NumPy; installed without dependencies, so that NumPy stays the one that is tested.
PACKAGES = ("zarr>=2.18,<3", "numcodecs<0.16", "asciitree", "fasteners", "deprecated", "wrapt")


@pytest.mark.slow
def test_cubes_are_read_with_zarr_2(tmp_path: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), *PACKAGES]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        missing("package index", "zarr 2 cannot be installed", done.stderr)
    # Entry points of the installed zarr 3 would be loaded by pytest from the zarr that is not there.
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    version = [sys.executable, "-c", "import zarr; print(zarr.__version__)"]
    assert subprocess.run(version, env=environment, capture_output=True, text=True, check=True).stdout.startswith("2.")
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/tables/test_cubes.py"]
    done = subprocess.run(tests, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
