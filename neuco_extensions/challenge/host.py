"""A challenge's folder at work: submissions come in, are evaluated, and are answered. Every way in uses this.

Submitted files are stored by their sha256, written whole and on disk before anything refers to them.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec

from neuco_core.errors import DataError, NeucoError, UnknownIdError
from neuco_core.files import write_atomic
from neuco_core.records.model import Record
from neuco_extensions.challenge.evaluate import Hidden, evaluate, hidden
from neuco_extensions.challenge.feedback import Rung, feedback
from neuco_extensions.challenge.journal import (
    JOURNAL,
    MESSAGES,
    UNREAD,
    Journal,
    JournalEntry,
    RefusedError,
    Verdict,
    left_by_quotas,
)
from neuco_extensions.challenge.rules import Amendment, Challenge, load_challenge
from neuco_extensions.challenge.seal import Secrets, check_seal, read_secrets

CHUNK = 1 << 20


def file_path(private: Path, sha256: str) -> Path:
    """Where a submitted file lies. It has no suffix: what it is, its first bytes say."""
    return private / "files" / sha256[:2] / sha256


class Upload(AbstractContextManager["Upload"]):
    """A file as it comes in. Leaving the block without ``keep`` leaves nothing behind.

    ``write`` raises as soon as the file is larger than allowed, so that no more than that is ever on disk.
    """

    def __init__(self, private: Path, most: int) -> None:
        self._private, self._most = private, most
        self._hash = hashlib.sha256()
        self.size = 0
        folder = private / "incoming"
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / secrets.token_hex(16)
        self._file = self._path.open("xb")

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._most:
            raise RefusedError("size")
        self._hash.update(data)
        self._file.write(data)

    def finish(self) -> str:
        """Bring the bytes to disk; gives their sha256."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._hash.hexdigest()

    def keep(self) -> None:
        """Bring the file, which is finished, under its name."""
        target = file_path(self._private, self._hash.hexdigest())
        new = [folder for folder in (target.parent.parent, target.parent) if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        self._path.replace(target)
        for folder in {target.parent, *(folder.parent for folder in new)}:
            _sync(folder)

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a full disk, which was told already
            self._file.close()
        with suppress(FileNotFoundError):
            self._path.unlink()


def sweep(private: Path, older: float = 86_400.0) -> None:
    """Remove what uploads have left that were killed this many seconds ago."""
    for path in (private / "incoming").glob("*"):
        with suppress(FileNotFoundError):  # an upload that ended just now
            if time.time() - path.stat().st_mtime > older:
                path.unlink()


def _sync(folder: Path) -> None:
    """A new name is on disk only when its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Host(AbstractContextManager["Host"]):
    """A sealed challenge. Not for several threads at once: open another one for each.

    ``submit`` takes a submission in, ``workers.evaluate_waiting`` evaluates, ``answer`` is what a team may see.
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
        file: Path,
        *,
        public: bool = True,
        source: str | None = None,
        now: datetime | None = None,
    ) -> JournalEntry:
        """Store a file and enter it into the journal; ``RefusedError`` says why not.

        See ``Journal.enter`` for ``source`` and ``now``. A file that was accepted is on disk when this returns.
        """
        try:
            content = file.open("rb")
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", where=file) from error
        with content, Upload(self.challenge.private, self.challenge.limits.bytes) as upload:
            shutil.copyfileobj(content, upload, CHUNK)
            enter = self.journal.enter
            return enter(self.challenge, team, phase, upload, public=public, source=source, now=now)

    def amend(self, phase: str, end: datetime, *, now: datetime | None = None) -> Amendment:
        """Extend the deadline of a phase, for everybody to see."""
        made = self.journal.amend(self.challenge, phase, end, now=now)
        self.challenge = self.challenge.amended([made])
        return made

    def evaluate(self, phase: str, path: Path, *, name: str = "s000000", threads: int | None = 1) -> Verdict:
        """Score a file as a submission, in this process; nothing is kept."""
        return evaluate(self.challenge, self.hidden(phase), path, name, threads=threads)

    def file_path(self, entry: JournalEntry) -> Path:
        return file_path(self.challenge.private, entry.sha256)

    def settle(self, leased: JournalEntry, verdict: Verdict) -> JournalEntry:
        """Keep what came of a leased submission: its records, the answer to the team, the state in the journal."""
        rung, keep = None, None
        try:
            if verdict.records:
                rules = self.challenge.phase(leased.phase)
                shown, rung = feedback(rules, leased.id, verdict.records, self.rung(leased))
                verdict = replace(verdict, feedback=shown)
                keep = partial(self.keep_records, leased, verdict.records)
            self.journal.finish(leased, verdict, keep, rung)
        except (NeucoError, OSError, sqlite3.Error):
            self.journal.give_back(leased, counts=False)  # a full disk, or a lost record, is not the team's fault
            raise
        return self.journal.get(leased.id)

    def records_path(self, entry: JournalEntry) -> Path:
        return self.challenge.private / "records" / f"{entry.name}.jsonl"

    def keep_records(self, entry: JournalEntry, records: Iterable[Record]) -> str:
        """Write the records of a submission, one a line; gives the hash of the file."""
        data = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        write_atomic(self.records_path(entry), data)
        return hashlib.sha256(data).hexdigest()

    def records(self, entry: JournalEntry) -> tuple[Record, ...]:
        """The records of a scored submission, as they were written."""
        path = self.records_path(entry)
        try:
            return tuple(msgspec.json.decode(line, type=Record) for line in path.read_bytes().splitlines())
        except (OSError, msgspec.MsgspecError) as error:
            raise DataError(f"the records of {entry.name} cannot be read: {error}", where=path) from error

    def rung(self, entry: JournalEntry) -> Rung | None:
        """What a submission is compared with: the rung of the team's last one that was answered before it."""
        entries = self.journal.submissions(entry.phase, entry.team)
        answered = [other for other in entries if other.state == "scored" and other.id != entry.id]
        last = max(answered, key=lambda other: other.answer_number or 0, default=None)
        if last is None or last.rung is None:
            return None
        return Rung(last.feedback["mean_q"], last.rung, self.records(self.journal.get(last.rung)))

    def answer(self, number: int, team: str, *, now: datetime | None = None) -> dict[str, Any]:
        """All that a team may see of a submission of its own: the same fields whatever the outcome, and no duration."""
        entry = self.journal.get(number)
        if entry.team != team:
            raise UnknownIdError("submission", str(number), ())
        visible = is_visible(entry, self.challenge, now or datetime.now(UTC))
        return {
            "submission": entry.id,
            "phase": entry.phase,
            "sha256": entry.sha256,
            "received": entry.received,
            "receipt": entry.chain,
            "public": entry.public,
            "state": entry.state if visible else "received",
            "message": MESSAGES[entry.code or "failed"] if visible else "",
            "mean_q": entry.feedback.get("mean_q") if visible else None,
        }


def is_visible(entry: JournalEntry, challenge: Challenge, now: datetime) -> bool:
    """Whether a team may see the answer now. After the end of a phase no time can tell anything any more."""
    moment = visible_at(entry, challenge.limits.tick)
    return moment is not None and (moment <= now or challenge.phase(entry.phase).end <= now)


def visible_at(entry: JournalEntry, tick: int) -> datetime | None:
    """When a team may see the answer: at the second tick after its receipt, or the next one after it was finished.

    As long as evaluations take less than a tick this follows from the time of receipt alone, and tells nothing.
    """
    if entry.finished is None:
        return None
    earliest = next_tick(datetime.fromisoformat(entry.received), tick) + timedelta(seconds=tick)
    finished = datetime.fromisoformat(entry.finished)
    return earliest if finished <= earliest else next_tick(finished, tick)


def next_tick(moment: datetime, tick: int) -> datetime:
    """The first whole multiple of ``tick`` seconds after a moment."""
    return datetime.fromtimestamp((moment.timestamp() // tick + 1) * tick, UTC)


def quota_left(
    challenge: Challenge, submissions: Iterable[JournalEntry], *, now: datetime | None = None
) -> dict[str, dict[str, int]]:
    """By phase what a team may still send ``today`` (UTC) and ``in_all``, of all its submissions.

    A file that cannot be read costs nothing once its team has been told so. Were it given back earlier, the moment
    would tell when it was evaluated.
    """
    moment, entries = now or datetime.now(UTC), list(submissions)
    quotas = {}
    for name in challenge.phases:
        here = [entry for entry in entries if entry.phase == name]
        unread = [entry for entry in here if entry.code in UNREAD and is_visible(entry, challenge, moment)]
        today, in_all = left_by_quotas(challenge, name, here, unread, moment)
        quotas[name] = {"today": today, "in_all": in_all}
    return quotas
