"""Submissions to GEO-Bench in a pull request: data only, so they are checked here, and placed on the board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from neuco_core.boards.formatting import RANK, in_row, show
from neuco_core.boards.model import Board
from neuco_core.contract.contract import Finding, run_checks
from neuco_core.errors import NeucoError
from neuco_extensions.geobench.checks import SubmissionSubject
from neuco_extensions.geobench.published import of_submissions, row_id
from neuco_extensions.geobench.submission import GeobenchSubmission, list_submissions

CLAIM = "nothing here was run: the numbers are the submitter's"


def check_submissions(base: Path, head: Path, names: Sequence[str]) -> Iterator[Finding]:
    """Findings of each submission that a pull request touches, and where its rows would stand."""
    others = {item.about.id: item for item in list_submissions(base / "registry")} if names else {}
    for name in names:
        folder = head / "registry/geobench" / name
        if not folder.is_dir():
            words = "it goes: its rows leave the board"
            yield Finding("submission-removed", name, "warning", words, "Say in the pull request why")
            continue
        subject = SubmissionSubject(folder)
        findings = run_checks(subject.noun, subject)
        yield from (_without(finding, head) for finding in findings)
        if all(finding.status != "failed" for finding in findings):
            yield from _standing(subject.submission, others)


def _without(finding: Finding, head: Path) -> Finding:
    return Finding(finding.check, finding.subject, finding.status, finding.detail.replace(str(head), "."), finding.cure)


def _standing(own: GeobenchSubmission, others: dict[str, GeobenchSubmission]) -> Iterator[Finding]:
    try:
        published = of_submissions([*(item for name, item in others.items() if name != own.about.id), own])
        board = published.board() if published else None
    except NeucoError as error:
        yield Finding("submission-place", own.about.id, "failed", str(error))
        return
    if board is None:
        yield Finding("submission-place", own.about.id, "warning", "no dataset is one of GEO-Bench's: no board has it")
        return
    for backbone in own.backbones:
        yield Finding("submission-place", own.about.id, "ok", f"{_place(board, own.about.id, backbone)}; {CLAIM}")


def _place(board: Board, name: str, backbone: str) -> str:
    (row,) = (row for row in board.rows if row.method == row_id(name, backbone))
    first = board.columns[1]
    told = [f"{column.label} {in_row(column, row)}" for column in board.columns[1:] if column.key in row.values]
    if row.rank is None:
        return f"{backbone}: not ranked by {first.label}, lacks {', '.join(row.lacks)}; {', '.join(told)}"
    rank = f"{row.rank} ({show(RANK, row.intervals['rank'])})" if "rank" in row.intervals else str(row.rank)
    return f"{backbone}: rank {rank} of {len(board.ranked)} by {first.label}; {', '.join(told)}"
