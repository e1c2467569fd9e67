"""A map of methods and tasks for the page of a board."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from neuco_core.boards.views.site.html import Safe, code_box, section, table, tag
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.errors import DataError
from neuco_extensions.predict.map_svg import NARROW, WIDE, Drawing
from neuco_extensions.predict.plane import LEAST_METHODS, LEAST_TASKS, MapPoint, Plane, fit_plane
from neuco_extensions.predict.read import from_board

MOST_POINTS = 200  # a map of more is a blot, and takes long
NOTE = (
    "The nearer a method is to a task, the nearer its score is to the best one there; who is near all tasks is good at "
    "all of them, and tasks beside each other order the methods alike. Directions mean nothing, only distances do."
)
COLUMNS = (
    "To tasks, to methods: the mean distance to all of them. Off by: what a point's distances differ from those of the "
    "table, as a root mean square. Moves by: how far it is away in layouts that fit nearly as well."
)
log = logging.getLogger(__name__)


def map_section(source: BoardSource) -> Safe:
    """The map of a board that is large enough for one, and not too large."""
    board = source.board
    enough = len(board.shown) >= LEAST_METHODS and len(board.tasks) >= LEAST_TASKS
    if not enough or len(board.shown) + len(board.tasks) > MOST_POINTS:
        return Safe("")
    try:
        return draw_map(source, fit_plane(from_board(board)))
    except DataError as error:  # too many of its cells are empty
        log.info("%s: no map: %s", source.id, error)
        return Safe("")


def draw_map(source: BoardSource, plane: Plane) -> Safe:
    titles = {point.name: source.method_title(point.name) for point in plane.methods}
    widths = {"wide": WIDE, "narrow": NARROW}
    both = [tag("div", Drawing(plane, titles, width).svg(), class_=f"drawing {name}") for name, width in widths.items()]
    said = tag("p", " ".join(plane.warnings("the hollow ones")), class_="banner" if plane.distorted else "note")
    tables = tag("div", *(_table(source, plane, side) for side in ("method", "task")), class_="figures")
    lists = tag("details", tag("summary", "All points in numbers"), tag("p", COLUMNS, class_="note"), tables)
    command = code_box(f"neuco predict map {source.id} --out map.svg", "Command that draws this map")
    return section("Map", said, tag("figure", *both), lists, command, id_="predict-map", note=NOTE)


def _table(source: BoardSource, plane: Plane, side: str) -> Safe:
    points, other = (plane.methods, "tasks") if side == "method" else (plane.tasks, "methods")
    title = source.method_title if side == "method" else source.task_title
    numbers = (f"To {other}", "Group", "Off by", "Moves by")
    heads = (side.capitalize(), *((head, "number") for head in numbers))
    rows = [_row(point, tag("a", title(point.name), href=f"{side}/{point.name}.html")) for point in _by_reach(points)]
    return table(heads, rows, caption=f"{side.capitalize()}s, the most central first")


def _by_reach(points: Sequence[MapPoint]) -> list[MapPoint]:
    return sorted(points, key=lambda point: point.reach)


def _row(point: MapPoint, name: Safe) -> tuple[object, ...]:
    numbers = [(f"{point.reach:.2f}", "number"), (str(point.group or "–"), "number")]
    errors = [(f"{number:.2f}", "number" + " moved" * point.doubtful) for number in (point.error, point.moves)]
    return (name, *numbers, *errors)
