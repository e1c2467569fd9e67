"""The pages about challenges do what they say: their commands are run, their defaults and limits looked up."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from neuco_core.tables.embeddings import make_embeddings, read_embeddings, write_embeddings
from neuco_extensions.challenge.audit import CHECKS
from neuco_extensions.challenge.command import challenge
from neuco_extensions.challenge.journal import MESSAGES
from neuco_extensions.challenge.rules import ChallengeLimits, Phase, TaskRule, load_challenge
from neuco_extensions.challenge.serve import GOODBYE, LARGEST_HEADERS, LEFT_OVER
from neuco_extensions.challenge.web.uploads import ServerLimits
from tests import console
from tests.challenge.evalai import TOKEN, EvalAI
from tests.command import neuco_here
from tests.parts import missing

DOCS = Path(__file__).parents[2] / "docs"
ELSEWHERE = {"serve", "worker", "export"}  # commands with pages of their own
ADDRESS = "http://127.0.0.1:8080/"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_command_prints_what_the_pages_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(DOCS.parent))
    settings = {"HOME": str(tmp_path / "home"), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    text = page("howto/challenge/host.md")
    failures = console.play(text, tmp_path, settings, {})
    assert not failures, "\n\n".join(failures)
    run = [step.command for step in console.steps(text)]
    shown = {name for name in challenge.commands if any(f"neuco challenge {name}" in line for line in run)}
    assert set(challenge.commands) - ELSEWHERE == shown

    shutil.copy(tmp_path / "first/ids.txt", tmp_path)
    shutil.copytree(tmp_path / "first/public", tmp_path / "public")
    averaged = read_embeddings(tmp_path / "averaging.npz")
    write_embeddings(make_embeddings(averaged.ids, averaged.values[:, :256]), tmp_path / "mine.npz")
    monkeypatch.chdir(tmp_path)
    failures = console.play(page("howto/challenge/teams.md"), tmp_path, settings, {})
    assert not failures, "\n\n".join(failures)


def test_a_challenge_from_an_empty_folder_to_the_audit(tmp_path: Path) -> None:
    """All commands of a host in this process; the page's are run as it shows them, which takes longer."""
    folder, file = tmp_path / "first", tmp_path / "mine.npz"

    def run(*words: object) -> str:
        ran = neuco_here("challenge", *words)
        assert ran.code == 0, ran.text
        return ran.out

    run("init", folder)
    run("team", folder, "alpha", "--title", "Alpha")
    run("seal", folder)
    ids = (folder / "ids.txt").read_text().split()
    write_embeddings(make_embeddings(ids, np.random.default_rng(0).normal(size=(len(ids), 4))), file)
    run("check", file, "--ids", folder / "ids.txt")
    for phase, day in (("dev", "2025-01-10T00:00:00Z"), ("test", "2025-02-10T00:00:00Z")):
        assert "received; receipt" in run("submit", folder, file, "--team", "alpha", "--phase", phase, "--at", day)
    write_embeddings(make_embeddings(ids[1:], np.zeros((len(ids) - 1, 4))), file)  # which lacks an id
    run("submit", folder, file, "--team", "alpha", "--phase", "dev", "--at", "2025-01-11T00:00:00Z")
    assert run("evaluate", folder, "--jobs", 2).endswith("\n2 scored, 1 failed\n")
    assert "scored" in run("status", folder)
    assert "Alpha" in run("board", folder, "test")
    assert "alpha is new" in run("board", folder, "test", "--final", "--history")
    assert str(folder / "public/reveal.json") in run("close", folder)
    assert run("audit", folder).count(" ok ") == len(CHECKS)


def submit_two(server: EvalAI, folder: Path) -> None:
    """One file with the ids of the challenge, and one with some of them."""
    ids = load_challenge(folder / "ours").ids("dev")
    values = np.random.default_rng(0).normal(size=(len(ids), 4))
    for number, count in ((1, len(ids)), (2, 5)):
        write_embeddings(make_embeddings(ids[:count], values[:count]), folder / "a.csv")
        server.submit(number, (folder / "a.csv").read_bytes())
        server.submissions[number]["submitted_at"] = "2025-01-10T12:00:00Z"


@pytest.mark.slow
def test_the_page_about_evalai_does_what_it_says(tmp_path: Path) -> None:
    rules = tmp_path / "ours" / "challenge.toml"
    with EvalAI(visibility=60.0) as server:
        settings = {"EVALAI_TOKEN": TOKEN, "EVALAI_SERVER": server.url}
        for step in console.steps(page("howto/challenge/platforms.md")):
            if " seal " in step.command:  # nobody wants to wait for a whole minute here
                rules.write_text(rules.read_text().replace("tick = 60", "tick = 3"))
            if " worker " in step.command:
                submit_two(server, tmp_path)
            done = console.run(step, tmp_path, settings)
            assert done.returncode == 0, done.stdout
            assert console.matches(step.expected, done.stdout), f"{step.command}\n{done.stdout}"
        assert (server.status(1), server.status(2)) == ("finished", "failed")
        assert server.submissions[2]["stderr"] == MESSAGES["ids"]


@pytest.mark.slow
def test_the_page_about_the_server_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("curl") is None:
        missing("curl", "not installed")
    monkeypatch.chdir(tmp_path)
    token, address = "", ""
    with ExitStack() as stack:
        for step in console.steps(page("howto/challenge/server.md")):
            if step.python:
                exec(compile(step.command, "page", "exec"), {})
                continue
            command = step.command.replace("$TOKEN", token).replace(ADDRESS, address)
            if command.startswith("neuco challenge serve"):
                words = [sys.executable, "-m", "neuco_core.cli", *shlex.split(command.replace("8080", "0"))[1:]]
                server = stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
                stack.callback(server.kill)
                assert server.stdout
                out = server.stdout.readline()
                address = out.split()[-1]
                out = out.replace(address, ADDRESS)
            elif command.startswith("curl "):
                out = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True).stdout + "\n"
            else:
                done = console.run(replace(step, command=command), tmp_path, {"HOME": str(tmp_path)})
                assert done.returncode == 0, done.stdout
                out = done.stdout
                token = out.split()[-1] if command.startswith("neuco challenge team") else token
            assert console.matches(step.expected, out), (command, out)
        server.terminate()
        assert server.wait(30) == 0


def test_the_ways_to_send_a_file_are_those_of_the_server() -> None:
    """They are run on the server's page."""
    commands = [line for line in page("howto/challenge/teams.md").splitlines() if line.startswith("curl ")]
    assert commands
    assert all(f"$ {line}\n" in page("howto/challenge/server.md") for line in commands)


def test_every_field_of_the_rules_is_explained() -> None:
    text = page("ref/challenge.md")
    for name in (*Phase.__struct_fields__, *(f"limits.{field}" for field in ChallengeLimits.__struct_fields__)):
        assert f"`{name}`" in text, name
    assert all(f"`{name}`" in text for name in TaskRule.__struct_fields__)
    for name, value in msgspec.to_builtins(ChallengeLimits()).items():
        assert name in ("bytes", "dim") or re.search(rf"`limits.{name}` \|.*\| {value} \|", text), name


def test_the_limits_of_the_server_are_those_of_the_code() -> None:
    limits = ServerLimits()
    text = page("ref/challenge.md") + page("howto/challenge/server.md")
    for words in (
        "`pip install -e '.[challenge]'`",
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
