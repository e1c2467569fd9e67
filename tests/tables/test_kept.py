"""Binary copies of large CSV files: read instead of the file while they say what it says, and else thrown away."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.encode.run import method_embeddings
from neuco_core.errors import DataError
from neuco_core.fetch.usage import prunable, remove
from neuco_core.runs.steps import Step
from neuco_core.runs.work import Work
from neuco_core.specs import Method, Remote
from neuco_core.tables import csv_quick, embeddings_csv, kept
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings
from tests.command import neuco
from tests.parts import missing

MADE = make_embeddings([f"s{n}" for n in range(40)], np.random.default_rng(0).standard_normal((40, 3)))


def write(values: np.ndarray, path: Path) -> None:
    rows = [",".join([name, *map(repr, row)]) for name, row in zip(MADE.ids, values.tolist(), strict=True)]
    path.write_text("\n".join([",".join(["id", *map(str, range(values.shape[1]))]), *rows]) + "\n")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CSV file that counts as large, and a cache of its own."""
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(csv_quick, "LARGE", 1)
    write(MADE.values, tmp_path / "x.csv")
    return tmp_path / "x.csv"


def read(file: Path, **options: Any) -> Embeddings:
    return read_embeddings(file, keep=True, **options)


def only_copy() -> Path:
    (copy,) = kept.copies()
    return copy.path


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From now on nobody can read the text itself."""

    def refuse(*_: Any) -> None:
        raise AssertionError("the CSV file is read again")

    return lambda: monkeypatch.setattr(embeddings_csv, "_read", refuse)


def test_the_second_time_the_copy_is_read(file: Path, unreadable: Callable[[], None]) -> None:
    file.write_text(file.read_text().replace("id,", "note,id,").replace("\ns", "\n,s") + ",t,1,2,nan\n")
    first = read(file)
    unreadable()
    again = read(file)
    assert (again.ids, again.sha256, again.replaced, again.ignored) == (
        first.ids,
        first.sha256,
        {"missing": 1},
        ("note",),
    )
    assert again.values.tobytes() == first.values.tobytes()
    assert again.values.flags.writeable
    assert again.values.dtype == np.float32
    moved = file.rename(file.with_name("elsewhere.csv"))
    assert read(moved).sha256 == first.sha256, "the content counts, not the name"


def test_nothing_is_kept_unasked_or_of_small_files(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_embeddings(file)
    monkeypatch.setattr(csv_quick, "LARGE", 1 << 20)
    read(file)
    assert kept.copies() == []


def test_errors_are_those_of_the_file(file: Path) -> None:
    text = file.read_text().replace("0,1,2\n", "0,1,4\n")
    file.write_text(text + "t,1,nan,2\n")
    read(file, gaps=True)
    for options in ({}, {"gaps": True, "strict": True}, {"gaps": True, "dim": 2}):
        with pytest.raises(DataError) as expected:
            read_embeddings(file, **options)  # type: ignore[arg-type]
        with pytest.raises(DataError) as error:
            read(file, **options)
        assert str(error.value) == str(expected.value)


def test_another_content_or_another_reader_is_another_copy(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read(file)
    before = file.stat()
    text = file.read_text()
    file.write_text(text.replace("\ns1,", "\nS1,"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as old and as long as before
    assert "S1" in read(file).ids
    monkeypatch.setattr(kept, "reader_version", lambda: "0" * 16)
    read(file)
    assert len(kept.copies()) == 3


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)


def other_count(path: Path) -> None:
    head, _, values = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(head), "replaced": {"missing": 1}}).encode() + b"\n" + values)


def of_another_file(path: Path) -> None:
    other = path.parent.parent.parent / "other.csv"
    write(MADE.values + 1, other)
    read(other)
    (copy,) = (copy.path for copy in kept.copies() if copy.path != path)
    copy.replace(path)


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "a bit": flip,
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-4]),
    "something added": lambda path: path.write_bytes(path.read_bytes() + b"1234"),
    "empty": lambda path: path.write_bytes(b""),
    "not ours": lambda path: path.write_bytes(b"\x93NUMPY" * 100),
    "no object": lambda path: path.write_bytes(b"[1]\n" + bytes(480)),
    "a count": other_count,
    "another file's": of_another_file,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_wrong_copy_is_thrown_away_and_made_again(
    file: Path, name: str, unreadable: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    read(file)
    copy = only_copy()
    good = copy.read_bytes()
    DAMAGE[name](copy)
    assert read(file).values.tobytes() == MADE.values.tobytes()
    assert "a damaged copy of a CSV file is not used" in caplog.text
    assert copy.read_bytes() == good
    unreadable()
    assert read(file).sha256 == MADE.sha256


def test_a_file_that_changes_while_it_is_read_is_not_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = embeddings_csv._read

    def edited_now(path: Path, *options: Any) -> Embeddings:
        path.write_text(path.read_text().replace("s1,", "S1,"))
        return original(path, *options)

    monkeypatch.setattr(embeddings_csv, "_read", edited_now)
    assert "S1" in read(file).ids
    assert kept.copies() == []


def test_there_is_a_limit(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ages: dict[Path, int] = {}
    for n in range(1, 5):
        write(MADE.values + n, file)
        read(file)
        (new,) = {copy.path for copy in kept.copies()} - set(ages)
        ages[new] = n
        os.utime(new, (n, n))
    monkeypatch.setattr(kept, "MOST_BYTES", 3 * new.stat().st_size + 100)
    write(MADE.values - 1, file)
    read(file)
    left = {copy.path for copy in kept.copies()}
    assert {age for path, age in ages.items() if path in left} == {3, 4}, "the oldest are gone"
    monkeypatch.setattr(kept, "MOST_BYTES", 10)
    write(MADE.values - 2, file)
    read(file)
    assert {copy.path for copy in kept.copies()} == left, "what can never fit drives nothing out"


def test_who_wants_it_fresh_reads_the_file_itself(file: Path, tmp_path: Path) -> None:
    """A copy forged with its seal fools who may use copies, and nobody else."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    method = Method(id="m", files={"d": Remote(file.as_uri(), digest)})
    (copy,) = [kept.copy_of(file)]
    assert copy
    copy.save(make_embeddings(MADE.ids, MADE.values + 1), "x.csv")
    assert method_embeddings(method, "d", {}).sha256 != MADE.sha256
    assert method_embeddings(method, "d", {}, cached=False).sha256 == MADE.sha256
    assert method_embeddings(method, "d", {}, run=tmp_path).sha256 == MADE.sha256
    step = Step("m", "d", "t", "ridge", file=str(file), sha256=digest)
    assert Work()._load_embeddings(step).sha256 != MADE.sha256
    assert Work()._load_embeddings(replace(step, fresh=True)).sha256 == MADE.sha256


def test_commands_know_the_copies(file: Path, tmp_path: Path) -> None:
    read(file)
    digest = only_copy().name[:12]
    env = {"NEUCO_CACHE": str(tmp_path / "cache")}
    shown = neuco("data", "ls", env=env).out
    assert f"{digest}" in shown
    assert "x.csv  (binary copy)" in shown
    assert neuco("data", "verify", env=env).out.split()[-2:] == ["x.csv", "ok"]
    flip(only_copy())
    done = neuco("data", "verify", env=env)
    assert (done.code, kept.copies()) == (4, [])
    assert "1 of 1 file in the cache corrupt, and removed" in done.err


def test_pruning(file: Path) -> None:
    read(file)
    (only_copy().parent / ".x.bin.part").touch()
    assert prunable() == []
    for path in only_copy().parent.iterdir():
        os.utime(path, (0, 0))
    assert len(prunable()) == 2
    os.utime(only_copy())
    assert prunable(everything=True) == [*prunable(), only_copy()]
    remove(prunable(everything=True))
    assert kept.copies() == []


READ = """
import sys
from neuco_core.tables import csv_quick
from neuco_core.tables.embeddings import read_embeddings
csv_quick.LARGE = 1
print(read_embeddings(sys.argv[1], keep=True).sha256)
"""
DISKS = {"full": ("--size", "4096", "--tmpfs"), "read-only": ("--ro-bind", ".")}


@pytest.mark.parametrize("disk", [*DISKS, "a file"])
def test_a_cache_that_cannot_be_written_is_nobodys_failure(file: Path, tmp_path: Path, disk: str) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    write(np.tile(MADE.values, 200), file)  # more than a page
    command = [sys.executable, "-c", READ, str(file)]
    if disk == "a file":
        cache.rmdir()
        cache.touch()
    elif shutil.which("bwrap") is None:
        missing("bubblewrap", "it makes the small disks")
    else:
        words = [str(cache) if word == "." else word for word in DISKS[disk]]
        command = ["bwrap", "--dev-bind", "/", "/", *words, str(cache), "--", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == read_embeddings(file).sha256
    if disk != "a file":
        assert "a copy of x.csv for the next run is not kept" in done.stderr
