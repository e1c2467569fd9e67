"""The shipped task whose labels are elsewhere: from its address, from its mirror, and never from anything else."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from neuco_core import Task, load_task
from neuco_core.errors import ChecksumError, FetchError
from neuco_core.fetch.fetch import resolve


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """The folder of a server, with the file that the task's address names."""
    (shelf := tmp_path / "shelf").mkdir()
    (shelf / "digits.csv.gz").write_bytes(resolve(load_task("digits_even").source.mirrors[0]).read_bytes())
    return shelf


@pytest.fixture
def address(shelf: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(shelf)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/digits.csv.gz"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NEUCO_RETRIES", "0")


def at(url: str, *mirrors: str) -> Task:
    task = load_task("digits_even")
    return replace(task, source=replace(task.source, url=url, mirrors=mirrors))


def test_what_ships_declares_an_address_a_checksum_a_mirror_and_a_loader() -> None:
    task = load_task("digits_even")
    assert task.source.url.startswith("https://")
    assert task.source.pinned
    assert task.source.mirrors
    assert task.loader


def test_the_address_and_the_mirror_give_the_same_labels(address: str) -> None:
    here = load_task("digits_even").labels()
    there = at(address).labels()
    assert (there.sha256, there.verified) == (here.sha256, True)


def test_a_damaged_mirror_is_passed_over(address: str, tmp_path: Path) -> None:
    (tmp_path / "bad.csv.gz").write_bytes(b"damaged")
    assert at(address, (tmp_path / "bad.csv.gz").as_uri()).labels().sha256 == load_task("digits_even").labels().sha256


def test_other_bytes_are_refused_and_the_mirror_helps(address: str, shelf: Path) -> None:
    data = (shelf / "digits.csv.gz").read_bytes()
    (shelf / "digits.csv.gz").write_bytes(data[:-1] + b"x")
    with pytest.raises(ChecksumError, match="not the declared file"):
        at(address).labels()
    (shelf / "digits.csv.gz").unlink()
    with pytest.raises(FetchError):
        at(address).labels()
    assert len(at(address, *load_task("digits_even").source.mirrors).labels()) == 1797
