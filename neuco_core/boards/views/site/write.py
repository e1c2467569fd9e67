"""Write the site into a folder."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from neuco_core._validate import ID
from neuco_core.boards.model import plain
from neuco_core.boards.values import RANK, with_values
from neuco_core.boards.views.report import grid, to_csv
from neuco_core.boards.views.site.board_page import board_page
from neuco_core.boards.views.site.board_parts import nobody_yet, shown
from neuco_core.boards.views.site.folder import Folder
from neuco_core.boards.views.site.html import Safe, join, page, section, table, tag
from neuco_core.boards.views.site.item_pages import method_page, scales, task_page
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.errors import DataError
from neuco_core.jsonio import dump
from neuco_core.text import counted

ASSETS = ("style.css", "theme.js", "state.js", "board.js", "figures.js", "icon.svg")
SHOWN = 5


def write_site(sources: Sequence[BoardSource], out: Path) -> int:
    """Write all pages; returns how many. What an earlier site has left over is removed, nothing else is touched."""
    folder = Folder(out)
    made = files("neuco_core.boards.views.site") / "assets"
    for name in ASSETS:
        folder.write(f"assets/{name}", (made / name).read_bytes())
    folder.write("index.html", front_page(sources))
    folder.write(".nojekyll", "")  # GitHub Pages then serves the files as they are
    pages = 1 + sum(_write_board(source, folder) for source in sources)
    folder.finish()
    return pages


def _write_board(source: BoardSource, folder: Folder) -> int:
    board = source.board
    top = f"boards/{_name(source.id)}"
    folder.write(f"{top}/index.html", board_page(source))
    folder.write(f"{top}/board.json", dump(plain(board)))
    folder.write(f"{top}/board.csv", to_csv(grid(board)))
    if not board.tasks:
        return 1
    on = scales(source)
    for row in board.rows:
        folder.write(f"{top}/method/{_name(row.method)}.html", method_page(source, row, on))
    for task in board.tasks:
        folder.write(f"{top}/task/{_name(task.id)}.html", task_page(source, task, on))
    return 1 + len(board.rows) + len(board.tasks)


def _name(text: str) -> str:
    """An id that becomes a file name. Records and suites are checked when read; this is the last gate."""
    if not ID.fullmatch(text):
        raise DataError("an id that cannot be a file name", got=repr(text))
    return text


def front_page(sources: Sequence[BoardSource]) -> str:
    """All boards, those of suites and the published ones in sections of their own."""
    lead = "Which small fixed-size embedding keeps the information that tasks need? Boards of the registry's suites."
    computed = sorted((s for s in sources if not s.published), key=lambda source: not source.board.ranked)
    published = [source for source in sources if source.published]
    ours = "Computed from the score records of this registry; every number is reproducible."
    theirs = "Results of others, imported with their source. They are never ranked together with computed ones."
    parts = [
        section(title, tag("div", *map(_preview, own), class_="tiles"), id_=title.split()[0].lower(), note=note)
        for title, own, note in (("Computed here", computed, ours), ("Published", published, theirs))
        if own
    ]
    return page("Boards", join((tag("h1", "Boards"), tag("p", lead, class_="lead"), *parts)), up="")


def _preview(source: BoardSource) -> Safe:
    board = source.board
    link = tag("a", source.title, href=f"boards/{source.id}/index.html")
    size = counted(len(board.ranked), "method")
    size += f", {counted(len(board.tasks), 'task')}" if board.tasks else ""
    columns = with_values(board.columns, board.ranked)
    # Beside the rank there is room for one column: the one that is drawn, or the first.
    drawn = [column for column in columns if board.scatter and column.key == board.scatter[1]] or columns[:1]
    heads = ((RANK.label, "number"), "Method", *((column.label, "number") for column in drawn))
    rows = [
        (
            (row.rank, "number"),
            source.method_title(row.method),
            *((shown(column, row.values.get(column.key)), "number") for column in drawn),
        )
        for row in board.ranked[:SHOWN]
    ]
    first = table(heads, rows, caption=f"First {len(rows)} of {source.title}") if rows else nobody_yet(source)
    return tag("article", tag("h3", link), tag("p", size, class_="note"), first, class_="tile")
