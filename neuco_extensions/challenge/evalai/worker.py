"""The remote worker: takes submissions from EvalAI's queue, has them evaluated here, and says how each ended, once.

EvalAI is looked at before every step that it cannot take back. So a submission that was cancelled meanwhile stays
cancelled, and one that is answered is not answered again, whoever did it and whenever we were killed.

How far each delivery of the queue is, is kept in SQLite: received → running → evaluated → put → acknowledged. A step is
written before what cannot be taken back: ``running`` before EvalAI is told, so that a submission which runs and of
which we know no more than ``received`` is another worker's.
"""

from __future__ import annotations

import math
import sqlite3
import time
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
from filelock import FileLock, Timeout

from neuco_core import __version__
from neuco_core.errors import NeucoError, UsageError
from neuco_core.fetch.cache import hash_file
from neuco_core.fetch.transfer import TooLargeError, TransientError
from neuco_extensions.challenge.evalai.api import (
    Account,
    Api,
    Body,
    EvalAIRefusedError,
    OddAnswerError,
    RefusedPlaceError,
    Submission,
    allowed,
    bring,
    read,
)
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import Code, RefusedError, Verdict
from neuco_extensions.challenge.setup import add_team
from neuco_extensions.challenge.workers import evaluate_waiting, start_engine

PAUSE = 0.5  # seconds between two looks at a submission that another worker has
ENDED = ("finished", "failed", "cancelled", "archived", "partially_evaluated")


SCHEMA = """
CREATE TABLE IF NOT EXISTS evalai_deliveries (
    submission INTEGER PRIMARY KEY,
    phase INTEGER NOT NULL,
    receipt TEXT NOT NULL,
    step TEXT NOT NULL CHECK (step IN ('received', 'running', 'evaluated', 'put', 'acknowledged')),
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

    def update(self, submission: int, **values: Any) -> None:
        if verdict := values.get("verdict"):
            values["verdict"] = msgspec.json.encode(verdict).decode()
        columns = ", ".join(f"{name} = ?" for name in values)
        update = f"UPDATE evalai_deliveries SET {columns} WHERE submission = ?"  # noqa: S608 - our own names
        self._base.execute(update, (*values.values(), submission))

    def get(self, submission: int) -> Delivery:
        return self._select("submission = ?", submission)[0]

    def open(self) -> list[Delivery]:
        """All that are not acknowledged."""
        return self._select("step != 'acknowledged' ORDER BY submission")

    def _select(self, where: str, *values: int) -> list[Delivery]:
        columns = ", ".join(Delivery._fields)
        rows = self._base.execute(f"SELECT {columns} FROM evalai_deliveries WHERE {where}", values)  # noqa: S608
        deliveries = map(Delivery._make, rows.fetchall())
        return [d._replace(verdict=d.verdict and msgspec.json.decode(d.verdict, type=Verdict)) for d in deliveries]


@dataclass(frozen=True)
class Job:
    """What EvalAI knows of a submission. ``team`` is the team's number there: its name may change.

    ``again`` if it ended before, and a host wants it evaluated once more.
    """

    submission: int
    phase: str
    team: int
    team_name: str
    public: bool
    submitted: datetime
    again: bool = False


Evaluate = Callable[[Job, Path], Verdict]


class EvalAIWorker:
    """``tell`` gets one line for each thing done. It never has a detail of an evaluation, a token or a signature."""

    def __init__(
        self,
        account: Account,
        folder: Path,
        evaluate: Evaluate,
        *,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.account, self.evaluate, self.tell = account, evaluate, tell
        self.deliveries = Deliveries(folder)
        self._kept: set[int] = set()  # what EvalAI refused: tried again when it is handed out again, or after a restart
        self.api = Api(account)

    def run(self, *, once: bool = False) -> None:
        """Work until interrupted; with ``once`` until the queue has nothing for us."""
        for delivery in self.deliveries.open():
            self._safely(delivery.submission)
        while True:
            try:
                busy = self._next()
            except (TransientError, OddAnswerError, sqlite3.Error) as error:
                self.tell(str(error))
                busy = False
            wait = self._answer()
            if not busy and wait is None and once:
                return
            if not busy:
                time.sleep(self.account.poll if wait is None else min(wait, self.account.poll))

    def _answer(self) -> float | None:
        """Answer all that is due; the seconds until the next one is."""
        waits = []
        for delivery in self.deliveries.open():
            if delivery.verdict is None or delivery.submission in self._kept:
                continue
            if (wait := self.due(delivery) - time.time()) > 0:
                waits.append(wait)
            else:
                self._safely(delivery.submission)
        return min(waits, default=None)

    def _next(self) -> bool:
        """Take a message and deal with it; False if there is none."""
        message = self.api.receive()
        if not message.body:
            return False
        # What is not understood is left in the queue: to delete it might lose a submission.
        try:
            body = read(message.body, Body, "message")
        except OddAnswerError as error:
            self.tell(f"a message was left in the queue: {error}")
            return True
        if body.challenge_pk != self.account.challenge or not message.receipt_handle:
            self.tell(f"a message that is not for challenge {self.account.challenge} was left in the queue")
            return True
        self.deliveries.receive(body.submission_pk, body.phase_pk, message.receipt_handle)
        self._safely(body.submission_pk)
        return True

    def _safely(self, submission: int) -> None:
        """Deal with a submission. If EvalAI cannot be reached, or refuses, it stays, and the next has its turn."""
        self._kept.discard(submission)
        lock = FileLock(self.deliveries.folder / f"{submission}.lock")  # that of a killed process is gone
        try:
            with suppress(Timeout), lock.acquire(blocking=False):  # else another worker has it
                self._deal(self.deliveries.get(submission))
        except (TransientError, OSError, sqlite3.Error) as error:
            self.tell(f"submission {submission} has to wait: {error}")
        except (EvalAIRefusedError, OddAnswerError, RefusedPlaceError) as error:
            self._kept.add(submission)
            self.tell(f"submission {submission} is kept back: {error}")

    def _deal(self, delivery: Delivery) -> None:
        number = delivery.submission
        state = self.api.submission(number)
        if state is None or state.status in ENDED:
            self._end(delivery, "deleted" if state is None else state.status)
            return
        if delivery.step == "received" and state.status == "running":
            seconds = (datetime.now(UTC) - _when(state.started_at)).total_seconds()
            if seconds <= self.account.stale:
                return  # another machine's; it comes again if that one fails
        answered = delivery.step in ("put", "acknowledged")
        # After an answer a host may let a failed submission run again: under the same number, with another status.
        if delivery.verdict is None or (answered and state.status in ("resuming", "submitted", "queued")):
            self._run(delivery, state)
        self._put(number)

    def _run(self, delivery: Delivery, state: Submission) -> None:
        number, url = delivery.submission, state.input_file or ""
        allowed(url, self.account)  # a place that the host forgot to name must not cost a team its submission
        job = Job(
            submission=number,
            phase=self.api.codename(delivery.phase),
            team=state.participant_team or 0,
            team_name=state.participant_team_name or "",
            public=state.is_public,
            submitted=_when(state.submitted_at),
            again=state.status == "resuming",
        )
        if delivery.step != "running" or delivery.began is None:
            # A verdict that there was is forgotten.
            self.deliveries.update(number, step="running", began=time.time(), ended=None, sha256=None, verdict=None)
        if state.status != "running":
            self.api.running(number)
        verdict, sha256 = self._verdict(job, url)
        self.deliveries.update(number, step="evaluated", ended=time.time(), sha256=sha256, verdict=verdict)
        self.tell(f"submission {number}: {verdict.code}")

    def _verdict(self, job: Job, url: str) -> tuple[Verdict, str]:
        """Evaluate. Whatever goes wrong is kept here as the detail; the team reads a fixed sentence."""
        sha256 = ""
        try:
            path = self._path(job.submission)
            bring(url, path, self.account)
            sha256 = hash_file(path)
            return self.evaluate(job, path), sha256
        except TransientError:
            raise  # of the store of files, or of the labels: it is no fault of the team's
        except TooLargeError as error:
            return Verdict("size", detail=str(error)), sha256
        except Exception:
            return Verdict("failed", detail=traceback.format_exc()), sha256

    def _put(self, number: int) -> None:
        """Answer. After a failed try EvalAI is asked first whether it arrived."""
        delivery = self.deliveries.get(number)
        if self.due(delivery) > time.time():
            return  # others have their turn meanwhile
        codename = self.api.codename(delivery.phase)
        metadata = {"code": delivery.verdict.code, "neuco": __version__, "sha256": delivery.sha256 or ""}
        for tries in range(1, self.account.tries + 1):
            state = self.api.submission(number)
            if state is None or state.status in ENDED:
                break
            try:
                self.api.put(number, delivery.phase, codename, delivery.verdict, metadata)
                break
            except TransientError as error:
                if tries == self.account.tries:
                    raise
                time.sleep(self.api.after(tries, error))
        self.deliveries.update(number, step="put")
        self._end(delivery, "answered")

    def _end(self, delivery: Delivery, how: str) -> None:
        """Acknowledge, last of all: until then the queue hands the submission out again."""
        number = delivery.submission
        try:
            self.api.acknowledge(self.deliveries.get(number).receipt)  # the newest
        except EvalAIRefusedError:
            # A receipt of an earlier delivery. The queue hands it out again, and then there is a new one.
            self.tell(f"submission {number} is {how}; its message could not be taken from the queue")
        else:
            self.tell(f"submission {number} is {how}")
        self.deliveries.update(number, step="acknowledged")
        self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        """Where a submission's file is while it is evaluated; what it is, its first bytes say."""
        return self.deliveries.folder / f"{number}.file"

    def due(self, delivery: Delivery) -> float:
        """When to answer: a multiple of ``hold`` after the start, for the time that EvalAI shows tells little."""
        if self.account.hold <= 0 or delivery.began is None or delivery.ended is None:
            return 0.0
        if delivery.ended > time.time() + self.account.hold:
            return 0.0  # the clock was set back
        ticks = math.ceil((delivery.ended - delivery.began) / self.account.hold)
        return delivery.began + max(ticks, 1) * self.account.hold


def _when(text: str | None) -> datetime:
    """A time of EvalAI's; what cannot be read counts as now."""
    try:
        time = datetime.fromisoformat(text or "")
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return datetime.now(UTC)


class Bridge:
    """An ``Evaluate`` for the worker: EvalAI's submissions in the journal, evaluation and feedback of everybody's.

    A team of EvalAI is the team ``evalai-NUMBER`` here; it is entered into the rules with its first submission. Its
    token is thrown away: such a team submits on EvalAI only. What is the hosts' fault costs no team its submission: it
    waits.
    """

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        self.folder, self.threads = folder, threads
        self.host = Host(folder)

    def close(self) -> None:
        self.host.close()

    def __call__(self, job: Job, path: Path) -> Verdict:
        source = f"evalai:{job.submission}"
        try:
            team = self._team(job)
            entry = self.host.submit(team, job.phase, path, public=job.public, source=source, now=job.submitted)
            if job.again and entry.state == "failed":
                self.host.journal.retry(entry.id)
                entry = self.host.journal.get(entry.id)
            while entry.open:
                # Those of the same team that came before it have their turn first.
                for done in evaluate_waiting(self.host, start_engine("local", 1), 1, threads=self.threads):
                    if done.id == entry.id:
                        break
                else:
                    time.sleep(PAUSE)  # another worker has it
                entry = self.host.journal.get(entry.id)
        except RefusedError as error:
            return Verdict(error.code)
        except (NeucoError, OSError, sqlite3.Error) as error:  # what is wrong with a file is an outcome, not an error
            what = f"it cannot be evaluated here ({type(error).__name__})"
            raise TransientError(what, hint=f"See why with: neuco challenge evaluate {self.folder}") from error
        return Verdict(cast(Code, entry.code or "failed"), entry.feedback, entry.scores, entry.detail)

    def _team(self, job: Job) -> str:
        name = f"evalai-{job.team}"
        if name not in self.host.challenge.teams:
            title = "".join(char if char.isprintable() else "?" for char in job.team_name)[:200]
            with suppress(UsageError):  # another worker was first
                add_team(self.folder, name, title or name)
            with closing(self.host):
                self.host = Host(self.folder)
        return name
