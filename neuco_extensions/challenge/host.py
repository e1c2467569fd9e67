"""A challenge's folder at work: submissions come in, are evaluated, and are answered. Every way in uses this."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from neuco_core.env import show_in_debug
from neuco_core.errors import DataError, NeucoError, UnknownIdError
from neuco_core.records.model import Record
from neuco_core.records.store import read_method, records_file, write_records
from neuco_extensions.challenge.evaluate import Evaluation, Hidden, PhaseError, evaluate, hidden
from neuco_extensions.challenge.feedback import Rung, feedback
from neuco_extensions.challenge.files import Upload, file_path
from neuco_extensions.challenge.journal import JOURNAL, LEASE, Journal, RefusedError, Submission
from neuco_extensions.challenge.outcome import MESSAGES, Outcome
from neuco_extensions.challenge.rules import Challenge, load_challenge
from neuco_extensions.challenge.seal import Secrets, check_seal, read_secrets
from neuco_extensions.challenge.ticks import is_visible

CHUNK = 1 << 20


class Host:
    """A sealed challenge. Not for several threads at once: open another one for each.

    ``submit`` takes a submission in, ``work`` evaluates those that wait, ``answer`` is what a team may see.
    """

    def __init__(self, folder: str | Path) -> None:
        self.challenge: Challenge = load_challenge(folder)
        self._secrets: Secrets = read_secrets(self.challenge)
        check_seal(self.challenge, self._secrets)
        self._phases: dict[str, Hidden] = {}

    @cached_property
    def journal(self) -> Journal:
        return Journal(self.challenge.private / JOURNAL)

    def close(self) -> None:
        if "journal" in self.__dict__:  # who only evaluates opens none, and may not be able to
            self.journal.close()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hidden(self, phase: str) -> Hidden:
        """Labels, decoys and the protocol with its seed; read once."""
        if phase not in self._phases:
            self._phases[phase] = hidden(self.challenge, phase, self._secrets.seeds[phase])
        return self._phases[phase]

    def submit(
        self,
        team: str,
        phase: str,
        data: Path | Iterable[bytes],
        *,
        public: bool = True,
        source: str | None = None,
        now: datetime | None = None,
    ) -> Submission:
        """Store a file, or what comes in parts, and enter it into the journal; ``RefusedError`` says why not.

        See ``Journal.enter`` for ``source`` and ``now``. A file that was accepted is on disk when this returns.
        """
        self.challenge.phase(phase), self.challenge.team(team)
        with Upload(self.challenge.private, self.challenge.limits.bytes) as upload:
            for part in _parts(data) if isinstance(data, Path) else data:
                upload.write(part)
            return self.enter(team, phase, upload, public=public, source=source, now=now)

    def enter(self, team: str, phase: str, upload: Upload, **options: Any) -> Submission:
        """Keep an upload that is complete, and enter it: the second half of ``submit``."""
        from neuco_extensions.challenge.close import REVEAL  # which needs this module

        sha256 = upload.finish()

        def keep() -> None:
            """Only for one that is new: what was entered before the end is known after it, too."""
            if (self.challenge.published / REVEAL).exists():
                raise RefusedError("closed")  # whatever time is given for its receipt: the seeds are known to all
            upload.keep()

        return self.journal.enter(self.challenge, team, phase, sha256, upload.size, keep=keep, **options)

    def evaluate(self, phase: str, path: Path, *, name: str = "s000000", threads: int | None = 1) -> Evaluation:
        """Score a file as a submission; nothing is kept."""
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return evaluate(self.challenge, self.hidden(phase), path, sha256, name, threads=threads)

    def evaluate_submission(self, own: Submission, *, threads: int | None = 1) -> Evaluation:
        """Score the file of a submission; nothing is kept."""
        path = file_path(self.challenge.private, own.sha256)
        found = self.evaluate(own.phase, path, name=own.name, threads=threads)
        if found.records and found.records[0].inputs["embeddings_from"] is None:
            raise PhaseError("the records do not say what they were made of", where=path)
        return found

    def work(self, *, only: int | None = None, seconds: float = LEASE, threads: int | None = 1) -> Submission | None:
        """Evaluate the next submission that waits (or this one) to the end; None if there is nothing to do.

        Workers may be killed at any time, and there may be any number of them.
        """
        leased = self.journal.lease(self.challenge.limits.attempts, seconds=seconds, only=only)
        if leased is None:
            return None
        try:
            found = self.evaluate_submission(leased, threads=threads)
        except (PhaseError, OSError, KeyboardInterrupt, SystemExit):
            self.journal.release(leased)  # labels that are gone, a full disk, an interrupt: not the team's fault
            raise
        except Exception as error:
            show_in_debug(error)  # one odd file must not keep the others waiting
            found = Evaluation(Outcome("failed", detail=f"{type(error).__name__}: {error}"))
        return self.settle(leased, found)

    def settle(self, leased: Submission, found: Evaluation) -> Submission:
        """Keep what came of a leased submission: its records, the answer to the team, the state in the journal."""
        outcome, rung, records = found.outcome, None, found.records
        try:
            if records:
                rules, best = self.challenge.phase(leased.phase), self.rung(leased)
                told, rung = feedback(rules, leased.id, records, best)
                outcome = replace(outcome, feedback=told)
            self.journal.finish(leased, outcome, (lambda: self.keep_records(records)) if records else None, rung)
        except (NeucoError, OSError, sqlite3.Error):
            self.journal.release(leased)  # a full disk, or a lost record, is not the team's fault
            raise
        return self.journal.get(leased.id)

    def work_all(self, **options: Any) -> int:
        """Evaluate all that waits; the number of evaluations."""
        count = 0
        while self.work(**options) is not None:
            count += 1
        return count

    def keep_records(self, records: Sequence[Record]) -> str:
        """Write the records of a submission; gives the hash of their file."""
        write_records(self.challenge.registry, records)
        return self.records_mark(records[0].method)

    def records_mark(self, name: str) -> str:
        return hashlib.sha256(records_file(self.challenge.registry, name).read_bytes()).hexdigest()

    def records(self, own: Submission) -> tuple[Record, ...]:
        """The records of a scored submission, as they were written."""
        phase = self.hidden(own.phase)
        records = {record.key: record for record in read_method(self.challenge.registry, own.name)}
        keys = [(own.name, task.label, phase.protocol.name) for task in phase.tasks.values()]
        for key in keys:
            if key not in records:
                raise DataError(f"no record of {own.name} on {key[1]}", where=self.challenge.registry)
        return tuple(records[key] for key in keys)

    def rung(self, own: Submission) -> Rung | None:
        """What a submission is compared with: the rung of the team's last one that was answered before it."""
        scored = [s for s in self.journal.submissions(own.phase, own.team) if s.state == "scored" and s.id != own.id]
        before = [s for s in scored if own.place is None or (s.place or 0) < own.place]
        last = max(before, key=lambda s: s.place or 0, default=None)
        if last is None or last.rung is None:
            return None
        return Rung(last.feedback["mean_q"], last.rung, self.records(self.journal.get(last.rung)))

    def answer(self, number: int, team: str, *, now: datetime | None = None) -> dict[str, Any]:
        """All that a team may see of a submission of its own: the same fields whatever the outcome, and no duration."""
        own = self.journal.get(number)
        if own.team != team:
            raise UnknownIdError("submission", str(number), ())
        seen = is_visible(own, self.challenge, now or datetime.now(UTC))
        return {
            "submission": own.id,
            "phase": own.phase,
            "sha256": own.sha256,
            "received": own.received,
            "receipt": own.chain,
            "public": own.public,
            "state": own.state if seen else "received",
            "message": MESSAGES[own.code or "failed"] if seen else "",
            "mean_q": own.feedback.get("mean_q") if seen else None,
        }


def _parts(path: Path) -> Iterable[bytes]:
    try:
        with path.open("rb") as file:
            while part := file.read(CHUNK):
                yield part
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=path) from error
