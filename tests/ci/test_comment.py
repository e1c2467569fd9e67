"""The comment as a contributor reads it on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from ci.comment import plain, render
from ci.report import PluginReport, Report
from neuco_core.contract.contract import Finding

LONG = "the images do not tell the labels: " + "averaging reaches 0.01, shuffled labels 0.02; " * 6


def report() -> Report:
    findings = (
        Finding("task-files", "ink", "ok", "README.md, test.py"),
        Finding("task-headroom", "ink", "warning", LONG, "Say | why & how in the <card>"),
        Finding("card", "ink", "failed", "the card still asks: Say here \x1b[31mwhat", "Write it"),
    )
    plugin = PluginReport("neuco_tasks", "ink", "added", ("ink",), (), findings)
    return Report("0" * 40, "1" * 40, "bubblewrap", (plugin,), (), (), (), 12.3, 1)


def test_tables_are_columns_and_no_markup_is_left(tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    console = Console(width=90)
    with console.capture() as capture:
        console.print(plain(render(report(), [], tmp_path)))
    shown = capture.get()
    lines = shown.splitlines()
    assert "❌ 1 check failed" in shown
    assert "fix what is marked FAILED" in " ".join(shown.split())
    starts = [line.index("ink") for line in lines if line.strip().startswith(("ok ", "warning ", "FAILED "))]
    assert len(starts) == 3
    assert len(set(starts)) == 1, "columns stand below each other"
    assert max(map(len, lines)) <= 90
    words = " ".join(line[starts[0] + 3 :].strip() for line in lines if line.startswith(" ") and "ink" not in line[:30])
    assert "Say | why & how in the <card>" in " ".join(words.split()), "what a contributor wrote is as it was"
    assert not any(mark in shown for mark in ("<code>", "<details", "&#", "|---", "\x1b", "**"))


def test_a_terminal_gets_text_and_a_pipe_markdown(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(report().to_bytes())
    command = [sys.executable, "-m", "ci", "comment", "--report", str(path)]
    piped = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert piped == render(report(), [], root / "registry")
    ours, theirs = pty.openpty()
    subprocess.run(command, cwd=root, stdout=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    assert "<code>" not in shown
    assert "1 check failed" in shown
