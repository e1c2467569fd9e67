"""Requests to the server of a challenge that are no good: names, headers, lengths, and what is no embeddings."""

from __future__ import annotations

import gzip
import io
import pickle
import re
import resource
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import MESSAGES
from neuco_extensions.challenge.web.uploads import SENTENCES
from tests.challenge.conftest import LIMIT
from tests.challenge.server import Server, open_challenge, read_all, serving

TRICKS = ["..%2f..%2fprivate%2fsecrets.json", "..", "%2e%2e", "....//", "seal.json%00", "seal.json/", "Seal.json"]
TRICKS += ["%00", "a" * 3000, quote("sëal.json"), "%ff%fe", "%u002e", "..\\private\\secrets.json", "link", "folder"]
TRICKS += [".half"]


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
    assert [own.size for own in server.journal() if own.team == "beta"] == []
    # What follows a body that is shorter than was said is no request of the team's.
    with server.connect() as connection:
        connection.sendall(server.head("alpha", "Content-Length: 5") + b"12345")
        connection.sendall(server.head("wrong", "Content-Length: 2", "Connection: close") + b"!!")
        answer = read_all(connection)
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer) == [b"201", b"401"]


def test_a_file_over_the_limit_is_refused_while_it_comes(server: Server) -> None:
    """Whether its length is told, is not told, or would be a lie; memory holds none of it."""
    part = bytes(1_000_000)
    told = server.ask("PUT", "/api/phases/dev/submissions", token="alpha", headers={"Content-Length": str(LIMIT + 1)})
    assert (told.status, told.headers["connection"]) == (413, "close")
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
    limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1_500_000, limits[1]))  # no file may be larger

    def little_at_the_end() -> Iterator[bytes]:
        yield bytes(1_499_000)
        time.sleep(0.3)  # so that the server gets it by itself, and it fails when the file is closed
        yield bytes(2000)

    try:
        for body in (bytes(1_600_000), bytes(5_000_000), little_at_the_end()):
            answer = server.put(body)
            assert (answer.status, answer.json) == (503, {"error": SENTENCES[503]})
            assert int(answer.headers["retry-after"]) > 1
    finally:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
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


def bomb_zip() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("../../evil.npy", bytes(30_000_000))
    return held.getvalue()


class Evil:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("evil-was-here"),))


@pytest.mark.parametrize("kind", ["gzip", "zip", "pickle", "csv", "noise"])
def test_what_is_no_embeddings_fails_in_fixed_words(
    server: Server, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = {
        "gzip": lambda: gzip.compress(bytes(30_000_000), 6),
        "zip": bomb_zip,
        "pickle": lambda: pickle.dumps(Evil()),
        "csv": lambda: b"id,dim_0\n" + b"x" * 100_000,
        "noise": lambda: b"\xff\0" * 99,
    }[kind]()
    own = server.put(data, "beta").json
    with Host(server.folder) as host:
        verdict = host.evaluate("dev", host.file_path(host.journal.get(own["submission"])))
    assert verdict.code == "format"
    assert verdict.message == MESSAGES["format"]
    assert list(tmp_path.iterdir()) == []
