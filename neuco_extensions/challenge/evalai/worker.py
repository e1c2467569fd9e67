"""The remote worker: takes submissions from EvalAI's queue, has them evaluated here, and says how each ended, once.

EvalAI is looked at before every step that it cannot take back. So a submission that was cancelled meanwhile stays
cancelled, and one that is answered is not answered again, whoever did it and whenever we were killed.
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from neuco_core import __version__
from neuco_core.errors import NeucoError
from neuco_core.fetch.cache import hash_file
from neuco_core.fetch.transfer import TooLargeError, TransientError
from neuco_extensions.challenge.evalai.account import Account
from neuco_extensions.challenge.evalai.api import Api, RefusedError
from neuco_extensions.challenge.evalai.deliveries import Deliveries, Delivery
from neuco_extensions.challenge.evalai.files import RefusedPlaceError, allowed, bring
from neuco_extensions.challenge.outcome import Outcome

ENDED = ("finished", "failed", "cancelled", "archived", "partially_evaluated")


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


Evaluate = Callable[[Job, Path], Outcome]


class Worker:
    """``tell`` gets one line for each thing done. It never has a detail of an evaluation, a token or a signature."""

    def __init__(
        self,
        account: Account,
        folder: Path,
        evaluate: Evaluate,
        *,
        tell: Callable[[str], None] = lambda line: None,
        stop: threading.Event | None = None,
    ) -> None:
        self.account, self.evaluate, self.tell = account, evaluate, tell
        self.stop = stop or threading.Event()
        self.deliveries = Deliveries(folder)
        self._kept: set[int] = set()  # what EvalAI refused: tried again when it is handed out again, or after a restart
        self.api = Api(account, lambda: self.deliveries.turn(account.per_minute), self.pause)

    def run(self, *, once: bool = False) -> None:
        """Work until stopped; with ``once`` until the queue has nothing for us."""
        for delivery in self.deliveries.open():
            self._safely(delivery.submission)
        while not self.stop.is_set():
            try:
                busy = self._next()
            except TransientError as error:
                self.tell(str(error))
                busy = False
            wait = self._answer()
            if not busy and wait is None and once:
                return
            if not busy:
                self.pause(self.account.poll if wait is None else min(wait, self.account.poll))

    def _answer(self) -> float | None:
        """Answer all that is due; the seconds until the next one is."""
        waits = []
        for delivery in self.deliveries.open():
            if delivery.outcome is None or delivery.submission in self._kept:
                continue
            if (wait := self.due(delivery) - time.time()) > 0:
                waits.append(wait)
            else:
                self._safely(delivery.submission)
        return min(waits, default=None)

    def pause(self, seconds: float) -> None:
        if self.stop.wait(seconds):
            raise KeyboardInterrupt

    def _next(self) -> bool:
        """Take a message and deal with it; False if there is none."""
        message = self.api.receive()
        body, receipt = message.get("body"), message.get("receipt_handle")
        if not body:
            return False
        # EvalAI takes some of them from an address, as texts.
        texts = [str(body.get(key, "")) for key in ("challenge_pk", "phase_pk", "submission_pk")]
        if not all(map(str.isdecimal, texts)) or int(texts[0]) != self.account.challenge or not receipt:
            # Left in the queue: to delete what is not understood might lose a submission.
            self.tell(f"a message that is not for challenge {self.account.challenge} was left in the queue")
            return True
        _, phase, submission = map(int, texts)
        self.deliveries.receive(submission, phase, str(receipt))
        self._safely(submission)
        return True

    def _safely(self, submission: int) -> None:
        """Deal with a submission. If EvalAI cannot be reached, or refuses, it stays, and the next has its turn."""
        self._kept.discard(submission)
        try:
            with self.deliveries.exclusive(submission) as ours:
                delivery = self.deliveries.get(submission)
                if ours and delivery is not None:
                    self._deal(delivery)
        except TransientError as error:
            self.tell(f"submission {submission} has to wait: {error}")
        except (RefusedError, RefusedPlaceError) as error:
            if isinstance(error, RefusedError) and error.unauthorised:
                raise
            self._kept.add(submission)
            self.tell(f"submission {submission} is kept back: {error}")

    def _deal(self, delivery: Delivery) -> None:
        number = delivery.submission
        state = self.api.submission(number)
        if state is None or _status(state) in ENDED:
            self._end(delivery, "deleted" if state is None else _status(state))
            return
        if delivery.step == "received" and _status(state) == "running" and not self._stale(state):
            return  # another machine's; it comes again if that one fails
        if delivery.outcome is None or self._wanted_again(delivery, state):
            self._run(delivery, state)
        self._put(number)

    def _run(self, delivery: Delivery, state: Mapping[str, Any]) -> None:
        number, url = delivery.submission, str(state.get("input_file") or "")
        allowed(url, self.account)  # a place that the host forgot to name must not cost a team its submission
        job = _job(state, self.api.codename(delivery.phase))
        if delivery.step != "running" or delivery.began is None:
            self.deliveries.running(number)
        if _status(state) != "running":
            self.api.running(number)
        outcome, sha256 = self._outcome(job, url)
        self.deliveries.evaluated(number, sha256, outcome)
        self.tell(f"submission {number}: {outcome.code}")

    def _outcome(self, job: Job, url: str) -> tuple[Outcome, str]:
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
            return Outcome("size", detail=str(error)), sha256
        except Exception:
            return Outcome("failed", detail=traceback.format_exc()), sha256

    def _put(self, number: int) -> None:
        """Answer. After a failed try EvalAI is asked first whether it arrived."""
        delivery = self.deliveries.get(number)
        if delivery is None or delivery.outcome is None:
            raise NeucoError(f"submission {number} has no outcome", where=self.deliveries.folder)
        if self.due(delivery) > time.time():
            return  # others have their turn meanwhile
        codename = self.api.codename(delivery.phase)
        metadata = {"code": delivery.outcome.code, "neuco": __version__, "sha256": delivery.sha256 or ""}
        for tries in range(1, self.account.tries + 1):
            state = self.api.submission(number)
            if state is None or _status(state) in ENDED:
                break
            try:
                self.api.put(number, delivery.phase, codename, delivery.outcome, metadata)
                break
            except TransientError as error:
                if tries == self.account.tries:
                    raise
                self.pause(self.api.after(tries, error))
        self.deliveries.step(number, "put")
        self._end(delivery, "answered")

    def _end(self, delivery: Delivery, how: str) -> None:
        """Acknowledge, last of all: until then the queue hands the submission out again."""
        number = delivery.submission
        receipt = (self.deliveries.get(number) or delivery).receipt
        try:
            self.api.acknowledge(receipt)
        except RefusedError as error:
            if error.unauthorised:
                raise
            # A receipt of an earlier delivery. The queue hands it out again, and then there is a new one.
            self.tell(f"submission {number} is {how}; its message could not be taken from the queue")
        else:
            self.tell(f"submission {number} is {how}")
        self.deliveries.step(number, "acknowledged")
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

    def _stale(self, state: Mapping[str, Any]) -> bool:
        return (datetime.now(UTC) - _when(state.get("started_at"))).total_seconds() > self.account.stale

    def _wanted_again(self, delivery: Delivery, state: Mapping[str, Any]) -> bool:
        """A host let a failed submission run again on EvalAI: under the same number, with another status."""
        return _status(state) in ("resuming", "submitted", "queued") and delivery.step in ("put", "acknowledged")


def _status(state: Mapping[str, Any]) -> str:
    return str(state.get("status", "")).lower()


def _when(text: object) -> datetime:
    """A time of EvalAI's; what cannot be read counts as now."""
    try:
        time = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return datetime.now(UTC)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _job(state: Mapping[str, Any], codename: str) -> Job:
    return Job(
        submission=int(state["id"]),
        phase=codename,
        team=int(state.get("participant_team") or 0),
        team_name=str(state.get("participant_team_name") or ""),
        public=bool(state.get("is_public")),
        submitted=_when(state.get("submitted_at")),
        again=_status(state) == "resuming",
    )
