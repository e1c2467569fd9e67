"""What changed between two boards of a suite, and why: own scores, newcomers, leavers, weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from neuco_core.boards.formatting import in_cell, in_row, why_unranked, with_values
from neuco_core.boards.model import Board, Part, plain
from neuco_core.text import clean

WORDS = {
    "new-method": "{subject} is new, at rank {after}",
    "gone-method": "{subject}, at rank {before} before, is no longer ranked",
    "moved": "{subject} moves from rank {before} to {after}",
    "rescored": "{subject} has new scores",
    "new-task": "task {subject} is new",
    "gone-task": "task {subject} is no longer used",
    "task-version": "task {subject} is now version {after}, was {before}",
    "new-column": "column {subject} is new",
    "gone-column": "column {subject} is gone",
    "rule": "the ranking rule changed",
    "details": "no rank changed, only other parts of the file (the first: {subject})",
}


class Change(Part, frozen=True, omit_defaults=True):
    """One change; its kind is one of ``WORDS``. ``details`` names the first place where the boards differ."""

    kind: str
    subject: str
    before: int | None = None
    after: int | None = None
    why: str = ""

    def __post_init__(self) -> None:
        if self.kind not in WORDS:
            raise ValueError(f"no kind of change is called {self.kind!r}")

    def __str__(self) -> str:
        sentence = WORDS[self.kind].format(subject=self.subject, before=self.before, after=self.after)
        return clean(f"{sentence}: {self.why}" if self.why else sentence)


def changes(old: Board, new: Board) -> list[Change]:
    """All changes, causes first."""
    causes = [*_listed("task", {t.id: t.version for t in old.tasks}, {t.id: t.version for t in new.tasks})]
    if (old.kind, old.options, old.rule) != (new.kind, new.options, new.rule):
        causes.append(Change("rule", "ranking", why=f"{old.rule} → {new.rule}"))
    columns = ({c.label: 1 for c in with_values(board.columns, board.rows)} for board in (old, new))
    listed = [*causes, *_listed("column", *columns), *_moves(old.ranks, new, causes, _rescored(old, new))]
    if not listed and old != new:
        # ``cells`` is a digest of all records, which names nothing; it counts only where nothing else differs.
        before_it, after_it = (plain(replace(board, cells="")) for board in (old, new))
        listed.append(Change("details", first_difference(before_it, after_it) or "cells"))
    return listed


def first_difference(old: Any, new: Any, field: str = "") -> str:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                return first_difference(old.get(key), new.get(key), f"{field}.{key}" if field else str(key))
    if isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            if a != b:
                return first_difference(a, b, f"{field}[{index}]")
    return field


def _listed(noun: str, before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[Change]:
    """Tasks or columns that came, went, or have another version."""
    yield from (Change(f"new-{noun}", name) for name in after if name not in before)
    yield from (Change(f"gone-{noun}", name) for name in before if name not in after)
    both = [name for name in after if name in before and before[name] != after[name]]
    yield from (Change(f"{noun}-version", name, before[name], after[name]) for name in both)


def _moves(
    before: Mapping[str, int], board: Board, causes: Sequence[Change], rescored: Mapping[str, str]
) -> list[Change]:
    after, rows = board.ranks, {row.method: row for row in board.rows}
    moves = []
    for name in (m for m in after if m not in before):
        values = [f"{c.label} {in_row(c, rows[name])}" for c in with_values(board.columns, (rows[name],))]
        moves.append(Change("new-method", name, after=after[name], why=", ".join(values)))
    gone = {m: why_unranked(rows[m]) if m in rows else "it has no records" for m in before if m not in after}
    moves += [Change("gone-method", name, before[name], why=why) for name, why in gone.items()]
    moves += [Change("rescored", m, before[m], after[m], why) for m, why in rescored.items()]
    # With other tasks or another rule every rank is computed anew; who passed whom explains nothing.
    cause = "; ".join([*map(str, causes[:3]), "…"] if len(causes) > 3 else map(str, causes))
    for name in after:
        if name in before and before[name] != after[name]:
            why = cause or _reason(name, before, after, rescored)
            moves.append(Change("moved", name, before[name], after[name], why))
    return moves


def _rescored(old: Board, new: Board) -> dict[str, str]:
    """By method, what is new about its cells, and about its row for that reason."""
    rows = {row.method: row for row in old.ranked}
    score = new.cell_columns[0]
    rescored = {}
    for after in new.ranked:
        before = rows.get(after.method)
        if before is None:
            continue
        parts = []
        for task in sorted(before.cells.keys() & after.cells.keys()):
            was, now = before.cells[task], after.cells[task]
            # A score is another one by its record, or by the score itself. Ranks and the like depend on others.
            if (was.fingerprint, was.values.get(score.key)) != (now.fingerprint, now.values.get(score.key)):
                parts.append(f"{task} {score.label} {in_cell(score, before, task)} → {in_cell(score, after, task)}")
        if not parts:
            continue
        shown = [(c.label, in_row(c, before), in_row(c, after)) for c in new.columns]
        parts += [f"{label} {old_text} → {text}" for label, old_text, text in shown if old_text != text]
        rescored[after.method] = "; ".join(parts)
    return rescored


def _reason(name: str, before: Mapping[str, int], after: Mapping[str, int], rescored: Mapping[str, str]) -> str:
    """Who passed it or fell behind it; if nobody's scores explain it, the pool's weights do."""
    if name in rescored:
        return "its own scores changed"
    behind_before = {other for other in after if before.get(other, len(before) + 1) > before[name]}
    passed = [other for other in after if after[other] < after[name] and other in behind_before]
    gone = [other for other in before if before[other] < before[name] and other not in after]
    behind = [other for other in before if before[other] < before[name] and after.get(other, 0) > after[name]]
    causes = [f"{other} is new" for other in passed if other not in before]
    causes += [f"{other} has new scores" for other in (*passed, *behind) if other in rescored]
    causes += [f"{other} is no longer ranked" for other in gone]
    swapped = [other for other in (*passed, *behind) if other in before and other not in rescored]
    if swapped:
        causes.append(f"the weights changed with the pool, and it swapped with {', '.join(swapped)}")
    return "caused by others: " + "; ".join(causes) if causes else "caused by others: ties or weights changed"
