"""`neuco challenge worker` from end to end: EvalAI's submissions are scored as those of any other way in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import MESSAGES
from neuco_extensions.challenge.rules import load_challenge
from tests.challenge.evalai_server import CHALLENGE, TOKEN, EvalAI
from tests.challenge.parts import IDS, embed, make_challenge
from tests.command import Said, neuco_here


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_challenge(tmp_path / "toy", {"dim = 16": "dim = 16\ntick = 1"})


@pytest.fixture
def server() -> Iterator[EvalAI]:
    with EvalAI() as running:
        yield running


def work(server: EvalAI, folder: Path, monkeypatch: pytest.MonkeyPatch, token: str = TOKEN) -> Said:
    monkeypatch.setenv("EVALAI_TOKEN", token)
    place = ("--server", server.url, "--queue", "queue", "--challenge", str(CHALLENGE))
    return neuco_here("challenge", "worker", folder, *place, "--once")


def test_submissions_of_evalai_are_scored_like_any_other(
    server: EvalAI, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = embed(tmp_path / "a.csv", 0.5)
    server.submit(1, file.read_bytes())
    server.submit(2, embed(tmp_path / "b.csv", 0.5, ids=IDS[:-1]).read_bytes())
    server.submit(3, b"\x00" * 200_000)
    said = work(server, folder, monkeypatch)
    assert said.code == 0, said.text
    assert [server.status(number) for number in (1, 2, 3)] == ["finished", "failed", "failed"]
    assert [server.submissions[number]["stderr"] for number in (2, 3)] == [MESSAGES["ids"], MESSAGES["size"]]
    with Host(folder) as host:
        exact = host.evaluate("dev", file).verdict.scores["height"]
        assert [own.source for own in host.journal.submissions()] == ["evalai:1", "evalai:2"]
    assert server.board == [(1, {"mean_q": round(exact, 2)})]
    assert load_challenge(folder).teams["evalai-3"].title == "../team<script>"
    assert "height" not in server.told + said.text
    assert TOKEN not in said.text


def test_quotas_hold_and_faults_of_hosts_make_submissions_wait(
    server: EvalAI, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 6):
        server.submit(number, embed(tmp_path / "a.csv", 0.5, seed=number).read_bytes())
    server.submissions[5]["submitted_at"] = "2025-01-01T00:00:00Z"  # before the phase began
    assert work(server, folder, monkeypatch).code == 0
    told = [json.loads(server.submissions[number]["metadata"])["code"] for number in range(1, 6)]
    assert told == ["scored", "scored", "scored", "quota", "closed"]
    server.submit(6, embed(tmp_path / "a.csv", 0.5, seed=6).read_bytes(), phase=12)
    monkeypatch.setattr("tests.challenge.evalai_server.PHASES", {11: "dev", 12: "unheard-of"})
    said = work(server, folder, monkeypatch)
    assert "submission 6 has to wait" in said.text
    assert server.status(6) == "running"


def test_without_a_token_nothing_begins(server: EvalAI, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = work(server, folder, monkeypatch, token="")
    assert said.code == 2
    assert "EVALAI_TOKEN" in said.err
    assert server.requests == []
    assert work(server, folder, monkeypatch, token="secret-but-wrong").code == 7
    assert "secret-but-wrong" not in said.text
