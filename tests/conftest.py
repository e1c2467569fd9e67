"""What all tests share: a cache of their own, no settings of the person who runs them, the plugins of tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuco_core.plugins import catalog as catalog_module


@pytest.fixture(scope="session", autouse=True)
def _own_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing of the user's: a fresh cache and a copy of the registry, and no NEUCO_ variable from outside."""
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("NEUCO_")}
    folder = tmp_path_factory.getbasetemp()
    os.environ["NEUCO_CACHE"] = str(folder / "cache")
    # A copy: no test may write records into the checkout.
    shutil.copytree(Path(__file__).resolve().parent.parent / "registry", folder / "registry")
    os.environ["NEUCO_REGISTRY"] = str(folder / "registry")
    yield
    del os.environ["NEUCO_CACHE"], os.environ["NEUCO_REGISTRY"]
    os.environ.update(kept)


@pytest.fixture(autouse=True)
def _fresh_catalog() -> Iterator[None]:
    """The catalog is kept for the life of a process; a test that changes the plugins must not leak into others."""
    yield
    catalog_module.catalog.cache_clear()


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return Path(__file__).resolve().parent.parent
