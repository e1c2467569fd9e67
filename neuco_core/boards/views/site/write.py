"""Write the site into a folder."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from neuco_core._validate import ID
from neuco_core.boards.model import plain
from neuco_core.boards.stats.ranking import rank
from neuco_core.boards.views.plots import preview
from neuco_core.boards.views.report import grid, to_csv
from neuco_core.boards.views.site import compiled, details
from neuco_core.boards.views.site.board_page import RULE, SCRIPTS, board_page
from neuco_core.boards.views.site.folder import Folder
from neuco_core.boards.views.site.home import home_page
from neuco_core.boards.views.site.item_pages import method_page, scales, task_page
from neuco_core.boards.views.site.pairs import differences
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.errors import DataError
from neuco_core.jsonio import dump

ASSETS = ("style.css", "theme.js", "icon.svg", *(name for name in SCRIPTS if name != RULE))
CARD = "card.png"


def write_site(sources: Sequence[BoardSource], out: Path, address: str = "") -> int:
    """Write all pages; returns how many. What an earlier site has left over is removed, nothing else is touched.

    ``address`` is where the site will be: only with it can other sites show a picture of a board that is linked to.
    """
    folder = Folder(out)
    made = files("neuco_core.boards.views.site") / "assets"
    for name in ASSETS:
        folder.write(f"assets/{name}", (made / name).read_bytes())
    folder.write(f"assets/{RULE}", compiled.script(rank))
    folder.write("index.html", home_page(sources))
    folder.write(".nojekyll", "")  # GitHub Pages then serves the files as they are
    pages = 1 + sum(_write_board(source, folder, address.rstrip("/")) for source in sources)
    folder.finish()
    return pages


def _write_board(source: BoardSource, folder: Folder, address: str) -> int:
    board = source.board
    top = f"boards/{_name(source.id)}"
    card = preview(board, source.title, source.method_title) if address and board.ranked else b""
    if card:
        folder.write(f"{top}/{CARD}", card)
    folder.write(f"{top}/index.html", board_page(source, f"{address}/{top}/{CARD}" if card else ""))
    folder.write(f"{top}/board.json", dump(plain(board)))
    folder.write(f"{top}/board.csv", to_csv(grid(board)))
    if not board.tasks:
        return 1
    on, against = scales(source), differences(source)
    for row in board.rows:
        folder.write(f"{top}/method/{_name(row.method)}.html", method_page(source, row, on))
        if source.cells is not None and row.known:
            folder.write(
                f"{top}/method/{row.method}.js", details.script(source, row.method, against.get(row.method, {}))
            )
    for task in board.tasks:
        folder.write(f"{top}/task/{_name(task.id)}.html", task_page(source, task, on))
        for number, picture in enumerate(source.pictures.get(task.id, ())):
            folder.write(f"{top}/task/{task.id}-{number}.png", picture.png())
    return 1 + len(board.rows) + len(board.tasks)


def _name(text: str) -> str:
    """An id that becomes a file name. Records and suites are checked when read; this is the last gate."""
    if not ID.fullmatch(text):
        raise DataError("an id that cannot be a file name", got=repr(text))
    return text
