"""What changed between two boards of a suite, and why: own scores, newcomers, leavers, weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuco_core.leaderboard.canonical import clean, digest

Board = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """One change: ``kind`` is new-method, gone-method, new-task, gone-task, task-version, rule, rescored or moved."""

    kind: str
    subject: str
    before: int | None = None
    after: int | None = None
    why: str = ""

    def __str__(self) -> str:
        words = {
            "new-method": f"{self.subject} is new, at rank {self.after}",
            "gone-method": f"{self.subject}, at rank {self.before} before, is no longer ranked",
            "moved": f"{self.subject} moves from rank {self.before} to {self.after}",
            "rescored": f"{self.subject} has new scores",
            "new-task": f"task {self.subject} is new",
            "gone-task": f"task {self.subject} is no longer used",
            "task-version": f"task {self.subject} is now version {self.after}, was {self.before}",
            "rule": "the rule of ranking is another",
        }[self.kind]
        return clean(f"{words}: {self.why}" if self.why else words)

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value not in (None, "")}


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
    for name in after:
        if name in before and before[name] != after[name]:
            found.append(Change("moved", name, before[name], after[name], _reason(name, before, after, set(rescored))))
    return found


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


def extend(history: list[dict[str, Any]], old: Board | None, new: Board) -> list[dict[str, Any]]:
    """The history with the new board as its last version; unchanged if it is that already."""
    mark = digest(new)
    if history and history[-1]["board"] == mark:
        return history
    said = [change.to_json() for change in changes(old, new)] if old else []
    entry = {"version": len(history) + 1, "board": mark, "ranks": _ranks(new), "changes": said}
    return [*history, entry]
