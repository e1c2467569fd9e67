"""The server of a challenge: who may see what, in what words; and requests and files that are no good."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import quote

import pytest

from neuco_extensions.challenge import serve
from neuco_extensions.challenge.audit import close
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import MESSAGES
from neuco_extensions.challenge.setup import add_team, write_example
from neuco_extensions.challenge.web.app import FORM
from neuco_extensions.challenge.web.uploads import SENTENCES
from tests.challenge.conftest import LIMIT
from tests.challenge.parts import DEV, TEST, edit_rules, embed, make_challenge, work
from tests.challenge.server import Server, no_file_above, open_challenge, read_all, serving
from tests.command import neuco_here, python

TRICKS = ["..%2f..%2fprivate%2fsecrets.json", "..", "%2e%2e", "....//", "seal.json%00", "seal.json/", "Seal.json"]
TRICKS += ["%00", "a" * 3000, quote("sëal.json"), "%ff%fe", "%u002e", "..\\private\\secrets.json", "link", "folder"]
TRICKS += [".half"]


def test_an_upload_is_on_disk_and_counts_once(server: Server, good: bytes) -> None:
    first, again = server.put(good), server.put(good)
    assert (first.status, again.status) == (201, 200)
    assert first.json == again.json
    assert first.json["state"] == "received"
    assert [entry.sha256 for entry in server.journal() if entry.team == "alpha"] == [first.json["sha256"]]
    assert server.incoming() == []
    number = first.json["submission"]
    assert server.ask("GET", f"/api/submissions/{number}", token="alpha").json == first.json
    listed = server.ask("GET", "/api/submissions", token="alpha").json
    assert (listed["title"], [entry["submission"] for entry in listed["submissions"]]) == ("Team alpha", [number])
    assert listed["left"]["dev"] == {"today": 499, "in_all": 499}
    for path in ("/api/challenge", "/api/submissions"):  # nobody else sees it
        assert b"left" not in server.ask("GET", path).body
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
    token = add_team(server.folder, "late", "Late")
    assert server.put(good, token).status == 201
    edit_rules(server.folder, "k = 4", "k = 5")  # which breaks the seal
    assert server.ask("GET", "/api/challenge").json["phases"]["dev"]["k"] == 4
    assert server.put(good, token).status == 200
    assert "the new rules are not used" in server.log
    edit_rules(server.folder, "k = 5", "k = 4")
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
    assert [entry for entry in server.journal() if entry.phase == "test"] == []
    assert server.put(b"").json == {"error": "The file is empty."}
    form = server.put(b"--b\r\n", headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert (form.status, form.json) == (400, {"error": FORM})
    assert server.ask("PUT", "/api/phases/dev/submissions?public=maybe", token="alpha", body=b"x").status == 400


def test_a_server_that_runs_takes_submissions_until_the_extended_deadline(tmp_path: Path, good: bytes) -> None:
    past = {"2026-01-01": "2020-01-01", "2026-02-01": "2021-01-01", "bytes = 100_000": "bytes = 60_000_000"}
    with serving(make_challenge(tmp_path / "c", past)) as server:
        assert server.put(good).status == 403
        ran = neuco_here("challenge", "amend", server.folder, "dev", "--end", "2100-01-01T00:00:00Z", "--yes")
        assert (ran.code, "publish this file" in ran.out) == (0, True)
        facts = server.ask("GET", "/api/challenge").json
        assert facts["phases"]["dev"]["end"] == facts["amendments"][0]["end"] == "2100-01-01T00:00:00Z"
        assert facts["files"] == ["amendments.json", "rules.json", "seal.json"]
        assert server.put(good).status == 201


def test_what_cannot_be_served_is_said(server: Server, tmp_path: Path) -> None:
    write_example(tmp_path / "box")
    ran = neuco_here("challenge", "serve", tmp_path / "box", "--port", "0")
    assert (ran.code, ran.out) == (4, "")
    assert "the challenge is not sealed yet" in ran.err
    ran = neuco_here("challenge", "serve", server.folder, "--port", server.port)
    assert (ran.code, ran.out) == (2, "")
    assert "cannot listen: Address already in use" in ran.err
    code = "import sys; sys.modules['starlette'] = None; from neuco_core.cli import main; main()"
    ran = python("-c", code, "challenge", "serve", server.folder)
    assert ran.code == 6
    assert re.search(r"the server needs starlette. Run `pip install '(starlette|neuco\[challenge\])", ran.err)


def test_the_address_is_known_before_evaluations_begin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They redirect stdout while they load plugins."""
    addresses: list[str] = []
    monkeypatch.setattr(serve, "EvaluationThread", Mock(side_effect=KeyboardInterrupt))
    serve.serve(folder, port=0, ready=addresses.append)
    assert addresses[0].startswith("http://127.0.0.1:")


def test_a_challenge_that_is_over_shows_all_and_takes_nothing(tmp_path: Path) -> None:
    folder = make_challenge(tmp_path / "over", {"in_all = 3\n": "in_all = 3\nvisible = false\n"})
    file = embed(tmp_path / "a.npz", 0.1)
    with Host(folder) as host:
        for phase, now in {"dev": DEV, "test": TEST}.items():
            host.submit("alpha", phase, file, now=now)
        work(host)
        with serving(folder) as server:
            board = server.ask("GET", "/api/phases/dev/board").json
            assert (board["final"], [row["team"] for row in board["teams"]]) == (False, ["alpha"])
            assert server.ask("GET", "/api/phases/test/board").status == 404  # hidden until the end
            late = server.put(b"late")
            assert (late.status, late.json) == (403, {"error": MESSAGES["closed"]})
            assert server.put(file.read_bytes()).status == 200  # it is known
        paths = close(host)
    with serving(folder) as server:
        board = server.ask("GET", "/api/phases/test/board").json
        assert (board["final"], board["teams"][0]["title"], board["teams"][0]["rank"]) == (True, "Team alpha", 1)
        assert server.ask("GET", "/api/challenge").json["files"] == sorted(
            ["rules.json", "seal.json", *(path.name for path in paths)]
        )
        for path in paths:
            assert server.ask("GET", f"/files/{path.name}").body == path.read_bytes()
        answers = server.ask("GET", "/api/submissions", token="alpha").json["submissions"]
        assert [answer["state"] for answer in answers] == ["scored", "scored"]


@pytest.mark.parametrize("trick", TRICKS)
def test_names_are_no_paths(server: Server, trick: str) -> None:
    link, folder = server.folder / "public/link", server.folder / "public/folder"
    if not folder.exists():
        folder.mkdir()
        (server.folder / "public/.half").write_text("{")  # as while a file is written
        link.symlink_to(server.folder / "private/secrets.json")
    for path in (f"/files/{trick}", f"/api/phases/{trick}/board", f"/assets/{trick}", f"/{trick}"):
        answer = server.ask("GET", path)
        assert (answer.status, answer.json) == (404, {"error": SENTENCES[404]}), path
    assert server.put(b"x", phase=trick).status == 404


def test_every_answer_has_its_headers(server: Server) -> None:
    for method, path, status in (
        ("GET", "/", 200),
        ("GET", "/assets/challenge.js", 200),
        ("GET", "/api/challenge", 200),
        ("GET", "/nothing", 404),
        ("GET", "/api/submissions", 401),
        ("DELETE", "/api/submissions", 405),
        ("HEAD", "/api/challenge", 200),
        ("OPTIONS", "/api/phases/dev/submissions", 405),
        ("TRACE", "/", 405),
        ("PATCH", "/api/phases/dev/submissions", 405),
        ("BREW", "/", 405),
    ):
        answer = server.ask(method, path)
        assert answer.status == status, (method, path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in policy
        assert "server" not in answer.headers
        assert not [name for name in answer.headers if name.startswith("access-control")]
        page = status == 200 and not path.startswith("/api")
        assert answer.headers["cache-control"] == ("no-cache" if page else "no-store")
        if method == "HEAD":
            assert answer.body == b""
        elif status > 400:
            assert answer.json == {"error": SENTENCES[status]}


def test_bytes_that_are_no_http(server: Server, good: bytes) -> None:
    before = len(server.journal())
    length = f"Content-Length: {len(good)}"
    for sent, status in (
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n", 400),
        (server.head("alpha", length, "X: " + "y" * 40_000), 431),
        (server.head("alpha", length, "X: " + "y" * 400_000), 400),
        (server.head("alpha", "Content-Length: -5") + b"hello", 400),
        (server.head("alpha", "Content-Length: 5", "Content-Length: 6") + b"hello!", 400),
        (server.head("alpha", "Transfer-Encoding: chunked", "Content-Length: 3") + b"0\r\n\r\n", 400),
        (server.head("alpha", "Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n", 400),
        (server.head("alpha", "Transfer-Encoding: chunked") + b"zz\r\nhello\r\n0\r\n\r\n", 400),
        (server.head("alpha", "Transfer-Encoding: chunked") + b"-5\r\nhello\r\n0\r\n\r\n", 400),
        (server.head("alpha", "Content-Length : 5") + b"hello", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET http://else/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    ):
        with server.connect() as connection:
            connection.sendall(sent)
            answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 %d " % status), (sent[:80], answer)
        assert answer.count(b"HTTP/1.1") == 1
        assert b"nosniff" in answer
    assert len(server.journal()) == before


def test_a_second_request_in_a_body_is_a_body(server: Server) -> None:
    """And requests one after the other are answered in their order."""
    inner = server.head("beta", "Content-Length: 3") + b"abc"
    with server.connect() as connection:
        connection.sendall(server.head("alpha", f"Content-Length: {len(inner)}") + inner)
        connection.sendall(b"GET /api/challenge HTTP/1.1\r\nHost: here\r\n\r\nGET /none HTTP/1.1\r\nHost: x\r\n"
                           b"Connection: close\r\n\r\n")  # fmt: skip
        answer = read_all(connection)
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer) == [b"201", b"200", b"404"]
    assert [entry.size for entry in server.journal() if entry.team == "beta"] == []
    # What follows a body that is shorter than was said is no request of the team's.
    with server.connect() as connection:
        connection.sendall(server.head("alpha", "Content-Length: 5") + b"12345")
        connection.sendall(server.head("wrong", "Content-Length: 2", "Connection: close") + b"!!")
        answer = read_all(connection)
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer) == [b"201", b"401"]


def test_a_file_over_the_limit_is_refused_while_it_comes(server: Server) -> None:
    """Whether its length is told, is not told, or would be a lie; memory holds none of it."""
    part = bytes(1_000_000)
    refused = server.ask(
        "PUT", "/api/phases/dev/submissions", token="alpha", headers={"Content-Length": str(LIMIT + 1)}
    )
    assert (refused.status, refused.headers["connection"]) == (413, "close")
    before = server.memory("VmHWM")
    sent = 0
    with server.connect() as connection:
        connection.sendall(server.head("alpha", "Transfer-Encoding: chunked"))
        try:
            while sent < 3 * LIMIT:
                connection.sendall(b"%x\r\n%b\r\n" % (len(part), part))
                sent += len(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = read_all(connection)
    assert LIMIT < sent < LIMIT + 25_000_000  # what the sockets held, and what is read after the answer
    assert answer[:12] in (b"HTTP/1.1 413", b"")
    assert server.incoming() == []
    whole = server.put(bytes(1) * (LIMIT - 1) + b"\1")
    assert whole.status == 201
    assert server.memory("VmHWM") - before < 30_000_000


def test_a_full_disk_is_said_and_leaves_nothing(server: Server, good: bytes) -> None:
    before = server.journal()

    def little_at_the_end() -> Iterator[bytes]:
        yield bytes(1_499_000)
        time.sleep(0.3)  # so that the server gets it by itself, and it fails when the file is closed
        yield bytes(2000)

    with no_file_above(1_500_000, server.process.pid):
        for body in (bytes(1_600_000), bytes(5_000_000), little_at_the_end()):
            answer = server.put(body)
            assert (answer.status, answer.json) == (503, {"error": SENTENCES[503]})
            assert int(answer.headers["retry-after"]) > 1
    assert server.journal() == before
    assert server.incoming() == []
    assert server.put(bytes(1_600_000)).status == 201


@pytest.mark.slow
def test_an_answer_that_nobody_reads_is_given_up(tmp_path: Path) -> None:
    folder = open_challenge(tmp_path)
    (folder / "public/large.json").write_bytes(bytes(50_000_000))
    with serving(folder, headers=0.02) as server, server.connect() as connection:
        connection.sendall(b"GET /files/large.json HTTP/1.1\r\nHost: here\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
        time.sleep(3)  # the test's own patience; the server's is 60 × 0.02 s
        assert len(read_all(connection)) < 50_000_000
