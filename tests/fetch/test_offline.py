"""``NEUCO_OFFLINE=1``: what is there works, and no socket is opened; what is not says what to do."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from neuco_core.errors import OfflineError, UsageError
from neuco_core.fetch.fetch import fetch, fetch_unverified
from neuco_core.specs import Remote
from tests.fetch.helpers import BODY, files_below, remote
from tests.fetch.http_server import FileServer


@pytest.fixture
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a socket or asks for an address is found out."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_a_cached_file_needs_no_socket(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fetch(remote(server.url("good")))
    monkeypatch.setattr(socket, "socket", None)
    monkeypatch.setattr(socket, "getaddrinfo", None)
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    assert fetch(remote(server.url("good"))) == path
    monkeypatch.delenv("NEUCO_OFFLINE")
    assert fetch(remote(server.url("good"))) == path, "nor without the variable"


@pytest.mark.usefixtures("no_sockets")
@pytest.mark.parametrize("value", ["1", "true", "Yes", "on"])
@pytest.mark.parametrize("url", ["https://example.org/x.csv", "hf://datasets/o/n@1/x.csv", "s3://bucket/x.csv"])
def test_an_uncached_file_says_what_to_do(url: str, value: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_OFFLINE", value)
    with pytest.raises(
        OfflineError, match=r"not in the cache, and NEUCO_OFFLINE is set\. .*neuco data fetch.*data link"
    ):
        fetch(remote(url))
    assert files_below(cache) == []


@pytest.mark.usefixtures("no_sockets")
def test_the_guard_of_these_tests_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_RETRIES", "0")
    with pytest.raises(AssertionError, match="a socket was opened"):
        fetch(remote("http://127.0.0.1:9/x.csv"))


@pytest.mark.usefixtures("no_sockets")
def test_a_local_mirror_works_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "copy.bin"
    copy.write_bytes(BODY)
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    assert fetch(remote("https://example.org/x.csv", mirrors=(copy.as_uri(),))) == copy


@pytest.mark.usefixtures("no_sockets")
def test_a_pin_needs_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    with pytest.raises(OfflineError, match="a pin needs the network"):
        fetch_unverified(Remote("https://example.org/x.csv"), tmp_path)


@pytest.mark.parametrize("value", ["", "0", "false", "No", "off"])
def test_these_values_mean_online(server: FileServer, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("NEUCO_OFFLINE", value)
    assert fetch(remote(server.url("good"))).read_bytes() == BODY


def test_what_is_not_a_boolean_is_refused(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_OFFLINE", "maybe")
    with pytest.raises(UsageError, match=r"NEUCO_OFFLINE: not a boolean; .* got 'maybe'"):
        fetch(remote(server.url("good")))
    assert server.http.requests == []
