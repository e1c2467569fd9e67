"""A simulated challenge ends as a clean recomputation does; the audit passes, and fails when one byte is changed."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from neuco_core.errors import DataError, UsageError
from neuco_extensions.challenge.audit import CHECKS, _amended, _quotas, audit, close, public_files
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import JournalEntry, RefusedError
from neuco_extensions.challenge.rules import load_challenge
from tests.challenge.parts import ACTOR, BAD, DEV, TEST, InProcess, bad_file, embed, failed, make_challenge, work
from tests.command import neuco_here

# Processes that submit, and that evaluate; how many are killed; what the teams send.
CLIENTS, WORKERS, KILLS, SENT = 8, 2, 4, 40
HOST_PAGE = Path(__file__).parents[2] / "docs/howto/challenge/host.md"
Action = tuple[str, str, str, str]


def plan(folder: Path, teams: Sequence[str]) -> list[Action]:
    """Team, phase, file and time of all that is sent, in its order; a quarter of it is not as it should be."""
    rng = random.Random(0)
    actions: list[Action] = []
    for number in range(SENT):
        phase, start = ("dev", DEV) if number < SENT * 2 / 3 else ("test", TEST)
        moment = start + timedelta(days=rng.randrange(3), seconds=rng.randrange(3600))
        path, fate = folder / f"{number}.npz", rng.random()
        if fate < 0.08 and actions:
            path = Path(rng.choice(actions)[2])  # the same file again, perhaps of somebody else
        elif fate < 0.2:
            path = bad_file(folder / f"{number}.csv", rng.choice(BAD))
        else:
            embed(path, rng.uniform(0.1, 3), number)
        if fate > 0.95:
            moment += timedelta(days=60)  # long after the end
        actions.append((teams[number % len(teams)], phase, str(path), moment.isoformat()))
    return actions


def play(folder: Path, actions: Sequence[Action]) -> list[tuple[Action, int | str]]:
    """Send every action by two clients, so that they race; some are killed, and started again. What they were told."""
    rng, done, plans = random.Random(0), folder.parent / "done", []
    commands: list[tuple[str, ...]] = []
    for client in range(CLIENTS):
        plans.append(
            [action for number, action in enumerate(actions) if client in (number % CLIENTS, (number + 3) % CLIENTS)]
        )
        path = folder.parent / f"plan-{client}.json"
        path.write_text(json.dumps(plans[client]))
        commands.append(("submit", str(folder), str(path), str(path.with_suffix(".log"))))
    commands += [("work", str(folder), str(done))] * WORKERS
    running = [subprocess.Popen([*ACTOR, *command]) for command in commands]
    kills = KILLS
    while any(process.poll() is None for process in running[:CLIENTS]) or kills:
        time.sleep(rng.uniform(0.2, 0.6))
        if kills:
            kills -= 1
            victim = rng.randrange(len(running)) if kills % 2 else CLIENTS + kills // 2 % WORKERS
            running[victim].kill()
            running[victim].wait()
            running[victim] = subprocess.Popen([*ACTOR, *commands[victim]])
    done.touch()
    assert [process.wait() for process in running] == [0] * len(running)
    logs = [(folder.parent / f"plan-{client}.log").read_text().splitlines() for client in range(CLIENTS)]
    logged = [(sent, json.loads(line)) for sent, lines in zip(plans, logs, strict=True) for line in lines]
    return [(sent[number], answer) for sent, (number, answer) in logged]


@pytest.mark.slow
def test_a_simulated_challenge_with_kills(tmp_path: Path) -> None:
    """Nothing is lost, nothing counted twice; one process that nobody disturbs makes the same boards of it."""
    teams = ("team0", "team1", "team2", "team3", "base")
    rules = {"dim = 16": "dim = 16\nattempts = 1000", "per_day = 3\nin_all = 3": "per_day = 4\nin_all = 6"}
    rules["per_day = 3\nin_all = 6"] = "per_day = 6\nin_all = 14"
    folder, clean = make_challenge(tmp_path / "challenge", rules, teams=teams), tmp_path / "clean"
    shutil.copytree(folder, clean)
    (tmp_path / "sent").mkdir()
    answers = play(folder, plan(tmp_path / "sent", teams))
    with Host(folder) as host, Host(clean) as other:
        entries = host.journal.submissions()
        assert len({(entry.team, entry.phase, entry.sha256) for entry in entries}) == len(entries)
        assert {entry.state for entry in entries} == {"scored", "failed"}
        for (team, phase, path, moment), answer in answers:
            phase_rules = host.challenge.phase(phase)
            if isinstance(answer, int):
                assert (entries[answer - 1].team, entries[answer - 1].phase) == (team, phase)
                continue
            assert answer in ("closed", "quota", "size")
            assert (answer == "closed") == (datetime.fromisoformat(moment) >= phase_rules.end)
            assert (answer == "size") <= (Path(path).stat().st_size > host.challenge.limits.bytes)
            if answer == "quota":  # what waits counts until it is known to be no embeddings
                of_team = [entry for entry in entries if (entry.team, entry.phase) == (team, phase)]
                today = [entry for entry in of_team if entry.received[:10] == moment[:10]]
                assert len(of_team) >= phase_rules.in_all or len(today) >= phase_rules.per_day
        assert sum(entry.code == "scored" for entry in entries) >= 10
        assert {"format", "ids"} & {entry.code for entry in entries}
        assert {"quota", "closed"} & {answer for _, answer in answers}
        for entry in entries:
            other.submit(entry.team, entry.phase, host.file_path(entry), now=datetime.fromisoformat(entry.received))
            work(other)
        boards = [{p.name: data for p, data in public_files(h).items() if p.name[:5] == "board"} for h in (host, other)]
        assert boards[0] == boards[1]
        close(host)
    assert [check.name for check in audit(folder, InProcess()) if check.ok] == list(CHECKS)


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


# Where a byte is changed, or all are gone, and the check that must fail. Of a pattern the first file, of a file the
# place of the text.
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
        ("public/reveal.json", b"", None, "boards"),
        ("public/board-dev.json", b"", None, "boards"),
        ("public/rules.json", b"", None, "seal"),
        ("public/seal.json", b"", None, "seal"),
        ("private/secrets.json", b"", None, "seal"),
        ("private/journal.sqlite3", b"", None, "boards"),
        ("private/files/*/*", b"", None, "files"),
        ("private/records/s000002.jsonl", b"", None, "records"),
    ],
)
def test_one_changed_byte_or_a_file_that_is_gone_is_seen(
    copy: Path, pattern: str, old: bytes, new: bytes | None, check: str
) -> None:
    path = min(copy.glob(pattern))
    data = path.read_bytes()
    assert old in data
    if new is None:
        path.unlink()
    elif old == new:  # any byte: the last of the file, or of the text
        at = data.rindex(old) + len(old) if old else len(data) - 1
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    else:
        path.write_bytes(data.replace(old, new, 1))
    assert failed(copy)[:1] == [check]


# What is written over a column, as SQL, and no audit sees, since nobody can make it again: it decides nothing.
UNSEEN = {
    "attempts": "attempts + 1",
    "worker": "'x'",
    "finished": "'2026-03-05T00:00:00+00:00'",  # a time that is none, or has not passed, is seen
    "detail": "'x'",
}
# What is written over a column, as SQL, and must be seen.
FORGED = {
    "id": ["id + 100"],
    "team": ["team || 'x'"],
    "phase": ["'dev test'"],
    "sha256": ["upper(sha256)"],
    "size": ["size + 1"],
    "public": ["1 - public"],
    "received": ["'2026-01-05'", "'never'"],
    "source": ["'evalai:' || id"],
    "chain": ["upper(chain)"],
    "state": ["iif(state = 'scored', 'failed', 'scored')", "'received'", "'gone'"],
    "finished": ["NULL", "'never'", "'2999-01-01T00:00:00+00:00'"],
    "answer_number": ["NULL", "answer_number % 6 + 1"],
    "code": ["NULL", "iif(code = 'scored', 'format', 'scored')"],
    "feedback": ["""'{"mean_q": 99.0}'"""],
    "scores": ["""'{"height": 99.0}'"""],
    "records": ["'0'"],
    "rung": ["coalesce(rung, 0) + 1"],
}


def unpublish(folder: Path) -> None:
    for path in [*folder.glob("public/board-*"), *folder.glob("public/history-*"), folder / "public/reveal.json"]:
        path.unlink()


@pytest.mark.parametrize(("column", "forged"), [(column, sql) for column, all_sql in FORGED.items() for sql in all_sql])
def test_whatever_a_rank_depends_on_is_sealed_or_compared(copy: Path, column: str, forged: str) -> None:
    """Each row in turn, before anything is published that could be compared."""
    unpublish(copy)
    (copy / "public/submissions.json").unlink()
    for number in range(1, 7):
        with closing(sqlite3.connect(copy / "private/journal.sqlite3", isolation_level=None)) as db:
            (before,) = db.execute(f"SELECT {column} FROM submissions WHERE id = ?", (number,)).fetchone()
            db.execute(f"UPDATE submissions SET {column} = {forged} WHERE id = ?", (number,))
            wrong = [check.wrong for check in audit(copy, InProcess()) if not check.ok]
            assert any(f"s{number:06d}" in text or f"entry {number} " in text for text in wrong), (number, wrong)
            changed = number + 100 if column == "id" else number
            db.execute(f"UPDATE submissions SET {column} = ? WHERE id = ?", (before, changed))
    assert failed(copy) == []


def test_every_column_that_decides_something_is_forged() -> None:
    assert {*FORGED, *UNSEEN} == set(JournalEntry._fields)


@pytest.mark.parametrize("column", UNSEEN)
def test_what_no_audit_sees_changes_nothing_that_is_published_and_is_named(copy: Path, column: str) -> None:
    with closing(sqlite3.connect(copy / "private/journal.sqlite3", isolation_level=None)) as db:
        assert db.execute(f"UPDATE submissions SET {column} = {UNSEEN[column]}").rowcount == 6
    assert failed(copy) == []
    _, _, limits = HOST_PAGE.read_text(encoding="utf-8").partition("No audit shows")
    assert f"`{column}`" in limits.partition("\n\n")[0]


@pytest.mark.parametrize(
    ("column", "forged", "wrong"),
    [
        ("rung", "7", "s000001 has the rung 7, not 1"),
        ("feedback", """'{"mean_q": 99.0}'""", "s000001 was told {'mean_q': 99.0}, not {'mean_q': "),
    ],
)
def test_an_answer_that_was_changed_names_the_field(copy: Path, column: str, forged: str, wrong: str) -> None:
    with closing(sqlite3.connect(copy / "private/journal.sqlite3", isolation_level=None)) as db:
        db.execute(f"UPDATE submissions SET {column} = {forged} WHERE id = 1")
    assert [wrong in check.wrong for check in audit(copy, InProcess()) if check.name == "answers"] == [True]


@pytest.mark.parametrize(
    ("edit", "check"),
    [
        ("DELETE FROM submissions WHERE id = 6", "boards"),
        ("DELETE FROM submissions WHERE id = 2", "journal"),
        ("UPDATE submissions SET feedback = '{' WHERE id = 2", "journal"),
    ],
)
def test_an_edited_journal_is_seen(copy: Path, edit: str, check: str) -> None:
    with sqlite3.connect(copy / "private/journal.sqlite3") as db:
        db.execute(edit)
    db.close()
    assert failed(copy)[:1] == [check]


@pytest.mark.parametrize("part", ["inside public", "public", "public and rules"])
def test_an_auditor_with_a_part_of_the_folder_is_told_what_is_needed(copy: Path, part: str) -> None:
    """Neither to make a challenge nor to seal one."""
    folder = copy / "public" if part == "inside public" else copy
    shutil.rmtree(copy / "private")
    if part == "public":
        (copy / "challenge.toml").unlink()
    (check,) = audit(folder, InProcess())
    assert "an audit needs the whole folder of the challenge, private/ included" in check.wrong
    assert "the snippet in docs/howto/challenge/teams.md checks the reveal" in check.wrong
    assert "neuco challenge" not in check.wrong


def test_an_audit_before_the_seal_names_the_seal(copy: Path) -> None:
    for path in ("private/secrets.json", "public/seal.json"):
        (copy / path).unlink()
    (check,) = audit(copy, InProcess())
    assert "not sealed yet" in check.wrong


def test_a_journal_that_was_cut_is_seen(copy: Path) -> None:
    path = copy / "private/journal.sqlite3"
    path.write_bytes(path.read_bytes()[:6000])
    assert failed(copy) == ["journal"]


def test_boards_that_were_not_published_yet_are_not_said_to_be_right(copy: Path) -> None:
    unpublish(copy)
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


@pytest.fixture
def extended(folder: Path, tmp_path: Path) -> Path:
    """A challenge whose first deadline was extended twice, with a submission before, between and after."""
    end = datetime.fromisoformat("2026-02-01T00:00:00Z")
    with Host(folder) as host:
        for number, days in enumerate((0, 7, 14)):
            file = embed(tmp_path / f"{number}.npz", 1 / (number + 1), number)
            late = end + timedelta(days=days, hours=-1)
            if days:
                with pytest.raises(RefusedError, match="not open"):
                    host.submit("alpha", "dev", file, now=late)
                host.amend("dev", end + timedelta(days=days), now=late - timedelta(hours=1))
            host.submit("alpha", "dev", file, now=late)
        work(host)
        close(host)
    return folder


def test_a_deadline_is_extended_published_and_audited(extended: Path) -> None:
    assert [check.name for check in audit(extended, InProcess()) if check.ok] == list(CHECKS)
    published = json.loads((extended / "public/amendments.json").read_text())
    assert [one["end"][:10] for one in published] == ["2026-02-08", "2026-02-15"]
    assert load_challenge(extended).phase("dev").end == TEST.replace(day=15, hour=0)
    with Host(extended) as host:
        assert json.loads((extended / "public/reveal.json").read_text())["journal"] == host.journal.last_link()[1]
        with pytest.raises(UsageError, match="closed"):
            host.amend("test", TEST.replace(year=2100))


@pytest.mark.parametrize("end", ["2026-01-31", "2026-02-01", "2026-02-10"])
def test_a_deadline_is_never_earlier_than_now_or_than_the_published_one(folder: Path, end: str) -> None:
    moment = datetime.fromisoformat(f"{end}T00:00:00Z")
    with (
        Host(folder) as host,
        pytest.raises(UsageError, match=r"phase dev can only be extended; expected a time after"),
    ):
        host.amend("dev", moment, now=max(moment, DEV))
    assert not (folder / "public/amendments.json").exists()
    for end in ("soon", "9999-12-31T23:59:59-12:00", "2100-02-08", "2100-02-08 22:47"):
        ran = neuco_here("challenge", "amend", folder, "dev", "--end", end, "--yes")
        assert ran.code == 2
        assert f"expected a time with its zone, such as 2025-01-10T12:00:00Z, got {end!r}" in ran.err
    assert not (folder / "public/amendments.json").exists()


def test_a_deadline_far_ahead_is_asked_about_again(folder: Path) -> None:
    """No amendment brings it forward again: a slip of the pen would keep the challenge open for good."""
    amend = ("challenge", "amend", folder, "dev", "--end", "2206-02-08T00:00:00Z")
    refused = neuco_here(*amend)
    assert (refused.code, "more than a year ahead; got 2206-02-08" in refused.err) == (2, True)
    assert "or go on with --yes" in refused.err
    assert not (folder / "public/amendments.json").exists()
    assert "phase dev ends at 2206-02-08" in neuco_here(*amend, "--yes").out


def test_an_amendment_that_was_entered_and_not_published_is_published_by_the_next(folder: Path) -> None:
    path = folder / "public/amendments.json"
    with Host(folder) as host:
        host.amend("dev", TEST, now=DEV)
        path.unlink()
    assert failed(folder) == ["journal"]
    with Host(folder) as host, pytest.raises(UsageError, match="can only be extended"):
        host.amend("dev", TEST, now=DEV)
    assert path.exists()
    assert failed(folder) == []


@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM amendments WHERE number = 1",
        "DELETE FROM amendments WHERE number = 2",
        "UPDATE amendments SET number = 5 WHERE number = 2",
        "UPDATE amendments SET follows = 0 WHERE number = 1",
        "UPDATE amendments SET old_end = replace(old_end, '02-01', '02-02') WHERE number = 1",
        "UPDATE amendments SET end = replace(end, '02-08', '02-09') WHERE number = 1",
        "UPDATE amendments SET made = replace(made, '2026', '2025') WHERE number = 2",
        "UPDATE amendments SET phase = 'test' WHERE number = 2",
        "UPDATE amendments SET chain = upper(chain) WHERE number = 2",
        "UPDATE submissions SET received = replace(received, '02-07', '02-08') WHERE id = 2",
    ],
)
def test_a_forged_amendment_is_seen(extended: Path, edit: str) -> None:
    with closing(sqlite3.connect(extended / "private/journal.sqlite3", isolation_level=None)) as db:
        assert db.execute(edit).rowcount == 1
    assert failed(extended)[:1] == ["journal"]


def test_a_submission_from_before_its_amendment_is_late(extended: Path) -> None:
    """Also when all hashes were made anew: a deadline that is extended later lets in nothing."""
    with closing(sqlite3.connect(extended / "private/journal.sqlite3", isolation_level=None)) as db:
        db.execute("UPDATE amendments SET follows = follows + 1 WHERE number = 1")
    with Host(extended) as host:
        entries, amendments = host.journal.submissions(), host.journal.amendments()
        assert list(_quotas(host, entries, amendments)) == ["s000002 came while the phase was not open"]


def test_an_amendment_is_not_made_before_the_one_that_it_follows(extended: Path) -> None:
    """Also when all hashes were made anew; and a clock that was set back makes none that looks so."""
    with Host(extended) as host:
        first, second = host.journal.amendments()
        forged = msgspec.structs.replace(second, made=first.made - timedelta(seconds=1))
        assert "amendment 2 was made before the one that it follows" in list(_amended(host, [first, forged]))
        (extended / "public/reveal.json").unlink()
        third = host.amend("dev", second.end + timedelta(days=1), now=first.made)
    assert third.made == second.made


def test_an_edited_list_of_amendments_is_seen(extended: Path) -> None:
    path = extended / "public/amendments.json"
    path.write_text(path.read_text().replace("2026-02-15", "2026-02-16"))
    assert failed(extended)[:1] == ["journal"]
