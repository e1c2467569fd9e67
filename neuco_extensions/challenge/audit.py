"""The audit: proves that rules, labels, seeds and submissions are those of the start, and makes every number again."""

from __future__ import annotations

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
from neuco_core.fetch.cache import hash_file
from neuco_core.files import read_limited
from neuco_core.records.model import Record
from neuco_core.runs.engine import EngineLike
from neuco_core.text import counted, join_names
from neuco_extensions.challenge.close import public_files
from neuco_extensions.challenge.feedback import Rung, feedback
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import UNREAD, JournalEntry, broken_link
from neuco_extensions.challenge.seal import LARGEST, PUBLIC_RULES, public_rules
from neuco_extensions.challenge.workers import evaluate_again

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
class AuditCheck:
    """A check by its name; what is wrong in words, or nothing; why it could not be made, or nothing."""

    name: str
    wrong: str = ""
    about: str = ""
    skipped: str = ""

    @property
    def ok(self) -> bool:
        return not self.wrong


def audit(
    folder: str | Path, *, engine: EngineLike | None = None, threads: int = 1, progress: Progress | None = None
) -> list[AuditCheck]:
    """All checks, in their order; ``progress`` hears how far it is.

    Submissions are scored by the workers of an engine, with the limits of the evaluation, or in this process. If the
    seal is broken, or the journal, nothing else can be proved, and the list ends there.
    """
    try:
        host = Host(folder)
    except NeucoError as error:
        return [AuditCheck("seal", str(error))]
    with host:
        try:
            entries = host.journal.submissions()
        except (NeucoError, ValueError, sqlite3.Error) as error:
            return [AuditCheck("seal"), AuditCheck("journal", f"it cannot be read: {error}")]
        about = counted(len(entries), "submission")
        scored = [entry for entry in entries if entry.state == "scored"]
        checks = [
            AuditCheck("seal", _public_rules(host)),
            AuditCheck("journal", _journal(entries), about),
            AuditCheck("quotas", _first(_quotas(host, entries))),
            AuditCheck("files", _first(_files(host, entries)), about),
            AuditCheck("records", _first(_records(host, scored)), f"of {counted(len(scored), 'submission')}"),
            AuditCheck("scores", _first(_scores(host, entries, engine, threads, progress)), about),
        ]
        if all(check.ok for check in checks):
            checks += [AuditCheck("answers", _first(_answers(host, scored))), _boards(host)]
        return checks


def _first(problems: Iterator[str]) -> str:
    return join_names(list(problems), 3)


def _public_rules(host: Host) -> str:
    path = host.challenge.published / PUBLIC_RULES
    try:
        published = json.loads(read_limited(path, LARGEST))
    except (OSError, ValueError, NeucoError) as error:
        return f"{path.name} cannot be read: {error}"
    return "" if _is_of(published, public_rules(host.challenge)) else f"{path.name} is not what the rules say"


def _is_of(published: Any, rules: Any) -> bool:
    """Whether all is the same, but for fields that neuco has learned since."""
    if not (isinstance(published, dict) and isinstance(rules, dict)):
        return bool(published == rules)
    same = all(name in rules and _is_of(value, rules[name]) for name, value in published.items())
    return same and not any(isinstance(rules[name], dict) for name in rules.keys() - published.keys())


def _journal(entries: list[JournalEntry]) -> str:
    broken = broken_link(entries)
    return f"entry {broken} is not what was entered, or does not follow from the one before" if broken else ""


def _quotas(host: Host, entries: list[JournalEntry]) -> Iterator[str]:
    counts: Counter[tuple[str, ...]] = Counter()
    for entry in entries:
        phase = host.challenge.phase(entry.phase)
        if entry.team not in host.challenge.teams:
            yield f"{entry.name} is of {entry.team!r}, which is no team of the rules"
        if not phase.open_at(datetime.fromisoformat(entry.received)):
            yield f"{entry.name} came while the phase was not open"
        if entry.code not in UNREAD:
            counts[entry.team, entry.phase] += 1
            counts[entry.team, entry.phase, entry.received[:10]] += 1
    for (team, name, *day), count in counts.items():
        phase = host.challenge.phase(name)
        if count > (phase.per_day if day else phase.in_all):
            yield f"{team} has {count} submissions in {name}{' on ' + day[0] if day else ''}"


def _files(host: Host, entries: list[JournalEntry]) -> Iterator[str]:
    for entry in entries:
        try:
            same = hash_file(host.file_path(entry)) == entry.sha256
        except OSError as error:
            yield f"the file of {entry.name}: {error.strerror}"
        else:
            if not same:
                yield f"the file of {entry.name} has other bytes"


def _records(host: Host, scored: list[JournalEntry]) -> Iterator[str]:
    for entry in scored:
        try:
            same = hash_file(host.records_path(entry)) == entry.records
        except OSError as error:
            yield f"the records of {entry.name}: {error.strerror}"
        else:
            if not same:
                yield f"the records of {entry.name} have other bytes"


def _scores(
    host: Host, entries: list[JournalEntry], engine: EngineLike | None, threads: int, progress: Progress | None
) -> Iterator[str]:
    """Bit for bit: on another kind of processor the last digits may differ, and this says so of every submission."""
    for number, (entry, again) in enumerate(evaluate_again(host, entries, engine, threads=threads), 1):
        if isinstance(again, Exception):
            yield f"{entry.name}: {again}"
        elif entry.open:
            yield f"{entry.name} was not evaluated"
        elif again.verdict.code != entry.code or again.verdict.scores != entry.scores:
            yield (
                f"{entry.name} gives {again.verdict.code} {dict(again.verdict.scores)}, not {entry.code} {entry.scores}"
            )
        elif again.records and not _same_but_provenance(again.records, host, entry):
            yield f"{entry.name} has other scores by split"
        if progress:
            progress(number, len(entries))


def _same_but_provenance(records: tuple[Record, ...], host: Host, entry: JournalEntry) -> bool:
    try:
        kept = host.records(entry)
    except NeucoError:
        return False
    return [replace(record, provenance={}) for record in records] == [replace(one, provenance={}) for one in kept]


def _answers(host: Host, scored: list[JournalEntry]) -> Iterator[str]:
    """Play the answers of each team in each phase again, in the order in which they were given."""
    rungs: dict[tuple[str, str], Rung] = {}
    for entry in sorted(scored, key=lambda entry: entry.answer_number or 0):
        ladder, records = (entry.team, entry.phase), host.records(entry)
        expected, rung = feedback(host.challenge.phase(entry.phase), entry.id, records, rungs.get(ladder))
        if expected != entry.feedback or rung != entry.rung:
            yield f"{entry.name} was told {entry.feedback}, not {expected}"
        if rung == entry.id:
            rungs[ladder] = Rung(expected["mean_q"], entry.id, records)


def _boards(host: Host) -> AuditCheck:
    files = public_files(host)
    published = {path: path.read_bytes() for path in files if path.exists()}
    if not published:
        return AuditCheck("boards", skipped="the challenge is not closed yet, so nothing was published")
    wrong = [path.name for path, data in files.items() if published.get(path) != data]
    return AuditCheck("boards", _first(f"{name} is not what follows from the submissions" for name in wrong))
