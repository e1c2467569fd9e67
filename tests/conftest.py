"""What all tests share: a cache of their own, no settings of the person who runs them, the plugins of tests."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from neuco_core.plugins import catalog as catalog_module
from tests.parts import missing
from tests.registry import copy_registry

# Workers, and the processes that tests start, share the cores: threads of linear algebra would wait for each other
# (`neuco predict suggest geobench-2 --number 1`: 19 s of processor time, and 3 s with one thread).
os.environ.setdefault("OMP_NUM_THREADS", "1")
# How long an example takes says nothing where others use the machine, too.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session", autouse=True)
def _own_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing of the user's: a fresh cache and a copy of the registry, and no NEUCO_ variable from outside."""
    # Hundreds of processes are started: each is quicker if Python may keep what it compiled.
    unwanted = [name for name in os.environ if name.startswith("NEUCO_") or name == "PYTHONDONTWRITEBYTECODE"]
    kept = {name: os.environ.pop(name) for name in unwanted}
    folder = tmp_path_factory.getbasetemp()
    os.environ["NEUCO_CACHE"] = str(folder / "cache")
    # Kernels that are compiled for sandboxes: once for all workers, as they depend on nothing and take 12 s.
    kernel = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "kernel"
    kernel.mkdir(exist_ok=True)
    (folder / "cache").mkdir()
    (folder / "cache" / "kernel").symlink_to(kernel)
    # A copy: no test may write records into the checkout, or depend on what somebody scored there.
    os.environ["NEUCO_REGISTRY"] = str(copy_registry(folder / "registry"))
    yield
    del os.environ["NEUCO_CACHE"], os.environ["NEUCO_REGISTRY"]
    os.environ.update(kept)


@pytest.fixture(scope="session", autouse=True)
def _can_be_interrupted() -> None:
    """A run in the background of a shell ignores SIGINT, and so would every process that a test interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _fresh_catalog() -> Iterator[None]:
    """The catalog is kept for the life of a process; a test that changes the plugins must not leak into others."""
    yield
    catalog_module.catalog.cache_clear()


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def committed_registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the committed registry to read; commands that tests run may add records to the other copy."""
    return copy_registry(tmp_path_factory.mktemp("committed") / "registry")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One for all tests of a process: playwright starts no second."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright", "not installed; it is part of neuco[test]")
    if path is None:
        missing("chromium", "not installed; see ci/parts.sh")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield found
        found.close()
