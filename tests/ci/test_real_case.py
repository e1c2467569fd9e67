"""Pull requests about the real dataset, on real git and with bubblewrap: three verdicts, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ci.comment import render, text
from ci.report import EXIT_CODES, is_waiting, parse
from tests.ci.helpers import git
from tests.ci.hugging_face import HuggingFace
from tests.ci.real_case import REPOSITORY, RealCase, files_of_the_hub
from tests.ci.real_prs import CASES
from tests.ci.test_sandbox import need_bubblewrap

SIGN = {"green": "## ✅", "red": "## ❌", "waiting": "## ⏳"}


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCase]:
    need_bubblewrap()
    with HuggingFace(REPOSITORY, files_of_the_hub()) as hub:
        yield RealCase(tmp_path_factory.mktemp("real-case"), hub)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_pull_request_gets_one_of_three_verdicts(name: str, real: RealCase, tmp_path: Path) -> None:
    case = CASES[name]
    fork = real.upstream.pull_request(name.replace(" ", "-").replace(",", ""), case.change)
    path, cache = tmp_path / "report.json", "" if case.server else str(tmp_path / "cache")
    code, output = real.judge(fork, path, base=case.base, dataset=case.dataset, server=case.server, cache=cache)
    report, records = parse(path.read_bytes())
    assert (report.verdict, report.green, code) == (case.verdict, case.verdict == "green", EXIT_CODES[case.verdict]), (
        output
    )
    for check, status, words in case.said:
        said = [finding for finding in report.findings if (finding.check, finding.status) == (check, status)]
        assert any(words in finding.detail for finding in said), f"{check} {status} {words}: {output}"
    assert len([record for record in records if record.ok]) == case.records, output
    assert all(record.provenance["commit"] == report.head and record.provenance["time"] for record in records)
    comment = render(report, records, real.upstream.base / "registry")
    sign = "## ⚠️" if report.core and report.green else SIGN[case.verdict]
    assert comment.splitlines()[2].startswith(sign), comment
    if case.verdict == "waiting":
        (reason, *_) = [text(finding.detail) for finding in report.findings if is_waiting(finding)]
        assert reason in comment.partition("**Next:**")[2]
    assert git(real.upstream.base, "status", "--porcelain") == ""
