"""The end of a challenge: exact boards, all submissions and the secrets become public, for anybody to check."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from neuco_core.boards.model import plain
from neuco_core.errors import DataError, UsageError
from neuco_core.fetch.cache import hash_file
from neuco_core.files import write_atomic
from neuco_core.jsonio import dump
from neuco_core.text import counted, join_names
from neuco_extensions.challenge.board import final_board, history
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import JournalEntry
from neuco_extensions.challenge.rules import RULES
from neuco_extensions.challenge.seal import REVEAL, contents, read_secrets


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
        "journal": entries[-1].chain if entries else "",
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
