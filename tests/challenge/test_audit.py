"""A simulated challenge ends as a clean recomputation does; the audit passes, and fails when one byte is changed."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from neuco_core.errors import DataError, UsageError
from neuco_extensions.challenge.audit import CHECKS, audit
from neuco_extensions.challenge.close import close
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import RefusedError
from tests.challenge.parts import DEV, TEST, embed, make_challenge
from tests.challenge.simulation import bad_file, simulate


@pytest.mark.slow
def test_a_simulated_challenge_with_kills(tmp_path: Path) -> None:
    """The full one: ``python -m tests.challenge.simulation``."""
    folder, counts = simulate(tmp_path, teams=5, submissions=40, kills=4)
    assert counts["scored: scored"] >= 10
    assert counts["failed: format"] + counts["failed: ids"] >= 1
    assert counts["refused: quota"] + counts["refused: closed"] >= 1
    assert [(own.name, own.wrong) for own in audit(folder)] == [(name, "") for name in CHECKS]


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("closed")
    with Host(make_challenge(base / "c", teams=("alpha", "beta", "base"))) as host:
        for number, (team, noise) in enumerate((("alpha", 1.0), ("beta", 0.5), ("alpha", 0.1), ("base", 2.0))):
            host.submit(team, "dev", embed(base / f"{number}.npz", noise, number), now=DEV)
        host.submit("beta", "dev", bad_file(base / "9.csv", "ids"), now=DEV)
        host.submit("alpha", "test", embed(base / "5.npz", 0.3, 5), now=TEST)
        host.work_all()
        close(host)
    assert all(own.ok for own in audit(base / "c"))
    return base / "c"


# Where a byte is changed, and the check that must fail. Of a pattern the first file, of a file the place of the text.
BYTES = {
    "labels": ("private/labels/water.csv", b",1\n", b",0\n", "seal"),
    "seed": ("private/secrets.json", b'"dev": 1', b'"dev": 2', "seal"),
    "salt": ("private/secrets.json", b'"rules": "', b'"rules": "0', "seal"),
    "commitment": ("public/seal.json", b'"rules": "', b'"rules":  "', "seal"),
    "quota": ("challenge.toml", b"per_day = 3", b"per_day = 4", "seal"),
    "k": ("challenge.toml", b"k = 6", b"k = 7", "seal"),
    "comment": ("challenge.toml", b"k = 6\n", b"k = 6 #\n", "boards"),
    "team": ("challenge.toml", b"Team alpha", b"Team alphb", "boards"),
    "token": ("challenge.toml", b'token = "', b'token = "', "boards"),
    "ids": ("ids.txt", b"p001\n", b"p0o1\n", "seal"),
    "record": ("private/records/s000001.jsonl", b'"q":', b'"q":1', "records"),
    "provenance": ("private/records/s000001.jsonl", b'"challenge"', b'"challengf"', "records"),
    "file": ("private/files/*/*", b"", b"", "files"),
    "board": ("public/board-test.json", b"alpha", b"alphb", "boards"),
    "history": ("public/history-dev.json", b"alpha", b"alphb", "boards"),
    "reveal": ("public/reveal.json", b"rules", b"rulez", "boards"),
    "list": ("public/submissions.json", b"scored", b"scorec", "boards"),
    "public rules": ("public/rules.json", b'"per_day": 3', b'"per_day": 9', "seal"),
}  # fmt: skip


@pytest.mark.parametrize("what", BYTES)
def test_one_changed_byte_is_seen(closed: Path, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "c"
    shutil.copytree(closed, folder)
    pattern, old, new, check = BYTES[what]
    path = min(folder.glob(pattern))
    data = path.read_bytes()
    if old == new:  # any byte: the last of the file, or of the text
        place = data.rindex(old) + len(old) if old else len(data) - 1
        data = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    else:
        assert old in data
        data = data.replace(old, new, 1)
    path.write_bytes(data)
    assert [own.name for own in audit(folder) if not own.ok][:1] == [check]


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
def test_an_edited_journal_is_seen(closed: Path, tmp_path: Path, edit: str, check: str) -> None:
    folder = tmp_path / "c"
    shutil.copytree(closed, folder)
    with sqlite3.connect(folder / "private/journal.sqlite3") as db:
        db.execute(edit)
    db.close()
    assert [own.name for own in audit(folder) if not own.ok][:1] == [check]


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
def test_a_file_that_is_gone_is_seen(closed: Path, tmp_path: Path, pattern: str, check: str) -> None:
    folder = tmp_path / "c"
    shutil.copytree(closed, folder)
    for path in list(folder.glob(pattern))[: None if "sqlite" in pattern else 1]:
        path.unlink()
    assert [own.name for own in audit(folder) if not own.ok][:1] == [check]


def test_a_journal_that_was_cut_is_seen(closed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    shutil.copytree(closed, folder)
    path = folder / "private/journal.sqlite3"
    path.write_bytes(path.read_bytes()[:6000])
    assert [own.name for own in audit(folder) if not own.ok] == ["journal"]


def test_boards_that_were_not_published_yet_are_not_said_to_be_right(closed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    shutil.copytree(closed, folder)
    for path in [*folder.glob("public/board-*"), *folder.glob("public/history-*")]:
        path.unlink()
    (folder / "public/reveal.json").unlink()
    assert [own.name for own in audit(folder) if not own.ok] == ["boards"]  # submissions.json is still there
    (folder / "public/submissions.json").unlink()
    last = audit(folder)[-1]
    assert (last.name, last.ok, "not closed yet" in last.skipped) == ("boards", True, True)


def test_a_challenge_closes_when_all_is_over(tmp_path: Path) -> None:
    with Host(make_challenge(tmp_path / "c")) as host:
        with pytest.raises(UsageError, match="phase dev is not over"):
            close(host, now=DEV)
        early, late = embed(tmp_path / "x.npz", 1), embed(tmp_path / "late.npz", 0.1, 2)
        first = host.submit("alpha", "dev", early, now=DEV, source="evalai:1")
        with pytest.raises(UsageError, match=r"1 submission not evaluated yet.* Run: neuco challenge evaluate"):
            close(host)
        host.work_all()
        files = close(host)
        with pytest.raises(RefusedError, match="not open"):  # the seeds are known to all now
            host.submit("beta", "dev", late, now=DEV)
        assert host.submit("alpha", "dev", early, now=DEV).chain == first.chain  # it is known
        assert host.submit("alpha", "dev", late, source="evalai:1").chain == first.chain
        assert len(host.journal.submissions()) == len(list(host.challenge.private.glob("files/*/*"))) == 1
        before = [path.read_bytes() for path in files]
        files[-1].unlink()  # as after a kill in the middle
        assert [path.read_bytes() for path in close(host)] == before
        files[0].with_name("hidden").write_bytes(files[0].read_bytes())
        files[0].unlink()  # so that one more is taken in, "received" long ago
        host.submit("beta", "dev", embed(tmp_path / "y.npz", 1, 1), now=DEV)
        host.work_all()
        files[0].with_name("hidden").rename(files[0])
        with pytest.raises(DataError, match="published, and no longer true: reveal"):
            close(host)
        assert [path.read_bytes() for path in files] == before
