"""Which engine runs contributed code, who decides it, and what is left when a run cannot even begin."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci import sandbox
from ci.__main__ import cli, sandbox_warnings, say
from ci.report import NO_COMMIT, parse
from ci.sandbox import SandboxError
from ci.sandbox.trust import translate
from neuco_core.errors import DataError, UsageError
from tests.ci.helpers import Upstream, ci
from tests.ci.prs import write_file
from tests.ci.test_sandbox import need_bubblewrap, run


@pytest.fixture
def bubblewrap() -> str:
    need_bubblewrap()
    return "bubblewrap"


def put_first(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A ``bwrap`` that is found before the machine's own."""
    (folder / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_without_bubblewrap_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for demanded in ("", "bubblewrap"):
        monkeypatch.setenv("NEUCO_CI_SANDBOX", demanded)
        with pytest.raises(SandboxError, match=r"not on the PATH\. Install it .*only for code that you trust.*--trust"):
            sandbox.run(("-c", "print(1)"), read={}, out=tmp_path / "out")


def test_a_bubblewrap_that_does_not_work_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_first(tmp_path, monkeypatch, "echo no namespaces for you >&2\nexit 1")
    with pytest.raises(SandboxError, match=r"does not work here: no namespaces for you\. Install it"):
        sandbox.run(("-c", "print(1)"), read={}, out=tmp_path / "out")


def test_bubblewrap_may_be_anywhere_on_the_path(
    bubblewrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_first(tmp_path, monkeypatch, f'touch {tmp_path}/used\nexec {shutil.which("bwrap")} "$@"')
    ran = run(bubblewrap, tmp_path, "print(1)")
    assert (ran.output, (tmp_path / "used").exists()) == ("1\n", True)


def test_an_old_bubblewrap_will_do_and_that_is_said(
    bubblewrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = 'case "$*" in *--disable-userns*) echo unknown option >&2; exit 1;; esac'
    put_first(tmp_path, monkeypatch, f'{refuse}\nexec {shutil.which("bwrap")} "$@"')
    assert run(bubblewrap, tmp_path, "print(1)").ok
    assert sandbox.protections()["no nested user namespaces"] is False
    (warning,) = sandbox_warnings("bubblewrap")
    assert (warning.status, warning.detail) == ("warning", "bubblewrap lacks here: no nested user namespaces")


def test_trust_is_never_chosen_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sandbox.engine(trusted=True) == "trust"
    monkeypatch.setenv("NEUCO_CI_SANDBOX", "trust")
    assert sandbox.engine() == "trust"
    monkeypatch.setenv("NEUCO_CI_SANDBOX", "bubblewrap")
    with pytest.raises(UsageError, match="--trust contradicts NEUCO_CI_SANDBOX=bubblewrap"):
        sandbox.engine(trusted=True)
    for typo in ("fallback", "bublewrap", "1"):
        monkeypatch.setenv("NEUCO_CI_SANDBOX", typo)
        with pytest.raises(UsageError, match=f"expected bubblewrap or trust, got '{typo}'"):
            sandbox.engine()


@pytest.mark.parametrize(
    ("argument", "translated"),
    [
        ("/out", "/a/out"),
        ("/out/tests.xml", "/a/out/tests.xml"),
        ("--junitxml=/out/tests.xml", "--junitxml=/a/out/tests.xml"),
        ("--rootdir=/tree", "--rootdir=/a/tree"),
        ("/outer", "/outer"),
        ("print('/out')", "print('/out')"),
        ("--x=1\n/out", "--x=1\n/out"),
    ],
)
def test_places_are_translated_without_a_sandbox(argument: str, translated: str) -> None:
    assert translate(argument, {"/out": Path("/a/out"), "/tree": Path("/a/tree")}) == translated


@pytest.fixture(scope="module")
def fork(upstream: Upstream) -> Path:
    return upstream.pull_request("page", write_file("docs/new.md", "# New\n"))


def test_a_run_without_a_sandbox_leaves_a_red_report(upstream: Upstream, fork: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(str(shutil.which("git")))
    path = tmp_path / "report.json"
    done = ci(upstream.base, "score-pr", "--head", str(fork), "--out", str(path), PATH=str(tmp_path / "bin"))
    report, _ = parse(path.read_bytes())
    (finding,) = report.findings
    assert (done.returncode, report.green, finding.check, len(set(report.head)) > 1) == (6, False, "judge", True)
    assert done.stderr.startswith("ci: error: no sandbox: bubblewrap (bwrap) is not on the PATH. Install it")
    assert "is not on the PATH" in finding.detail


def score_pr(*options: str) -> object:
    """How the command ends in this process."""
    try:
        return cli.main(["score-pr", *options], standalone_mode=False)
    except SystemExit as error:
        return error.code


@pytest.fixture
def signals() -> Iterator[None]:
    """The command takes signals over, and sets a timer."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    hook = sys.unraisablehook
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in before.items():
        signal.signal(number, handler)
    sys.unraisablehook = hook


@pytest.mark.usefixtures("signals")
def test_a_typo_a_folder_without_git_and_a_crash_leave_one_too(
    upstream: Upstream,
    fork: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, empty = tmp_path / "report.json", tmp_path / "empty"
    options = ("--out", str(path), "--head")
    monkeypatch.chdir(upstream.base)
    monkeypatch.setenv("NEUCO_CI_SANDBOX", "bublewrap")
    with pytest.raises(UsageError, match=r"expected bubblewrap or trust, got 'bublewrap'\. Correct or unset"):
        score_pr(*options, str(fork))
    assert not parse(path.read_bytes())[0].green
    monkeypatch.delenv("NEUCO_CI_SANDBOX")

    def broken(*_: object) -> None:
        raise RuntimeError("broken\n::add-mask::a\n  ::error::b\n##[error]c")

    capsys.readouterr()
    monkeypatch.setattr("ci.judge.changed", broken)
    assert score_pr(*options, str(fork), "--trust") == 1
    report, _ = parse(path.read_bytes())
    assert (report.green, report.findings[0].detail.count("RuntimeError: broken")) == (False, 1)
    printed = capsys.readouterr()
    assert printed.out.startswith("--trust: NO SANDBOX. The code can read, change and send whatever you can")
    assert "Traceback" in printed.err
    assert [line for line in printed.err.splitlines() if line.strip().startswith("::") or "##[" in line] == []
    monkeypatch.undo()
    empty.mkdir()
    monkeypatch.setenv("GIT_DIR", str(empty))
    with pytest.raises(DataError, match="git"):
        score_pr(*options, str(empty), "--trust")
    report, _ = parse(path.read_bytes())
    assert (report.green, report.head, report.sandbox) == (False, NO_COMMIT, "trust")


def test_what_is_logged_is_no_command_of_a_workflow(capsys: pytest.CaptureFixture[str]) -> None:
    say("::add-mask::x\n\t ::error::y\u2028::z\nok ##[set-env name=A]b\nneuco_tasks::a\x1b[1m")
    assert capsys.readouterr().out.splitlines() == [
        ": :add-mask::x",
        "\t : :error::y",
        ": :z",
        "ok ## [set-env name=A]b",
        "neuco_tasks::a\ufffd[1m",
    ]
