from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ci.describe import CATALOG, catalog_bytes, describe_all
from ci.plugin_sandbox import PluginSandbox
from ci.sandbox import Limits
from tests.ci.helpers import WHO, Upstream, need_bubblewrap
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
    need_bubblewrap()
    folder = tmp_path_factory.mktemp("upstream")
    upstream = Upstream(folder / "upstream")
    # With its catalogue, as main has it: else each rehearsal would ask every plugin.
    boxes = PluginSandbox(upstream.base, folder / "scratch", Limits())
    (upstream.base / CATALOG).write_bytes(catalog_bytes(describe_all(boxes), upstream.base))
    upstream.commit("Catalogue")
    return upstream


@pytest.fixture
def fresh_upstream(tmp_path: Path) -> Upstream:
    need_bubblewrap()
    return Upstream(tmp_path / "own")
