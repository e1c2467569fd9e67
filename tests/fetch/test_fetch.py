"""``fetch`` without a server that misbehaves: files on this machine, what the cache holds, and no network."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from neuco_core import list_datasets, list_methods, list_tasks
from neuco_core.errors import ChecksumError, FetchError, OfflineError, UsageError
from neuco_core.fetch.fetch import fetch, fetch_unverified, file_name, resolve
from neuco_core.specs import Remote
from neuco_tasks.olinda import cubes as olinda
from tests.fetch.helpers import BODY, files_below, remote
from tests.fetch.http_server import FileServer

DATA = b"id,label\na,1\nb,2\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An importable package with a file in a folder that is no package."""
    name = f"packaged_{abs(hash(str(tmp_path)))}"
    folder = tmp_path / name
    (folder / "labels").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "labels" / "x.csv").write_bytes(DATA)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_packaged_file_is_used_in_place(package: str, tmp_path: Path, cache: Path) -> None:
    path = fetch(remote(f"pkg://{package}/labels/x.csv", DATA))
    assert path == tmp_path / package / "labels" / "x.csv"
    assert files_below(cache) == []


def test_a_changed_file_is_caught_in_place(package: str, tmp_path: Path) -> None:
    wanted = remote(f"pkg://{package}/labels/x.csv", DATA)
    fetch(wanted)
    (tmp_path / package / "labels" / "x.csv").write_bytes(DATA[:-2] + b"3\n")
    with pytest.raises(ChecksumError, match=r"expected sha256 .*, got .*Either the file is corrupt.*raise the version"):
        fetch(wanted)
    longer = Remote(wanted.url, sha256=wanted.sha256, size=len(DATA) + 1)
    with pytest.raises(ChecksumError, match=f"expected {len(DATA) + 1} bytes, got {len(DATA)}"):
        fetch(longer)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("pkg://no_such_package_here/x.csv", "no such package"),
        ("pkg://neuco_core/no-such-file.csv", "has no such file"),
        ("pkg://neuco_core/../pyproject.toml", "bad address"),
        ("pkg://neuco_core//etc/passwd", "bad address"),
        ("pkg://neuco_core", "bad address"),
        ("pkg://.relative/x.csv", "no such package"),
        ("file:///no/such/file.csv", "no such file"),
        ("file:///etc", "no such file"),
        ("file://otherhost/x.csv", "bad address of a local file"),
        ("file://relative.csv", "bad address of a local file"),
    ],
)
def test_bad_local_addresses(url: str, message: str) -> None:
    with pytest.raises(FetchError, match=message):
        fetch(remote(url, DATA))


def test_a_local_mirror_helps_when_the_package_is_damaged_and_without_a_network(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "a copy #1.csv"
    copy.write_bytes(DATA)
    (tmp_path / package / "labels" / "x.csv").write_bytes(b"damaged")
    assert fetch(remote(f"pkg://{package}/labels/x.csv", DATA, mirrors=(copy.as_uri(),))) == copy
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    assert fetch(remote("https://example.org/x.csv", DATA, mirrors=(copy.as_uri(),))) == copy


def shipped() -> set[Remote]:
    """Every packaged file that a plugin of ours declares, and the one that a module of ours names."""
    remotes = {task.source for task in list_tasks()} | {remote for item in list_datasets() for remote in item.archives}
    remotes |= {remote for method in list_methods() for remote in (*method.files.values(), *method.weights.values())}
    return {olinda.CUBES, *(source for source in remotes if source.url.startswith("pkg://"))}


def test_a_flipped_byte_in_any_declared_file_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a copy, so that the real files are never touched."""
    originals = {declared: resolve(declared.url).read_bytes() for declared in shipped()}
    assert "pkg://neuco_tasks.olinda/labels.csv" in {declared.url for declared in originals}
    monkeypatch.setattr("neuco_core.fetch.fetch.resolve", lambda url: tmp_path / "copy")
    for declared, original in originals.items():
        (tmp_path / "copy").write_bytes(original)
        fetch(declared)
        for place in (0, len(original) // 2, len(original) - 1):
            changed = bytearray(original)
            changed[place] ^= 1
            (tmp_path / "copy").write_bytes(changed)
            with pytest.raises(ChecksumError):
                fetch(declared)


@pytest.mark.parametrize("damage", [b"", BODY[:-1], BODY + b"\n", bytes([BODY[0] ^ 1]) + BODY[1:]])
def test_a_damaged_file_in_the_cache_is_never_given_out(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    wanted = remote(server.url("good"), sized=False)
    path = fetch(wanted)
    path.write_bytes(damage)
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    with pytest.raises(OfflineError):
        fetch(wanted)
    assert not path.exists(), "thrown away"
    monkeypatch.delenv("NEUCO_OFFLINE")
    assert fetch(wanted).read_bytes() == BODY
    path.write_bytes(damage)
    assert fetch(wanted) == path
    assert path.read_bytes() == BODY, "healed"
    assert server.count("good") == 3


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
    for offline in ("1", ""):
        monkeypatch.setenv("NEUCO_OFFLINE", offline)
        assert fetch(remote(server.url("good"))) == path


@pytest.mark.usefixtures("no_sockets")
@pytest.mark.parametrize("url", ["https://example.org/x.csv", "hf://datasets/o/n@1/x.csv", "s3://bucket/x.csv"])
def test_an_uncached_file_says_what_to_do(url: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    with pytest.raises(OfflineError, match=r"not in the cache, and NEUCO_OFFLINE is set .*data fetch.*data link"):
        fetch(remote(url))
    with pytest.raises(OfflineError, match="a pin needs the network"):
        fetch_unverified(Remote(url), cache)
    assert files_below(cache) == []


def test_the_switch_may_be_off_and_what_is_no_boolean_is_refused(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEUCO_OFFLINE", "off")
    assert fetch(remote(server.url("good", "x.csv"))).read_bytes() == BODY
    monkeypatch.setenv("NEUCO_OFFLINE", "maybe")
    with pytest.raises(UsageError, match=r"NEUCO_OFFLINE: not a boolean; .* got 'maybe'"):
        fetch(remote(server.url("good")))


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://h/a/x.csv?token=1", "x.csv"),
        ("https://h/", "file"),
        ("https://h/..", "file"),
        ("https://h/a%2Fb%00c.csv", "b_c.csv"),
        ("https://h/" + "é" * 200 + ".csv", "_" * 116 + ".csv"),
        ("s3://bucket/k/.hidden", "hidden"),
    ],
)
def test_a_file_name_is_safe_whatever_the_address(url: str, name: str) -> None:
    assert file_name(url) == name
