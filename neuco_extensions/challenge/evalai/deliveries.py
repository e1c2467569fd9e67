"""How far each delivery of EvalAI's queue is, kept in SQLite: a worker that was killed goes on where it stopped.

received → running → evaluated → put → acknowledged. A step is written before what cannot be taken back: ``running``
before EvalAI is told, so that a submission which runs and of which we know no more than ``received`` is another
worker's.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from neuco_extensions.challenge.outcome import Outcome

STEPS = ("received", "running", "evaluated", "put", "acknowledged")
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS evalai_deliveries (
    submission INTEGER PRIMARY KEY,
    phase INTEGER NOT NULL,
    receipt TEXT NOT NULL,
    step TEXT NOT NULL CHECK (step IN {STEPS}),
    began REAL,
    ended REAL,
    sha256 TEXT,
    outcome TEXT
);
CREATE TABLE IF NOT EXISTS evalai_requests (at REAL NOT NULL);
"""
MINUTE = 61.0  # a little more: the server counts arrivals, not departures


@dataclass(frozen=True)
class Delivery:
    """A submission that the queue handed out. ``began`` and ``ended`` say when its evaluation did, in Unix time."""

    submission: int
    phase: int
    receipt: str
    step: str
    began: float | None
    ended: float | None
    sha256: str | None
    outcome: Outcome | None


class Deliveries:
    """The steps, in a folder that all workers on this machine share."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._base = sqlite3.connect(folder / "deliveries.sqlite3", timeout=60, isolation_level=None)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")  # a step that was written is not lost with the power
        self._base.executescript(SCHEMA)

    def close(self) -> None:
        self._base.close()

    def receive(self, submission: int, phase: int, receipt: str) -> None:
        """Note a message. One that comes again has a new receipt, and the old one may no longer do."""
        self._base.execute(
            "INSERT INTO evalai_deliveries (submission, phase, receipt, step) VALUES (?, ?, ?, 'received') "
            "ON CONFLICT (submission) DO UPDATE SET receipt = excluded.receipt",
            (submission, phase, receipt),
        )

    def running(self, submission: int) -> None:
        """Set to run, now; an outcome that there was is forgotten."""
        self._base.execute(
            "UPDATE evalai_deliveries SET step = 'running', began = ?, ended = NULL, sha256 = NULL, outcome = NULL "
            "WHERE submission = ?",
            (time.time(), submission),
        )

    def evaluated(self, submission: int, sha256: str, outcome: Outcome) -> None:
        kept = json.dumps(asdict(outcome) | {"feedback": dict(outcome.feedback), "scores": dict(outcome.scores)})
        self._base.execute(
            "UPDATE evalai_deliveries SET step = 'evaluated', ended = ?, sha256 = ?, outcome = ? WHERE submission = ?",
            (time.time(), sha256, kept, submission),
        )

    def step(self, submission: int, step: str) -> None:
        self._base.execute("UPDATE evalai_deliveries SET step = ? WHERE submission = ?", (step, submission))

    def get(self, submission: int) -> Delivery | None:
        return next(self._read("WHERE submission = ?", submission), None)

    def open(self) -> list[Delivery]:
        """All that are not acknowledged."""
        return list(self._read("WHERE step != 'acknowledged' ORDER BY submission"))

    def all(self) -> list[Delivery]:
        return list(self._read("ORDER BY submission"))

    def _read(self, where: str, *values: object) -> Iterator[Delivery]:
        columns = "submission, phase, receipt, step, began, ended, sha256, outcome"
        rows = self._base.execute(f"SELECT {columns} FROM evalai_deliveries {where}", values)  # noqa: S608 - our words
        for submission, phase, receipt, step, began, ended, sha256, kept in rows.fetchall():
            outcome = Outcome(**json.loads(kept)) if kept else None
            yield Delivery(submission, phase, receipt, step, began, ended, sha256, outcome)

    def turn(self, per_minute: int) -> float:
        """Take one of the requests that all workers here may send in a minute: 0, or the seconds to wait for one."""
        now = time.time()
        self._base.execute("BEGIN IMMEDIATE")
        try:
            # A clock that was set back must not stop us for hours.
            self._base.execute("DELETE FROM evalai_requests WHERE at NOT BETWEEN ? AND ?", (now - MINUTE, now + 1))
            number, first = self._base.execute("SELECT count(*), min(at) FROM evalai_requests").fetchone()
            if number < per_minute:
                self._base.execute("INSERT INTO evalai_requests VALUES (?)", (now,))
                return 0.0
            return max(float(first) + MINUTE - now, 0.01)
        finally:
            self._base.execute("COMMIT")

    @contextmanager
    def exclusive(self, submission: int) -> Iterator[bool]:
        """Whether this worker has the submission to itself for the block. The lock of a killed process is gone."""
        handle = os.open(self.folder / f"{submission}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(handle)
