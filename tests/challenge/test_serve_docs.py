"""The commands of docs/challenge-server.md, run as the page shows them, and its table of limits."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from neuco_core.env import how_to_install
from neuco_extensions.challenge.serve import GOODBYE, LEFT_OVER
from neuco_extensions.challenge.web.guard import LARGEST_HEADERS
from neuco_extensions.challenge.web.uploads import ServerLimits
from tests import console
from tests.parts import missing

ADDRESS = "http://127.0.0.1:8080/"


@pytest.fixture
def text(root: Path) -> str:
    return (root / "docs/challenge-server.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_do_what_the_page_shows(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("curl") is None:
        missing("curl", "not installed")
    monkeypatch.chdir(tmp_path)
    token, address, server = "", "", None
    try:
        for step in console.steps(text):
            if step.python:
                exec(compile(step.command, "page", "exec"), {})
                continue
            command = step.command.replace("$TOKEN", token).replace(ADDRESS, address)
            if command.startswith("neuco challenge serve"):
                words = shlex.split(command.replace("8080", "0"))[1:]
                server = subprocess.Popen(
                    [sys.executable, "-m", "neuco_core.cli", *words], stdout=subprocess.PIPE, text=True
                )
                assert server.stdout
                said = server.stdout.readline()
                address = said.split()[-1]
                assert (said.replace(address, ADDRESS).strip(),) == step.expected
                continue
            if command.startswith("curl "):
                said = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True).stdout + "\n"
                assert console.matches(step.expected, said), (command, said)
                continue
            done = console.run(replace(step, command=command), tmp_path, {"HOME": str(tmp_path)})
            assert done.returncode == 0, done.stdout
            assert console.matches(step.expected, done.stdout)
            token = done.stdout.strip() if command.startswith("neuco challenge team") else token
        assert server
        server.terminate()
        assert server.wait(30) == 0
    finally:
        if server and server.poll() is None:
            os.kill(server.pid, 9)
            server.wait()
        if server and server.stdout:
            server.stdout.close()


def test_the_limits_are_those_of_the_code(text: str) -> None:
    limits = ServerLimits()
    for words in (
        how_to_install("challenge"),
        f"{limits.uploads} in all (`--uploads`, else 503), {limits.uploads_of_team} of a team",
        f"no pause over {limits.stall:.0f} s; after {limits.grace:.0f} s at least {limits.slowest:,.0f} bytes a second "
        f"on average; {limits.deadline:,.0f} s in all",
        f"{limits.connections} (else 503); one that brings no whole request within {limits.headers:.0f} to "
        f"{2 * limits.headers:.0f} s",
        f"{LARGEST_HEADERS:,} bytes",
        f"uploads get {GOODBYE} s to end",
    ):
        assert words in re.sub(r"\s+", " ", text), words
    assert LEFT_OVER == 3600  # an hour
