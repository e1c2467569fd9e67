"""A simulated challenge ends as a clean recomputation does; the audit passes, and fails when one byte is changed."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from neuco_core.errors import DataError, UsageError
from neuco_extensions.challenge.audit import CHECKS, audit, close
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import RefusedError
from tests.challenge.parts import DEV, TEST, InProcess, embed, make_challenge, work
from tests.challenge.simulation import bad_file, simulate


@pytest.mark.slow
def test_a_simulated_challenge_with_kills(tmp_path: Path) -> None:
    folder, counts = simulate(tmp_path, teams=5, submissions=40, kills=4)
    assert counts["scored: scored"] >= 10
    assert counts["failed: format"] + counts["failed: ids"] >= 1
    assert counts["refused: quota"] + counts["refused: closed"] >= 1
    assert [(check.name, check.wrong) for check in audit(folder, InProcess())] == [(name, "") for name in CHECKS]


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("closed")
    with Host(make_challenge(base / "c", teams=("alpha", "beta", "base"))) as host:
        for number, (team, noise) in enumerate((("alpha", 1.0), ("beta", 0.5), ("alpha", 0.1), ("base", 2.0))):
            host.submit(team, "dev", embed(base / f"{number}.npz", noise, number), now=DEV)
        host.submit("beta", "dev", bad_file(base / "9.csv", "ids"), now=DEV)
        host.submit("alpha", "test", embed(base / "5.npz", 0.3, 5), now=TEST)
        work(host)
        close(host)
    assert failed(base / "c") == []
    return base / "c"


@pytest.fixture
def copy(closed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(closed, tmp_path / "c")


def failed(folder: Path) -> list[str]:
    return [check.name for check in audit(folder, InProcess()) if not check.ok]


# Where a byte is changed, and the check that must fail. Of a pattern the first file, of a file the place of the text.
@pytest.mark.parametrize(
    ("pattern", "old", "new", "check"),
    [
        ("private/labels/water.csv", b",1\n", b",0\n", "seal"),
        ("private/secrets.json", b'"dev": 1', b'"dev": 2', "seal"),
        ("private/secrets.json", b'"rules": "', b'"rules": "0', "seal"),
        ("public/seal.json", b'"rules": "', b'"rules":  "', "seal"),
        ("challenge.toml", b"per_day = 3", b"per_day = 4", "seal"),
        ("challenge.toml", b"k = 6", b"k = 7", "seal"),
        ("challenge.toml", b"k = 6\n", b"k = 6 #\n", "boards"),
        ("challenge.toml", b"Team alpha", b"Team alphb", "boards"),
        ("challenge.toml", b'token = "', b'token = "', "boards"),
        ("ids.txt", b"p001\n", b"p0o1\n", "seal"),
        ("private/records/s000001.jsonl", b'"q":', b'"q":1', "records"),
        ("private/records/s000001.jsonl", b'"challenge"', b'"challengf"', "records"),
        ("private/files/*/*", b"", b"", "files"),
        ("public/board-test.json", b"alpha", b"alphb", "boards"),
        ("public/history-dev.json", b"alpha", b"alphb", "boards"),
        ("public/reveal.json", b"rules", b"rulez", "boards"),
        ("public/submissions.json", b"scored", b"scorec", "boards"),
        ("public/rules.json", b'"per_day": 3', b'"per_day": 9', "seal"),
    ],
)
def test_one_changed_byte_is_seen(copy: Path, pattern: str, old: bytes, new: bytes, check: str) -> None:
    path = min(copy.glob(pattern))
    data = path.read_bytes()
    assert old in data
    if old == new:  # any byte: the last of the file, or of the text
        place = data.rindex(old) + len(old) if old else len(data) - 1
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    else:
        path.write_bytes(data.replace(old, new, 1))
    assert failed(copy)[:1] == [check]


@pytest.mark.parametrize(
    ("edit", "check"),
    [
        ("DELETE FROM submissions WHERE id = 6", "boards"),
        ("DELETE FROM submissions WHERE id = 2", "journal"),
        ("UPDATE submissions SET sha256 = (SELECT sha256 FROM submissions WHERE id = 2) WHERE id = 1", "journal"),
        ("""UPDATE submissions SET scores = '{"height": 99.0}' WHERE id = 2""", "scores"),
        ("""UPDATE submissions SET feedback = '{"mean_q": 99.0}' WHERE id = 2""", "answers"),
        ("UPDATE submissions SET rung = 1 WHERE id = 3", "answers"),
        ("UPDATE submissions SET state = 'failed', code = 'format' WHERE id = 2", "scores"),
        ("UPDATE submissions SET feedback = '{' WHERE id = 2", "journal"),
    ],
)
def test_an_edited_journal_is_seen(copy: Path, edit: str, check: str) -> None:
    with sqlite3.connect(copy / "private/journal.sqlite3") as db:
        db.execute(edit)
    db.close()
    assert failed(copy)[:1] == [check]


@pytest.mark.parametrize(
    ("pattern", "check"),
    [
        ("public/reveal.json", "boards"),
        ("public/board-dev.json", "boards"),
        ("public/rules.json", "seal"),
        ("public/seal.json", "seal"),
        ("private/secrets.json", "seal"),
        ("private/journal.sqlite3*", "boards"),
        ("private/files/*/*", "files"),
        ("private/records/s000002.jsonl", "records"),
    ],
)
def test_a_file_that_is_gone_is_seen(copy: Path, pattern: str, check: str) -> None:
    for path in list(copy.glob(pattern))[: None if "sqlite" in pattern else 1]:
        path.unlink()
    assert failed(copy)[:1] == [check]


def test_a_journal_that_was_cut_is_seen(copy: Path) -> None:
    path = copy / "private/journal.sqlite3"
    path.write_bytes(path.read_bytes()[:6000])
    assert failed(copy) == ["journal"]


def test_boards_that_were_not_published_yet_are_not_said_to_be_right(copy: Path) -> None:
    for path in [*copy.glob("public/board-*"), *copy.glob("public/history-*"), copy / "public/reveal.json"]:
        path.unlink()
    assert failed(copy) == ["boards"]  # submissions.json is still there
    (copy / "public/submissions.json").unlink()
    last = audit(copy, InProcess())[-1]
    assert (last.name, last.ok, "not closed yet" in last.skipped) == ("boards", True, True)


def test_a_challenge_closes_when_all_is_over(host: Host, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="phase dev is not over"):
        close(host, now=DEV)
    early, late = embed(tmp_path / "x.npz", 1), embed(tmp_path / "late.npz", 0.1, 2)
    first = host.submit("alpha", "dev", early, now=DEV, source="evalai:1")
    with pytest.raises(UsageError, match=r"1 submission not evaluated yet.* Run: neuco challenge evaluate"):
        close(host)
    work(host)
    files = close(host)
    with pytest.raises(RefusedError, match="not open"):  # the seeds are known to all now
        host.submit("beta", "dev", late, now=DEV)
    assert host.submit("alpha", "dev", early, now=DEV).chain == first.chain  # it is known
    assert host.submit("alpha", "dev", late, source="evalai:1").chain == first.chain
    assert len(host.journal.submissions()) == len(list(host.challenge.private.glob("files/*/*"))) == 1
    before = [path.read_bytes() for path in files]
    files[-1].unlink()  # as after a kill in the middle
    assert [path.read_bytes() for path in close(host)] == before
    reveal, hidden = files[0], files[0].with_name("hidden")
    reveal.rename(hidden)  # so that one more is taken in, "received" long ago
    host.submit("beta", "dev", late, now=DEV)
    work(host)
    hidden.rename(reveal)
    with pytest.raises(DataError, match="published, and no longer true: reveal"):
        close(host)
    assert [path.read_bytes() for path in files] == before
