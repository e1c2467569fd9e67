"""Files on this machine: packaged ones, ``file://``, and linked local copies of datasets."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core.errors import ChecksumError, DataError, FetchError, UsageError
from neuco_core.fetch import links
from neuco_core.fetch.fetch import fetch
from neuco_core.fetch.pins import write_pin
from neuco_core.specs import Remote
from tests.fetch.helpers import files_below, remote, sha256

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


@pytest.mark.parametrize("place", [0, len(DATA) // 2, len(DATA) - 1])
def test_a_flipped_byte_is_caught_in_place(package: str, tmp_path: Path, place: int) -> None:
    wanted = remote(f"pkg://{package}/labels/x.csv", DATA)
    fetch(wanted)
    changed = bytearray(DATA)
    changed[place] ^= 1
    (tmp_path / package / "labels" / "x.csv").write_bytes(changed)
    with pytest.raises(ChecksumError, match=r"expected sha256 .*, got .*Either the file is corrupt.*raise the version"):
        fetch(wanted)


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


def test_file_addresses_may_be_quoted(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "a file #1.csv"
    path.write_bytes(DATA)
    assert fetch(remote(path.as_uri(), DATA)) == path
    assert files_below(cache) == []


def test_a_wrong_size_is_caught_before_hashing(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(DATA)
    with pytest.raises(ChecksumError, match=f"expected {len(DATA) + 1} bytes, got {len(DATA)}"):
        fetch(Remote(path.as_uri(), sha256=sha256(DATA), size=len(DATA) + 1))


def test_a_local_mirror_helps_when_the_package_is_damaged(package: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.csv"
    copy.write_bytes(DATA)
    (tmp_path / package / "labels" / "x.csv").write_bytes(b"damaged")
    assert fetch(remote(f"pkg://{package}/labels/x.csv", DATA, mirrors=(copy.as_uri(),))) == copy


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "my copy"
    (folder / "labels").mkdir(parents=True)
    (folder / "labels" / "x.csv").write_bytes(DATA)
    return folder


@pytest.mark.parametrize(
    "url",
    [
        "hf://datasets/o/n@rev/labels/x.csv",
        "https://huggingface.co/datasets/o/n/resolve/rev/labels/x.csv",
        "https://example.org/any/where/labels/x.csv",
        "s3://bucket/prefix/labels/x.csv?versionId=1",
    ],
)
def test_a_linked_copy_is_found_by_the_path_in_the_dataset(copy: Path, url: str) -> None:
    assert links.linked_file("soil-2", Remote(url)) is None
    links.add_link("soil-2", copy)
    assert links.linked_file("soil-2", Remote(url)) == copy / "labels" / "x.csv"
    assert links.linked_file("other", Remote(url)) is None
    assert links.remove_link("soil-2")
    assert not links.remove_link("soil-2")
    assert links.linked_file("soil-2", Remote(url)) is None


def test_the_variable_wins_over_the_links_file(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links.add_link("soil-2", tmp_path)
    monkeypatch.setenv("NEUCO_DATASET_SOIL_2", str(copy))
    assert links.dataset_root("soil-2") == copy
    monkeypatch.setenv("NEUCO_DATASET_SOIL_2", str(copy / "gone"))
    with pytest.raises(DataError, match=r"NEUCO_DATASET_SOIL_2: .*not a folder"):
        links.dataset_root("soil-2")


def test_the_other_spelling_of_a_file_is_found(copy: Path) -> None:
    links.add_link("soil", copy)
    two = Remote("hf://datasets/o/n@rev/labels/y.csv", mirrors=("hf://datasets/o/n@rev/labels/x.csv",))
    assert links.linked_file("soil", two) == copy / "labels" / "x.csv"


@pytest.mark.parametrize(
    "url",
    ["hf://datasets/o/n@rev/../outside.csv", "https://h/../outside.csv", "pkg://neuco_core/py.typed", "file:///x.csv"],
)
def test_a_link_reaches_nothing_else(copy: Path, url: str) -> None:
    (copy / "outside.csv").write_bytes(DATA)
    links.add_link("soil", copy / "labels")
    assert links.linked_file("soil", Remote(url)) is None


def test_a_linked_file_is_checked_when_its_hash_is_known(copy: Path) -> None:
    links.add_link("soil", copy)
    url = "hf://datasets/o/n@rev/labels/x.csv"
    assert links.linked_file("soil", remote(url, DATA)) is not None
    with pytest.raises(ChecksumError, match="the local copy of 'soil'"):
        links.linked_file("soil", remote(url, DATA[::-1]))
    write_pin(url, sha256(DATA[::-1]), len(DATA))
    with pytest.raises(ChecksumError, match="raise the task's version"):
        links.linked_file("soil", Remote(url))


@pytest.mark.parametrize("content", ["", "[]", '{"soil": 3}', "\x00", "[" * 100_000])
def test_a_damaged_links_file_is_named(copy: Path, content: str) -> None:
    links.links_file().parent.mkdir(parents=True)
    links.links_file().write_text(content)
    with pytest.raises(DataError, match=r"links\.json"):
        links.dataset_root("soil")


def test_bad_links_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        links.add_link("soil", tmp_path / "none")
    with pytest.raises(UsageError, match="bad dataset id"):
        links.add_link("../soil", tmp_path)
