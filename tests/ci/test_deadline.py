"""However a run ends, at its deadline or by a signal, it leaves a red report and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ci.report import parse
from tests.ci.helpers import Upstream
from tests.ci.prs import both, change_file, method
from tests.ci.test_sandbox import need_bubblewrap

SLEEPS = both(
    method, change_file("neuco_methods/plain/__init__.py", "class Flat", "import time\ntime.sleep(1e6)\nclass Flat")
)


@pytest.mark.parametrize(("name", "code"), [pytest.param("SIGINT", 130, marks=pytest.mark.slow), ("SIGTERM", 143)])
def test_a_signal_leaves_a_red_report_and_no_scratch_folder(
    name: str, code: int, upstream: Upstream, tmp_path: Path
) -> None:
    need_bubblewrap()
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
from ci.__main__ import Stopped, _stop_at

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
        time.sleep(2.5)  # is not disturbed
        print("cleaned up")
except Stopped as stopped:
    print("ended by", stopped.number)
"""


def test_a_signal_that_python_drops_comes_again(root: Path) -> None:
    """What is raised inside a finaliser is dropped; then nothing would end the run before its limits do."""
    done = subprocess.run([sys.executable, "-c", DROPPED], cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (f"cleaned up\nended by {signal.SIGTERM.value}\n", "")
