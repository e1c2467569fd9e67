"""Pull requests about the real dataset, on real git and with bubblewrap: three verdicts, each with its reason.

What pure functions decide about a pull request is in ``test_rules``; here is what needs labels, cubes and servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ci.comment import render, text
from ci.report import EXIT_CODES, is_waiting, parse
from neuco_tasks.ssl4eo_s12_downstream import fake
from tests.ci.helpers import change_file, git, need_bubblewrap, write_file
from tests.ci.hugging_face import HuggingFace
from tests.ci.real_case import (
    ENCODER,
    FILE_METHOD,
    HOME,
    REPOSITORY,
    SAMPLES,
    TEST,
    RealCase,
    embeddings_file,
    files_of_the_hub,
    label_table,
    sha256,
    write_method,
)

Change = Callable[[Path], None]
TASK = """
from neuco_core import Baseline, Remote, Task, hookimpl

@hookimpl
def neuco_tasks():
    yield Task(
        id="soil",
        title="Soil",
        description="How bright the ground is",
        dataset="ssl4eo_s12_downstream",
        kind="regression",
        unit="1",
        license="CC-BY-4.0",
        citation="10.1234/example",
        source=Remote("{url}", sha256="{sha256}"),
        baseline=Baseline(method="{baseline}", score=0.9, tolerance=0.1, protocol="ridge+k=3"),
    )
"""
MINE = f"{HOME}embeddings/mine.npz"
HUB = files_of_the_hub()
SOIL = f"{HOME}labels/soil__regr.csv"


def encoder(more: str = "") -> Change:
    """An encoder of the means of all bands."""
    return lambda fork: write_method(fork, "mine", ENCODER.format(name="mine", body="pass", more=more))


def file_method(fork: Path) -> None:
    """Embeddings that are published at Hugging Face, as LFS."""
    write_method(fork, "mine", FILE_METHOD.format(name="mine", url=MINE, sha256=sha256(HUB["embeddings/mine.npz"])))


def own_file_method(fork: Path) -> None:
    """Embeddings in the plugin itself."""
    data = embeddings_file(3)
    code = FILE_METHOD.format(name="mine", url="pkg://neuco_methods.mine/e.npz", sha256=sha256(data))
    write_method(fork, "mine", code, **{"e.npz": data})


def task(
    data: bytes = b"",
    url: str = "pkg://neuco_tasks.soil/labels.csv",
    baseline: str = "stored",
) -> Change:
    """A task whose labels are in the plugin, or at an address."""
    table = data or label_table(7)

    def change(fork: Path) -> None:
        folder = fork / "neuco_tasks" / "soil"
        folder.mkdir()
        code = TASK.format(url=url, sha256=sha256(table), baseline=baseline)
        (folder / "__init__.py").write_text(code)
        (folder / "README.md").write_text("# soil\n\nOf the rehearsal.\n")
        (folder / "test.py").write_text(TEST)
        if url.startswith("pkg://"):
            (folder / "labels.csv").write_bytes(table)

    return change


class Case(NamedTuple):
    """A pull request, the verdict that it deserves, and findings that must be there: check, status and message."""

    change: Change
    verdict: str
    expected: tuple[tuple[str, str, str], ...]
    records: int = 0
    base: str = "pinned"
    dataset: bool = False
    server: bool = True


NOT_PINNED = ("score", "skipped", "neuco data pin crops")
CASES = {
    "an encoder, the dataset is here": Case(
        encoder(),
        "green",
        (("score", "ok", "2 cells scored"), NOT_PINNED, ("method-covers", "ok", "120")),
        2,
        dataset=True,
    ),
    "an encoder, the dataset is elsewhere": Case(
        encoder(), "waiting", (("waiting", "skipped", "no local copy of the cubes is known"),)
    ),
    "a file method, the dataset is elsewhere": Case(
        file_method, "green", (("score", "ok", "2 cells scored"), NOT_PINNED), 2
    ),
    "a file method, no labels are pinned": Case(
        file_method, "waiting", (("waiting", "skipped", "neuco data pin biomass_mean"),), base="unpinned"
    ),
    "a file method, one pin of main does not match": Case(
        own_file_method,
        "green",
        (("score", "ok", "1 cells scored"), ("score", "skipped", "not the declared file")),
        1,
        base="mismatch",
    ),
    "a file method, the servers of the labels and of its own file are down": Case(
        file_method, "waiting", (("waiting", "skipped", "the server cannot be reached"),), server=False
    ),
    "a task, the dataset is elsewhere": Case(
        task(), "green", (("task-baseline", "ok", "stored reaches"), ("score", "skipped", "no local copy")), 1
    ),
    "a task, the dataset is here": Case(
        task(baseline="averaging"),
        "green",
        (
            ("task-baseline", "ok", "averaging reaches"),
            ("score", "skipped", "torchgeo"),
            ("score", "skipped", "RuntimeError: cheese"),
        ),
        4,
        dataset=True,
    ),
    "a task whose labels are at Hugging Face": Case(
        task(url=SOIL), "green", (("task-source", "ok", "verified soil__regr.csv"),), 1
    ),
    "a task for samples that nobody has": Case(
        task(data=label_table(7, [sha256(name.encode()) for name in fake.sample_ids(SAMPLES)])),
        "red",
        (("score", "failed", "stored on soil"),),
    ),
    "a change of a task without a pin": Case(
        change_file("neuco_tasks/crops/__init__.py", 'title="', 'title="The '),
        "waiting",
        (("waiting", "skipped", "neuco data pin crops"),),
    ),
    "a method that needs a missing package": Case(
        encoder(more=', requires=("timm",)'), "red", (("encode", "failed", "needs the package timm"),), dataset=True
    ),
    "only the card": Case(
        write_file("neuco_methods/averaging/README.md", "# averaging\n\naveraging and averaging_notebook.\n"),
        "green",
        (("score", "skipped", "only its card or its tests changed"), ("method-files", "ok", "README.md")),
    ),
}
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
    for check, status, message in case.expected:
        matching = [finding for finding in report.findings if (finding.check, finding.status) == (check, status)]
        assert any(message in finding.detail for finding in matching), f"{check} {status} {message}: {output}"
    assert len([record for record in records if record.ok]) == case.records, output
    assert all(record.provenance["commit"] == report.head and record.provenance["time"] for record in records)
    comment = render(report, records, real.upstream.base / "registry")
    sign = "## ⚠️" if report.core and report.green else SIGN[case.verdict]
    assert comment.splitlines()[2].startswith(sign), comment
    if case.verdict == "waiting":
        (reason, *_) = [text(finding.detail) for finding in report.findings if is_waiting(finding)]
        assert reason in comment.partition("**Next:**")[2]
    assert git(real.upstream.base, "status", "--porcelain") == ""
