"""What else a board's page says: its versions, how to read it, how to get onto it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from neuco_core.boards.replay import Version
from neuco_core.boards.views.report import copies, overlaps
from neuco_core.boards.views.site.charts import ranks_over_time
from neuco_core.boards.views.site.html import Safe, code_box, join, section, tag
from neuco_core.boards.views.site.pieces import MANY, facts_list
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import counted

CANNOT = (
    "They hold for these samples, these labels and these embeddings. What another training run of an encoder, or "
    "scenes from elsewhere, would change is not in them."
)

KEYS = (
    "Keyboard: / goes to the search; arrows go from method to method and, to the right, from cell to cell; Enter opens "
    "what is behind a cell."
)


def versions(source: BoardSource) -> Safe:
    if source.past:
        phases = [replayed(*phase) for phase in reversed(list(source.past.items()))]
        told = [tag("p", f"Source: {source.past_source}", class_="note")] if source.past_source else []
        return section("History", *phases, *told, id_="history")
    if not source.history:
        return Safe("")
    entries = []
    for number, entry in enumerate(list(source.history)[: -MANY - 1 : -1]):
        none = "First version." if entry.version == 1 else "No change of a rank, a score or a rule is recorded."
        said = [tag("li", str(change)) for change in entry.changes] or [tag("li", none)]
        size = f": {counted(len(entry.changes), 'change')}" if entry.changes else ""
        title = tag("summary", f"Version {entry.version}{size}")
        entries.append(tag("details", title, tag("ul", *said), open=not number))
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


def score_box(source: BoardSource) -> Safe:
    return code_box(
        f"neuco score --all --suite {source.id}\nneuco leaderboard show {source.id}", "Commands for the first score"
    )
