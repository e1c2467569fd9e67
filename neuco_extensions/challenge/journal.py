"""The journal of submissions: SQLite, so that a submission is either in it whole or was never accepted.

WAL mode with ``synchronous=FULL``: what was committed survives kill -9 and a loss of power. Quotas are counted and a
submission is entered in one transaction that locks out other writers, so no race can pass them. Each entry holds the
hash of the one before (``chain``): none can be removed or changed later without being seen by whoever has a receipt.

A worker *leases* a submission. It holds a lock on a file as long as its process lives, so that the next worker takes
over what a killed one had leased, at once. The submissions of a team in a phase are leased one after the other, in
their order, because the ladder's answer to one depends on those before.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec
from filelock import FileLock, Timeout

from neuco_core.errors import DataError, NeucoError, UnknownIdError, UsageError
from neuco_core.files import canonical, dump, write_atomic
from neuco_core.records.model import Record
from neuco_extensions.challenge.rules import AMENDMENTS, REVEAL, Amendment, Challenge

if TYPE_CHECKING:
    from neuco_extensions.challenge.host import Upload

JOURNAL = "journal.sqlite3"
WAIT = 60.0  # seconds for another process's transaction
Code: TypeAlias = Literal["scored", "format", "ids", "size", "quota", "closed", "failed"]
# Files that are no embeddings of the right ids cost no quota. Whatever was scored, or failed at that, does: else a
# failure that depends on labels could be asked for without end.
UNREAD: tuple[Code, ...] = ("format", "ids")
# All that a team is ever told beside the numbers: a sentence made anew could carry a label out.
MESSAGES: dict[str, str] = {
    "scored": "Your submission was scored.",
    "format": "Your file could not be read as embeddings. Check it with: neuco challenge check FILE --ids IDS",
    "ids": "The ids of your file are not those of the challenge. Check it with: neuco challenge check FILE --ids IDS",
    "size": "Your file is larger than the challenge allows.",
    "quota": "You have no submissions left in this phase today, or in all.",
    "closed": "The phase is not open.",
    "failed": "Your submission could not be scored. The hosts can see why.",
}
SCHEMA = """
CREATE TABLE IF NOT EXISTS submissions (
    id INTEGER PRIMARY KEY,
    team TEXT NOT NULL, phase TEXT NOT NULL, sha256 TEXT NOT NULL, size INTEGER NOT NULL, public INTEGER NOT NULL,
    received TEXT NOT NULL, source TEXT UNIQUE, chain TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL DEFAULT 'received', attempts INTEGER NOT NULL DEFAULT 0, worker TEXT,
    finished TEXT, answer_number INTEGER, code TEXT, feedback TEXT, scores TEXT, records TEXT, rung INTEGER,
    detail TEXT,
    UNIQUE (team, phase, sha256)
) STRICT;
CREATE TABLE IF NOT EXISTS amendments (
    number INTEGER PRIMARY KEY, follows INTEGER NOT NULL, phase TEXT NOT NULL,
    old_end TEXT NOT NULL, end TEXT NOT NULL, made TEXT NOT NULL, chain TEXT NOT NULL UNIQUE
) STRICT;
CREATE INDEX IF NOT EXISTS waiting ON submissions (state) WHERE state IN ('received', 'running');
"""
# The first that waits, and behind no earlier one of the same team in the same phase.
NEXT = """state = 'received' AND NOT EXISTS (SELECT 1 FROM submissions AS earlier WHERE earlier.team = submissions.team
        AND earlier.phase = submissions.phase AND earlier.id < submissions.id
        AND earlier.state IN ('received', 'running')) ORDER BY id LIMIT 1"""
CHAINED = ("id", "team", "phase", "sha256", "size", "public", "received", "source")


@dataclass(frozen=True)
class Verdict:
    """What the evaluation of a submission ends with. ``code`` is a key of ``MESSAGES``.

    ``feedback`` is what the rules let the team see, such as ``{"mean_q": 12.3}``; ``scores`` (Q by task), ``detail``
    and the ``records``, one for each task, are the hosts': they are kept, and never leave with the feedback.
    """

    code: Code
    feedback: Mapping[str, float] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    detail: str = ""
    records: tuple[Record, ...] = ()


class RefusedError(NeucoError):
    """A submission that is not accepted; ``code`` is a key of ``MESSAGES``."""

    exit_code = 4

    def __init__(self, code: Code) -> None:
        super().__init__(MESSAGES[code])
        self.code = code


class JournalEntry(NamedTuple):
    """A row of the journal. ``state`` is received, running, scored or failed; times are UTC, as ISO 8601 texts.

    ``answer_number`` counts verdicts in the order in which they were entered, ``records`` is the hash of the records'
    file, ``rung`` the submission whose mean Q the team was told; ``scores`` (Q by task) and ``detail`` are the hosts'.
    """

    id: int
    team: str
    phase: str
    sha256: str
    size: int
    public: bool
    received: str
    source: str | None
    chain: str
    state: str
    attempts: int
    worker: str | None
    finished: str | None
    answer_number: int | None
    code: str | None
    feedback: dict[str, float]
    scores: dict[str, float]
    records: str | None
    rung: int | None
    detail: str

    @property
    def name(self) -> str:
        """What its records call it, as a method."""
        return f"s{self.id:06d}"

    @property
    def open(self) -> bool:
        return self.state in ("received", "running")

    @property
    def mean_q(self) -> float | None:
        """The exact mean Q, for hosts."""
        return sum(self.scores.values()) / len(self.scores) if self.state == "scored" else None


COLUMNS = ", ".join(JournalEntry._fields)


def stamp(moment: datetime) -> str:
    """A moment as the journal writes it: text of one length, whose order is that of time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


class Journal:
    """The journal of a challenge. One object may be used by one thread; open another for each thread or process."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._worker = secrets.token_hex(8)
        self._lock = self._lock_of(self._worker)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # isolation_level None: transactions begin and end where this file says so. Several threads may use it
            # one after the other.
            self._db = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None, check_same_thread=False)
            self._use_wal()
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(SCHEMA)
        except (OSError, sqlite3.Error) as error:
            hint = "Its folder must be on a local disk and writable, also for those who only read"
            raise DataError(f"the journal cannot be opened: {error}", where=self.path, hint=hint) from error

    def _use_wal(self) -> None:
        """Of several that open a new journal at once, SQLite refuses all but one at once, whatever the timeout says."""
        deadline = time.monotonic() + WAIT
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return

    def _lock_of(self, worker: str) -> FileLock:
        return FileLock(self.path.parent / "workers" / worker, thread_local=False)

    def close(self) -> None:
        if self._lock.is_locked:
            Path(self._lock.lock_file).unlink(missing_ok=True)
            self._lock.release()
        self._db.close()

    def checkpoint(self) -> None:
        """Bring all into the one file, so that a copy of it lacks nothing."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._db as db:
            db.execute("BEGIN IMMEDIATE")
            yield db

    def enter(
        self,
        challenge: Challenge,
        team: str,
        phase: str,
        upload: Upload,
        *,
        public: bool = True,
        source: str | None = None,
        now: datetime | None = None,
    ) -> JournalEntry:
        """Accept a submission whose file came whole and keep the file, or raise ``RefusedError``.

        The same file of the same team in the same phase, or the same ``source`` (the name of the submission elsewhere,
        such as ``evalai:12``), is the same submission: it is given back, and counts once. ``now`` is the moment of
        receipt; it is the hosts' clock that counts.
        """
        challenge.require(phase=phase, team=team)
        sha256 = upload.finish()
        with self._transaction() as db:
            moment = now or datetime.now(UTC)
            same = "(team = ? AND phase = ? AND sha256 = ?) OR source = ?"
            if entered := self._select(f"{same} ORDER BY id LIMIT 1", team, phase, sha256, source):
                return entered[0]
            if upload.size > challenge.limits.bytes:
                raise RefusedError("size")
            if not challenge.amended(self.amendments()).phase(phase).open_at(moment):
                raise RefusedError("closed")
            entries = self.submissions(phase, team)
            unread = [entry for entry in entries if entry.code in UNREAD]
            today, _ = left_by_quotas(challenge, phase, entries, unread, moment)
            if not today:
                raise RefusedError("quota")
            last, before = self.last_link()
            # Only for one that is new: what was entered before the end is known after it, too.
            if (challenge.published / REVEAL).exists():
                raise RefusedError("closed")  # whatever time is given for its receipt: the seeds are known to all
            upload.keep()  # not before: files of refused submissions would fill the disk
            number = last + 1
            values = (number, team, phase, sha256, upload.size, int(public), stamp(moment), source)
            row = (*values, link(before, values))
            marks = ", ".join("?" * len(row))
            db.execute(f"INSERT INTO submissions ({', '.join(CHAINED)}, chain) VALUES ({marks})", row)  # noqa: S608
            return self.get(number)

    def amend(self, challenge: Challenge, phase: str, end: datetime, *, now: datetime | None = None) -> Amendment:
        """Enter a later deadline of a phase, and publish all that were entered: those of a killed process, too."""
        try:
            with self._transaction() as db:
                amendments = self.amendments()
                # Their times are in their order, also where a clock was set back: the audit looks for that.
                moment = max([now or datetime.now(UTC), *(one.made for one in amendments)])
                old = challenge.amended(amendments).phase(phase).end
                if (challenge.published / REVEAL).exists():
                    raise UsageError("the challenge is closed: its seeds are known to all", where=challenge.folder)
                if end <= max(old, moment):
                    expected = f"a time after {max(old, moment):%F %T%z}"
                    raise UsageError(f"phase {phase} can only be extended", expected=expected, got=f"{end:%F %T%z}")
                last, before = self.last_link()
                values = (len(amendments) + 1, last, phase, stamp(old), stamp(end), stamp(moment))
                row = (*values, link(before, values))
                db.execute("INSERT INTO amendments VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        finally:
            with self._transaction():  # so that of two processes the last writes all
                if amendments := self.amendments():
                    write_atomic(challenge.published / AMENDMENTS, published_amendments(amendments))
        return amendments[-1]

    def amendments(self) -> list[Amendment]:
        names = Amendment.__struct_fields__
        rows = self._db.execute(f"SELECT {', '.join(names)} FROM amendments ORDER BY number")  # noqa: S608 - our own names
        return [msgspec.convert(dict(zip(names, row, strict=True)), Amendment) for row in rows]

    def last_link(self) -> tuple[int, str]:
        """The number of submissions, and the hash that the next entry has to follow."""
        links = "SELECT id, 0, chain FROM submissions UNION ALL SELECT follows, number, chain FROM amendments"
        last = self._db.execute(f"{links} ORDER BY 1 DESC, 2 DESC LIMIT 1").fetchone()
        return (last[0], last[2]) if last else (0, "")

    def get(self, number: int) -> JournalEntry:
        entries = self._select("id = ?", number)
        if not entries:
            raise UnknownIdError("submission", str(number), ())
        return entries[0]

    def submissions(self, phase: str | None = None, team: str | None = None) -> list[JournalEntry]:
        """In the order in which they were entered; one that came by mail may have been received earlier."""
        where = "phase = coalesce(?, phase) AND team = coalesce(?, team) ORDER BY id"
        return self._select(where, phase, team)

    def _select(self, where: str, *values: Any) -> list[JournalEntry]:
        rows = self._db.execute(f"SELECT {COLUMNS} FROM submissions WHERE {where}", values)  # noqa: S608
        return [
            entry._replace(
                public=bool(entry.public),
                feedback=json.loads(entry.feedback or "{}"),  # type: ignore[arg-type]
                scores=json.loads(entry.scores or "{}"),  # type: ignore[arg-type]
                detail=entry.detail or "",
            )
            for entry in map(JournalEntry._make, rows)
        ]

    def lease(self, attempts: int) -> JournalEntry | None:
        """The next submission to evaluate, which is this worker's until it is done or killed.

        One that as many workers as ``attempts`` died of has failed.
        """
        if not self._lock.is_locked:
            Path(self._lock.lock_file).parent.mkdir(exist_ok=True)
            self._lock.acquire()
        with self._transaction() as db:
            for worker in {entry.worker or "" for entry in self._select("state = 'running'")} - {self._worker}:
                if not self._is_alive(worker):
                    back = "UPDATE submissions SET state = 'received', worker = NULL WHERE worker = ?"
                    db.execute(back, (worker,))
            while waiting := self._select(NEXT):
                entry = waiting[0]
                if entry.attempts < attempts:
                    take = "UPDATE submissions SET state = 'running', attempts = attempts + 1, worker = ? WHERE id = ?"
                    db.execute(take, (self._worker, entry.id))
                    return self.get(entry.id)
                self._finish(entry.id, Verdict("failed", detail=f"given up after {attempts} workers died of it"))
        return None

    def _is_alive(self, worker: str) -> bool:
        lock = self._lock_of(worker)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return True
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
        return False

    def finish(
        self, leased: JournalEntry, verdict: Verdict, keep: Callable[[], str] | None = None, rung: int | None = None
    ) -> bool:
        """Enter what came of a leased submission; not if another worker has taken it over, or brought the verdict.

        ``keep`` writes its records and gives their hash. It is called while nobody else can write: one who has lost
        the lease must not write over the records of one who has it.
        """
        with self._transaction():
            now = self.get(leased.id)
            ours = now.state == "running" and now.worker == self._worker
            if ours:
                self._finish(leased.id, verdict, keep() if keep else None, rung)
        return ours

    def give_back(self, leased: JournalEntry, *, counts: bool) -> None:
        """Give a lease back without a verdict. The attempt ``counts`` unless the fault was the hosts'."""
        self._db.execute(
            "UPDATE submissions SET state = 'received', attempts = attempts - ?, worker = NULL "
            "WHERE id = ? AND worker = ? AND state = 'running'",
            (0 if counts else 1, leased.id, self._worker),
        )

    def _finish(self, number: int, verdict: Verdict, records: str | None = None, rung: int | None = None) -> None:
        self._db.execute(
            "UPDATE submissions SET state = ?, worker = NULL, finished = ?, "
            "answer_number = (SELECT coalesce(max(answer_number), 0) + 1 FROM submissions), code = ?, feedback = ?, "
            "scores = ?, records = ?, rung = ?, detail = ? WHERE id = ?",
            (
                "scored" if verdict.code == "scored" else "failed",
                stamp(datetime.now(UTC)),
                verdict.code,
                canonical(dict(verdict.feedback)),
                canonical(dict(verdict.scores)),
                records,
                rung,
                verdict.detail,
                number,
            ),
        )

    def retry(self, number: int) -> None:
        """Have a failed submission evaluated again: for hosts, when the fault was theirs."""
        changed = self._db.execute(
            "UPDATE submissions SET state = 'received', attempts = 0, finished = NULL, answer_number = NULL, "
            "code = NULL WHERE id = ? AND state = 'failed'",
            (number,),
        )
        if not changed.rowcount:
            what, got = f"submission {number} is not to be tried again", self.get(number).state
            raise UsageError(what, where=self.path, expected="one whose state is failed", got=got)


def left_by_quotas(
    challenge: Challenge, phase: str, entries: Sequence[JournalEntry], unread: Sequence[JournalEntry], now: datetime
) -> tuple[int, int]:
    """What a team may still send today (UTC) and in all, of its entries in a phase; the ``unread`` cost nothing."""
    rules, day = challenge.phase(phase), stamp(now)[:10]
    unread_today = sum(entry.received[:10] == day for entry in unread)
    in_all = max(0, rules.in_all - len(entries) + len(unread))
    today = max(0, rules.per_day - sum(entry.received[:10] == day for entry in entries) + unread_today)
    return (min(today, in_all) if unread_today < challenge.limits.failed_per_day else 0), in_all


def link(before: str, values: tuple[Any, ...]) -> str:
    """The hash that chains an entry to the one before."""
    return hashlib.sha256(canonical([before, *values]).encode()).hexdigest()


def published_amendments(amendments: Sequence[Amendment]) -> bytes:
    return dump(msgspec.to_builtins(amendments))


def broken_link(submissions: Sequence[JournalEntry], amendments: Sequence[Amendment]) -> str | None:
    """The first entry that is not what was entered, or does not follow from the one before; None if all do."""
    before, left = "", list(amendments)
    for number in range(len(submissions) + 1):
        if number:
            entry = submissions[number - 1]
            values = (*entry[: CHAINED.index("public")], int(entry.public), entry.received, entry.source)
            if entry.id != number or entry.chain != link(before, values):
                return f"entry {number}"
            before = entry.chain
        while left and left[0].follows == number:
            one = left.pop(0)
            times = (stamp(one.old_end), stamp(one.end), stamp(one.made))
            values = (len(amendments) - len(left), number, one.phase, *times)
            if one.number != values[0] or one.chain != link(before, values):
                return f"amendment {one.number}"
            before = one.chain
    return f"amendment {left[0].number}" if left else None
