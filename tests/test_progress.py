"""A bar where somebody watches, a line a minute elsewhere, or a callback."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from neuco_core.progress import ProgressLines, SampleCounter, sample_progress, show_progress
from tests.terminal import read_terminal


def test_a_line_a_minute_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, 30.0, 61.0, 62.0, 122.0])
    tell = ProgressLines(clock=lambda: next(clock))
    for share in (0.1, 0.2, 0.3, 0.5):
        tell(share, "task")
    assert capsys.readouterr().err.splitlines() == [
        "task: 20 %, 1 min 01 s so far, 4 min 04 s left",
        "task: 50 %, 2 min 02 s so far, 2 min 02 s left",
    ]


def test_samples_of_an_earlier_run_cost_no_time() -> None:
    now = [0.0]
    counter = SampleCounter("vit", 1000, clock=lambda: now[0])
    counter(500, made=False)
    for _ in range(60):
        now[0] += 1.0
        counter(2, 20_000_000)
    assert str(counter) == "vit: 620 of 1000 samples, 2 samples/s, 20 MB/s"
    assert counter.share == pytest.approx(120 / 500)


def test_a_callback_is_told_and_false_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[int, int]] = []
    with sample_progress("vit", 3, lambda done, total: told.append((done, total))) as count:
        count(1)
        count(2, made=False)
    assert told == [(1, 3), (3, 3)]
    with show_progress(False) as silent, sample_progress("vit", 3, False) as count:
        assert silent is None
        count(3)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar_that_names_the_work() -> None:
    code = "from neuco_core.progress import show_progress\nwith show_progress() as tell: tell(0.5, 'half [way]')"
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs) as process:
        os.close(theirs)
        shown = read_terminal(ours).decode()
    os.close(ours)
    assert (process.returncode, "half [way]" in shown) == (0, True)
