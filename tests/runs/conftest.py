from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.conftest import case, parity_tasks, private_folders, site  # noqa: F401 - fixtures
from tests.runs.helpers import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
