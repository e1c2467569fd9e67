"""The end of a challenge: exact boards, all submissions and the secrets become public, for anybody to check.

The audit proves that rules, labels, seeds and submissions are those of the start, and makes every number again.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from neuco_core.boards.model import plain
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.fetch.cache import hash_file
from neuco_core.files import dump, read_limited, write_atomic
from neuco_core.progress import Progress
from neuco_core.records.model import Record
from neuco_core.runs.engine import EngineLike
from neuco_core.text import counted, join_names
from neuco_extensions.challenge.board import final_board, history
from neuco_extensions.challenge.feedback import Rung, feedback
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import UNREAD, JournalEntry, Verdict, broken_link, published_amendments
from neuco_extensions.challenge.rules import AMENDMENTS, REVEAL, RULES, Amendment, load_rules
from neuco_extensions.challenge.seal import LARGEST, PUBLIC_RULES, SEAL, SECRETS, contents, public_rules, read_secrets
from neuco_extensions.challenge.workers import evaluate_again

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


def close(host: Host, *, now: datetime | None = None) -> list[Path]:
    """Write the public files of a challenge whose phases are over; gives their paths."""
    moment = now or datetime.now(UTC)
    still = [name for name, phase in host.challenge.phases.items() if moment < phase.end]
    if still:
        end = max(host.challenge.phases[name].end for name in still)
        raise UsageError(f"phase {still[0]} is not over", where=host.challenge.folder, expected=f"a time after {end}")
    waiting = [entry for entry in host.journal.submissions() if entry.open]
    if waiting:
        hint = f"Run: neuco challenge evaluate {host.challenge.folder}"
        raise UsageError(f"{counted(len(waiting), 'submission')} not evaluated yet", hint=hint)
    files = public_files(host)
    untrue = [path.name for path, data in files.items() if path.exists() and path.read_bytes() != data]
    if untrue:
        what = f"published, and no longer true: {join_names(untrue, 3)}"
        hint = "To publish what is true now, tell everybody why, remove them, and close again"
        raise DataError(what, where=host.challenge.published, hint=hint)
    for path, data in files.items():
        write_atomic(path, data)
    host.journal.checkpoint()  # a server may run on, and the folder is copied for auditors now
    return list(files)


def public_files(host: Host) -> dict[Path, bytes]:
    """All that is published at the end, by path: a pure function of the challenge's folder."""
    challenge, entries = host.challenge, host.journal.submissions()
    secrets = read_secrets(challenge)
    reveal = {
        "challenge": challenge.id,
        "contents": contents(challenge, secrets.seeds),
        "salts": secrets.salts,
        "journal": host.journal.last_link()[1],
        "rules": hash_file(Path(challenge.folder, RULES)),  # of the file itself, which also has the teams
    }
    files = {
        challenge.published / REVEAL: dump(reveal),
        challenge.published / "submissions.json": dump([public_entry(entry) for entry in entries]),
    }
    for phase in challenge.phases:
        files[challenge.published / f"board-{phase}.json"] = dump(plain(final_board(host, phase)))
        files[challenge.published / f"history-{phase}.json"] = dump(plain(history(host, phase, final=True)))
    return files


def public_entry(entry: JournalEntry) -> dict[str, Any]:
    """A submission as everybody may see it at the end."""
    values: dict[str, Any] = msgspec.to_builtins(entry._asdict())
    for hidden in ("attempts", "worker", "finished", "detail"):
        del values[hidden]
    return values


@dataclass(frozen=True)
class AuditCheck:
    """A check by its name; what is wrong in words, or nothing; why it could not be made, or nothing."""

    name: str
    wrong: str = ""
    skipped: str = ""

    @property
    def ok(self) -> bool:
        return not self.wrong


def audit(
    folder: str | Path, engine: EngineLike, *, threads: int = 1, progress: Progress | None = None
) -> list[AuditCheck]:
    """All checks, in their order; ``progress`` hears how far it is.

    The workers of the engine score submissions with the limits of the evaluation. If the seal is broken, or the
    journal, nothing else can be proved, and the list ends there.
    """
    try:
        _require_whole(Path(folder))
        host = Host(folder)
    except NeucoError as error:
        return [AuditCheck("seal", str(error))]
    with host:
        try:
            entries, amendments = host.journal.submissions(), host.journal.amendments()
        except (NeucoError, ValueError, sqlite3.Error) as error:
            return [AuditCheck("seal"), AuditCheck("journal", f"it cannot be read: {error}")]
        scored = [entry for entry in entries if entry.state == "scored"]
        seal = AuditCheck("seal", _public_rules(host))
        journal = AuditCheck("journal", _first([*_edited(entries, amendments), *_amended(host, amendments)]))
        if not journal.ok:
            return [seal, journal]
        files = ((f"the file of {entry.name}", host.file_path(entry), entry.sha256) for entry in entries)
        records = ((f"the record file of {entry.name}", host.records_path(entry), entry.records) for entry in scored)
        scores = _scores(host, evaluate_again(host, entries, engine, threads=threads), len(entries), progress)
        checks = [
            seal,
            journal,
            AuditCheck("quotas", _first(_quotas(host, entries, amendments))),
            AuditCheck("files", _first(_other_bytes(files))),
            AuditCheck("records", _first(_other_bytes(records))),
            AuditCheck("scores", _first(scores)),
        ]
        if all(check.ok for check in checks):
            checks += [AuditCheck("answers", _first(_answers(host, scored))), _boards(host)]
        return checks


def _require_whole(folder: Path) -> None:
    """Tell an auditor who has only what was published, or only a part, what an audit needs."""
    needed = (RULES, f"private/{SECRETS}", f"public/{SEAL}")
    missing = [name for name in needed if not (folder / name).exists()]
    if missing and missing != list(needed[1:]):  # a host who has not sealed yet is told so
        what = "an audit needs the whole folder of the challenge, private/ included"
        hint = "With public/ alone, the snippet in docs/howto/challenge/teams.md checks the reveal"
        raise DataError(what, got=f"a folder without {join_names(missing, 3)}", hint=hint)


def _first(problems: Iterable[str]) -> str:
    return join_names(list(problems), 3)


def _public_rules(host: Host) -> str:
    path = host.challenge.published / PUBLIC_RULES
    try:
        published = json.loads(read_limited(path, LARGEST))
    except (OSError, ValueError, NeucoError) as error:
        return f"{path.name} cannot be read: {error}"
    same = _is_of(published, public_rules(load_rules(host.challenge.folder)))
    return "" if same else f"{path.name} is not what the rules say"


def _is_of(published: Any, rules: Any) -> bool:
    """Whether all is the same, but for fields that neuco has learned since."""
    if not (isinstance(published, dict) and isinstance(rules, dict)):
        return bool(published == rules)
    same = all(name in rules and _is_of(value, rules[name]) for name, value in published.items())
    return same and not any(isinstance(rules[name], dict) for name in rules.keys() - published.keys())


def _edited(entries: list[JournalEntry], amendments: list[Amendment]) -> Iterator[str]:
    """Entries that no longer follow from those before, and verdicts that none of ours can have written.

    What nobody can make again is only looked at as far as something depends on it: ``finished`` says when an answer
    was shown, so it must have passed; ``answer_number`` orders the answers, which ``_answers`` plays again, so it must
    be one answer's. ``attempts``, ``worker`` and ``detail`` decide nothing.
    """
    if broken := broken_link(entries, amendments):
        yield f"{broken} was changed, or does not follow from the one before"
    now, numbers = datetime.now(UTC), Counter(entry.answer_number for entry in entries)
    for entry in entries:
        if entry.open:
            continue  # which the check of scores names
        scored = entry.state == "scored"
        if entry.state not in ("scored", "failed") or scored != (entry.code == "scored"):
            yield f"{entry.name} is {entry.state}, with the code {entry.code}"
        if not scored and (entry.feedback or entry.records is not None or entry.rung is not None):
            yield f"{entry.name} is not scored, and has an answer"
        if not _has_passed(entry.finished, now):
            yield f"{entry.name} was finished at {entry.finished}"
        if entry.answer_number is None or numbers[entry.answer_number] > 1:
            yield f"{entry.name} is answer {entry.answer_number}, which is no number of its own"


def _amended(host: Host, amendments: list[Amendment]) -> Iterator[str]:
    """Amendments that none of ours can have made, or that are not the published ones."""
    path, rules = host.challenge.published / AMENDMENTS, load_rules(host.challenge.folder)
    if (path.read_bytes() if path.exists() else b"[]\n") != published_amendments(amendments):
        yield f"{AMENDMENTS} is not what the journal has"
    for before, one in zip([None, *amendments], amendments, strict=False):
        if before and one.made < before.made:
            yield f"amendment {one.number} was made before the one that it follows"
        if one.phase not in rules.phases or one.old_end != rules.phase(one.phase).end:
            yield f"amendment {one.number} is of another deadline than phase {one.phase} had"
            continue
        if one.end <= max(one.old_end, one.made) or one.made > datetime.now(UTC):
            yield f"amendment {one.number}, made at {one.made}, moves {one.old_end} to {one.end}"
        rules = rules.amended([one])


def _has_passed(time: str | None, now: datetime) -> bool:
    try:
        return datetime.fromisoformat(time or "") <= now
    except (ValueError, TypeError):  # no time, or one without a zone
        return False


def _quotas(host: Host, entries: list[JournalEntry], amendments: list[Amendment]) -> Iterator[str]:
    """A deadline is what it was when the journal took a submission in: a later amendment lets in nothing."""
    counts: Counter[tuple[str, ...]] = Counter()
    sealed = load_rules(host.challenge.folder)
    for entry in entries:
        if entry.team not in host.challenge.teams:
            yield f"{entry.name} is of {entry.team!r}, which is no team of the rules"
        then = sealed.amended(one for one in amendments if one.follows < entry.id)
        if not then.phase(entry.phase).open_at(datetime.fromisoformat(entry.received)):
            yield f"{entry.name} came while the phase was not open"
        if entry.code not in UNREAD:
            counts[entry.team, entry.phase] += 1
            counts[entry.team, entry.phase, entry.received[:10]] += 1
    for (team, name, *day), count in counts.items():
        phase = host.challenge.phase(name)
        if count > (phase.per_day if day else phase.in_all):
            yield f"{team} has {count} submissions in {name}{' on ' + day[0] if day else ''}"


def _other_bytes(files: Iterable[tuple[str, Path, str | None]]) -> Iterator[str]:
    for name, path, sha256 in files:
        try:
            if hash_file(path) != sha256:
                yield f"{name} has other bytes"
        except OSError as error:
            yield f"{name}: {error.strerror}"


def _scores(
    host: Host, again: Iterable[tuple[JournalEntry, Verdict | NeucoError]], total: int, progress: Progress | None
) -> Iterator[str]:
    """Bit for bit: on another kind of processor the last digits may differ, and this says so of every submission."""
    for number, (entry, verdict) in enumerate(again, 1):
        if isinstance(verdict, NeucoError):
            yield f"{entry.name}: {verdict}"
        elif entry.open:
            yield f"{entry.name} was not evaluated"
        else:
            code, scores = verdict.code, dict(verdict.scores)
            if (code, scores) != (entry.code, entry.scores):
                yield f"{entry.name} gives {code} {scores}, not {entry.code} {entry.scores}"
            elif verdict.records and not _same_but_provenance(verdict.records, host, entry):
                yield f"{entry.name} has other scores by split"
        if progress:
            progress(number / total, "submissions")


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
        if expected != entry.feedback:
            yield f"{entry.name} was told {entry.feedback}, not {expected}"
        elif rung != entry.rung:
            yield f"{entry.name} has the rung {entry.rung}, not {rung}"
        if rung == entry.id:
            rungs[ladder] = Rung(expected["mean_q"], entry.id, records)


def _boards(host: Host) -> AuditCheck:
    files = public_files(host)
    published = {path: path.read_bytes() for path in files if path.exists()}
    if not published:
        return AuditCheck("boards", skipped="the challenge is not closed yet, so nothing was published")
    wrong = [path.name for path, data in files.items() if published.get(path) != data]
    return AuditCheck("boards", _first(f"{name} is not what follows from the submissions" for name in wrong))
