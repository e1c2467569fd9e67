"""Pull requests on real git repositories: each gets the verdict and the comment that it deserves."""

from __future__ import annotations

from pathlib import Path

import pytest
from ci.publish import publish

from ci.comment import render
from ci.report import parse
from neuco_core.errors import DataError
from tests.ci.helpers import Upstream, ci, git
from tests.ci.prs import CASES

GOOD = ("a good task", "a good method", "a rename", "a removal")


@pytest.mark.parametrize(("name", "option"), [*((name, "") for name in CASES), *((name, "--trust") for name in GOOD)])
def test_a_pull_request_gets_its_verdict_and_its_comment(
    name: str, option: str, upstream: Upstream, tmp_path: Path
) -> None:
    case = CASES[name]
    fork = upstream.pull_request(f"{name.replace(' ', '-')}{option}", case.change)
    path = tmp_path / "report.json"
    limits = ("--seconds", str(case.seconds), "--memory", "2500", *([option] if option else []))
    done = ci(upstream.base, "score-pr", "--head", str(fork), "--out", str(path), *limits)
    report, records = parse(path.read_bytes())
    assert (done.returncode == 0, report.green) == (case.green, case.green), done.stdout + done.stderr
    assert report.sandbox == ("trust" if option else "bubblewrap")
    assert tuple(f"{plugin.tree}/{plugin.name}" for plugin in report.plugins) == case.plugins
    said = [finding.detail for finding in report.findings if finding.check == case.check]
    assert any(case.words in detail for detail in said), done.stdout
    comment = render(report, records, upstream.base / "registry")
    assert comment.splitlines()[2].startswith("## ❌" if not case.green else "## ⚠️" if report.core else "## ✅")
    assert "❌" in comment or case.green
    if not case.green:
        with pytest.raises(DataError, match="not green"):
            publish(upstream.base, [path.read_bytes()])
    assert git(upstream.base, "status", "--porcelain") == ""
