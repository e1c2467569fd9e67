"""The audit: proves that rules, labels, seeds and submissions are those of the start, and makes every number again."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from neuco_core.errors import NeucoError
from neuco_core.files import read_limited
from neuco_core.records.model import Record
from neuco_core.text import counted, join_names
from neuco_extensions.challenge.close import public_files
from neuco_extensions.challenge.feedback import Rung, feedback
from neuco_extensions.challenge.files import file_path
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import Submission, broken_link
from neuco_extensions.challenge.outcome import UNREAD
from neuco_extensions.challenge.seal import LARGEST, PUBLIC_RULES, public_rules

Progress: TypeAlias = Callable[[int, int], None]
CHECKS = {
    "seal": "rules, ids, labels and seeds are what was committed to at the start",
    "journal": "no entry of the journal was changed, removed or put in between",
    "quotas": "no submission is late, and no team has more than the rules allow",
    "files": "every submitted file has the bytes that were received",
    "records": "every record has the bytes that were written",
    "scores": "every submission, scored again, gives the same numbers",
    "answers": "every team was told what the rules say",
    "boards": "what was published at the end follows from all this",
}


@dataclass(frozen=True)
class Check:
    """A check by its name; what is wrong in words, or nothing; why it could not be made, or nothing."""

    name: str
    wrong: str = ""
    about: str = ""
    skipped: str = ""

    @property
    def ok(self) -> bool:
        return not self.wrong


def audit(folder: str | Path, *, threads: int | None = 1, told: Progress | None = None) -> list[Check]:
    """All checks, in their order; ``told`` hears how far it is.

    If the seal is broken, or the journal, nothing else can be proved, and the list ends there.
    """
    try:
        host = Host(folder)
    except NeucoError as error:
        return [Check("seal", str(error))]
    with host:
        try:
            found = host.journal.submissions()
        except (NeucoError, ValueError, sqlite3.Error) as error:
            return [Check("seal"), Check("journal", f"it cannot be read: {error}")]
        about = counted(len(found), "submission")
        checks = [
            Check("seal", _public_rules(host)),
            Check("journal", _journal(found), about),
            Check("quotas", _first(_quotas(host, found))),
        ]
        checks.append(Check("files", _first(_files(host, found)), about))
        scored = [own for own in found if own.state == "scored"]
        checks.append(Check("records", _first(_records(host, scored)), f"of {counted(len(scored), 'submission')}"))
        checks.append(Check("scores", _first(_scores(host, found, threads, told)), about))
        if all(check.ok for check in checks):
            checks += [Check("answers", _first(_answers(host, scored))), _boards(host)]
        return checks


def _public_rules(host: Host) -> str:
    path = host.challenge.published / PUBLIC_RULES
    try:
        published = json.loads(read_limited(path, LARGEST))
    except (OSError, ValueError, NeucoError) as error:
        return f"{path.name} cannot be read: {error}"
    return "" if _is_of(published, public_rules(host.challenge)) else f"{path.name} is not what the rules say"


def _is_of(published: Any, made: Any) -> bool:
    """Whether all is the same, but for fields that neuco has learned since."""
    if not (isinstance(published, dict) and isinstance(made, dict)):
        return bool(published == made)
    lacking = [made[name] for name in made.keys() - published.keys()]
    known = all(name in made and _is_of(value, made[name]) for name, value in published.items())
    return known and not any(isinstance(value, dict) for value in lacking)


def _first(found: Iterator[str]) -> str:
    return join_names(list(found), 3)


def _journal(found: list[Submission]) -> str:
    place = broken_link(found)
    return f"entry {place} is not what was entered, or does not follow from the one before" if place else ""


def _quotas(host: Host, found: list[Submission]) -> Iterator[str]:
    counts: Counter[tuple[str, ...]] = Counter()
    for own in found:
        phase = host.challenge.phase(own.phase)
        if own.team not in host.challenge.teams:
            yield f"{own.name} is of {own.team!r}, which is no team of the rules"
        if not phase.open_at(datetime.fromisoformat(own.received)):
            yield f"{own.name} came while the phase was not open"
        if own.code not in UNREAD:
            counts[own.team, own.phase] += 1
            counts[own.team, own.phase, own.received[:10]] += 1
    for (team, name, *day), count in counts.items():
        phase = host.challenge.phase(name)
        if count > (phase.per_day if day else phase.in_all):
            yield f"{team} has {count} submissions in {name}{' on ' + day[0] if day else ''}"


def _files(host: Host, found: list[Submission]) -> Iterator[str]:
    for own in found:
        try:
            with file_path(host.challenge.private, own.sha256).open("rb") as file:
                same = hashlib.file_digest(file, "sha256").hexdigest() == own.sha256
        except OSError as error:
            yield f"the file of {own.name}: {error.strerror}"
        else:
            if not same:
                yield f"the file of {own.name} has other bytes"


def _records(host: Host, scored: list[Submission]) -> Iterator[str]:
    for own in scored:
        try:
            mark = host.records_mark(own.name)
        except OSError as error:
            yield f"a record of {own.name}: {error.strerror}"
        else:
            if mark != own.records:
                yield f"a record of {own.name} has other bytes"


def _scores(host: Host, found: list[Submission], threads: int | None, told: Progress | None) -> Iterator[str]:
    """Bit for bit: on another kind of processor the last digits may differ, and this says so of every submission."""
    for place, own in enumerate(found, 1):
        try:
            made = host.evaluate_submission(own, threads=threads)
            if own.open:
                yield f"{own.name} was not evaluated"
            elif made.outcome.code != own.code or dict(made.outcome.scores) != own.scores:
                yield f"{own.name} gives {made.outcome.code} {dict(made.outcome.scores)}, not {own.code} {own.scores}"
            elif made.records and _bare(made.records) != _bare(host.records(own)):
                yield f"{own.name} has other scores by split"
        except (NeucoError, OSError) as error:
            yield f"{own.name}: {error}"
        if told:
            told(place, len(found))


def _bare(records: tuple[Record, ...]) -> list[Record]:
    return [replace(record, provenance={}) for record in records]


def _answers(host: Host, scored: list[Submission]) -> Iterator[str]:
    """Play the answers of each team in each phase again, in the order in which they were given."""
    rungs: dict[tuple[str, str], Rung] = {}
    for own in sorted(scored, key=lambda own: own.place or 0):
        place, records = (own.team, own.phase), host.records(own)
        told, rung = feedback(host.challenge.phase(own.phase), own.id, records, rungs.get(place))
        if told != own.feedback or rung != own.rung:
            yield f"{own.name} was told {own.feedback}, not {told}"
        if rung == own.id:
            rungs[place] = Rung(told["mean_q"], own.id, records)


def _boards(host: Host) -> Check:
    files = public_files(host)
    there = {path: path.read_bytes() for path in files if path.exists()}
    if not there:
        return Check("boards", skipped="the challenge is not closed yet, so nothing was published")
    wrong = [path.name for path, data in files.items() if there.get(path) != data]
    return Check("boards", _first(f"{name} is not what follows from the submissions" for name in wrong))
