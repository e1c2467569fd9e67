"""However a run of ``score-pr`` ends, by an error, at its deadline or by a signal, it leaves a red report."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci.__main__ import cli, say
from ci.report import NO_COMMIT, parse
from neuco_core.errors import DataError
from tests.ci.helpers import Upstream, both, change_file, ci, method, write_file


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
def test_a_folder_without_git_and_a_crash_leave_one_too(
    upstream: Upstream,
    fork: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, empty = tmp_path / "report.json", tmp_path / "empty"
    options = ("--out", str(path), "--head")
    monkeypatch.chdir(upstream.base)

    def broken(*_: object) -> None:
        raise RuntimeError("broken\n::add-mask::a\n  ::error::b\n##[error]c")

    capsys.readouterr()
    monkeypatch.setattr("ci.judge.changed", broken)
    assert score_pr(*options, str(fork)) == 1
    report, _ = parse(path.read_bytes())
    assert (report.green, report.findings[0].detail.count("RuntimeError: broken")) == (False, 1)
    printed = capsys.readouterr()
    assert printed.out.startswith("sandbox: bubblewrap, ")
    assert "Traceback" in printed.err
    assert [line for line in printed.err.splitlines() if line.strip().startswith("::") or "##[" in line] == []
    monkeypatch.undo()
    empty.mkdir()
    monkeypatch.setenv("GIT_DIR", str(empty))
    with pytest.raises(DataError, match="git"):
        score_pr(*options, str(empty))
    report, _ = parse(path.read_bytes())
    assert (report.green, report.head) == (False, NO_COMMIT)


def test_what_is_logged_is_no_command_of_a_workflow(capsys: pytest.CaptureFixture[str]) -> None:
    say("::add-mask::x\n\t ::error::y\u2028::z\nok ##[set-env name=A]b\nneuco_tasks::a\x1b[1m")
    assert capsys.readouterr().out.splitlines() == [
        ": :add-mask::x",
        "\t : :error::y",
        ": :z",
        "ok ## [set-env name=A]b",
        "neuco_tasks::a\ufffd[1m",
    ]


SLEEPS = both(
    method, change_file("neuco_methods/plain/__init__.py", "class Flat", "import time\ntime.sleep(1e6)\nclass Flat")
)


@pytest.mark.parametrize(("name", "code"), [pytest.param("SIGINT", 130, marks=pytest.mark.slow), ("SIGTERM", 143)])
def test_a_signal_leaves_a_red_report_and_no_scratch_folder(
    name: str, code: int, upstream: Upstream, tmp_path: Path
) -> None:
    fork = upstream.pull_request(f"sleeps-{name}", SLEEPS)
    path, scratch = tmp_path / "report.json", tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(upstream.base), "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "ci", "score-pr", "--head", str(fork), "--out", str(path)]
    with subprocess.Popen(command, cwd=upstream.base, env=environment, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 120
        while not list(scratch.glob("*/*/plugin")) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert not parse(path.read_bytes())[0].green  # there from the beginning
        process.send_signal(getattr(signal, name))
        _, errors = process.communicate(timeout=60)
    report, _ = parse(path.read_bytes())
    assert (process.returncode, report.green, list(scratch.iterdir())) == (code, False, []), errors
    assert "Traceback" not in errors
    assert "ended from outside" in report.findings[0].detail


DROPPED = """
import os, signal, time
import ci.__main__
from ci.__main__ import Stopped, _stop_at
ci.__main__.AGAIN = 0.2

class Finaliser:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)

_stop_at(5)
try:
    try:
        Finaliser()
        time.sleep(60)
    finally:
        time.sleep(0.6)  # is not disturbed
        print("cleaned up")
except Stopped as stopped:
    print("ended by", stopped.number)
"""


def test_a_signal_that_python_drops_comes_again(root: Path) -> None:
    """What is raised inside a finaliser is dropped; then nothing would end the run before its limits do."""
    done = subprocess.run([sys.executable, "-c", DROPPED], cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (f"cleaned up\nended by {signal.SIGTERM.value}\n", "")
