"""The server under load: many at once, slow ones, cut ones, and processes that are killed. Nothing is lost."""

from __future__ import annotations

import os
import random
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from neuco_extensions.challenge.journal import broken_link
from neuco_extensions.challenge.web.uploads import SENTENCES
from tests.challenge.server import Answer, open_challenge, read_all, serving, wait_until

TEAMS = ("alpha", "beta", "gamma", "delta", "epsilon")
MANY = {"per_day = 3\nin_all = 6": "per_day = 500\nin_all = 500"}


@pytest.mark.slow
def test_hundreds_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    """200 uploads at once where 8 may run, beside clients that are cut, slow, silent or not allowed."""
    folder = open_challenge(tmp_path, MANY, teams=TEAMS)
    bodies = {number: os.urandom(2000) + number.to_bytes(4, "big") for number in range(200)}
    seen: list[int] = []
    with serving(folder, uploads=8, uploads_of_team=3, grace=1.0, stall=1.0, headers=1.0) as server:

        def upload(number: int) -> Answer:
            while True:
                answer = server.put(bodies[number], TEAMS[number % len(TEAMS)])
                seen.append(answer.status)
                if answer.status not in (429, 503):
                    return answer
                assert int(answer.headers["retry-after"]) >= 1
                time.sleep(random.uniform(0.02, 0.2))  # the test has no time to wait as long as it is told

        def say(*parts: bytes, listen: bool = True, reset: bool = False) -> bytes:
            with server.connect() as connection:
                for part in parts:
                    connection.sendall(part)
                if reset:  # and not closed in order
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return read_all(connection) if listen else b""

        with ThreadPoolExecutor(260) as pool:
            answers = [pool.submit(upload, number) for number in bodies]
            heads = [server.head(team, "Content-Length: 4000") for team in TEAMS]
            cuts = [
                pool.submit(say, head, os.urandom(1999), listen=False, reset=r)
                for r in (False, True) * 3
                for head in heads
            ]
            slows = [pool.submit(say, head, b"x", b"x", b"x") for head in heads * 2]
            silents = [pool.submit(say, b"GET / HTTP/1.1\r\nHost:") for _ in range(10)]
            wrongs = [pool.submit(server.put, b"x", "wrong") for _ in range(10)]
        accepted = {number: answer.result() for number, answer in enumerate(answers)}
        assert {answer.status for answer in accepted.values()} == {201}
        assert {429, 503} & set(seen)  # or nothing was tested
        assert [cut.result() for cut in cuts] == [b""] * 30
        assert {slow.result()[9:12] for slow in slows} <= {b"408", b"429", b"503"}
        assert {silent.result() for silent in silents} == {b""}
        assert {wrong.result().status for wrong in wrongs} == {401}
        journal = server.journal()
        wait_until(lambda: not server.incoming())
        assert "Traceback" not in server.log
    assert {(entry.id, entry.team, entry.sha256) for entry in journal} == {
        (answer.json["submission"], TEAMS[number % 5], sha256(bodies[number]).hexdigest())
        for number, answer in accepted.items()
    }
    assert len(journal) == 200
    assert broken_link(journal, []) is None
    stored = {path.name for path in (folder / "private/files").rglob("*") if path.is_file()}
    assert stored == {entry.sha256 for entry in journal}


def test_a_proxy_is_believed_if_the_hosts_say_so_and_too_many_connections_are_told_so(tmp_path: Path) -> None:
    with serving(open_challenge(tmp_path), proxy="127.0.0.1", connections=4) as server:
        for address in ("127.0.0.1", "127.0.0.2"):
            headers = {"X-Forwarded-For": f"10.0.0.{address[-1]}"}
            assert server.ask("GET", "/api/submissions", token="wrong", headers=headers, source=address).status == 401
        assert "a wrong token from 10.0.0.1" in server.log
        assert "a wrong token from 127.0.0.2" in server.log  # another one's word is worth nothing
        idle = [server.connect() for _ in range(5)]
        wait_until(lambda: server.ask("GET", "/").status == 503)
        for connection in idle:
            connection.close()
        wait_until(lambda: server.ask("GET", "/").status == 200)


def test_a_server_that_is_killed_in_mid_upload_has_entered_nothing_half(tmp_path: Path) -> None:
    folder = open_challenge(tmp_path, {"bytes = 100_000": "bytes = 5_000_000"})
    whole = os.urandom(2_000_000)
    with serving(folder) as server:
        done = server.put(b"done").json
        open_ones = []
        for _ in range(3):
            connection = server.connect()
            connection.sendall(server.head("alpha", f"Content-Length: {len(whole)}") + whole[:-1])
            open_ones.append(connection)
        wait_until(lambda: len(server.incoming()) == 3)
        server.kill()
        for connection in open_ones:
            connection.close()
        assert len(server.incoming()) == 3
    for path in (folder / "private/incoming").iterdir():
        os.utime(path, (0, 0))
    with serving(folder) as server:
        assert [entry.sha256 for entry in server.journal()] == [done["sha256"]]
        assert server.incoming() == []
        assert server.put(b"done").status == 200
        assert server.put(whole).status == 201
        # One that ends in order waits for uploads, but not for ever: this one is stopped, and leaves nothing.
        connection = server.connect()
        connection.sendall(server.head("alpha", "Content-Length: 3000000") + whole[:300_000])
        wait_until(lambda: len(server.incoming()) == 1)
    with connection:
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert SENTENCES[503].encode() in answer
    assert "Traceback" not in server.log
    assert server.incoming() == []
    assert len(server.journal()) == 2
    assert broken_link(server.journal(), []) is None
