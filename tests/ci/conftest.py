from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ci.describe import CATALOG, catalog_bytes, describe_all
from ci.plugin_sandbox import PluginSandbox
from ci.sandbox import Limits
from tests.ci.helpers import WHO, Upstream
from tests.parts import missing


@pytest.fixture(autouse=True)
def _nobodys_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Git in this process, too, as somebody who has set up nothing: what the user has set up would hide that."""
    for name, value in {**WHO, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    """One upstream for all pull requests that are not merged."""
    if shutil.which("git") is None:
        missing("git", "the rehearsal needs it")
    folder = tmp_path_factory.mktemp("upstream")
    upstream = Upstream(folder / "upstream")
    if shutil.which("bwrap"):  # with its catalogue, as main has it: else each rehearsal would ask every plugin
        boxes = PluginSandbox(upstream.base, folder / "scratch", Limits())
        (upstream.base / CATALOG).write_bytes(catalog_bytes(describe_all(boxes), upstream.base))
        upstream.commit("Catalogue")
    return upstream


@pytest.fixture
def fresh_upstream(tmp_path: Path) -> Upstream:
    """An upstream to merge into."""
    return Upstream(tmp_path / "own")
