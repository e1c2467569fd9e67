from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.ci.helpers import Upstream
from tests.parts import missing


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    """One upstream for all pull requests that are not merged."""
    if shutil.which("git") is None:
        missing("git", "the rehearsal needs it")
    return Upstream(tmp_path_factory.mktemp("upstream"))


@pytest.fixture
def own_upstream(tmp_path: Path) -> Upstream:
    """An upstream to merge into."""
    return Upstream(tmp_path / "own")
