"""Figures of a board, as SVG or PNG by the file's name: heat map, differences with groups, ranks over versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuco_core.errors import DependencyError, UsageError

Board = Mapping[str, Any]
FORMATS = (".svg", ".png")
INK, SOFT, ACCENT = "#1d2733", "#8a94a0", "#0b7285"


def heat_map(board: Board, axes: Any) -> None:
    """Methods × tasks; colour is the rank within the task, the number is the mean score."""
    rows, tasks = board["rows"], [task["id"] for task in board["tasks"]]
    ranks = [[row["scores"][task]["rank"] for task in tasks] for row in rows]
    # Only the pale half of the colours, so that the numbers stay legible on all of them.
    axes.imshow(ranks, aspect="auto", cmap="GnBu_r", vmin=1 - len(rows), vmax=max(2, len(rows)) * 1.1)
    for i, row in enumerate(rows):
        for j, task in enumerate(tasks):
            axes.text(j, i, f"{row['scores'][task]['mean']:.2f}", ha="center", va="center", fontsize=7, color=INK)
    axes.set_xticks(range(len(tasks)), [_plain(task) for task in tasks], rotation=35, ha="right")
    axes.set_yticks(range(len(rows)), [_plain(f"{row['rank']}  {row['method']}") for row in rows])
    axes.tick_params(length=0)
    axes.set_title("Mean score; the darker, the better its rank on the task", loc="left", fontsize=9)


def differences(board: Board, axes: Any) -> None:
    """Weighted ranks on a line; a bar joins methods that the data cannot tell apart."""
    rows = board["rows"]
    place = {row["method"]: len(rows) - i for i, row in enumerate(rows)}
    for row in rows:
        y = place[row["method"]]
        if row["rank_interval"]:
            axes.plot(row["rank_interval"], [y, y], color=SOFT, linewidth=1.2, solid_capstyle="butt", zorder=1)
        axes.plot(row["weighted_rank"], y, "o", color=ACCENT, markersize=5, zorder=2)
    for step, group in enumerate(board["groups"] or ()):
        x = len(rows) + 1.2 + 0.35 * step
        axes.plot([x, x], [place[group[0]] + 0.2, place[group[-1]] - 0.2], color=INK, linewidth=3, clip_on=False)
    axes.set_yticks(list(place.values()), [_plain(method) for method in place])
    axes.set_xlabel("weighted rank (dot)" + ", interval of the final rank (line)" * (board["groups"] is not None))
    sure = "Bars on the right join methods that cannot be told apart"
    axes.set_title(sure if board["groups"] is not None else "Scores of splits are not known", loc="left", fontsize=9)
    axes.grid(axis="x", color="#e3e7eb")
    axes.set_axisbelow(True)


def bump_chart(history: Sequence[Mapping[str, Any]], axes: Any) -> None:
    """The rank of each method over the versions of a board."""
    methods = sorted({method for entry in history for method in entry["ranks"]})
    ends: dict[tuple[int, int], list[str]] = {}
    for method in methods:
        known = [(entry["version"], entry["ranks"][method]) for entry in history if method in entry["ranks"]]
        axes.plot(*zip(*known, strict=True), "o-", linewidth=1.6, markersize=4)
        ends.setdefault(known[-1], []).append(_plain(method))
    for end, names in ends.items():  # methods that share a rank share a label
        offset = {"xytext": (6, 0), "textcoords": "offset points"}
        axes.annotate(", ".join(names), end, va="center", fontsize=7, **offset)
    axes.invert_yaxis()
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_xticks([entry["version"] for entry in history])
    axes.set_xlabel("version of the board")
    axes.set_ylabel("rank")


def _plain(text: str) -> str:
    return text.replace("$", r"\$")  # a name is no formula


def draw(path: Path, board: Board, history: Sequence[Mapping[str, Any]], kind: str) -> None:
    """Draw one figure into a file; the same board gives the same SVG."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError("a figure is an SVG or a PNG", where=path, expected=" or ".join(FORMATS))
    if not board["rows"] or (kind == "bump" and not history):
        raise UsageError("nothing to draw", where=path, hint="Nobody is ranked on this board, or it has no history")
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DependencyError("figures need matplotlib", hint="Run `pip install 'neuco[plots]'`") from error
    with matplotlib.rc_context({"svg.hashsalt": "neuco", "font.size": 8, "svg.fonttype": "path"}):
        width = 3 + 0.6 * len(board["tasks"]) if kind == "heat" else 6.5
        figure = Figure(figsize=(max(5.0, width), 1.2 + 0.24 * len(board["rows"])), layout="constrained")
        axes = figure.subplots()
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        FIGURES[kind](board, history, axes)
        figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix.lower() == ".svg" else {"Software": None})


FIGURES: Mapping[str, Callable[[Board, Sequence[Mapping[str, Any]], Any], None]] = {
    "bump": lambda board, history, axes: bump_chart(history, axes),
    "differences": lambda board, history, axes: differences(board, axes),
    "heat": lambda board, history, axes: heat_map(board, axes),
}
