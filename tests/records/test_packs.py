"""Packed records: the very bytes in few files; only what changed is written; what is elsewhere is verified."""

from __future__ import annotations

import json
import logging
import lzma
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuco_core import paths
from neuco_core.errors import ChecksumError, DataError
from neuco_core.records import packs, store
from neuco_core.records.model import Record, record_bytes
from neuco_core.records.packs import PacksAwayError, packed, read_manifest
from neuco_core.records.store import (
    find_record,
    pack_all,
    pack_records,
    read_all,
    read_heads,
    read_record,
    record_path,
    write_record,
)
from tests.fetch.helpers import own_settings
from tests.fetch.http_server import FileServer
from tests.parts import missing
from tests.records.examples import scored, unscored

CELLS = [scored(method, f"task_{number}", seed=number) for method in ("one", "two") for number in range(5)]


@pytest.fixture(autouse=True)
def _own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_settings(tmp_path, monkeypatch)
    packs._merged.cache_clear()
    store._say_away.cache_clear()


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as running:
        yield running


def files(registry: Path) -> dict[str, bytes]:
    return {str(path.relative_to(registry)): path.read_bytes() for path in registry.rglob("*") if path.is_file()}


def test_what_is_packed_is_read_as_before_to_the_byte(tmp_path: Path) -> None:
    for record in CELLS:
        write_record(record, tmp_path)
    heads, places = read_heads(tmp_path), list(store.record_files(tmp_path))
    assert pack_all(tmp_path) == len(CELLS)
    assert not list(tmp_path.rglob("task_*"))
    assert (read_all(tmp_path), list(store.record_files(tmp_path))) == (CELLS, places)
    assert read_heads(tmp_path) == heads
    for record in CELLS:
        path = find_record(tmp_path, *record.key)
        assert path == record_path(tmp_path, *record.key)
        assert packed(tmp_path, record.method)[path.name] == record_bytes(record)
        assert store.read_head(str(path)) == heads[record.method, path.name]
    assert store.record_names(tmp_path, "one") == {f"task_{number}.json" for number in range(5)}
    with pytest.raises(DataError, match="cannot be read"):
        read_record(record_path(tmp_path, "one", "nix", "neuco-2025"))


def test_a_pack_is_plain_for_other_programs(tmp_path: Path) -> None:
    pack_records(tmp_path, CELLS[:3])
    (path,) = tmp_path.rglob("*.xz")
    try:
        text = subprocess.run(["xz", "-dc", path], check=True, capture_output=True).stdout
        done = subprocess.run(["jq", "-r", ".task"], input=text, check=True, capture_output=True)
    except FileNotFoundError as error:
        missing("xz and jq", "they read packs", str(error))
    assert done.stdout.split() == [b"task_0", b"task_1", b"task_2"]


def test_the_same_records_give_the_same_files_whatever_their_order(tmp_path: Path) -> None:
    pack_records(tmp_path / "a", CELLS)
    pack_records(tmp_path / "b", reversed(CELLS))
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_only_the_packs_of_methods_that_changed_are_touched(tmp_path: Path) -> None:
    pack_records(tmp_path, CELLS)
    before = files(tmp_path)
    pack_records(tmp_path, [scored("two", "task_9")])
    changed = {name for name, data in files(tmp_path).items() if before.get(name) != data}
    assert {name.partition("/")[0] if "/" not in name else name.split("/")[1] for name in changed} == {
        "records.json",
        "two",
    }
    assert before.keys() <= files(tmp_path).keys(), "a small addition does not write a large pack again"


def test_packs_stay_few_and_small_additions_cheap(tmp_path: Path) -> None:
    written = 0
    for number in range(64):
        pack_records(tmp_path, [scored("one", f"task_{number}")])
        written += read_manifest(tmp_path).by_method["one"][-1].records
        assert len(read_manifest(tmp_path).by_method["one"]) <= 7
        assert len(list(tmp_path.rglob("*.xz"))) == len(read_manifest(tmp_path).by_method["one"])
    assert len(read_all(tmp_path)) == 64
    assert written <= 64 * 7, "each record is written at most log2(64) + 1 times"


def test_the_newest_record_of_a_cell_counts(tmp_path: Path) -> None:
    pack_records(tmp_path, CELLS)
    later, loose = scored("one", "task_0", seed=77), scored("one", "task_0", seed=78)
    pack_records(tmp_path, [later])
    assert read_all(tmp_path)[0] == later
    write_record(loose, tmp_path)
    assert (read_all(tmp_path)[0], len(read_all(tmp_path))) == (loose, len(CELLS))
    assert read_heads(tmp_path)["one", "task_0.json"].digest == json.loads(record_bytes(loose))["digest"]
    pack_records(tmp_path, [later])
    assert read_all(tmp_path)[0] == later, "a loose record must not hide what was packed after it"


def test_what_is_taken_away_is_in_no_pack(tmp_path: Path) -> None:
    pack_records(tmp_path, CELLS)
    pack_records(tmp_path, [scored("one", "task_0", seed=5)])
    pack_records(tmp_path, [], gone=[CELLS[0].key, *(record.key for record in CELLS[5:])])
    assert read_all(tmp_path) == CELLS[1:5]
    assert list(read_manifest(tmp_path).by_method) == ["one"]
    assert not list((tmp_path / "records" / "two").iterdir())


def test_a_users_registry_lies_over_packs_that_came_with_neuco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user, package = tmp_path / "user", tmp_path / "package"
    monkeypatch.delenv("NEUCO_REGISTRY", raising=False)
    monkeypatch.setattr(paths, "user_registry", lambda: user)
    monkeypatch.setattr(paths, "PACKAGE", package)
    pack_records(package / "_registry", CELLS)
    own = scored("one", "task_1", seed=99)
    write_record(own, user)
    assert [record for record in read_all(user) if record not in CELLS] == [own]
    assert len(read_heads(user)) == len(CELLS)
    assert find_record(user, *CELLS[0].key) == record_path(package / "_registry", *CELLS[0].key)


def swap(registry: Path) -> None:
    """Other records under the name of a pack: right in themselves, and not what was published."""
    (path,) = (registry / "records" / "one").glob("*.xz")
    other = [record_bytes(scored("one", f"task_{number}", seed=50 + number)) for number in range(5)]
    path.write_bytes(lzma.compress(b"".join(other)))


def relist(registry: Path) -> None:
    """A pack of one method in the place of another's."""
    path = registry / "records.json"
    path.write_text(path.read_text().replace('"two"', '"six"'))
    (registry / "records" / "two").rename(registry / "records" / "six")


def fewer(registry: Path) -> None:
    path = registry / "records.json"
    path.write_text(path.read_text().replace('"records": 5', '"records": 6'))


def twice(registry: Path) -> None:
    """Two scores of one cell in a pack; which of them counts would be chance."""
    same = [record_bytes(scored("one", "task_0", seed=seed)) for seed in (0, 50)]
    packs.change_packs(registry, {"one": dict(zip("ab", same, strict=True))})


def cut(registry: Path) -> None:
    (path,) = (registry / "records" / "one").glob("*.xz")
    path.write_bytes(path.read_bytes()[:-8])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (swap, "larger than|not the one that records.json lists"),
        (relist, "wrong place"),
        (fewer, "records are missing"),
        (twice, "two records of one cell"),
        (cut, "not the one"),
        (lambda registry: (registry / "records.json").write_text("{}x"), "not a list of packed records"),
        (lambda registry: (registry / "records.json").write_text('{"packs": [{"method": "../x"}]}'), "not a list"),
    ],
)
def test_what_publishing_did_not_write_is_refused(damage: object, said: str, tmp_path: Path) -> None:
    pack_records(tmp_path, CELLS)
    damage(tmp_path)  # type: ignore[operator]
    with pytest.raises(DataError, match=said):
        read_all(tmp_path)


def test_a_pack_that_grows_without_end_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LARGEST_PACK", 1000)
    pack_records(tmp_path, CELLS[:5])
    with pytest.raises(DataError, match="at most 1000 bytes"):
        read_all(tmp_path)


def elsewhere(registry: Path, server: FileServer, records: list[Record]) -> None:
    """A registry whose packs are on a server."""
    pack_records(registry, records, urls=[f"{server.url('packs', '{file}')}"])
    for path in (registry / "records").rglob("*.xz"):
        server.http.files[f"/packs/{path.parent.name}/{path.name}"] = path.read_bytes()
        path.unlink()


def test_packs_that_are_elsewhere_are_fetched_once_and_verified(tmp_path: Path, server: FileServer) -> None:
    elsewhere(tmp_path / "r", server, CELLS)
    assert read_all(tmp_path / "r") == CELLS
    packs._merged.cache_clear()
    assert len(read_heads(tmp_path / "r")) == len(CELLS)
    assert server.count("packs") == 2, "one request for each pack"
    pack_records(tmp_path / "r", [scored("one", "task_9")])
    assert len(read_all(tmp_path / "r")) == len(CELLS) + 1, "an old pack there, a new one here"


def test_all_packs_can_be_gathered_for_a_place_without_a_network(tmp_path: Path, server: FileServer) -> None:
    """Publishing works boards out in a sandbox; there, nothing can be fetched."""
    elsewhere(tmp_path / "r", server, CELLS)
    pack_records(tmp_path / "r", [scored("one", "task_9")])
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "records.json").write_bytes((tmp_path / "r" / "records.json").read_bytes())
    packs.gather_packs(tmp_path / "r", tmp_path / "copy")
    assert len(list((tmp_path / "copy").rglob("*.xz"))) == 3
    asked = len(server.http.requests)
    assert len(read_all(tmp_path / "copy")) == len(CELLS) + 1
    assert len(server.http.requests) == asked


def test_a_server_that_gives_other_records_is_not_believed(tmp_path: Path, server: FileServer) -> None:
    elsewhere(tmp_path / "r", server, CELLS)
    for path in server.http.files:
        server.http.files[path] = lzma.compress(record_bytes(scored("one", "task_0", seed=66)))
    with pytest.raises(ChecksumError, match="not the declared file"):
        read_all(tmp_path / "r")


def test_offline_the_message_is_clear_and_a_plan_goes_on(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere(tmp_path / "r", server, CELLS)
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    with pytest.raises(PacksAwayError, match=r"records of 'one' are not on this machine.*NEUCO_OFFLINE"):
        read_all(tmp_path / "r")
    own = unscored()
    write_record(own, tmp_path / "r")
    with caplog.at_level(logging.WARNING):
        assert list(read_heads(tmp_path / "r")) == [("random", "digits_class.json")]
        assert find_record(tmp_path / "r", *CELLS[0].key) is None
    assert "the cells of 2 methods count as not scored" in caplog.text
    assert server.http.requests == []


def test_without_an_address_one_can_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack_records(tmp_path / "r", CELLS)
    (tmp_path / "r" / "records").rename(tmp_path / "copy")
    with pytest.raises(PacksAwayError, match="Set NEUCO_RECORDS"):
        read_all(tmp_path / "r")
    monkeypatch.setenv("NEUCO_RECORDS", f"file://{tmp_path}/copy")
    assert read_all(tmp_path / "r") == CELLS
