"""Write the site into a folder."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from neuco_core.boards.model import plain
from neuco_core.boards.report import grid, to_csv
from neuco_core.errors import DataError
from neuco_core.fields import ID
from neuco_core.jsonio import dump
from neuco_core.scoring.quality import EPSILON
from neuco_core.site.board_page import SCRIPTS, board_page
from neuco_core.site.cell_details import details_script, differences
from neuco_core.site.figures import preview_png
from neuco_core.site.item_pages import method_page, scales, task_page
from neuco_core.site.output_folder import OutputFolder
from neuco_core.site.page_data import PageData
from neuco_core.site.render import render

ASSETS = ("style.css", "figures.css", "theme.js", "icon.svg", *SCRIPTS)
LEAD = (
    "neuco compares small, fixed-size embeddings of Earth-observation data: how much of what tasks need is still in "
    "them, and how sure is that?"
)
OURS = "Computed from the score records of this registry; every number is reproducible."
THEIRS = "Results of others, imported with their source. They are never ranked together with computed ones."


def write_site(pages: Sequence[PageData], out: Path, address: str = "") -> int:
    """Write all pages; returns how many. What an earlier site has left over is removed, nothing else is touched.

    ``address`` is where the site will be: only with it can other sites show a picture of a board that is linked to.
    """
    folder = OutputFolder(out)
    for name in ASSETS:
        folder.write(f"assets/{name}", (files("neuco_core.site") / "assets" / name).read_bytes())
    folder.write("index.html", home_page(pages))
    folder.write(".nojekyll", "")  # GitHub Pages then serves the files as they are
    count = 1 + sum(_write_board(page, folder, address.rstrip("/")) for page in pages)
    folder.finish()
    return count


def home_page(pages: Sequence[PageData]) -> str:
    """What this is, what Q is, where to go, and the boards: those of suites and the published ones apart."""
    computed = sorted((page for page in pages if not page.published), key=lambda page: not page.board.ranked)
    published = [page for page in pages if page.published]
    return render(
        "home.html",
        title="Boards",
        about=LEAD,
        picture="",
        up="",
        scripts=(),
        formula=f"Q = 100 · {EPSILON:g} · mean / (std + {EPSILON:g})",
        published=published,
        groups=(("computed", "Computed here", OURS, computed), ("published", "Published", THEIRS, published)),
    )


def _write_board(page: PageData, folder: OutputFolder, address: str) -> int:
    board = page.board
    top = f"boards/{_name(page.id)}"
    preview = preview_png(board, page.title, page.method_title) if address and board.ranked else b""
    if preview:
        folder.write(f"{top}/card.png", preview)
    folder.write(f"{top}/index.html", board_page(page, f"{address}/{top}/card.png" if preview else ""))
    folder.write(f"{top}/board.json", dump(plain(board)))
    folder.write(f"{top}/board.csv", to_csv(grid(board)))
    if not board.tasks:
        return 1
    on, against = scales(page), differences(page)
    for row in board.rows:
        folder.write(f"{top}/method/{_name(row.method)}.html", method_page(page, row, on))
        if page.cells is not None and row.known:
            folder.write(f"{top}/method/{row.method}.js", details_script(page, row.method, against.get(row.method, {})))
    for task in board.tasks:
        folder.write(f"{top}/task/{_name(task.id)}.html", task_page(page, task, on))
        for number, picture in enumerate(page.pictures.get(task.id, ())):
            folder.write(f"{top}/task/{task.id}-{number}.png", picture.png())
    return 1 + len(board.rows) + len(board.tasks)


def _name(text: str) -> str:
    """An id that becomes a file name. Records and suites are checked when read; this is the last gate."""
    if not ID.fullmatch(text):
        raise DataError("an id that cannot be a file name", got=repr(text))
    return text
