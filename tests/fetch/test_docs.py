"""docs/data.md: every command in it is run, and its output is as shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from neuco_core import list_tasks
from neuco_core.cli.data import COMMANDS
from neuco_core.errors import EXIT_CODES
from tests import console
from tests.fetch.http_server import FileServer
from tests.fetch.s3_server import KEY, SECRET, S3Server

PH = "id,label,depth\n" + "".join(f"site-{i},{4 + i / 8},10\n" for i in range(40)) + "site-99,,10\n"


def labels(task: str) -> str:
    """A file of labels as it is published, different from that of every other task: a row has no label."""
    rows = "".join(f"{i:064x},{i * 0.25},1\n" for i in range(40))
    return f"id,label,{task}_phase\n{rows}{'f' * 64},,1\n"


@pytest.fixture
def text(root: Path) -> str:
    return (root / "docs" / "data.md").read_text(encoding="utf-8")


@pytest.fixture
def environment(server: FileServer, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The world of the document: a Hugging Face server, two buckets, a local copy and a file of labels."""
    for task in list_tasks(suite="neuco-real"):
        path = task.source.url.removeprefix("hf://").replace("@", "/resolve/")
        server.http.files[f"/{path}"] = labels(task.id).encode()
    copy = tmp_path / "home" / "data" / "SSL4EO-S12-downstream" / "labels"
    copy.mkdir(parents=True)
    (copy / "clouds_reg__regr.csv").write_text(labels("clouds"))
    (tmp_path / "ph.csv").write_text(PH)
    s3.bucket("my-bucket")
    s3.bucket("my-private-bucket", public=False)
    values = {"HOME": str(tmp_path / "home"), "HF_ENDPOINT": server.base, "AWS_ENDPOINT_URL": s3.endpoint}
    return {**values, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "COLUMNS": "200"}


def test_every_command_does_what_the_document_shows(text: str, environment: dict[str, str], tmp_path: Path) -> None:
    failures = []
    for step in console.steps(text):
        done = console.run(step, tmp_path, environment)
        ok = done.returncode == 0
        meant = not any(line.startswith("neuco: error") for line in step.expected)
        if ok != meant or not (step.python or console.matches(step.expected, done.stdout)):
            shown = "\n".join(step.expected)
            failures.append(
                f"line {step.line}: {step.command}\nended with {done.returncode}\n{done.stdout}\nnot\n{shown}"
            )
    assert not failures, "\n\n".join(failures)


def test_every_command_is_documented(text: str) -> None:
    run = [step.command for step in console.steps(text) if not step.python]
    for name in COMMANDS:
        assert any(f"neuco data {name}" in command for command in run), f"neuco data {name} is not in docs/data.md"


def test_the_table_of_exit_codes_is_that_of_the_errors(text: str) -> None:
    documented = {int(line.split("|")[1]) for line in text.splitlines() if line.startswith("| ") and line[2].isdigit()}
    assert documented <= set(EXIT_CODES)
    assert {0, 2, 3, 4, 7} <= documented


def test_every_setting_is_documented(text: str, root: Path) -> None:
    sources = (root / "neuco_core" / "data").glob("*.py")
    names = {name for path in sources for name in re.findall(r'"((?:NEUCO|HF)_[A-Z_]+)"', path.read_text())}
    missing = {name for name in names if f"`{name}" not in text}
    assert not missing


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        (("a … c",), "a b c\n", True),
        (("a … c",), "a b d\n", False),
        (("a", "…", "c"), "a\nb\nb\nc\n", True),
        (("a",), "a\nb\n", False),
        (("x  1", "-  ---"), "x     1\n-  -----\n", True),
    ],
)
def test_the_comparison_itself(expected: tuple[str, ...], output: str, same: bool) -> None:
    assert console.matches(expected, output) is same
