"""The parts of a board's page around its table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from neuco_core.boards.history import Version
from neuco_core.boards.model import Board, BoardRow, Column, Interval, Section, Value
from neuco_core.boards.values import nobody, reasons, show
from neuco_core.boards.views.report import GROUPED, TEXT, copies, diagnostics, marked, overlaps
from neuco_core.boards.views.site.charts import ranks_over_time
from neuco_core.boards.views.site.html import Safe, code_box, join, linked, section, table, tag
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import counted

MANY, MOST = 12, 60  # rows of a small table, and of a large one
CANNOT = (
    "They hold for these samples, these labels and these embeddings. What another training run of an encoder, or "
    "scenes from elsewhere, would change is not in them."
)
KEYS = (
    "Keyboard: / goes to the search; arrows go from method to method and, to the right, from cell to cell; Enter opens "
    "what is behind a cell."
)


def shown(column: Column, value: Value) -> str:
    """A value with a real minus sign."""
    text = show(column, value)
    return text.replace("-", "−") if isinstance(value, int | float | Interval) else text


def nobody_yet(source: BoardSource) -> Safe:
    return tag("p", nobody(source.id) if not source.published else "No method is ranked.")


def facts_list(facts: Sequence[tuple[str, object]], class_: str = "facts") -> Safe:
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_=class_)


def summary(source: BoardSource) -> str:
    """The board in one sentence, as for the preview of a link."""
    board = source.board
    size = f"{counted(len(board.ranked), 'method')} ranked"
    size += f" on {counted(len(board.tasks), 'task')}" if board.tasks else ""
    first = [source.method_title(row.method) for row in board.ranked if row.rank == 1]
    return f"{size}; first: {', '.join(first[:3])}." if first else f"{size}."


def heading(source: BoardSource) -> Safe:
    board = source.board
    crumbs = tag("p", tag("a", "Boards", href="../../index.html"), " / ", source.id, class_="crumbs")
    kinds = sorted({task.kind for task in board.tasks})
    size = [
        counted(len(board.ranked), "method") + " ranked",
        *([counted(len(board.tasks), "task")] if board.tasks else []),
    ]
    size += kinds if len(kinds) == 1 else []
    size += [f"protocol {board.suite.protocol}"] if board.suite else []
    lead = " · ".join((*((source.description,) if source.description else ()), ", ".join(size)))
    above = [crumbs, tag("h1", source.title), tag("p", lead, class_="lead")]
    if board.published:
        words = "Published result, imported as it was printed. Nothing here was computed from embeddings by neuco. "
        cited = join((f"Source: {board.published.source}. ", linked(board.published.citation)))
        above.append(tag("p", tag("strong", words), cited, class_="banner"))
    tiles = list(_tiles(source))
    return join((*above, *([facts_list(tiles, "tiles facts")] if tiles else [])))


def _tiles(source: BoardSource) -> Iterable[tuple[str, object]]:
    """What a reader wants to know first."""
    board = source.board
    first = [row for row in board.ranked if row.rank == 1]
    if first:
        names = ", ".join(source.method_title(row.method) for row in first[:3]) + ", …" * (len(first) > 3)
        yield "Leader", join((tag("b", names), tag("span", " · ".join(_leading(source, first)))))
    if board.groups is not None and len(board.ranked) > 1:
        ends = [
            row.rank for row, after in zip(board.ranked, board.ranked[1:], strict=False) if _apart(board, row, after)
        ]
        noun = "rank" if len(ends) == 1 else "ranks"
        said = f"after {noun} {', '.join(map(str, ends[:6]))}" + ", …" * (len(ends) > 6) if ends else "none"
        yield "Clear gaps", tag("b", said)
    for column in board.task_columns[:1]:
        weighed = [(task.values[column.key] or 0, task.id) for task in board.tasks if column.key in task.values]
        if len(weighed) > 1:
            value, task = max(weighed)
            title = tag("a", source.task_title(task), href=f"task/{task}.html")
            yield f"Largest {column.label.lower()}", join((tag("b", title), tag("span", shown(column, value))))
    if source.updated or source.history:
        version = f"version {source.history[-1].version}" if source.history else ""
        link = tag("a", "what changed", href="#history") if source.history else Safe("")
        yield (
            "Updated",
            join((tag("b", source.updated or version), tag("span", version if source.updated else "", " ", link))),
        )


def _leading(source: BoardSource, first: Sequence[BoardRow]) -> Iterable[str]:
    """How sure the first place is: who cannot be told from it, and how often it is first."""
    board = source.board
    near = {name for group in board.groups or () if group[0] == first[0].method for name in group[1:]}
    others = [source.method_title(row.method) for row in board.ranked if row.method in near and row.rank != 1]
    if others:
        names = others[0] if len(others) == 1 else f"{others[0]} and {counted(len(others) - 1, 'other')}"
        yield f"not separable from {names}"
    for column in board.columns:
        known = first[0].values.get(column.key) is not None
        if column.format == "percent" and known and len(board.ranked) > len(first) == 1:
            best = max(board.ranked, key=lambda row: _number(row, column))
            yield f"{column.label} {shown(column, first[0].values.get(column.key))}"
            if _number(best, column) > _number(first[0], column):
                yield f"({source.method_title(best.method)}: {shown(column, best.values.get(column.key))})"


def _number(row: BoardRow, column: Column) -> float:
    value = row.values.get(column.key)
    return value if isinstance(value, int | float) else -1.0


def _apart(board: Board, row: BoardRow, after: BoardRow) -> bool:
    return not any(row.method in group and after.method in group for group in board.groups or ())


def tabs(titles: Sequence[tuple[str, str]]) -> Safe:
    """A link to each section, by its id and title; scripts show one section at a time."""
    links = [tag("a", title, href=f"#{name}") for name, title in titles]
    return tag("nav", *links, class_="tabs", id="tabs", aria_label="Parts of this board")


def panels(source: BoardSource) -> list[tuple[str, str, Safe]]:
    """The sections after the ranking, each with its id and title."""
    found = [
        ("compare", "Compare", compare(source)),
        ("size", _scatter_title(source.board), scatter(source.board)),
        ("tasks", "Tasks", task_section(source)),
        ("robustness", "Robustness", robustness(source)),
        ("history", "History", versions(source)),
        ("reading", "How to read this", reading(source)),
        ("submit", "Submit", submit(source)),
    ]
    return [part for part in found if part[2]]


def empty(source: BoardSource) -> list[Safe]:
    """A board on which nobody has a score yet asks for the first one."""
    words = "No method has been scored on this suite yet. Be the first:"
    body = [tag("p", words), _score_box(source)] if not source.published else [nobody_yet(source)]
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
    if source.cells is not None:
        note += (
            " Differences are paired over the same splits; their intervals are at 95 % for each task by itself, with "
            "the variance of Nadeau and Bengio, as neuco compare has them."
        )
    box = tag("div", id="compared", hidden=True)
    made = (
        []
        if source.published
        else [
            tag("p", "In the terminal, with p-values for all tasks at once:"),
            code_box(command, "Command that compares two methods"),
        ]
    )
    return section("Compare", box, *made, id_="compare", note=note)


def _scatter_title(board: Board) -> str:
    labels = {column.key: column.label for column in board.columns}
    across, up = (labels[key] for key in board.scatter) if board.scatter else ("", "")
    return f"{up} against {across.lower()}"


def scatter(board: Board) -> Safe:
    if not board.scatter or not all(any(r.values.get(key) is not None for r in board.ranked) for key in board.scatter):
        return Safe("")
    title = _scatter_title(board)
    return section(
        title,
        _figure("scatter", f"{title}.", BESIDE),
        id_="size",
        note=POINT,
    )


BESIDE = "With its interval; methods of one value stand side by side, by rank."
POINT = "Hover or tap to identify a method; tick methods in the ranking to highlight them."


def _figure(name: str, title: str, words: str) -> Safe:
    drawing = tag("div", id=name, class_="drawing")
    caption = tag("figcaption", tag("b", title), " ", words)
    return tag("figure", caption, drawing, tag("p", id=f"{name}-says", class_="note"), hidden=True)


def task_section(source: BoardSource) -> Safe:
    board = source.board
    if not board.tasks:
        return Safe("")
    own = [_section(source, part) for part in board.sections if part.about == "tasks"]
    drawn = Safe("")
    if board.profile and board.ranked:
        label = next(c.label for c in board.cell_columns if c.key == board.profile)
        words = f"Each line is a method, each axis a task: the higher, the better its {label.lower()}."
        drawn = _figure("parallel", "Profiles.", words)
    helps = [f"{column.label}: {column.help}." for column in board.task_columns if column.help and board.ranked]
    listed = _section(source, diagnostics(board), most=len(board.tasks))
    return section("Tasks", listed, drawn, *own, id_="tasks", note=" ".join(helps))


def robustness(source: BoardSource) -> Safe:
    """How sure the ranking is, and what the kind says about what it depends on."""
    board = source.board
    if not board.tasks or not board.ranked:
        return Safe("")
    matrices = [_matrix(source, part) for part in board.sections if part.about == "robustness"]
    own = [_section(source, part) for part in board.sections if part.about == "ranking"]
    return section("Robustness", *matrices, *own, *_certainty(source), id_="robustness")


def _matrix(source: BoardSource, part: Section) -> Safe:
    """Methods against other ways to rank them; a cell is tinted by how many places a method moves."""
    if not part.rows:
        return tag("p", part.empty) if part.empty else Safe("")
    heads = [column.label if column.format in TEXT else (column.label, "number") for column in part.columns]
    rows = [
        tuple(_moved(source, part, row, column, value) for column, value in zip(part.columns, row, strict=True))
        for row in part.rows[:MOST]
    ]
    lead = [tag("p", part.lead, class_="lead")] if part.lead else []
    cut = f", first {MOST} of {len(part.rows)}; all are in the JSON file" if len(part.rows) > MOST else ""
    tint = tag("p", "The darker a cell, the more places it is from the board's own rank.", class_="note")
    return join((*lead, table(heads, rows, caption=part.title + cut, class_="robust"), tint))


def _moved(source: BoardSource, part: Section, row: tuple[Value, ...], column: Column, value: Value) -> Any:
    if column.format not in ("rank", "range"):
        return _value(source, part, row, column, value)
    own = source.board.ranks.get(str(row[0]))
    ends = [value.low, value.high] if isinstance(value, Interval) else [value]
    places = [abs(end - own) for end in ends if isinstance(end, int | float) and own is not None]
    far = max(places, default=0)
    return shown(column, value), f"number m{min(round(far), 5)}"


def _certainty(source: BoardSource) -> list[Safe]:
    if source.board.uncertainty is None:
        return [tag("p", "No intervals are known for this board.")]
    return [tag("h3", "Statistically indistinguishable"), *_groups(source)]


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


def _section(source: BoardSource, part: Section, most: int = MANY) -> Safe:
    """A small table of the board; a long one is cut, and a matrix is folded away."""
    lead = [tag("p", part.lead)] if part.lead else []
    if not part.rows:
        return join((*lead, *([tag("p", part.empty)] if part.empty else [])))
    cut = "" if part.matrix or len(part.rows) <= most else f", first {most} of {len(part.rows)}"
    heads = [c.label if c.format in TEXT else (c.label, "number") for c in part.columns]
    rows = [
        tuple(_value(source, part, row, column, value) for column, value in zip(part.columns, row, strict=True))
        for row in (part.rows[:most] if cut else part.rows)
    ]
    inner = table(heads, rows, caption=part.title + cut)
    return join((*lead, tag("details", tag("summary", part.title), inner) if part.matrix else inner))


def _value(source: BoardSource, part: Section, row: tuple[Value, ...], column: Column, value: Value) -> Any:
    if column.format in ("method", "task") and isinstance(value, str):
        title = source.method_title(value) if column.format == "method" else source.task_title(value)
        linked_ = source.board.tasks and not part.matrix
        return tag("a", title, href=f"{column.format}/{value}.html") if linked_ else value
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
        for why in ([("all tasks", "the same as", source.method_title(row.same_as))] if row.same_as else reasons(row))
    ]
    if not rows or not source.board.tasks:
        return Safe("")
    inner = table(("Method", "Task", "Status", "Reason"), rows, caption="Methods that are not ranked, and why")
    title = f"{counted(len({row.method for row in source.board.unranked}), 'method')} not ranked, and why"
    return tag("details", tag("summary", title), inner, id="not-ranked")


def versions(source: BoardSource) -> Safe:
    if source.past:
        phases = [replayed(*phase) for phase in reversed(list(source.past.items()))]
        told = [tag("p", f"Source: {source.past_source}", class_="note")] if source.past_source else []
        return section("History", *phases, *told, id_="history")
    if not source.history:
        return Safe("")
    entries = []
    for number, entry in enumerate(list(source.history)[: -MANY - 1 : -1]):
        said = [tag("li", str(change)) for change in entry.changes] or [tag("li", "First version.")]
        entries.append(tag("details", tag("summary", f"Version {entry.version}"), tag("ul", *said), open=not number))
    return section("History", *entries, id_="history")


def replayed(phase: str, past: Sequence[Version]) -> Safe:
    """The ranks of a phase over time as a drawing, and each change in words: who moved, and because of whom."""
    caused = sum(any("caused by others" in change.why for change in entry.changes) for entry in past)
    lead = (
        f"{counted(len(past), 'change')} of the table; {caused} of them moved teams that had done nothing themselves."
    )
    entries = [
        tag("details", tag("summary", entry.at), tag("ul", *(tag("li", str(change)) for change in entry.changes)))
        for entry in reversed(past)
    ]
    drawing = tag("div", ranks_over_time(past, phase), class_="scroll", tabindex="0", role="region", aria_label=phase)
    folded = tag("details", tag("summary", "All changes, the last one first"), *entries)
    return tag("div", tag("h3", f"Phase {phase}"), tag("p", lead), drawing, folded)


def reading(source: BoardSource) -> Safe:
    """The rule, the columns and the intervals in words."""
    board = source.board
    words: list[tuple[str, object]] = [("Rule", f"{board.rule[:1].upper()}{board.rule[1:]}.")]
    words += [("Note", note) for note in (*board.notes, *overlaps(board), *copies(board))]
    if how := board.uncertainty:
        words.append(("Intervals", f"At {how.level:.0%}: {how.how}; {how.replicates} replicates."))
        words.append(("What intervals cannot show", CANNOT))
    for column in (*board.columns, *board.cell_columns, *board.task_columns, *board.fact_columns):
        if column.help:
            words.append((column.label, f"{column.help}."))
    keys = [tag("p", KEYS, class_="note")] if board.shown else []
    return section("How to read this", facts_list(words, "terms"), *keys, id_="reading")


def submit(source: BoardSource) -> Safe:
    """How to get onto the board, how to reproduce it, its files, and how to cite it."""
    files = [tag("a", end.upper(), href=f"board.{end}", download=f"{source.id}.{end}") for end in ("json", "csv")]
    parts: list[Safe] = []
    if not source.published:
        words = (
            "Where would your embeddings stand? Score a file of them, without writing a plugin; nothing is recorded:"
        )
        mine = f"neuco leaderboard show {source.id} --with mine.parquet"
        parts += [tag("p", words), code_box(mine, "Command that ranks a file of embeddings on this board")]
        parts += [tag("p", "To be on the board, make a method of it, and open a pull request with that folder:")]
        made = (
            "neuco new method my_method\nneuco check my_method\n"
            + f"neuco score --method my_method --suite {source.id}"
        )
        parts += [code_box(made, "Commands that make and score a method")]
    verbs = ("score --all --suite", "leaderboard build", "leaderboard check")
    commands = "\n".join(f"neuco {verb} {source.id}" for verb in (("leaderboard show",) if source.published else verbs))
    parts += [tag("p", "Reproduce this board:"), code_box(commands, "Commands that reproduce this board")]
    parts += [tag("p", "Download: ", join(files, " · "))]
    parts += [tag("h3", "Cite this board"), code_box(bibtex(source), "BibTeX entry of this board")]
    return section("Submit", *parts, id_="submit")


def bibtex(source: BoardSource) -> str:
    """What is known of the board as an entry: its name, version, content and date; of a published one, its source."""
    board = source.board
    if board.published:
        note = f"{board.published.citation}. Imported from: {board.published.source}"
        fields = {"title": source.title, "note": note}
    else:
        version = f"version {source.history[-1].version} of the board, " if source.history else ""
        suite = (
            f"suite {source.id} version {board.suite.version}, protocol {board.suite.protocol}, " if board.suite else ""
        )
        fields = {"title": f"{source.title}: neuco leaderboard", "note": f"{version}{suite}cells {board.cells[:16]}"}
        fields |= {"year": source.updated[:4]} if source.updated else {}
    lines = ",\n".join(f"  {name} = {{{_tex(value)}}}" for name, value in fields.items())
    return f"@misc{{neuco-{source.id},\n{lines}\n}}"


def _tex(text: str) -> str:
    """Strangers' words inside braces: no brace or command of their own."""
    return re.sub(r"([&%$#_])", r"\\\1", re.sub(r"[{}\\]", "", " ".join(text.split())))


def _score_box(source: BoardSource) -> Safe:
    return code_box(
        f"neuco score --all --suite {source.id}\nneuco leaderboard show {source.id}", "Commands for the first score"
    )
