"""Write the site into a folder, and single figures of a board into files."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from neuco_core.boards.model import Board, plain
from neuco_core.boards.report import grid, to_csv
from neuco_core.errors import DataError
from neuco_core.fields import ID
from neuco_core.files import dump
from neuco_core.scoring.quality import EPSILON
from neuco_core.site.board_page import SCRIPTS, board_page
from neuco_core.site.figures import has_scatter
from neuco_core.site.item_pages import details_script, differences, method_page, strips, task_page
from neuco_core.site.page_data import PageData
from neuco_core.site.render import environment, render
from neuco_core.text import common_prefix

ASSETS = files("neuco_core.site") / "assets"
ASSET_NAMES = ("style.css", "figures.css", "theme.js", "icon.svg", *SCRIPTS)
LIST, ASIDE = ".neuco-site.json", ".neuco-site.new"
# The names of all files that a site can have.
NAMES = re.compile(
    rf"index\.html|\.nojekyll|assets/[a-z][a-z0-9_-]{{0,63}}\.(css|js|svg)|boards/{ID.pattern}/"
    rf"(index\.html|board\.json|board\.csv|(method|task)/{ID.pattern}\.html|method/{ID.pattern}\.js"
    rf"|task/{ID.pattern}-[0-9]{{1,2}}\.png)"
)


class OutputFolder:
    """Files of one build, which are written aside and take their places in ``finish``, when all are there.

    ``finish`` also removes those of the build before that were not written again: only those in the list that it left,
    if they still hold the bytes that were written then. What somebody else put there, or changed, stays.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.aside = path, path / ASIDE
        self.before = read_list(path / LIST)
        self.written: dict[str, str] = {}

    def write(self, name: str, content: str | bytes) -> None:
        if not NAMES.fullmatch(name):  # ids are checked when records and suites are read; this is the last gate
            raise DataError("an id that cannot be a file name", got=repr(name))
        data = content.encode() if isinstance(content, str) else content
        path = self.aside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.written[name] = sha256(data).hexdigest()

    def finish(self) -> None:
        listed = json.dumps(self.written, indent=0, sort_keys=True)
        (self.aside / LIST).write_text(f"{listed}\n", encoding="utf-8")  # before anything is moved: it may not fit
        for name in self.written:
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.aside / name).replace(self.path / name)
        for name in self.before.keys() - self.written.keys():
            path = self.path / name
            # A folder may have become a link: nothing outside of this one is removed.
            ours = path.is_file() and not path.is_symlink() and path.resolve().is_relative_to(self.path.resolve())
            if ours and sha256(path.read_bytes()).hexdigest() == self.before[name]:
                path.unlink()
                for parent in path.relative_to(self.path).parents[:-1]:
                    with suppress(OSError):  # it is not empty
                        (self.path / parent).rmdir()
        (self.aside / LIST).replace(self.path / LIST)


@contextmanager
def output_folder(path: Path) -> Iterator[OutputFolder]:
    """A folder that has all files of a build when the block ends well; otherwise what was there is as it was."""
    folder = OutputFolder(path)
    try:
        shutil.rmtree(folder.aside, ignore_errors=True)  # of a build that was killed
        folder.aside.mkdir(parents=True)
        yield folder
        folder.finish()
    except OSError as error:
        what = f"the site cannot be written: {error.strerror or error}"
        raise DataError(what, where=path, hint="Make room there, or choose another --out") from error
    finally:
        shutil.rmtree(folder.aside, ignore_errors=True)


def read_list(path: Path) -> dict[str, str]:
    """The list of the build before; what cannot be read lists nothing, and then nothing is removed.

    The list is a file like any other, and may have been edited: what no site can have written is left out.
    """
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        return {name: str(value) for name, value in listed.items() if NAMES.fullmatch(name)}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def write_site(pages: Sequence[PageData], out: Path) -> int:
    """Write all pages; returns how many. What an earlier site has left over is removed, nothing else is touched."""
    with output_folder(out) as folder:
        for name in ASSET_NAMES:
            folder.write(f"assets/{name}", (ASSETS / name).read_bytes())
        folder.write("index.html", _home(pages))
        folder.write(".nojekyll", "")  # GitHub Pages then serves the files as they are
        return 1 + sum(_write_board(page, folder) for page in pages)


def _home(pages: Sequence[PageData]) -> str:
    # Boards of suites and published ones stand apart; those with a ranking come first.
    return render(
        "home.html",
        title="Boards",
        up="",
        scripts=(),
        epsilon=EPSILON,
        published=[page for page in pages if page.published],
        computed=sorted((page for page in pages if not page.published), key=lambda page: not page.board.ranked),
    )


def _write_board(page: PageData, folder: OutputFolder) -> int:
    board = page.board
    top = f"boards/{page.id}"
    folder.write(f"{top}/index.html", board_page(page))
    folder.write(f"{top}/board.json", dump(plain(board)))
    folder.write(f"{top}/board.csv", to_csv(grid(board)))
    if not board.tasks:
        return 1
    drawn, against = strips(page), differences(page)
    for row in board.rows:
        folder.write(f"{top}/method/{row.method}.html", method_page(page, row, drawn))
        if page.cells is not None and row.has_values:
            folder.write(f"{top}/method/{row.method}.js", details_script(page, row.method, against.get(row.method, {})))
    for task in board.tasks:
        folder.write(f"{top}/task/{task.id}.html", task_page(page, task, drawn))
        for number, picture in enumerate(page.pictures.get(task.id, ())):
            folder.write(f"{top}/task/{task.id}-{number}.png", picture.png())
    return 1 + len(board.rows) + len(board.tasks)


def board_figure(kind: str, board: Board) -> str | None:
    """A figure of a board for a file; none where the board has not what it shows."""
    drawn: Any = environment().globals["figures"]
    if kind == "differences" and len(board.ranked) > 1:
        return str(drawn.forest(board, str))
    if kind == "profiles" and board.ranked and board.profile:
        prefix = common_prefix([task.id for task in board.tasks])
        return str(drawn.parallel(board, {task.id: task.id.removeprefix(prefix) for task in board.tasks}, str))
    return str(drawn.scatter(board, str)) if kind == "scatter" and has_scatter(board) else None


def standalone(svg: str) -> str:
    """A figure as a file of its own: with the site's rules for figures, and the colours that they name."""
    colours = re.search(r":root \{.*?\n\}", (ASSETS / "style.css").read_text(encoding="utf-8"), re.DOTALL)
    rules = (ASSETS / "figures.css").read_text(encoding="utf-8")
    head, rest = str.strip(svg).split(">", 1)  # plain text: Markup would escape what is put in
    head = head.replace('width="100%"', 'width="1000"').replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    style = f"{colours[0] if colours else ''} svg {{ font-family: sans-serif; }} {rules}".replace("<", "")
    return f"{head}><style>{style}</style>{rest}\n"
