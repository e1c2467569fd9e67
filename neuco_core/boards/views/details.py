"""What stands behind a board, for a terminal: other rules, who changes places, groups, and what tasks are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Board = Mapping[str, Any]
AGGREGATIONS = {"mean_rank": "mean rank", "mean_q": "mean Q", "mean_score": "mean score", "borda": "Borda"}


@dataclass(frozen=True)
class Section:
    """A small table with a title. ``words`` are the columns of text; the others are numbers."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)

    @property
    def numbers(self) -> set[int]:
        return set(range(len(self.headers))) - set(self.words)


def details(board: Board) -> list[Section]:
    """All that there is to tell of a board; standings, which have no scores, have nothing more."""
    if not board["rows"] or "variants" not in board:
        return []
    found = [_other_rules(board), *_groups(board), *_moves(board), _tasks(board), *_redundant(board)]
    return [section for section in found if section.rows]


def _other_rules(board: Board) -> Section:
    """The rank of each method under each rule; a mark where it is not the board's."""
    names = [variant["name"] for variant in board["variants"]]
    other_tasks = any(row.get("rank_other_tasks") for row in board["rows"])
    headers = ("method", "rank", *names, *AGGREGATIONS.values(), *["other tasks"] * other_tasks)
    rows = []
    for row in board["rows"]:
        ranks = [variant["ranks"][row["method"]] for variant in board["variants"]]
        ranks += [row["ranks"][name] for name in AGGREGATIONS]
        cells = [str(place) + "*" * (place != row["rank"]) for place in ranks]
        cells += [_range(row.get("rank_other_tasks"))] * other_tasks
        rows.append((row["method"], str(row["rank"]), *cells))
    return Section("Ranks by other rules (* is not the board's rank)", headers, tuple(rows))


def _groups(board: Board) -> list[Section]:
    if board["groups"] is None:
        return []
    rows = tuple((", ".join(group),) for group in board["groups"])
    return [Section("Cannot be told apart, all pairs judged at once", ("methods",), rows)]


def _moves(board: Board) -> list[Section]:
    found = []
    for noun in ("method", "task"):
        rows = tuple(
            (entry["left_out"], ", ".join(f"{name} {old} → {new}" for name, (old, new) in entry["moves"].items()))
            for entry in board[f"without_{noun}"]
        )
        found.append(Section(f"Who changes places without one {noun}", ("left out", "moves"), rows, (0, 1)))
    return found


def _tasks(board: Board) -> Section:
    headers = ("task", "metric", "weight", "pairs apart", "noise", "agrees with the board", "negative Q")
    rows = [
        (
            task["id"],
            task["metric"] if task["greater_is_better"] else f"{task['metric']}, less is better",
            _number(task["weight"]),
            "–" if task["pairs_apart"] is None else f"{task['pairs_apart']:.0%}",
            _number(task["noise"]),
            _number(task["agreement"]),
            "–" if task["negative"] is None else str(task["negative"]),
        )
        for task in board["tasks"]
    ]
    return Section("What the tasks are worth", headers, tuple(rows), (0, 1))


def _redundant(board: Board) -> Sequence[Section]:
    rows = tuple((*entry["tasks"], _number(entry["correlation"])) for entry in board["redundant"])
    return [Section("Tasks that order methods almost alike", ("task", "task", "correlation"), rows, (0, 1))]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _range(value: Sequence[int] | None) -> str:
    return "–" if value is None else f"{value[0]}–{value[1]}"
