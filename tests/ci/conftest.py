from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ci.report import parse
from tests.ci.helpers import WHO, Reports, Upstream, ci
from tests.ci.prs import method, task
from tests.ci.test_sandbox import need_bubblewrap
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
    return Upstream(tmp_path_factory.mktemp("upstream"))


@pytest.fixture
def own_upstream(tmp_path: Path) -> Upstream:
    """An upstream to merge into."""
    return Upstream(tmp_path / "own")


@pytest.fixture(scope="session")
def reports(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """Each is made once, and then addressed to the merge in question."""
    need_bubblewrap()
    folder = tmp_path_factory.mktemp("reports")
    made = []
    for name, change in (("task", task), ("method", method)):
        fork = upstream.pull_request(f"published-{name}", change)
        out = folder / f"{name}.json"
        done = ci(upstream.base, "score-pr", "--head", str(fork), "--out", str(out))
        assert done.returncode == 0, done.stdout + done.stderr
        made.append(parse(out.read_bytes())[0])
    return Reports(*made)
