"""The cubes with the oldest numcodecs that we say we work with."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.command import python
from tests.parts import missing


@pytest.mark.slow
def test_cubes_are_read_with_the_oldest_codecs(tmp_path: Path, root: Path) -> None:
    (named,) = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]["cubes"]
    package, _, version = named.partition(">=")
    # Without dependencies, so that NumPy stays the one that is tested.
    place = tmp_path / "packages"
    installed = python("-m", "pip", "install", "--quiet", "--no-deps", "--target", place, f"{package}=={version}")
    if installed.code:
        missing("package index", f"{package} {version} cannot be installed", installed.err)
    # Plugins of pytest that import zarr would meet codecs that are too old for it.
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    imported = python("-c", f"import {package}; print({package}.__version__)", env=env, path=place).out
    assert imported.strip() == version
    unpickle = (
        "import numcodecs; codec = numcodecs.Pickle(); codec.decode(codec.encode(numcodecs.compat.np.array(['x'])))"
    )
    assert "UnsafeDecodeError" in python("-c", unpickle, env=env, path=place).err
    # In a folder of its own: else pytest removes, when it ends, what earlier runs of all tests have left, for a minute.
    basetemp = ("-p", "no:cacheprovider", "--basetemp", tmp_path / "own")
    tests = ("-m", "pytest", "-q", *basetemp, "tests/cubes/test_cubes.py")
    done = python(*tests, env=env, path=place, cwd=root)
    assert done.code == 0, done.out[-3000:]
    assert " passed" in done.out
    assert "skipped" not in done.out
