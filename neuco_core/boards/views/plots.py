"""Figures of a board, as SVG or PNG by the file's name: heat map, differences with groups, ranks over versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuco_core.boards.formatting import in_cell
from neuco_core.boards.model import Board, BoardRow, BoardTask
from neuco_core.boards.replay import Version
from neuco_core.errors import DependencyError, UsageError
from neuco_core.figures import blank, check_target, png, save

INK, SOFT, ACCENT = "#1d2733", "#aab4bf", "#0b7285"
# Ten colours, then the same ones with other lines: no two of 40 methods look alike.
COLOURS = tuple(f"C{number}" for number in range(10))
STYLES = ("-", "--", ":", "-.")
MANY, FIRST = 60, 10  # methods, of which lines are still told apart; and of more, those that are named


def heat_map(board: Board, axes: Any) -> None:
    """Methods × tasks; the number is the first column of the cells, the colour where it stands on the task."""
    rows, tasks, column = board.ranked, board.tasks, board.cell_columns[0]
    shades = [[_shade(board, task, row) for task in tasks] for row in rows]
    # Only the pale half of the colours, so that the numbers stay legible on all of them.
    axes.imshow(shades, aspect="auto", cmap="GnBu", vmin=-0.1, vmax=2)
    many = len(rows) > MANY  # numbers in hundreds of lines could not be read
    for i, row in enumerate(() if many else rows):
        for j, task in enumerate(tasks):
            axes.text(j, i, in_cell(column, row, task.id), ha="center", va="center", fontsize=7, color=INK)
    axes.set_xticks(range(len(tasks)), [_plain(task.id) for task in tasks], rotation=35, ha="right")
    named = [place - 1 for place in _whole(len(rows))] if many else range(len(rows))
    axes.set_yticks(named, [_plain(f"{rows[i].rank}  {rows[i].method}") for i in named])
    axes.tick_params(length=0)
    axes.set_title(f"{column.label}; the darker, the better on the task", loc="left", fontsize=9)


def _shade(board: Board, task: BoardTask, row: BoardRow) -> float:
    """From 0 to 1, the share of ranked methods that a method is at least as good as on a task."""
    own, sign, scores = board.score(row, task.id), 1 if task.greater_is_better else -1, board.scores(task.id)
    return sum(sign * score <= sign * own for score in scores) / len(scores) if own is not None else 0.0


def differences(board: Board, axes: Any) -> None:
    """Final ranks with their intervals; a bar joins methods that are indistinguishable. Of many, a band is drawn."""
    rows, known = board.ranked, board.groups is not None
    place = {row.method: len(rows) - i for i, row in enumerate(rows)}
    (_band if len(rows) > MANY else _lines)(board, place, axes)
    axes.set_xticks(_whole(len(rows)))
    axes.set_xlabel("final rank (dot)" + f" and its interval ({'band' if len(rows) > MANY else 'line'})" * known)
    joined = "Bars on the right join methods that are statistically indistinguishable"
    joined = joined if len(rows) <= MANY else "The wider the band, the less certain the rank"
    axes.set_title(joined if known else "Scores of splits are not known", loc="left", fontsize=9)
    axes.grid(axis="x", color="#e3e7eb")
    axes.set_axisbelow(True)


def _lines(board: Board, place: Mapping[str, int], axes: Any) -> None:
    for row in board.ranked:
        y = place[row.method]
        if interval := row.intervals.get("rank"):
            ends = [interval.low, interval.high]
            axes.plot(ends, [y, y], color=SOFT, linewidth=4, solid_capstyle="round", zorder=1)
        face = ACCENT if "rank" in row.intervals else "white"  # hollow where nothing is known
        axes.plot(row.rank, y, "o", color=ACCENT, markerfacecolor=face, markersize=5, zorder=2)
    for step, group in enumerate(board.groups or ()):
        x = len(place) + 1.2 + 0.35 * step
        axes.plot([x, x], [place[group[0]] + 0.2, place[group[-1]] - 0.2], color=INK, linewidth=3, clip_on=False)
    axes.set_yticks(list(place.values()), [_plain(method) for method in place])


def _band(board: Board, place: Mapping[str, int], axes: Any) -> None:
    """Lines for hundreds of methods would be a grey blot: one band from the lower to the upper ends."""
    rows = [row for row in board.ranked if "rank" in row.intervals]
    if rows:
        ends = [[getattr(row.intervals["rank"], side) for row in rows] for side in ("low", "high")]
        axes.fill_betweenx([place[row.method] for row in rows], *ends, color=SOFT, linewidth=0, alpha=0.6)
    axes.plot([row.rank for row in board.ranked], list(place.values()), color=ACCENT, linewidth=1.2)
    shown = [list(place)[rank - 1] for rank in _whole(len(place))]
    axes.set_yticks([place[method] for method in shown], [_plain(method) for method in shown])


def bump_chart(history: Sequence[Version], axes: Any) -> None:
    """The rank of each method over the versions of a board; those who share a rank stand side by side."""
    methods = sorted({method for entry in history for method in entry.ranks})
    shared = [_side_by_side(entry.ranks) for entry in history]
    ends: dict[tuple[int, int], list[str]] = {}
    for number, method in enumerate(methods):
        known = [index for index, entry in enumerate(history) if method in entry.ranks]
        versions = [history[index].version for index in known]
        colour, style = COLOURS[number % len(COLOURS)], STYLES[number // len(COLOURS) % len(STYLES)]
        last = history[known[-1]].ranks[method]
        if len(methods) > MANY and last > FIRST:  # only the first are told apart; the others are the ground
            axes.plot(versions, [shared[index][method] for index in known], color=SOFT, linewidth=0.4, zorder=0)
            continue
        places = [shared[index][method] for index in known]
        axes.plot(versions, places, color=colour, linestyle=style, marker="o", linewidth=1.6, markersize=4)
        ends.setdefault((versions[-1], last), []).append(_plain(method))
    for end, names in ends.items():  # methods that share a rank share a label
        offset = {"xytext": (6, 0), "textcoords": "offset points"}
        axes.annotate(", ".join(names), end, va="center", fontsize=7, **offset)
    last_rank = max(rank for entry in history for rank in entry.ranks.values())
    if len(methods) > MANY:
        axes.set_yscale("log")  # the first, which are named, need most of the room
        axes.set_yticks(
            [place for place in (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000) if place <= last_rank], minor=False
        )
        axes.yaxis.set_major_formatter("{x:.0f}")
        axes.minorticks_off()
    else:
        axes.set_yticks(_whole(last_rank))
    axes.invert_yaxis()
    axes.set_xticks([entry.version for entry in history])
    axes.set_xlabel("version of the board")
    axes.set_ylabel("rank")


def _side_by_side(ranks: Mapping[str, int]) -> dict[str, float]:
    """Where each method is drawn: those of one rank a little apart, else one would hide the other."""
    equal: dict[int, list[str]] = {}
    for method in sorted(ranks):
        equal.setdefault(ranks[method], []).append(method)
    step = 0.25
    return {m: rank + step * (i - (len(group) - 1) / 2) for rank, group in equal.items() for i, m in enumerate(group)}


def _whole(last: int) -> list[int]:
    """Ticks from 1 to the last rank, not too many."""
    return sorted({1, *range(0, last + 1, max(1, -(-last // 15))), last} - {0})


def _plain(text: str) -> str:
    return text.replace("$", r"\$")  # a name is no formula


def draw(path: Path, board: Board, history: Sequence[Version], kind: str) -> None:
    """Draw one figure into a file; the same board gives the same SVG."""
    check_target(path)
    lacks = {"bump": not any(entry.ranks for entry in history), "heat": not board.tasks, "differences": False}
    if not board.ranked or lacks[kind]:
        hint = "No method is ranked on this board, or it has no history (bump), or no tasks (heat)"
        raise UsageError("nothing to draw", where=path, hint=hint)
    import matplotlib

    with matplotlib.rc_context({"font.size": 8}):
        width = 3 + 0.6 * len(board.tasks) if kind == "heat" else 6.5
        line = 0.24 if len(board.ranked) <= MANY else 0.03
        figure, axes = blank(max(5.0, width), 1.2 + line * len(board.ranked))
        if kind == "bump":
            bump_chart(history, axes)
        else:
            (heat_map if kind == "heat" else differences)(board, axes)
        save(figure, path, dpi=160)


def preview(board: Board, title: str, name: Callable[[str], str]) -> bytes:
    """The card that sites show beside a link: the first methods with their intervals. Empty without matplotlib."""
    try:
        check_target()
    except DependencyError:
        return b""
    rows = board.ranked[:8]
    figure, axes = blank(8, 4.2)
    for y, row in enumerate(rows):
        interval = row.intervals.get("rank")
        if interval and interval.low is not None and interval.high is not None:
            axes.plot([interval.low, interval.high], [y, y], color=SOFT, linewidth=9, solid_capstyle="round")
        axes.plot(row.rank, y, "o", color=ACCENT, markerfacecolor=ACCENT if interval else "white", markersize=10)
    axes.set_yticks(range(len(rows)), [_plain(name(row.method)) for row in rows], fontsize=12)
    axes.invert_yaxis()
    axes.set_xlabel(f"rank of {len(board.ranked)}" + ", and its interval" * (board.uncertainty is not None))
    axes.set_xticks(_whole(max(max(row.rank or 1, *_ends(row)) for row in rows)))
    figure.suptitle(_plain(title), fontsize=15, fontweight="bold", color=INK)
    return png(figure, dpi=150)


def _ends(row: BoardRow) -> tuple[int, int]:
    interval = row.intervals.get("rank")
    return (int(interval.low or 1), int(interval.high or 1)) if interval else (1, 1)
