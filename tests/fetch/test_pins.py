"""Pins: where they are, which one counts, what happens when a file no longer fits; and linked local copies."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from neuco_core import load_task
from neuco_core.errors import ChecksumError, DataError, FetchError, UnpinnedError, UsageError
from neuco_core.fetch import fetch as pins
from neuco_core.fetch import links
from neuco_core.fetch.fetch import Pin, cached, fetch, write_pins
from neuco_core.specs import Remote, Task
from neuco_core.tables.pinning import PinReport, accept, inspect_labels
from tests.fetch.helpers import files_below, remote, sha256
from tests.fetch.http_server import FileServer
from tests.fetch.soil import CLAY, PH

URL = "https://example.org/x.csv"


@pytest.fixture
def task(server: FileServer) -> Task:
    server.http.files["/ph.csv"] = PH
    return Task(id="soil_ph", dataset="soil", kind="regression", source=Remote(f"{server.base}/ph.csv"))


def pinned(task: Task, *, replace: bool = False) -> PinReport:
    report = inspect_labels(task, replace=replace)
    accept([report])
    return report


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    return tmp_path / "registry" / "pins.json"


def write(path: Path, digest: str, size: int = 3) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": 1, "pins": {URL: {"sha256": digest, "size": size}}}))


def test_an_unpinned_source_is_refused_before_any_request(server: FileServer, task: Task, cache: Path) -> None:
    with pytest.raises(UnpinnedError, match=r"no checksum.*Declare its sha256; .*run `neuco data pin TASK`"):
        fetch(task.source)
    assert server.http.requests == []
    assert files_below(cache) == []
    with pytest.raises(UnpinnedError, match=r"Run `neuco data pin biomass_mean`"):
        fetch(load_task("biomass_mean").source)


def test_pin_shows_what_it_found_and_fetch_then_works(server: FileServer, task: Task, tmp_path: Path) -> None:
    report = pinned(task)
    assert (report.state, report.sha256, report.size) == ("new", sha256(PH), len(PH))
    assert (report.rows, report.dropped, report.lowest, report.highest) == (30, 1, 0.5, 29.5)
    content = json.loads((tmp_path / "pins.json").read_text())
    assert content == {"schema": 1, "pins": {task.source.url: {"sha256": sha256(PH), "size": len(PH)}}}
    assert cached(task.source) is not None
    assert fetch(task.source).read_bytes() == PH
    assert len(server.http.requests) == 1, "what was pinned is in the cache already"
    assert len(task.labels().ids) == 30
    assert pinned(task).state == "unchanged"
    assert json.loads((tmp_path / "pins.json").read_text()) == content


def test_a_file_that_no_longer_fits_its_pin_explains_both_possibilities(
    server: FileServer, task: Task, tmp_path: Path, cache: Path
) -> None:
    pinned(task)
    before = (tmp_path / "pins.json").read_bytes()
    server.http.files["/ph.csv"] = changed = PH.replace(b"9.5", b"9.6")
    for path in cache.rglob("ph.csv"):
        path.unlink()
    with pytest.raises(ChecksumError, match=r"Either the file is corrupt .*, or its owner changed it: .*--replace"):
        fetch(task.source)
    with pytest.raises(ChecksumError, match=r"pins\.json.*raise the task's version"):
        pinned(task)
    assert (tmp_path / "pins.json").read_bytes() == before
    assert files_below(cache) == []
    assert pinned(task, replace=True).state == "changed"
    assert fetch(task.source).read_bytes() == changed


def test_a_pin_that_came_with_neuco_is_not_replaced(task: Task, tmp_path: Path, registry: Path) -> None:
    registry.parent.mkdir()
    shipped = {"schema": 1, "pins": {task.source.url: {"sha256": "0" * 64, "size": 1}}}
    registry.write_text(json.dumps(shipped))
    with pytest.raises(DataError, match="cannot be replaced here"):
        pinned(task, replace=True)
    assert not (tmp_path / "pins.json").exists()


def test_pins_written_at_once_are_all_kept(tmp_path: Path) -> None:
    code = "import sys; from neuco_core.fetch.fetch import Pin, write_pins as w; w({sys.argv[1]: Pin('a' * 64, 1)})"
    running = [subprocess.Popen([sys.executable, "-c", code, f"https://example.org/{i}"]) for i in range(8)]
    assert [process.wait(60) for process in running] == [0] * 8
    assert len(pins.read_pins(tmp_path / "pins.json")) == 8


def test_what_cannot_be_read_as_labels_or_reached_is_not_pinned(
    server: FileServer, task: Task, tmp_path: Path, cache: Path
) -> None:
    server.http.files["/ph.csv"] = b"<html>please log in</html>"
    with pytest.raises(DataError):
        pinned(task)
    source = Remote(server.url("missing"), mirrors=(server.url("forbidden"),))
    with pytest.raises(FetchError, match="none of the 2 addresses"):
        pinned(replace(task, source=source))
    assert not (tmp_path / "pins.json").exists()
    assert files_below(cache) == []


def test_pin_takes_the_other_spelling_of_the_address(server: FileServer, task: Task) -> None:
    source = Remote(server.url("missing", "soil-ph.csv"), mirrors=(task.source.url,))
    assert pinned(replace(task, source=source)).url == source.url
    assert fetch(source).read_bytes() == PH


def test_a_declared_hash_needs_no_pin_and_wins(server: FileServer, tmp_path: Path) -> None:
    server.http.files["/clay.csv"] = CLAY
    source = Remote(f"{server.base}/clay.csv", sha256=sha256(CLAY))
    task = Task(id="soil_clay", dataset="soil", kind="classification", source=source)
    pins.write_pins({source.url: pins.Pin("0" * 64, 1)})
    assert pinned(task).state == "declared"
    assert fetch(source).read_bytes() == CLAY


def test_where_a_pin_is_written(tmp_path: Path, root: Path, registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pins.pins_file() == tmp_path / "pins.json", "NEUCO_PINS before everything"
    monkeypatch.delenv("NEUCO_PINS")
    assert pins.pins_file() == registry, "the registry that the user chose"
    monkeypatch.delenv("NEUCO_REGISTRY")
    assert pins.pins_file() == root / "registry" / "pins.json", "the checkout"
    monkeypatch.setattr("neuco_core.env.checkout", lambda: None)
    assert pins.pins_file() == tmp_path / "config" / "pins.json", "an installed neuco: the user's own"


def test_the_registrys_pins_and_the_users_are_both_read_and_must_agree(tmp_path: Path, registry: Path) -> None:
    source, user = Remote(URL), tmp_path / "pins.json"
    assert pins.find_pin(source) is None
    write(user, "a" * 64)
    assert pins.find_pin(source) == pins.Pin("a" * 64, 3, source=str(user))
    write(registry, "a" * 64)
    assert pins.find_pin(source) == pins.Pin("a" * 64, 3, source=str(registry))
    write(user, "b" * 64)
    with pytest.raises(DataError) as caught:
        pins.find_pin(source)
    assert str(registry) in str(caught.value)
    assert str(user) in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"pins": {}}',
        '{"schema": 2, "pins": {}}',
        "[" * 100_000,
        " " * 10_000_001,
        '{"schema": 1, "pins": {"u": 3}}',
        '{"schema": 1, "pins": {"u": {"sha256": "ABC", "size": 1}}}',
        '{"schema": 1, "pins": {"u": {"sha256": "%s"}}}' % ("a" * 64),
        '{"schema": 1, "pins": {"u": {"sha256": "%s", "size": -1}}}' % ("a" * 64),
        '{"schema": 1, "pins": {"u": {"sha256": "%s", "size": true}}}' % ("a" * 64),
    ],
)
def test_a_damaged_pins_file_is_never_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / "pins.json").write_text(content)
    with pytest.raises(DataError, match=r"pins\.json"):
        pins.find_pin(Remote(URL))


def test_a_folder_as_the_file_of_pins_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_PINS", str(tmp_path))
    with pytest.raises(UsageError, match=r"NEUCO_PINS is set to a folder; expected a file.*pins\.json, or unset it"):
        pins.user_pins()


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ('{"pins": {}, "schema": 1, "version": 2}', "`version`"),
        ('{"pins": {"https://a.example/x": {"sha256": "%s", "size": 1, "sha512": ""}}, "schema": 1}', "`sha512`"),
    ],
)
def test_unknown_fields_of_pins_are_refused(content: str, field: str, tmp_path: Path) -> None:
    """Those of a newer neuco may say what counts; passed over, they would be lost at the next pin."""
    (tmp_path / "pins.json").write_text(content.replace("%s", "0" * 64))
    with pytest.raises(DataError, match=f"not a file of pins: Object contains unknown field {field}"):
        pins.read_pins(tmp_path / "pins.json")


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
