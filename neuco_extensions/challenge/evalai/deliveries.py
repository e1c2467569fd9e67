"""How far each delivery of EvalAI's queue is, kept in SQLite: a worker that was killed goes on where it stopped.

received → running → evaluated → put → acknowledged. A step is written before what cannot be taken back: ``running``
before EvalAI is told, so that a submission which runs and of which we know no more than ``received`` is another
worker's.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

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


class Delivery(NamedTuple):
    """A submission that the queue handed out. ``began`` and ``ended`` say when its evaluation did, in Unix time."""

    submission: int
    phase: int
    receipt: str
    step: str
    began: float | None
    ended: float | None
    sha256: str | None
    verdict: Any  # None, or a Verdict


class Deliveries:
    """The steps, in a folder that all workers on this machine share."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._base = sqlite3.connect(folder / "deliveries.sqlite3", timeout=60, isolation_level=None)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")  # a step that was written is not lost with the power
        self._base.executescript(SCHEMA)

    def receive(self, submission: int, phase: int, receipt: str) -> None:
        """Note a message. One that comes again has a new receipt, and the old one may no longer do."""
        self._base.execute(
            "INSERT INTO evalai_deliveries (submission, phase, receipt, step) VALUES (?, ?, ?, 'received') "
            "ON CONFLICT (submission) DO UPDATE SET receipt = excluded.receipt",
            (submission, phase, receipt),
        )

    def running(self, submission: int) -> None:
        """Set to run, now; a verdict that there was is forgotten."""
        self._set(submission, step="running", began=time.time(), ended=None, sha256=None, verdict=None)

    def evaluated(self, submission: int, sha256: str, verdict: Verdict) -> None:
        kept = msgspec.json.encode(verdict).decode()
        self._set(submission, step="evaluated", ended=time.time(), sha256=sha256, verdict=kept)

    def step(self, submission: int, step: str) -> None:
        self._set(submission, step=step)

    def _set(self, submission: int, **values: float | str | None) -> None:
        columns = ", ".join(f"{name} = ?" for name in values)
        update = f"UPDATE evalai_deliveries SET {columns} WHERE submission = ?"  # noqa: S608 - our own names
        self._base.execute(update, (*values.values(), submission))

    def get(self, submission: int) -> Delivery | None:
        return next(iter(self._select("submission = ?", submission)), None)

    def open(self) -> list[Delivery]:
        """All that are not acknowledged."""
        return self._select("step != 'acknowledged' ORDER BY submission")

    def _select(self, where: str, *values: int) -> list[Delivery]:
        columns = ", ".join(Delivery._fields)
        rows = self._base.execute(f"SELECT {columns} FROM evalai_deliveries WHERE {where}", values)  # noqa: S608
        deliveries = map(Delivery._make, rows.fetchall())
        return [d._replace(verdict=d.verdict and msgspec.json.decode(d.verdict, type=Verdict)) for d in deliveries]

    @contextmanager
    def exclusive(self, submission: int) -> Iterator[bool]:
        """Whether this worker has the submission to itself for the block. The lock of a killed process is gone."""
        lock = FileLock(self.folder / f"{submission}.lock", thread_local=False)
        with suppress(Timeout):
            lock.acquire(blocking=False)
        try:
            yield lock.is_locked
        finally:
            lock.release()
