"""The server of a challenge: who may see what, and in what words."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from neuco_extensions.challenge.audit import close
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import MESSAGES
from neuco_extensions.challenge.setup import add_team, write_example
from neuco_extensions.challenge.web.app import FORM
from neuco_extensions.challenge.web.uploads import SENTENCES
from tests.challenge.parts import DEV, TEST, embed, make_challenge, work
from tests.challenge.server import Server, open_challenge, read_all, serving
from tests.command import neuco_here, python


def test_an_upload_is_on_disk_and_counts_once(server: Server, good: bytes) -> None:
    first, again = server.put(good), server.put(good)
    assert (first.status, again.status) == (201, 200)
    assert first.json == again.json
    assert first.json["state"] == "received"
    assert [own.sha256 for own in server.journal() if own.team == "alpha"] == [first.json["sha256"]]
    assert server.incoming() == []
    number = first.json["submission"]
    assert server.ask("GET", f"/api/submissions/{number}", token="alpha").json == first.json
    listed = server.ask("GET", "/api/submissions", token="alpha").json
    assert (listed["title"], [own["submission"] for own in listed["submissions"]]) == ("Team alpha", [number])
    hidden = server.ask("POST", "/api/phases/dev/submissions?public=false", token="alpha", body=good + b"\0")
    assert (hidden.status, hidden.json["public"]) == (201, False)


def test_nobody_sees_another_teams_submissions(server: Server, good: bytes) -> None:
    number = server.put(good, "gamma").json["submission"]
    other = server.ask("GET", f"/api/submissions/{number}", token="beta")
    none = server.ask("GET", "/api/submissions/999999", token="beta")
    assert other.status == none.status == 404
    assert other.body == none.body
    assert {**other.headers, "date": ""} == {**none.headers, "date": ""}
    assert server.ask("GET", "/api/submissions", token="beta").json["submissions"] == []
    for odd in ("-1", "1e3", "9" * 40, "%00", "1%2f..", "٣", "0x1", " 1"):
        assert server.ask("GET", f"/api/submissions/{quote(odd, safe='%')}", token="gamma").body == none.body


@pytest.mark.parametrize("token", ["", "wrong", "alpha ", "Alpha", "é", "a" * 5000, "alph", "alpha\tbeta"])
def test_a_wrong_token_is_told_nothing(server: Server, token: str) -> None:
    headers = {"Authorization": "Bearer " + token.encode().decode("latin-1")}
    if token == "alpha ":
        headers = {"Authorization": "Basic alpha"}
    answer = server.ask("GET", "/api/submissions", headers=headers)
    assert (answer.status, answer.json) == (401, {"error": SENTENCES[401]})
    upload = server.ask("PUT", "/api/phases/dev/submissions", body=b"x" * 100_000, headers=headers)
    assert (upload.status, upload.json) == (401, {"error": SENTENCES[401]})
    assert "alph" not in re.sub(r"of alpha in", "", server.log)


def test_a_new_team_needs_no_restart_and_bad_rules_stop_nobody(server: Server, good: bytes) -> None:
    rules = server.folder / "challenge.toml"
    token = add_team(server.folder, "late", "Late")
    assert server.put(good, token).status == 201
    kept = rules.read_text()
    rules.write_text(kept.replace("k = 4", "k = 5"))  # which breaks the seal
    assert server.ask("GET", "/api/challenge").json["phases"]["dev"]["k"] == 4
    assert server.put(good, token).status == 200
    assert "the new rules are not used" in server.log
    rules.write_text(kept)
    assert server.put(good, token).status == 200


def test_anybody_reads_the_public_side_and_no_more(server: Server) -> None:
    facts = server.ask("GET", "/api/challenge")
    assert facts.json["phases"]["dev"]["tasks"] == 1
    assert not {"height", "water", "private"} & set(re.findall(r"\w+", facts.body.decode()))
    assert facts.json["files"] == ["rules.json", "seal.json"]
    seal = server.ask("GET", "/files/seal.json")
    assert seal.body == (server.folder / "public/seal.json").read_bytes()
    many = server.ask("GET", "/files/seal.json", headers={"Range": "bytes=" + ",".join(f"{n}-" for n in range(2000))})
    assert (many.status, many.body) == (200, seal.body)
    assert server.ask("GET", "/api/phases/dev/ids").body == (server.folder / "ids.txt").read_bytes()
    assert server.ask("GET", "/api/phases/test/ids").status == 404  # it has not begun
    board = server.ask("GET", "/api/phases/dev/board")
    assert board.json == {"phase": "dev", "final": False, "teams": []}


def test_a_phase_that_is_not_open_takes_nothing(server: Server, good: bytes) -> None:
    stored = {path for path in (server.folder / "private").rglob("*") if path.is_file()}
    answer = server.put(good + b"early", phase="test")
    assert {path for path in (server.folder / "private").rglob("*") if path.is_file()} <= stored  # nothing is kept
    assert (answer.status, answer.json) == (403, {"error": MESSAGES["closed"]})
    assert [own for own in server.journal() if own.phase == "test"] == []
    assert server.put(b"").json == {"error": "The file is empty."}
    form = server.put(b"--b\r\n", headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert (form.status, form.json) == (400, {"error": FORM})
    assert server.ask("PUT", "/api/phases/dev/submissions?public=maybe", token="alpha", body=b"x").status == 400


def test_a_team_sees_what_it_has_left_and_an_upload_that_the_server_stops(tmp_path: Path, good: bytes) -> None:
    with serving(open_challenge(tmp_path / "c")) as server, server.connect() as upload:
        server.put(good)

        def left(team: str) -> object:
            return server.ask("GET", "/api/submissions", token=team).json["left"]["dev"]

        assert (left("alpha"), left("beta")) == ({"today": 2, "in_all": 5}, {"today": 3, "in_all": 6})
        assert b"left" not in server.ask("GET", "/api/challenge").body  # nobody else sees it
        assert b"left" not in server.ask("GET", "/api/submissions").body
        upload.sendall(server.head("alpha", "Content-Length: 1000") + b"x" * 10)
        server.ask("GET", "/api/challenge")  # by now the upload has begun
        server.process.terminate()
        answer = read_all(upload)
        assert server.process.wait(30) == 0
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert SENTENCES[503].encode() in answer
    assert "Traceback" not in server.log
    assert server.incoming() == []


def test_what_cannot_be_served_is_said(server: Server, tmp_path: Path) -> None:
    write_example(tmp_path / "box")
    said = neuco_here("challenge", "serve", tmp_path / "box", "--port", "0")
    assert (said.code, said.out) == (4, "")
    assert "the challenge is not sealed yet" in said.err
    said = neuco_here("challenge", "serve", server.folder, "--port", server.port)
    assert (said.code, said.out) == (2, "")
    assert "cannot listen: Address already in use" in said.err
    code = "import sys; sys.modules['starlette'] = None; from neuco_core.cli import main; main()"
    said = python("-c", code, "challenge", "serve", server.folder)
    assert said.code == 6
    assert re.search(r"the server needs starlette. Run `pip install '(starlette|neuco\[challenge\])", said.err)


def test_a_challenge_that_is_over_shows_all_and_takes_nothing(tmp_path: Path) -> None:
    folder = make_challenge(tmp_path / "over", {"in_all = 3\n": "in_all = 3\nvisible = false\n"})
    file = embed(tmp_path / "a.npz", 0.1)
    with Host(folder) as host:
        for phase, now in {"dev": DEV, "test": TEST}.items():
            host.submit("alpha", phase, file, now=now)
        work(host)
        with serving(folder) as server:
            told = server.ask("GET", "/api/phases/dev/board").json
            assert (told["final"], [row["team"] for row in told["teams"]]) == (False, ["alpha"])
            assert server.ask("GET", "/api/phases/test/board").status == 404  # hidden until the end
            late = server.put(b"late")
            assert (late.status, late.json) == (403, {"error": MESSAGES["closed"]})
            assert server.put(file.read_bytes()).status == 200  # it is known
        paths = close(host)
    with serving(folder) as server:
        board = server.ask("GET", "/api/phases/test/board").json
        assert (board["final"], board["teams"][0]["title"], board["teams"][0]["rank"]) == (True, "Team alpha", 1)
        assert server.ask("GET", "/api/challenge").json["files"] == sorted(
            ["rules.json", "seal.json", *(own.name for own in paths)]
        )
        for path in paths:
            assert server.ask("GET", f"/files/{path.name}").body == path.read_bytes()
        answers = server.ask("GET", "/api/submissions", token="alpha").json["submissions"]
        assert [own["state"] for own in answers] == ["scored", "scored"]
