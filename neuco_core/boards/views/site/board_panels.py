"""The sections of a board's page after its table, each a tab."""

from __future__ import annotations

from collections.abc import Sequence

from neuco_core.boards.formatting import reasons
from neuco_core.boards.model import Board
from neuco_core.boards.views.report import diagnostics
from neuco_core.boards.views.site.board_about import reading, score_box, submit, versions
from neuco_core.boards.views.site.board_robust import robustness
from neuco_core.boards.views.site.html import Safe, code_box, join, section, table, tag
from neuco_core.boards.views.site.pairs import many
from neuco_core.boards.views.site.pieces import figure, nobody_yet, small_table
from neuco_core.boards.views.site.profile import profile_section
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.plugins.catalog import catalog
from neuco_core.specs import Panel, resolve
from neuco_core.text import counted

BESIDE = "With its interval; methods of one value stand side by side, by rank."

POINT = "Hover or tap to identify a method; tick methods in the ranking to highlight them."


def tabs(titles: Sequence[tuple[str, str]]) -> Safe:
    """A link to each section, by its id and title; scripts show one section at a time."""
    links = [tag("a", title, href=f"#{name}") for name, title in titles]
    return tag("nav", *links, class_="tabs", id="tabs", aria_label="Parts of this board")


def panels_about(what: str) -> list[Panel]:
    """What extensions show beside our own sections, on the page of a board, a method or a task."""
    return [panel for panel in catalog().all(Panel).values() if panel.about == what]


def panels(source: BoardSource) -> list[tuple[str, str, Safe]]:
    """The sections after the ranking, each with its id and title."""
    found = [
        ("profiles", "Profiles", profile_section(source)),
        ("compare", "Compare", compare(source)),
        ("size", _scatter_title(source.board), scatter(source)),
        ("tasks", "Tasks", task_section(source)),
        ("robustness", "Robustness", robustness(source)),
        *((panel.id, panel.title, resolve(panel.make)(source)) for panel in panels_about("board")),
        ("history", "History", versions(source)),
        ("reading", "How to read this", reading(source)),
        ("submit", "Submit", submit(source)),
    ]
    return [part for part in found if part[2]]


def empty(source: BoardSource) -> list[Safe]:
    """A board on which nobody has a score yet asks for the first one."""
    words = "No method has been scored on this suite yet. Be the first:"
    body = [tag("p", words), score_box(source)] if not source.published else [nobody_yet(source)]
    first = section("Ranking", *body, id_="ranking")
    found = (first, task_section(source), not_ranked(source), versions(source), reading(source), submit(source))
    return [part for part in found if part]


def legend(source: BoardSource) -> Safe:
    board = source.board
    words = []
    if board.task_columns and board.tasks:
        words.append(("Bar over a task", f"its {board.task_columns[0].label.lower()}"))
    if board.groups is not None and len(board.ranked) > 1:
        words.append(("Rule between rows", "the data separate the rows above it from the next one"))
    if board.tasks:
        words.append(("Outlined", "the best on the task, by the value shown"))
    if board.uncertainty is None and board.ranked:
        words.append(("Hollow dot", "the interval of the rank is unknown"))
    said = join((join((tag("b", name), f" = {meaning}. ")) for name, meaning in words))
    click = "Click a cell for its splits, record and the command that verifies it." if source.cells else ""
    return tag("p", said, click, class_="note")


def compare(source: BoardSource) -> Safe:
    """A place for the comparison, which scripts make."""
    board = source.board
    if len(board.ranked) < 2 or not board.tasks:
        return Safe("")
    command = f"neuco compare {board.ranked[0].method} {board.ranked[1].method} --suite {source.id}"
    note = "Choose two to four methods, here or by ticking them in the ranking."
    if source.cells is not None and not many(source):
        note += (
            " Differences are those of neuco compare: paired over the same splits, with the corrected t-test of Nadeau "
            "and Bengio. Intervals are at 95 % for each task by itself; p is adjusted for all tasks of a pair (Holm), "
            "and a method is called better where it is at most 0.05."
        )
    box = tag("div", id="compared", hidden=True)
    made = (
        []
        if source.published
        else [
            tag("p", "Test their differences in the terminal:" if many(source) else "The same in the terminal:"),
            code_box(command, "Command that compares two methods"),
        ]
    )
    return section("Compare", box, *made, id_="compare", note=note)


def _scatter_title(board: Board) -> str:
    labels = {column.key: column.label for column in board.columns}
    across, up = (labels[key] for key in board.scatter) if board.scatter else ("", "")
    return f"{up} against {across.lower()}"


def scatter(source: BoardSource) -> Safe:
    board = source.board
    if not board.scatter or not all(any(r.values.get(key) is not None for r in board.ranked) for key in board.scatter):
        return Safe("")
    title = _scatter_title(board)
    return section(
        title,
        figure("scatter", f"{title}.", BESIDE),
        id_="size",
        note=POINT,
    )


def task_section(source: BoardSource) -> Safe:
    board = source.board
    if not board.tasks:
        return Safe("")
    own = [small_table(source, part) for part in board.sections if part.about == "tasks"]
    drawn = Safe("")
    if board.profile and board.ranked:
        label = next(c.label for c in board.cell_columns if c.key == board.profile)
        words = f"Each line is a method, each axis a task: the higher, the better its {label.lower()}."
        drawn = figure("parallel", "Profiles.", words)
    helps = [f"{column.label}: {column.help}." for column in board.task_columns if column.help and board.ranked]
    listed = small_table(source, diagnostics(board), most=len(board.tasks))
    return section("Tasks", listed, drawn, *own, id_="tasks", note=" ".join(helps))


def not_ranked(source: BoardSource) -> Safe:
    rows = [
        (tag("a", source.method_title(row.method), href=f"method/{row.method}.html"), *why)
        for row in source.board.unranked
        for why in ([("all tasks", "the same as", source.method_title(row.same_as))] if row.same_as else reasons(row))
    ]
    if not rows or not source.board.tasks:
        return Safe("")
    inner = table(("Method", "Task", "Status", "Reason"), rows, caption="Methods that are not ranked, and why")
    title = f"{counted(len({row.method for row in source.board.unranked}), 'method')} not ranked, and why"
    return tag("details", tag("summary", title), inner, id="not-ranked")
