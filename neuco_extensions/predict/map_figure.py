"""The map of methods and tasks: the drawing, for a page or as a file, and what the page of a board shows of it."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from scipy.spatial import ConvexHull

from neuco_core.errors import DataError
from neuco_core.site.figures import tag
from neuco_core.site.page_data import PageData
from neuco_core.site.render import TableCell
from neuco_core.text import common_prefix, counted, one_line
from neuco_extensions.predict.plane import LEAST_METHODS, LEAST_TASKS, MapPoint, Plane, fit_plane
from neuco_extensions.predict.read import from_board

MOST_POINTS = 200  # a map of more is a blot, and takes long
WIDE, NARROW = 1000.0, 366.0
COLUMNS = {WIDE: 3, NARROW: 1}  # of the list of names
LONGEST_NAME = 26  # letters, which may be as wide as they are high
EDGE = 34.0
HIGHEST = {WIDE: 640.0, NARROW: 560.0}
FOOT = 46.0  # the scale and the signs
FONT = 11.0
LINE = 15.0  # of the list of names
UNIT = 0.2
FOG = 2.0  # of all discs together, so that many do not make a grey blot
AROUND = 13.0  # pixels between a point and the line around its group
BESIDE = 8.0  # pixels between a point and its number
log = logging.getLogger(__name__)


def map_of_board(page: PageData) -> dict[str, Any] | None:
    """The map of a board that is large enough for one, and not too large."""
    board = page.board
    enough = len(board.shown) >= LEAST_METHODS and len(board.tasks) >= LEAST_TASKS
    if not enough or len(board.shown) + len(board.tasks) > MOST_POINTS:
        return None
    try:
        plane = fit_plane(from_board(board))
    except DataError as error:  # too many of its cells are empty
        log.info("%s: no map: %s", page.id, error)
        return None
    titles = {point.name: page.method_title(point.name) for point in plane.methods}
    return {
        "plane": plane,
        "drawings": {"wide": Drawing(plane, titles, WIDE).svg(), "narrow": Drawing(plane, titles, NARROW).svg()},
        "warnings": " ".join(plane.warnings("the hollow ones")),
        "methods": _rows(plane.methods, "method", page.method_title),
        "tasks": _rows(plane.tasks, "task", page.task_title),
    }


def _rows(points: Sequence[MapPoint], side: str, title: Callable[[str], str]) -> list[list[TableCell]]:
    rows = []
    for point in sorted(points, key=lambda point: point.reach):
        look = "number moved" if point.doubtful else "number"
        numbers = [TableCell(f"{point.reach:.2f}", "number"), TableCell(str(point.group or "–"), "number")]
        numbers += [TableCell(f"{point.error:.2f}", look), TableCell(f"{point.moves:.2f}", look)]
        rows.append([TableCell(title(point.name), href=f"{side}/{point.name}.html"), *numbers])
    return rows


class Drawing:
    """Numbered points in pixels, turned so that the drawing is wide, or high where it is narrow; and their names."""

    def __init__(self, plane: Plane, titles: Mapping[str, str], width: float = WIDE) -> None:
        self.plane, self.width = plane, width
        self.kinds = ["method"] * len(plane.methods) + ["task"] * len(plane.tasks)
        sides = (short_names(points, titles, LONGEST_NAME) for points in (plane.methods, plane.tasks))
        self.names = [name for side in sides for name in side]
        positions = np.array([(point.x, point.y) for point in plane.points])
        long = int(np.argmax(np.ptp(positions, axis=0)))
        positions = positions[:, ::-1] if long != (width == NARROW) else positions
        span = np.maximum(np.ptp(positions, axis=0), 0.05)
        self.scale = float(min((width - 2 * EDGE) / span[0], (HIGHEST[width] - 2 * EDGE) / span[1]))
        self.floor = round(float(span[1] * self.scale + 2 * EDGE))  # where the scale and the names begin
        self.rows = math.ceil(len(self.names) / COLUMNS[width])
        self.height = round(self.floor + FOOT + LINE * self.rows)
        middle = (positions.min(0) + positions.max(0)) / 2
        self.positions = (positions - middle) * self.scale + [width / 2, self.floor / 2]

    def svg(self) -> Markup:
        title = f"Map of {counted(len(self.plane.methods), 'method')} and {counted(len(self.plane.tasks), 'task')}"
        ground = tag("rect", width=f"{self.width:g}", height=self.height, class_="ground")
        parts = (*self._points(), *self._foot(), *self._names())
        size = {"viewBox": f"0 0 {self.width:g} {self.height}", "width": f"{self.width:g}", "height": self.height}
        return tag("svg", tag("title", title), ground, *parts, **size, role="img", aria_label=title, class_="map")

    def _points(self) -> list[Markup]:
        """Points with their numbers; behind them their errors as discs, dashed where a place is not to be trusted."""
        discs, marks, numbers, faint = [], [], [], f"{min(0.06, FOG / len(self.names)):.3f}"
        points = zip(self.plane.points, self.kinds, self.positions, strict=True)
        for number, (point, kind, (x, y)) in enumerate(points, 1):
            where = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{point.error * self.scale:.1f}"}
            look = f"disc {kind} doubtful" if point.doubtful else f"disc {kind}"
            discs.append(tag("circle", **where, fill_opacity=faint, class_=look))
            title = f"{point.name}: distances off by {point.error:.2f}"
            if point.moves > 0.005:
                title += f"; {point.moves:.2f} away in layouts that fit nearly as well"
            marks.append(_mark(kind, x, y, title, point.doubtful))
            numbers.append(_text(number, x + BESIDE, y + 0.36 * FONT, f"name {kind}"))
        return [*discs, *self._groups(), *marks, *numbers]

    def _groups(self) -> list[Markup]:
        lines, turns = [], np.linspace(0, 2 * np.pi, 24, endpoint=False)
        ring = AROUND * np.stack([np.cos(turns), np.sin(turns)], axis=1)
        keys = [(kind, point.group) for kind, point in zip(self.kinds, self.plane.points, strict=True)]
        for kind, group in dict.fromkeys(keys):
            members = self.positions[[key == (kind, group) for key in keys]]
            if group and len(members) > 1:
                cloud = (members[:, None] + ring).reshape(-1, 2)
                corners = cloud[ConvexHull(cloud).vertices]
                outline = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + "z"
                lines.append(tag("path", d=outline, class_=f"group {kind}"))
        return lines

    def _names(self) -> list[Markup]:
        names = []
        for number, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True)):
            column, row = divmod(number, self.rows)
            left, level = 10 + column * self.width / COLUMNS[self.width], self.floor + FOOT + LINE * row
            names += [_text(number + 1, left, level, f"name {kind}"), _text(name, left + 24, level, f"name {kind}")]
        return names

    def _foot(self) -> list[Markup]:
        top, low, long, wide = self.floor + 8, self.floor + 27, UNIT * self.scale, self.width == WIDE
        unit = "a fifth of the way from a task's best score to its worst" if wide else "a fifth from best to worst"
        bar = tag("path", d=f"M10 {top - 7}v7h{long:.1f}v-7", class_="scale")
        foot = [bar, _text(unit, 18 + long, top, "axis")]
        signs = "disc: how far its distances are off; hollow, with a dashed disc: do not trust its place; line: a group"
        signs = signs if wide else "hollow: do not trust"
        for x, kind in ((15, "method"), (84, "task")):
            foot.append(_mark(kind, x, low - 4, kind, False))
            foot.append(_text(kind, x + 10, low, "axis"))
        return [*foot, _text(signs, 130, low, "axis")]


def _text(text: object, x: float, y: float, look: str) -> Markup:
    return tag("text", text, x=f"{x:.1f}", y=f"{y:.1f}", class_=look)


def _mark(kind: str, x: float, y: float, title: str, hollow: bool) -> Markup:
    look = f"mark {kind} doubtful" if hollow else f"mark {kind}"
    if kind == "method":
        return tag("circle", tag("title", title), cx=f"{x:.1f}", cy=f"{y:.1f}", r="4.5", class_=look)
    return tag("path", tag("title", title), d=f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z", class_=look)


def short_names(points: Sequence[MapPoint], titles: Mapping[str, str], longest: int) -> list[str]:
    """Without what they all begin with, and what follows a dot if that is enough; an id instead of a long title."""
    named = {point.name: titles.get(point.name, point.name) for point in points}
    prefix, heads = common_prefix([*named.values()]), Counter(title.split(" · ")[0] for title in named.values())
    names = []
    for name, title in named.items():
        head = title.split(" · ")[0]
        short = (head if heads[head] == 1 else title).removeprefix(prefix)
        names.append(one_line(name if len(short) > longest >= len(name) else short, longest))
    return names
