"""The journal of submissions: SQLite, so that a submission is either in it whole or was never accepted.

WAL mode with ``synchronous=FULL``: what was committed survives kill -9 and a loss of power. Quotas are counted and a
submission is entered in one transaction that locks out other writers, so no race can pass them. Each entry holds the
hash of the one before (``chain``): none can be removed or changed later without being seen by whoever has a receipt.

A worker *leases* a submission. A lease that ran out, or whose process is gone, is taken over by the next worker; what
the first one brings after that is not taken. The submissions of a team in a phase are leased one after the other, in
their order, because the ladder's answer to one depends on those before.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from neuco_core.errors import DataError, NeucoError, UnknownIdError, UsageError
from neuco_core.jsonio import canonical
from neuco_extensions.challenge.leases import Leases
from neuco_extensions.challenge.outcome import MESSAGES, UNREAD, Code, Outcome
from neuco_extensions.challenge.rules import Challenge

JOURNAL = "journal.sqlite3"
WAIT = 60.0  # seconds for another process's transaction
LEASE = 3600.0  # seconds
OPEN = ("received", "running")
SCHEMA = """
CREATE TABLE IF NOT EXISTS submissions (
    id INTEGER PRIMARY KEY,
    team TEXT NOT NULL, phase TEXT NOT NULL, sha256 TEXT NOT NULL, size INTEGER NOT NULL, public INTEGER NOT NULL,
    received TEXT NOT NULL, source TEXT UNIQUE, chain TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL DEFAULT 'received', attempts INTEGER NOT NULL DEFAULT 0, lease TEXT, leased_until REAL,
    finished TEXT, place INTEGER, code TEXT, feedback TEXT, scores TEXT, records TEXT, rung INTEGER, detail TEXT,
    UNIQUE (team, phase, sha256)
) STRICT;
CREATE INDEX IF NOT EXISTS waiting ON submissions (state) WHERE state IN ('received', 'running');
"""
COSTS_NOTHING = f"(coalesce(code, '') IN {UNREAD})"
SEALED = ("id", "team", "phase", "sha256", "size", "public", "received", "source")


class RefusedError(NeucoError):
    """A submission that is not accepted; ``code`` is a key of ``MESSAGES``."""

    exit_code = 4

    def __init__(self, code: Code) -> None:
        super().__init__(MESSAGES[code])
        self.code = code


class Submission(NamedTuple):
    """A row of the journal. ``state`` is received, running, scored or failed; times are UTC, as ISO 8601 texts.

    ``place`` counts outcomes in the order in which they were entered, ``records`` is a hash of the records' files,
    ``rung`` the submission whose mean Q the team was told; ``scores`` (Q by task) and ``detail`` are the hosts' alone.
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
    lease: str | None
    leased_until: float | None
    finished: str | None
    place: int | None
    code: str | None
    feedback: dict[str, float]
    scores: dict[str, float]
    records: str | None
    rung: int | None
    detail: str

    @property
    def name(self) -> str:
        """Its name in the private registry, where it is a method."""
        return f"s{self.id:06d}"

    @property
    def open(self) -> bool:
        return self.state in OPEN

    @property
    def mean_q(self) -> float | None:
        """The exact mean Q, for hosts."""
        return sum(self.scores.values()) / len(self.scores) if self.state == "scored" else None


COLUMNS = ", ".join(Submission._fields)


def stamp(moment: datetime) -> str:
    """A moment as the journal writes it: text of one length, whose order is that of time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


class Journal:
    """The journal of a challenge. One object may be used by one thread; open another for each thread or process."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._leases = Leases(self.path.parent / "leases")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # isolation_level None: transactions begin and end where this file says so.
            self._db = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(SCHEMA)
        except (OSError, sqlite3.Error) as error:
            hint = "Its folder must be on a local disk and writable, also for those who only read"
            raise DataError(f"the journal cannot be opened: {error}", where=self.path, hint=hint) from error

    def close(self) -> None:
        self._leases.close()
        self._db.close()

    def checkpoint(self) -> None:
        """Bring all into the one file, so that a copy of it lacks nothing."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite has ended it by itself if the disk is full
                self._db.execute("ROLLBACK")
            raise

    def enter(
        self,
        challenge: Challenge,
        team: str,
        phase: str,
        sha256: str,
        size: int,
        *,
        public: bool = True,
        source: str | None = None,
        now: datetime | None = None,
        keep: Callable[[], object] | None = None,
    ) -> Submission:
        """Accept a submission, or raise ``RefusedError``. ``keep`` stores its file, and is called if it is accepted.

        The same file of the same team in the same phase, or the same ``source`` (the name of the submission elsewhere,
        such as ``evalai:12``), is the same submission: it is given back, and counts once. ``now`` is the moment of
        receipt; it is the hosts' clock that counts.
        """
        rules = challenge.phase(phase)
        challenge.team(team)
        with self._transaction() as db:
            moment = now or datetime.now(UTC)
            same = "(team = ? AND phase = ? AND sha256 = ?) OR source = ?"
            if known := self._select(f"{same} ORDER BY id LIMIT 1", team, phase, sha256, source):
                return known[0]
            if size > challenge.limits.bytes:
                raise RefusedError("size")
            if not rules.open_at(moment):
                raise RefusedError("closed")
            day = stamp(moment)[:10]
            count = "SELECT count(*) FROM submissions WHERE team = ? AND phase = ? AND "
            for more, most in (
                (f"NOT {COSTS_NOTHING}", rules.in_all),
                (f"NOT {COSTS_NOTHING} AND substr(received, 1, 10) = '{day}'", rules.per_day),
                (f"{COSTS_NOTHING} AND substr(received, 1, 10) = '{day}'", challenge.limits.failed_per_day),
            ):
                if db.execute(count + more, (team, phase)).fetchone()[0] >= most:
                    raise RefusedError("quota")
            last = db.execute("SELECT id, chain FROM submissions ORDER BY id DESC LIMIT 1").fetchone() or (0, "")
            if keep is not None:  # not before: files of refused submissions would fill the disk
                keep()
            number = last[0] + 1
            values = (number, team, phase, sha256, size, int(public), stamp(moment), source)
            row = (*values, link(last[1], values))
            marks = ", ".join("?" * len(row))
            db.execute(f"INSERT INTO submissions ({', '.join(SEALED)}, chain) VALUES ({marks})", row)  # noqa: S608
            return self.get(number)

    def get(self, number: int) -> Submission:
        found = self._select("id = ?", number)
        if not found:
            raise UnknownIdError("submission", str(number), ())
        return found[0]

    def submissions(self, phase: str | None = None, team: str | None = None) -> list[Submission]:
        """In the order in which they were entered; one that came by mail may have been received earlier."""
        where = "phase = coalesce(?, phase) AND team = coalesce(?, team) ORDER BY id"
        return self._select(where, phase, team)

    def _select(self, where: str, *values: Any) -> list[Submission]:
        rows = self._db.execute(f"SELECT {COLUMNS} FROM submissions WHERE {where}", values)  # noqa: S608
        return [_submission(row) for row in rows]

    def lease(
        self, attempts: int, *, seconds: float = LEASE, now: float | None = None, only: int | None = None
    ) -> Submission | None:
        """The next submission to evaluate (or the one asked for), which is this worker's for some seconds.

        One that as many workers as ``attempts`` died of has failed.
        """
        moment = now if now is not None else datetime.now(UTC).timestamp()
        free = """(state = 'received' OR (state = 'running' AND leased_until < ?)) AND id = coalesce(?, id)
            AND NOT EXISTS (SELECT 1 FROM submissions AS earlier WHERE earlier.team = submissions.team
                AND earlier.phase = submissions.phase AND earlier.id < submissions.id
                AND earlier.state IN ('received', 'running')) ORDER BY id LIMIT 1"""
        with self._transaction() as db:
            dead = [(own.id,) for own in self._select("state = 'running'") if not self._leases.held(own.lease or "")]
            db.executemany("UPDATE submissions SET leased_until = -1 WHERE id = ?", dead)
            while found := self._select(free, moment, only):
                taken = found[0]
                if taken.attempts >= attempts:
                    given_up = Outcome("failed", detail=f"given up after {taken.attempts} workers died of it")
                    self._finish(taken.id, given_up)
                    continue
                lease = secrets.token_hex(16)
                self._leases.take(lease)
                db.execute(
                    "UPDATE submissions SET state = 'running', attempts = attempts + 1, lease = ?, leased_until = ? "
                    "WHERE id = ?",
                    (lease, moment + seconds, taken.id),
                )
                return self.get(taken.id)
        return None

    def finish(
        self, leased: Submission, outcome: Outcome, keep: Callable[[], str] | None = None, rung: int | None = None
    ) -> bool:
        """Enter what came of a leased submission; not if another worker has taken it over, or brought the outcome.

        ``keep`` writes its records and gives their hash. It is called while nobody else can write: one who has lost
        the lease must not write over the records of one who has it.
        """
        with self._transaction():
            now = self.get(leased.id)
            ours = now.state == "running" and now.lease == leased.lease
            if ours:
                self._finish(leased.id, outcome, keep() if keep else None, rung)
        self.abandon(leased)
        return ours

    def release(self, leased: Submission) -> None:
        """Give a lease back without an outcome: the fault was the hosts', and the attempt does not count."""
        try:
            self._db.execute(
                "UPDATE submissions SET state = 'received', attempts = attempts - 1, lease = NULL, leased_until = NULL "
                "WHERE id = ? AND lease = ? AND state = 'running'",
                (leased.id, leased.lease),
            )
        finally:
            self.abandon(leased)

    def abandon(self, leased: Submission) -> None:
        """Hold a lease no longer. If there is no outcome, the next worker may take over at once; the attempt counts."""
        self._leases.drop(leased.lease or "")

    def _finish(self, number: int, outcome: Outcome, records: str | None = None, rung: int | None = None) -> None:
        state = "scored" if outcome.finished else "failed"
        told = canonical(dict(outcome.feedback)), canonical(dict(outcome.scores)), records, rung, outcome.detail
        self._db.execute(
            "UPDATE submissions SET state = ?, lease = NULL, leased_until = NULL, finished = ?, "
            "place = (SELECT coalesce(max(place), 0) + 1 FROM submissions), code = ?, feedback = ?, "
            "scores = ?, records = ?, rung = ?, detail = ? WHERE id = ?",
            (state, stamp(datetime.now(UTC)), outcome.code, *told, number),
        )

    def retry(self, number: int) -> None:
        """Have a failed submission evaluated again: for hosts, when the fault was theirs."""
        changed = self._db.execute(
            "UPDATE submissions SET state = 'received', attempts = 0, finished = NULL, place = NULL, code = NULL "
            "WHERE id = ? AND state = 'failed'",
            (number,),
        )
        if not changed.rowcount:
            raise UsageError("not to be tried again", expected="one that failed", got=self.get(number).state)


def link(before: str, values: tuple[Any, ...]) -> str:
    """The hash that chains an entry to the one before."""
    return hashlib.sha256(canonical([before, *values]).encode()).hexdigest()


def broken_link(submissions: list[Submission]) -> int | None:
    """The first entry that is not what was entered, or does not follow from the one before; None if all do."""
    before = ""
    for place, own in enumerate(submissions, 1):
        values = (*own[: SEALED.index("public")], int(own.public), own.received, own.source)
        if own.id != place or own.chain != link(before, values):
            return place
        before = own.chain
    return None


def _submission(row: tuple[Any, ...]) -> Submission:
    own = Submission(*row)
    told = {name: json.loads(getattr(own, name) or "{}") for name in ("feedback", "scores")}
    return own._replace(public=bool(own.public), detail=own.detail or "", **told)
