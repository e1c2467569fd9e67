"""A board as text: Markdown, LaTeX or cells for a terminal, which say by which rule; and CSV, which is for machines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuco_core.text import clean

VALUES = {"score": ("mean", 3), "q": ("q", 2), "rank": ("rank", 0)}
PLAIN = (
    *("method", "baseline", "dim", "rank", "rank_low", "rank_high", "best"),
    *("weighted_rank", "mean_q", "mean_score", "borda", "reason"),
)
PUBLISHED = {
    "scores": "Mean scores as others published them, ranked here; with no splits known, Q is 100 times the score.",
    "standings": "Places and values as others published them.",
}
LESS = "↓"
Board = Mapping[str, Any]


@dataclass(frozen=True)
class Grid:
    """Headers, rows of text, and what must be said below them. ``plain`` is the same board for machines."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    plain: tuple[tuple[str, ...], ...] = ()


def grid(board: Board, values: str = "score", titles: Mapping[str, str] | None = None) -> Grid:
    """A board as cells; ``values`` is what stands under each task: score, q or rank."""
    titles = titles or {}
    tasks = [task["id"] for task in board["tasks"]]
    columns = [column for column in _COLUMNS if any(row.get(column[1]) is not None for row in board["rows"])]
    shown = [task["id"] + f" {LESS}" * (not task["greater_is_better"]) for task in board["tasks"]]
    headers = ("rank", "method", *(name for name, *_ in columns), *shown)
    rows = [
        (
            str(row["rank"]),
            titles.get(row["method"], row["method"]) + (" (baseline)" if row["baseline"] else ""),
            *(show(row.get(key)) for _, key, show in columns),
            *(_score(row["scores"][task], values) for task in tasks),
        )
        for row in board["rows"]
    ]
    said = tuple(_one_line(note) for note in notes(board, values))
    return Grid(headers, tuple(rows), said, _plain(board, values))


def notes(board: Board, values: str = "score") -> list[str]:
    """The rule, the weights, and what is not ranked with the reason."""
    found = []
    if "published" in board:
        source, kind = board["published"]["source"], board["published"]["kind"]
        found.append(f"{PUBLISHED[kind]} Source: {source}")
    if "ranking" in board:
        found.append(f"Ranking: {board['ranking']['words']}.")
        known = [(task["id"], task["weight"]) for task in board["tasks"] if task["weight"] is not None]
        known += [("ghost task", board["ghost_weight"])] if board["ghost_weight"] else []
        weights = ", ".join(f"{name} {weight:.3f}" for name, weight in known)
        found.append(f"Weights: {weights}." if weights else "Nobody is ranked.")
        found += [f"Values under the tasks: {values}."] if board["rows"] else []
    if less := [task["id"] for task in board["tasks"] if not task["greater_is_better"]]:
        found.append(f"{LESS} less is better, and the mean score counts it as negative: {', '.join(less)}.")
    if board.get("uncertainty"):
        found.append(f"Intervals: {board['uncertainty']['level']:.0%}, {board['uncertainty']['how']}.")
    elif board["rows"]:
        found.append("No intervals: they need scores of the same splits from all methods, at least two.")
    for row in board.get("incomplete", ()):
        found.append(f"Not ranked: {row['method']} lacks {_why(row)}")
    for entry in board.get("unused_tasks", ()):
        found.append(f"Not counted: task {entry['task']}, which {', '.join(entry['lacking'])} lack")
    return found


def reasons(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Why an incomplete row lacks tasks: the tasks, status and reason, each reason once."""
    found: dict[tuple[str, str], list[str]] = {}
    for task, cell in sorted(row["lacks"].items()):
        found.setdefault((cell["status"], cell["reason"]), []).append(task)
    every = len(row["lacks"]) + len(row["scores"])
    return [("all tasks" if len(tasks) == every else ", ".join(tasks), *why) for why, tasks in found.items()]


def _why(row: Mapping[str, Any]) -> str:
    return "; ".join(f"{tasks}: {status}, {reason}" for tasks, status, reason in reasons(row))


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _plain(board: Board, values: str) -> tuple[tuple[str, ...], ...]:
    """The header and a row for each method, ranked or not. The columns before the tasks are the same on every board."""
    tasks = [task["id"] for task in board["tasks"]]
    key = VALUES[values][0]
    found = [(*PLAIN, *tasks)]
    for row in (*board["rows"], *board.get("incomplete", ())):
        low, high = row.get("rank_interval") or (None, None)
        known = {**row, "rank_low": low, "rank_high": high, "reason": _one_line(_why(row)) if "lacks" in row else None}
        scores = row.get("scores", {})
        cells = [known.get(name) for name in PLAIN] + [scores.get(task, {}).get(key) for task in tasks]
        found.append(tuple(map(_bare, cells)))
    return tuple(found)


def _bare(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def to_csv(grid: Grid) -> str:
    """Comma-separated values: plain numbers, nothing where nothing is known; the notes are not data and stay out."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(grid.plain)
    return text.getvalue()


def to_markdown(grid: Grid) -> str:
    lines = ["| " + " | ".join(map(_markdown, row)) + " |" for row in (grid.headers, *grid.rows)]
    lines.insert(1, "|" + "|".join("---" if i == 1 else "---:" for i in range(len(grid.headers))) + "|")
    return "\n".join([*lines, "", *(f"- {_markdown(note)}" for note in grid.notes)]) + "\n"


def to_latex(grid: Grid) -> str:
    """A tabular for the booktabs package; the notes are comments above it."""
    columns = "rl" + "r" * (len(grid.headers) - 2)
    lines = [" & ".join(map(_latex, row)) + r" \\" for row in (grid.headers, *grid.rows)]
    notes = [f"% {' '.join(note.split())}" for note in grid.notes]
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
    return "\n".join([*notes, *body, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _score(score: Mapping[str, Any], values: str) -> str:
    key, digits = VALUES[values]
    return "–" if score[key] is None else f"{score[key]:.{digits}f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _range(value: Sequence[int] | None) -> str:
    return "–" if value is None else f"{value[0]}–{value[1]}"


_COLUMNS = (
    ("95 %", "rank_interval", _range),
    ("best", "best", _percent),
    ("weighted rank", "weighted_rank", _number),
    ("mean Q", "mean_q", _number),
    ("mean score", "mean_score", _number),
    ("Borda", "borda", _number),
)


def _markdown(text: str) -> str:
    """Names are strangers' words: no markup, no second line, no cell of their own."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&$!])", r"\\\1", " ".join(text.split()))


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "λ": r"$\lambda$",
    "↓": r"$\downarrow$",
}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(char, f"\\{char}" if char in "&%$#_{}" else char) for char in " ".join(text.split()))
