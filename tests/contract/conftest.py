"""What the tests of the contract share."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.contract.helpers import write_good


@pytest.fixture(autouse=True)
def _own_registry(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests score plugins that nobody else knows: their records would be errors in everybody's registry."""
    folder = tmp_path_factory.mktemp("own") / "registry"
    shutil.copytree(os.environ["NEUCO_REGISTRY"], folder)
    monkeypatch.setenv("NEUCO_REGISTRY", str(folder))


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A folder for the Python path with a task and a method that keep the contract; a test may spoil them."""
    return write_good(tmp_path)
