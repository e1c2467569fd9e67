"""How far each delivery of EvalAI's queue is, kept in SQLite: a worker that was killed goes on where it stopped.

received → running → evaluated → put → acknowledged. A step is written before what cannot be taken back: ``running``
before EvalAI is told, so that a submission which runs and of which we know no more than ``received`` is another
worker's.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from neuco_extensions.challenge.journal import Verdict

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
    verdict TEXT
);
"""


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
    verdict: Verdict | None


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
        """Set to run, now; an verdict that there was is forgotten."""
        self._base.execute(
            "UPDATE evalai_deliveries SET step = 'running', began = ?, ended = NULL, sha256 = NULL, verdict = NULL "
            "WHERE submission = ?",
            (time.time(), submission),
        )

    def evaluated(self, submission: int, sha256: str, verdict: Verdict) -> None:
        kept = msgspec.json.encode(verdict).decode()
        self._base.execute(
            "UPDATE evalai_deliveries SET step = 'evaluated', ended = ?, sha256 = ?, verdict = ? WHERE submission = ?",
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
        columns = "submission, phase, receipt, step, began, ended, sha256, verdict"
        rows = self._base.execute(f"SELECT {columns} FROM evalai_deliveries {where}", values)  # noqa: S608 - our words
        for submission, phase, receipt, step, began, ended, sha256, kept in rows.fetchall():
            verdict = msgspec.json.decode(kept, type=Verdict) if kept else None
            yield Delivery(submission, phase, receipt, step, began, ended, sha256, verdict)

    @contextmanager
    def exclusive(self, submission: int) -> Iterator[bool]:
        """Whether this worker has the submission to itself for the block. The lock of a killed process is gone."""
        lock = FileLock(self.folder / f"{submission}.lock", thread_local=False)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()
