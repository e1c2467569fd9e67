"""The end of a challenge: exact boards, all submissions and the secrets become public, for anybody to check."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from neuco_core.boards.model import Board, plain
from neuco_core.errors import DataError, UsageError
from neuco_core.files import write_atomic
from neuco_core.jsonio import dump
from neuco_core.text import counted, join_names
from neuco_extensions.challenge.board import final_board, history
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import Submission
from neuco_extensions.challenge.rules import RULES, Challenge
from neuco_extensions.challenge.seal import contents, read_secrets

REVEAL = "reveal.json"


def close(host: Host, *, now: datetime | None = None) -> list[Path]:
    """Write the public files of a challenge whose phases are over; gives their paths."""
    moment = now or datetime.now(UTC)
    still = [name for name, phase in host.challenge.phases.items() if moment < phase.end]
    if still:
        end = max(host.challenge.phases[name].end for name in still)
        raise UsageError(f"phase {still[0]} is not over", where=host.challenge.folder, expected=f"a time after {end}")
    waiting = [own for own in host.journal.submissions() if own.open]
    if waiting:
        hint = f"Run: neuco challenge evaluate {host.challenge.folder}"
        raise UsageError(f"{counted(len(waiting), 'submission')} not evaluated yet", hint=hint)
    files = public_files(host)
    moved = [path.name for path, data in files.items() if path.exists() and path.read_bytes() != data]
    if moved:
        hint = "To publish what is true now, tell everybody why, remove them, and close again"
        raise DataError(
            f"published, and no longer true: {join_names(moved, 3)}", where=host.challenge.published, hint=hint
        )
    for path, data in files.items():
        write_atomic(path, data)
    host.journal.checkpoint()  # a server may run on, and the folder is copied for auditors now
    return list(files)


def public_files(host: Host) -> dict[Path, bytes]:
    """All that is published at the end, by path: a pure function of the challenge's folder."""
    public = host.challenge.published
    files = {public / REVEAL: dump(_reveal(host))}
    files[public / "submissions.json"] = dump([submission(own) for own in host.journal.submissions()])
    for phase in host.challenge.phases:
        board: Board = final_board(host, phase)
        files[public / f"board-{phase}.json"] = dump(plain(board))
        files[public / f"history-{phase}.json"] = dump(plain(history(host, phase, final=True)))
    return files


def _reveal(host: Host) -> dict[str, Any]:
    """What the commitments are of, with their salts; the last link of the journal, and the rules to the last byte."""
    known = read_secrets(host.challenge)
    last = host.journal.submissions()[-1:]
    return {
        "challenge": host.challenge.id,
        "contents": contents(host.challenge, known.seeds),
        "salts": known.salts,
        "journal": last[0].chain if last else "",
        "rules": rules_hash(host.challenge),
    }


def rules_hash(challenge: Challenge) -> str:
    """Of the file itself, which also has the teams."""
    return hashlib.sha256(Path(challenge.folder, RULES).read_bytes()).hexdigest()


def submission(own: Submission) -> dict[str, Any]:
    """A submission as everybody may see it at the end."""
    shown = ("id", "team", "phase", "sha256", "size", "public", "received", "source", "chain", "state", "code")
    more = ("place", "feedback", "scores", "records", "rung")
    return msgspec.to_builtins({name: getattr(own, name) for name in (*shown, *more)})  # type: ignore[no-any-return]
