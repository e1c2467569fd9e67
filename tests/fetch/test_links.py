"""Linked local copies of datasets."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core.errors import ChecksumError, DataError, UsageError
from neuco_core.fetch import links
from neuco_core.fetch.fetch import Pin, write_pins
from neuco_core.specs import Remote
from tests.fetch.helpers import remote, sha256

DATA = b"id,label\na,1\nb,2\n"


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
    other = Remote("https://h/y.csv", mirrors=(url,))
    assert links.linked_file("soil-2", other) == copy / "labels" / "x.csv", "the other spelling of a file"
    assert links.remove_link("soil-2")
    assert not links.remove_link("soil-2")
    assert links.linked_file("soil-2", Remote(url)) is None


def test_the_variable_wins_over_the_links_file(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        links.add_link("soil", tmp_path / "none")
    with pytest.raises(UsageError, match="bad dataset id"):
        links.add_link("../soil", tmp_path)
    links.add_link("soil-2", tmp_path)
    monkeypatch.setenv("NEUCO_DATASET_SOIL_2", str(copy))
    assert links.dataset_root("soil-2") == copy
    monkeypatch.setenv("NEUCO_DATASET_SOIL_2", str(copy / "gone"))
    with pytest.raises(DataError, match=r"NEUCO_DATASET_SOIL_2: .*not a folder"):
        links.dataset_root("soil-2")


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
    write_pins({url: Pin(sha256(DATA[::-1]), len(DATA))})
    with pytest.raises(ChecksumError, match="raise the task's version"):
        links.linked_file("soil", Remote(url))


@pytest.mark.parametrize("content", ["", "[]", '{"soil": 3}', "\x00", "[" * 100_000])
def test_a_damaged_links_file_is_named(copy: Path, content: str) -> None:
    links.links_file().parent.mkdir(parents=True)
    links.links_file().write_text(content)
    with pytest.raises(DataError, match=r"links\.json"):
        links.dataset_root("soil")
