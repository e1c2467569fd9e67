"""docs/challenge.md and docs/challenge-teams.md do what they say: their commands are run, their defaults looked up."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from neuco_core.tables.embeddings import make_embeddings, read_embeddings, write_embeddings
from neuco_extensions.challenge.audit import CHECKS
from neuco_extensions.challenge.command import challenge
from neuco_extensions.challenge.rules import ChallengeLimits, Phase, TaskRule
from tests import console
from tests.command import neuco_here

ELSEWHERE = {"serve", "worker", "export"}  # commands with pages and tests of their own


@pytest.mark.slow
def test_every_command_prints_what_the_pages_show(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(root))
    settings = {"HOME": str(tmp_path / "home"), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    text = (root / "docs/challenge.md").read_text(encoding="utf-8")
    failures = console.play(text, tmp_path, settings, {})
    assert not failures, "\n\n".join(failures)
    run = [step.command for step in console.steps(text)]
    shown = {name for name in challenge.commands if any(f"neuco challenge {name}" in line for line in run)}
    assert set(challenge.commands) - ELSEWHERE == shown

    shutil.copy(tmp_path / "first/ids.txt", tmp_path)
    shutil.copytree(tmp_path / "first/public", tmp_path / "public")
    own = read_embeddings(tmp_path / "averaging.npz")
    write_embeddings(make_embeddings(own.ids, own.values[:, :256]), tmp_path / "mine.npz")
    write_embeddings(make_embeddings(own.ids[1:], own.values[1:]), tmp_path / "short.npz")
    monkeypatch.chdir(tmp_path)
    failures = console.play((root / "docs/challenge-teams.md").read_text(encoding="utf-8"), tmp_path, settings, {})
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
    for phase, day in (("dev", "2025-01-10"), ("test", "2025-02-10")):
        assert "received; receipt" in run("submit", folder, file, "--team", "alpha", "--phase", phase, "--at", day)
    assert "2 evaluated" in run("evaluate", folder, "--jobs", 2)
    assert "scored" in run("status", folder)
    assert "Alpha" in run("board", folder, "test")
    assert "alpha is new" in run("board", folder, "test", "--final", "--history")
    assert str(folder / "public/reveal.json") in run("close", folder)
    assert run("audit", folder).count(" ok ") == len(CHECKS)


def test_the_ways_to_send_a_file_are_those_of_the_server(root: Path) -> None:
    """They are run on the server's page."""
    text, server = ((root / f"docs/challenge-{name}.md").read_text(encoding="utf-8") for name in ("teams", "server"))
    commands = [line for line in text.splitlines() if line.startswith("curl ")]
    assert commands
    assert all(f"$ {line}\n" in server for line in commands)


def test_every_field_of_the_rules_is_explained(root: Path) -> None:
    text = (root / "docs/challenge.md").read_text(encoding="utf-8")
    for name in (*Phase.__struct_fields__, *(f"limits.{field}" for field in ChallengeLimits.__struct_fields__)):
        assert f"`{name}`" in text, name
    assert all(f"`{name}`" in text for name in TaskRule.__struct_fields__)
    plain = {
        name: value for name, value in msgspec.to_builtins(ChallengeLimits()).items() if name not in ("bytes", "dim")
    }
    for name, value in plain.items():
        assert re.search(rf"`limits.{name}` \|.*\| {value} \|", text), name
