"""The cubes with the older line of the zarr library, which may be what a user has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import python
from tests.parts import missing

# What zarr 2 needs beside NumPy; installed without dependencies, so that NumPy stays the one that is tested.
PACKAGES = ("zarr>=2.18,<3", "numcodecs<0.16", "asciitree", "fasteners", "deprecated", "wrapt")


@pytest.mark.slow
def test_cubes_are_read_with_zarr_2(tmp_path: Path, root: Path) -> None:
    installed = python("-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path, *PACKAGES)
    if installed.code:
        missing("package index", "zarr 2 cannot be installed", installed.err)
    # Entry points of the installed zarr 3 would be loaded by pytest from the zarr that is not there.
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    assert python("-c", "import zarr; print(zarr.__version__)", env=env, path=tmp_path).out.startswith("2.")
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/cubes/test_cubes.py")
    done = python(*tests, env=env, path=tmp_path, cwd=root)
    assert done.code == 0, done.out[-3000:]
    assert " passed" in done.out
    assert "skipped" not in done.out
