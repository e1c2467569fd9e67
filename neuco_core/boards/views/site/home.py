"""The first page: what this is, what Q is, where to go, and the boards."""

from __future__ import annotations

from collections.abc import Sequence

from neuco_core.boards.formatting import RANK
from neuco_core.boards.views.site.board_table import one_line
from neuco_core.boards.views.site.charts import q_example, rank_axis
from neuco_core.boards.views.site.html import Safe, code_box, join, page, section, table, tag
from neuco_core.boards.views.site.pieces import shown
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.scoring.quality import EPSILON
from neuco_core.text import counted

SHOWN = 5
LEAD = (
    "neuco compares small, fixed-size embeddings of Earth-observation data: how much of what tasks need is still in "
    "them, and how sure is that?"
)
OURS = "Computed from the score records of this registry; every number is reproducible."
THEIRS = "Results of others, imported with their source. They are never ranked together with computed ones."


def home_page(sources: Sequence[BoardSource]) -> str:
    """All boards, those of suites and the published ones in sections of their own."""
    computed = sorted((s for s in sources if not s.published), key=lambda source: not source.board.ranked)
    published = [source for source in sources if source.published]
    groups = (("Computed here", computed, OURS), ("Published", published, THEIRS))
    parts = [
        section(
            title,
            tag("div", *(_card(source, title) for source in own), class_="tiles"),
            id_=title.split()[0].lower(),
            note=note,
        )
        for title, own, note in groups
        if own
    ]
    top = (tag("h1", "Which embedding keeps the most?"), tag("p", LEAD, class_="lead"), _quality(), _doors(published))
    return page("Boards", join((*top, *parts)), up="", about=LEAD)


def _quality() -> Safe:
    """Q in one line and one picture."""
    formula = tag("code", f"Q = 100 · {EPSILON:g} · mean / (std + {EPSILON:g})")
    words = tag("p", tag("b", "Q "), "is high where a score is high and steady over the splits of the data: ", formula)
    return tag("div", words, q_example(), class_="quality")


def _doors(published: Sequence[BoardSource]) -> Safe:
    """Where to go from here."""
    links = [tag("a", source.title, href=f"boards/{source.id}/index.html") for source in published]
    benchmark = [tag("p", "NeuCo-Bench asks how much task-relevant information an embedding keeps.")]
    benchmark += [tag("p", join(links, " · "))] if links else []
    trying = [tag("p", "Score a file of embeddings, and see where it would stand; nothing is recorded:")]
    trying += [
        code_box(
            "neuco score --embeddings mine.csv --suite olinda\nneuco leaderboard show olinda --with mine.csv",
            "Commands to try it",
        )
    ]
    giving = [tag("p", "A task or a method is one folder, checked and scored in a pull request:")]
    giving += [
        code_box("neuco new task my_task --labels labels.csv\nneuco new method my_method", "Commands to contribute")
    ]
    doors = (("The benchmark", benchmark), ("Try it", trying), ("Contribute", giving))
    found = [tag("section", tag("h2", title), *inner) for title, inner in doors]
    return tag("div", *found, class_="doors")


def _card(source: BoardSource, group: str) -> Safe:
    board = source.board
    link = tag("a", source.title, href=f"boards/{source.id}/index.html")
    size = counted(len(board.ranked), "method") + (f", {counted(len(board.tasks), 'task')}" if board.tasks else "")
    size += f" · {source.updated}" if source.updated else ""
    if not board.ranked and not source.published:
        words = tag("p", tag("b", "Nobody is ranked here yet. "), "The first place is free:")
        command = code_box(f"neuco score --all --suite {source.id}", f"Command for the first score of {source.id}")
        return tag(
            "article", tag("h3", link), tag("p", source.description, class_="note"), words, command, class_="tile call"
        )
    rows = []
    for row in board.ranked[:SHOWN]:
        interval = row.intervals.get(RANK.key)
        drawn = rank_axis(row.rank or 1, interval, len(board.ranked))
        figures = shown(RANK, interval) if interval else "?"
        rows.append(
            (
                (row.rank, "number"),
                tag("span", one_line(source.method_title(row.method)), class_="label"),
                drawn,
                (figures, "number"),
            )
        )
    known = f"{board.uncertainty.level:.0%} interval" if board.uncertainty else "Interval unknown"
    heads = ((RANK.label, "number"), "Method", known, ("", "number"))
    first = (
        table(heads, rows, caption=f"First {len(rows)} of {source.title}") if rows else tag("p", "No method is ranked.")
    )
    return tag("article", tag("h3", link), tag("p", size, class_="note"), first, class_="tile")
