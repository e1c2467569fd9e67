"""The parts of a board's page around its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuco_core.boards.model import Board, Column, Interval, Section, Value
from neuco_core.boards.values import nobody, reasons, show
from neuco_core.boards.views.report import GROUPED, TEXT, diagnostics, marked
from neuco_core.boards.views.site.html import Safe, code_box, join, section, table, tag
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import counted

MANY = 12


def shown(column: Column, value: Value) -> str:
    """A value with a real minus sign."""
    text = show(column, value)
    return text.replace("-", "−") if isinstance(value, int | float | Interval) else text


def nobody_yet(source: BoardSource) -> Safe:
    return tag("p", nobody(source.id) if not source.published else "No method is ranked.")


def facts_list(facts: Sequence[tuple[str, object]]) -> Safe:
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_="facts")


def heading(source: BoardSource) -> Safe:
    board = source.board
    crumbs = tag("p", tag("a", "Boards", href="../../index.html"), " / ", source.id, class_="crumbs")
    facts: list[tuple[str, object]] = [("Ranked methods", len(board.ranked)), ("Tasks", len(board.tasks) or "–")]
    if board.suite:
        facts += [("Protocol", board.suite.protocol), ("Suite version", board.suite.version)]
    if first := [row for row in board.ranked if row.rank == 1]:
        facts.append(("First", ", ".join(source.method_title(row.method) for row in first)))
        if len(first) == 1 < len(board.ranked):
            facts += [(c.label, shown(c, first[0].values.get(c.key))) for c in board.columns if c.format == "percent"]
    above = [crumbs, tag("h1", source.title)]
    above += [tag("p", source.description, class_="lead")] if source.description else []
    if board.published:
        words = "Published result, imported as it was printed. Nothing here was computed from embeddings by neuco. "
        cited = f"Source: {board.published.source}. {board.published.citation}"
        above.append(tag("p", tag("strong", words), cited, class_="banner"))
    return join((*above, facts_list(facts)))


def figures(board: Board) -> Safe:
    """Places for the drawings; the scripts fill and show them."""
    labels = {column.key: column.label for column in (*board.columns, *board.cell_columns)}
    boxes = []
    if board.profile and board.tasks:
        words = f"Each line is a method, each axis a task: the higher, the better its {labels[board.profile].lower()}."
        boxes.append(_figure("parallel", "Profiles", words))
    if board.scatter:
        first, second = (labels[key] for key in board.scatter)
        boxes.append(_figure("scatter", f"{first} against {second}", "With its interval where one is known."))
    if not board.ranked or not boxes:
        return Safe("")
    note = "Hover or tap a line to identify the method; tick methods in the table to highlight them."
    inner = section("Figures", tag("div", *boxes, class_="figures"), id_="figures", note=note)
    return tag("div", inner, hidden=True, id="drawn")


def _figure(name: str, title: str, words: str) -> Safe:
    drawing = tag("div", id=name, class_="drawing")
    caption = tag("figcaption", tag("b", title), " ", words)
    return tag("figure", caption, drawing, tag("p", id=f"{name}-says", class_="note"))


def certainty(source: BoardSource) -> Safe:
    board, how = source.board, source.board.uncertainty
    title = "How certain is this ranking?"
    if not board.tasks or not board.ranked:
        return Safe("")
    if how is None:
        return section(title, tag("p", "No intervals are known for this board."), id_="certainty")
    words = f"Intervals are at {how.level:.0%}: {how.how}; {how.replicates} replicates."
    bar = f"The bar beside a rank spans the ranks that are plausible for the method at {how.level:.0%}."
    body = [*_groups(source), *([tag("p", bar)] if len(board.ranked) > 1 else [])]
    return section(title, *body, tag("p", words, class_="note"), id_="certainty")


def _groups(source: BoardSource) -> list[Safe]:
    groups = source.board.groups
    if len(source.board.ranked) == 1:
        return [tag("p", "Only one method is ranked, so there is nothing to compare it with.")]
    if not groups:
        return [tag("p", "Every method is separated from its neighbours in the ranking.")] if groups == () else []
    items = [tag("li", _group(source, group)) for group in groups[:MANY]]
    if len(groups) > MANY:
        items.append(tag("li", f"and {counted(len(groups) - MANY, 'more group')}, in the JSON file"))
    return [tag("p", f"{GROUPED}:"), tag("ul", *items)]


def _group(source: BoardSource, group: Sequence[str]) -> Safe:
    """The names of a group; of a large one the ends, and how many it has."""
    names = [tag("b", source.method_title(name)) for name in group]
    if len(names) <= MANY:
        return join(names, ", ")
    return join((*names[:3], f"… ({len(names)} methods) …", *names[-2:]), ", ")


def stability(source: BoardSource) -> Safe:
    """What the kind adds about the ranking."""
    own = [_section(source, part) for part in source.board.sections if part.about == "ranking"]
    return section("How robust is this ranking?", *own, id_="stability") if own else Safe("")


def task_section(source: BoardSource) -> Safe:
    board = source.board
    if not board.tasks:
        return Safe("")
    own = [_section(source, part) for part in board.sections if part.about == "tasks"]
    helps = [
        f"{column.label}: {column.help[:1].lower()}{column.help[1:]}."
        for column in board.task_columns
        if column.help and board.ranked
    ]
    listed = _section(source, diagnostics(board), most=len(board.tasks))
    return section("Tasks", listed, *own, id_="tasks", note=" ".join(helps))


def _section(source: BoardSource, part: Section, most: int = MANY) -> Safe:
    """A small table of the board; a long one is cut, and a matrix is folded away."""
    if not part.rows:
        return tag("p", part.empty) if part.empty else Safe("")
    cut = "" if part.matrix or len(part.rows) <= most else f", first {most} of {len(part.rows)}"
    heads = [c.label if c.format in TEXT else (c.label, "number") for c in part.columns]
    rows = [
        tuple(_value(source, part, row, column, value) for column, value in zip(part.columns, row, strict=True))
        for row in (part.rows[:most] if cut else part.rows)
    ]
    inner = table(heads, rows, caption=part.title + cut)
    return tag("details", tag("summary", part.title), inner) if part.matrix else inner


def _value(source: BoardSource, part: Section, row: tuple[Value, ...], column: Column, value: Value) -> Any:
    if column.format in ("method", "task") and isinstance(value, str):
        title = source.method_title(value) if column.format == "method" else source.task_title(value)
        linked = source.board.tasks and not part.matrix
        return tag("a", title, href=f"{column.format}/{value}.html") if linked else value
    if isinstance(value, dict):
        first = dict(sorted(value.items(), key=lambda item: item[1])[:MANY])
        more = f"; and {len(value) - MANY} more" if len(value) > MANY else ""
        return show(column, first, source.method_title) + more
    if column.format in TEXT:
        return show(column, value)
    heat = f" h{round(max(value, 0.0) * 10)}" if part.matrix and isinstance(value, int | float) else ""
    return shown(column, value), "number" + " moved" * marked(source.board, row, column, value) + heat


def not_ranked(source: BoardSource) -> Safe:
    rows = [
        (tag("a", source.method_title(row.method), href=f"method/{row.method}.html"), *why)
        for row in source.board.unranked
        for why in reasons(row)
    ]
    if not rows or not source.board.tasks:
        return Safe("")
    inner = table(("Method", "Task", "Status", "Reason"), rows, caption="Methods that are not ranked, and why")
    return section("Not ranked", inner, id_="not-ranked")


def versions(source: BoardSource) -> Safe:
    if not source.history:
        return Safe("")
    entries = []
    for entry in list(source.history)[: -MANY - 1 : -1]:
        said = [tag("li", str(change)) for change in entry.changes] or [tag("li", "First version.")]
        entries.append(tag("details", tag("summary", f"Version {entry.version}"), tag("ul", *said)))
    return section("History", *entries, id_="history")


def about(source: BoardSource) -> Safe:
    files = [tag("a", end.upper(), href=f"board.{end}", download=f"{source.id}.{end}") for end in ("json", "csv")]
    verbs = ("score --all --suite", "leaderboard build", "leaderboard check")
    commands = "\n".join(f"neuco {verb} {source.id}" for verb in (("leaderboard show",) if source.published else verbs))
    items = (tag("p", "Download: ", join(files, " · ")), tag("p", "Reproduce this board:"))
    own = [] if source.published else _own_place(source)
    return section("Data", *items, code_box(commands, "Commands that reproduce this board"), *own, id_="data")


def _own_place(source: BoardSource) -> list[Safe]:
    words = "Where would your embeddings stand? Score a file of them, without writing a plugin; nothing is recorded:"
    command = f"neuco leaderboard show {source.id} --with mine.parquet"
    return [tag("p", words), code_box(command, "Command that ranks a file of embeddings on this board")]
