"""What changed between two boards of a suite, and why: own scores, newcomers, leavers, weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuco_core.jsonio import digest
from neuco_core.text import clean

Board = Mapping[str, Any]
RULES = ("new-task", "gone-task", "task-version", "rule")


WORDS = {
    "new-method": "{subject} is new, at rank {after}",
    "gone-method": "{subject}, at rank {before} before, is no longer ranked",
    "moved": "{subject} moves from rank {before} to {after}",
    "rescored": "{subject} has new scores",
    "new-task": "task {subject} is new",
    "gone-task": "task {subject} is no longer used",
    "task-version": "task {subject} is now version {after}, was {before}",
    "rule": "the rule of ranking is another",
    "details": "no rank changed, but {subject} did",
}


@dataclass(frozen=True)
class Change:
    """One change: ``kind`` is new-method, gone-method, new-task, gone-task, task-version, rule, rescored or moved.

    If there is none of these, it is ``details``, with the first place where the boards differ.
    """

    kind: str
    subject: str
    before: int | None = None
    after: int | None = None
    why: str = ""

    def __str__(self) -> str:
        words = WORDS[self.kind].format(**vars(self))
        return clean(f"{words}: {self.why}" if self.why else words)

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value not in (None, "")}


def is_change(value: object) -> bool:
    """Whether it is what ``to_json`` gives: read from a file, it may be anything."""
    if not isinstance(value, dict) or not {"kind", "subject"} <= value.keys() <= set(vars(Change("", ""))):
        return False
    texts = all(isinstance(value.get(name, ""), str) for name in ("kind", "subject", "why"))
    return texts and value["kind"] in WORDS and all(isinstance(value.get(n, 0), int) for n in ("before", "after"))


def changes(old: Board, new: Board) -> list[Change]:
    """All changes, causes first."""
    before, after = _ranks(old), _ranks(new)
    found = _task_changes(old, new)
    if old["ranking"] != new["ranking"]:
        found.append(Change("rule", "ranking", why=f"{old['ranking']['words']} → {new['ranking']['words']}"))
    found += [Change("new-method", name, after=after[name]) for name in after if name not in before]
    found += [Change("gone-method", name, before[name], why=_lacks(new, name)) for name in before if name not in after]
    rescored = {name: why for name in after if name in before and (why := _rescored(old, new, name))}
    found += [Change("rescored", name, before[name], after[name], why) for name, why in rescored.items()]
    rules = [change for change in found if change.kind in RULES]
    for name in after:
        if name in before and before[name] != after[name]:
            why = _by_rules(rules) if rules else _reason(name, before, after, set(rescored))
            found.append(Change("moved", name, before[name], after[name], why))
    if not found and old != new:
        # ``cells`` is a digest of all records, which names nothing; it counts only where nothing else differs.
        before_it, after_it = ({**board, "cells": None} for board in (old, new))
        found.append(Change("details", first_difference(before_it, after_it) or "cells"))
    return found


def first_difference(old: Any, new: Any, place: str = "") -> str:
    """The first place where two boards differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                return first_difference(old.get(key), new.get(key), f"{place}.{key}" if place else str(key))
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            if a != b:
                return first_difference(a, b, f"{place}[{index}]")
    return place


def _by_rules(rules: Sequence[Change]) -> str:
    """With other tasks or another rule every rank is counted anew; who passed whom explains nothing."""
    return "; ".join(str(change) for change in rules[:3]) + ("; …" if len(rules) > 3 else "")


def _task_changes(old: Board, new: Board) -> list[Change]:
    before = {task["id"]: task["version"] for task in old["tasks"]}
    after = {task["id"]: task["version"] for task in new["tasks"]}
    found = [Change("new-task", name) for name in after if name not in before]
    found += [Change("gone-task", name) for name in before if name not in after]
    both = [name for name in after if name in before and before[name] != after[name]]
    return found + [Change("task-version", name, before[name], after[name]) for name in both]


def _ranks(board: Board) -> dict[str, int]:
    return {row["method"]: row["rank"] for row in board["rows"]}


def _lacks(board: Board, name: str) -> str:
    """Why a method that was ranked is not any more, in the board's own words."""
    for row in board["incomplete"]:
        if row["method"] == name:
            return "; ".join(f"{task}: {cell['reason']}" for task, cell in sorted(row["lacks"].items()))
    return "it has no records"


def _rescored(old: Board, new: Board, name: str) -> str:
    before, after = (_scores(board, name) for board in (old, new))
    tasks = [task for task in sorted(after) if task in before and after[task] != before[task]]
    return "; ".join(f"{task} Q {before[task][0]:.2f} → {after[task][0]:.2f}" for task in tasks)


def _scores(board: Board, name: str) -> dict[str, tuple[float, str]]:
    row = next(row for row in board["rows"] if row["method"] == name)
    return {task: (score["q"], score["fingerprint"]) for task, score in row["scores"].items()}


def _reason(name: str, before: Mapping[str, int], after: Mapping[str, int], rescored: set[str]) -> str:
    """Who passed it or fell behind it; if nobody's scores explain it, the pool's weights do."""
    if name in rescored:
        return "its own scores changed"
    passed = [
        other for other in after if after[other] < after[name] and before.get(other, len(before) + 1) > before[name]
    ]
    gone = [other for other in before if before[other] < before[name] and other not in after]
    behind = [other for other in before if before[other] < before[name] and after.get(other, 0) > after[name]]
    causes = [f"{other} is new" for other in passed if other not in before]
    causes += [f"{other} has new scores" for other in (*passed, *behind) if other in rescored]
    causes += [f"{other} is no longer ranked" for other in gone]
    swapped = [other for other in (*passed, *behind) if other in before and other not in rescored]
    if swapped:
        causes.append(f"the weights changed with the pool, and it swapped with {', '.join(swapped)}")
    return "caused by others: " + "; ".join(causes) if causes else "caused by others: ties or weights changed"


def extend(history: Sequence[Mapping[str, Any]], old: Board | None, new: Board) -> list[dict[str, Any]]:
    """The history with the new board as its last version; unchanged if it is that already.

    Each entry holds the digest of the one before, so that an edit of the past is seen.
    """
    entries = [dict(entry) for entry in history]
    mark = digest(new)
    if entries and entries[-1]["board"] == mark:
        return entries
    said = [change.to_json() for change in changes(old, new)] if old else []
    previous = digest(entries[-1]) if entries else ""
    entry = {"version": len(entries) + 1, "board": mark, "ranks": _ranks(new), "changes": said, "previous": previous}
    return [*entries, entry]


def broken(history: Sequence[Mapping[str, Any]], board: Board) -> str:
    """What is wrong with the history of a board, in words; empty if nothing is."""
    for place, entry in enumerate(history):
        if entry["version"] != place + 1:
            return f"version {place + 1} is called {entry['version']}"
        if entry["previous"] != (digest(history[place - 1]) if place else ""):
            return f"what stands before version {place + 1} is not what stood there when it was written"
    if not history or history[-1]["board"] != digest(board):
        return "it does not end with this board"
    if history[-1]["ranks"] != _ranks(board):
        return "the ranks of its last version are not those of the board"
    return ""
