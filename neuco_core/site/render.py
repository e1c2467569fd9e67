"""Templates: every value is escaped unless it was made as HTML here, and a value that is missing is an error."""

from __future__ import annotations

import json
import logging
import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from neuco_core.boards.formatting import DOUBT, LOWER, MARK, NONE, RANK, nobody, reasons, show
from neuco_core.boards.model import TRUST, Column, Interval, Section, Value
from neuco_core.boards.report import TEXT, marked
from neuco_core.plugins.catalog import catalog
from neuco_core.site import figures
from neuco_core.site.board_table import LONGEST_WORD, split_title, value_of
from neuco_core.site.cards import linked, render_card
from neuco_core.site.figures import MOST, num, shown
from neuco_core.site.page_data import PageData
from neuco_core.specs import Panel, resolve
from neuco_core.text import clean, counted

# Only the site's own files may run or style anything: whatever slipped through as text could still do nothing.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)
MANY = 12  # rows of a small table; of a large one as many as lines are told apart in a figure
log = logging.getLogger(__name__)


@cache
def environment() -> Environment:
    env = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else clean(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {"linked": linked, "card": render_card, "num": num, "counted": counted, "plain": clean}
    env.globals |= {
        "DOUBT": DOUBT,
        "LOWER": LOWER,
        "MARK": MARK,
        "NONE": NONE,
        "RANK": RANK,
        "TRUST": TRUST,
        "MANY": MANY,
        "MOST": MOST,
    }
    env.globals |= {"policy": POLICY}
    words = (num, shown, show, literal, nobody, reasons, section_cells, column_heads, split_title, value_of, breakable)
    geometry = (figures.ends, figures.places, figures.path, figures.rank_ticks, figures.hue, figures.group_bars)
    drawn = (figures.Parallel, figures.Scatter)
    env.globals |= {function.__name__: function for function in (*words, *geometry, *drawn)}
    for name, template in (("figures", "figures.html"), ("ui", "macros.html")):
        env.globals[name] = env.get_template(template).module
    return env


def _source(name: str) -> str:
    """The text of a template: of the site, ``"package:file"`` of an extension, or a short one that is its own text."""
    if "<" in name or "{" in name:
        return name
    package, _, file = name.rpartition(":")
    folder = files(package) if package else files("neuco_core.site") / "templates"
    return (folder / file).read_text(encoding="utf-8")


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(values)


def literal(value: object) -> Markup:
    """A value as JSON that is also JavaScript. A ``<`` only occurs inside texts, where its escape means the same."""
    dumped = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    safe = dumped.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return Markup(safe)  # noqa: S704 (no element can begin in it)


class RenderedPanel(NamedTuple):
    id: str
    title: str
    html: Markup


def panels(page: PageData, about: str, *subject: str) -> list[RenderedPanel]:
    """What extensions show on the page of a board, of a method or of a task. One that fails harms nobody else."""
    made = []
    for panel in catalog().all(Panel).values():
        if panel.about != about:
            continue
        try:
            data = resolve(panel.data)(page, *subject)
            if data is not None:
                html = render(panel.template, **{"page": page, "board": page.board, **data})
                made.append(RenderedPanel(panel.id, panel.title, Markup(html)))  # noqa: S704 (rendered with autoescape)
        except Exception:  # an extension is a stranger's code
            log.exception("%s: the panel %s is left out", page.id, panel.id)
    return made


def breakable(name: str) -> Markup:
    """A name that may break after a slash, and within a very long word."""
    pieces = [piece for word in name.split("/") for piece in (word, "/")][:-1]
    short = [chunk for piece in pieces for chunk in re.findall(rf"\S{{1,{LONGEST_WORD}}}\s?|\s", piece)]
    return Markup("<wbr>").join(map(clean, short))


class TableCell(NamedTuple):
    text: object
    look: str = ""
    href: str = ""


def column_heads(part: Section) -> list[str | tuple[str, str]]:
    return [column.label if column.format in TEXT else (column.label, "number") for column in part.columns]


def section_cells(page: PageData, part: Section, most: int = MANY) -> list[list[TableCell]]:
    """The rows of a small table of the board; of a long one the first, but a matrix is whole."""
    rows = part.rows if part.matrix else part.rows[:most]
    return [[_cell(page, part, row, c, value) for c, value in zip(part.columns, row, strict=True)] for row in rows]


def _cell(page: PageData, part: Section, row: tuple[Value, ...], column: Column, value: Value) -> TableCell:
    if column.format in ("method", "task") and isinstance(value, str):
        title = page.method_title(value) if column.format == "method" else page.task_title(value)
        as_link = page.board.tasks and not part.matrix
        return TableCell(title, href=f"{column.format}/{value}.html") if as_link else TableCell(value)
    if isinstance(value, dict):
        first = dict(sorted(value.items(), key=lambda item: item[1])[:MANY])
        more = f"; and {len(value) - MANY} more" if len(value) > MANY else ""
        return TableCell(show(column, first, page.method_title) + more)
    if column.format in TEXT:
        return TableCell(show(column, value))
    if part.about == "robustness" and column.format in ("rank", "range"):
        # How far a rank, or the farther end of a range of ranks, is from the board's own: at most 5.
        rank = page.board.ranks.get(str(row[0]))
        ranks = (value.low, value.high) if isinstance(value, Interval) else (value,)
        moved = [abs(end - rank) for end in ranks if isinstance(end, int | float) and rank is not None]
        return TableCell(shown(column, value), f"number m{min(round(max(moved, default=0)), 5)}")
    look = "number moved" if marked(page.board, row, column, value) else "number"
    if part.matrix and isinstance(value, int | float):
        look += f" h{round(max(value, 0.0) * 10)}"
    return TableCell(shown(column, value), look)
