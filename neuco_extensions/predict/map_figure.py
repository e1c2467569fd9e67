"""The map of methods and tasks: the drawing, for a page or as a file, and what the page of a board shows of it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unicodedata import east_asian_width

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
LONGEST_NAME = {WIDE: 26, NARROW: 18}
EDGE = {WIDE: 70.0, NARROW: 34.0}
HIGHEST = {WIDE: 640.0, NARROW: 560.0}
FOOT = 46.0  # the scale and the signs
FONT = 11.0
LETTER = 0.6  # mean width of a letter in units of the font's size, rather too much
UNIT = 0.2
FOG = 2.0  # of all discs together, so that many do not make a grey blot
AROUND = 13.0  # pixels between a point and the line around its group
BESIDE = 8.0  # pixels between a point and its name
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
    """The points in numbers, the most central first."""
    rows = []
    for point in sorted(points, key=lambda point: point.reach):
        look = "number moved" if point.doubtful else "number"
        numbers = [TableCell(f"{point.reach:.2f}", "number"), TableCell(str(point.group or "–"), "number")]
        numbers += [TableCell(f"{point.error:.2f}", look), TableCell(f"{point.moves:.2f}", look)]
        rows.append([TableCell(title(point.name), href=f"{side}/{point.name}.html"), *numbers])
    return rows


class Drawing:
    """Points in pixels, turned so that the drawing is wide, or high where it is narrow."""

    def __init__(self, plane: Plane, titles: Mapping[str, str], width: float = WIDE) -> None:
        self.plane, self.width = plane, width
        self.kinds = ["method"] * len(plane.methods) + ["task"] * len(plane.tasks)
        sides = (short_names(points, titles, LONGEST_NAME[width]) for points in (plane.methods, plane.tasks))
        self.names = [name for side in sides for name in side]
        places = np.array([(point.x, point.y) for point in plane.points])
        long = int(np.argmax(np.ptp(places, axis=0)))
        places = places[:, ::-1] if long != (width == NARROW) else places
        span = np.maximum(np.ptp(places, axis=0), 0.05)
        edge = EDGE[width]
        self.scale = float(min((width - 2 * edge) / span[0], (HIGHEST[width] - 2 * edge) / span[1]))
        self.height = round(float(span[1] * self.scale + 2 * edge + FOOT))
        middle = (places.min(0) + places.max(0)) / 2
        self.places = (places - middle) * self.scale + [width / 2, (self.height - FOOT) / 2]
        self.labels = self._label_places()

    def _label_places(self) -> list[tuple[float, float] | None]:
        """For each name its left end, beside its point where nothing else is; one without room is left out."""
        taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in self.places]
        labels: list[tuple[float, float] | None] = []
        for name, (x, y), own in zip(self.names, self.places.tolist(), list(taken), strict=True):
            wide = FONT * sum(1.0 if east_asian_width(letter) in "WF" else LETTER for letter in name)
            labels.append(None)
            lefts = [(x + BESIDE, y), (x - BESIDE - wide, y), (x - wide / 2, y - 14), (x - wide / 2, y + 14)]
            for left, level in lefts:
                box = (left, level - FONT * 0.6, left + wide, level + FONT * 0.6)
                inside = box[0] >= 0 and box[2] <= self.width and box[1] >= 0 and box[3] <= self.height - FOOT
                others = (other for other in taken if other != own)
                if inside and not any(_overlap(box, other) for other in others):
                    labels[-1] = (left, level)
                    taken.append(box)
                    break
        return labels

    def svg(self) -> Markup:
        words = f"Map of {counted(len(self.plane.methods), 'method')} and {counted(len(self.plane.tasks), 'task')}"
        ground = tag("rect", width=f"{self.width:g}", height=self.height, class_="ground")
        parts = (*self._discs(), *self._groups(), *self._marks(), *self._foot())
        size = {"viewBox": f"0 0 {self.width:g} {self.height}", "width": f"{self.width:g}", "height": self.height}
        return tag("svg", tag("title", words), ground, *parts, **size, role="img", aria_label=words, class_="map")

    def _discs(self) -> list[Markup]:
        """The error of each point, as large as it is on the map; dashed where the place is not to be trusted."""
        discs, faint = [], f"{min(0.06, FOG / len(self.names)):.3f}"
        for point, kind, (x, y) in zip(self.plane.points, self.kinds, self.places, strict=True):
            where = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{point.error * self.scale:.1f}"}
            look = f"disc {kind} doubtful" if point.doubtful else f"disc {kind}"
            discs.append(tag("circle", **where, fill_opacity=faint, class_=look))
        return discs

    def _groups(self) -> list[Markup]:
        """A line around the points of each group of two or more."""
        lines, turns = [], np.linspace(0, 2 * np.pi, 24, endpoint=False)
        ring = AROUND * np.stack([np.cos(turns), np.sin(turns)], axis=1)
        keys = [(kind, point.group) for kind, point in zip(self.kinds, self.plane.points, strict=True)]
        for kind, group in dict.fromkeys(keys):
            members = self.places[[key == (kind, group) for key in keys]]
            if group and len(members) > 1:
                cloud = (members[:, None] + ring).reshape(-1, 2)
                corners = cloud[ConvexHull(cloud).vertices]
                outline = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + "z"
                lines.append(tag("path", d=outline, class_=f"group {kind}"))
        return lines

    def _marks(self) -> list[Markup]:
        marks = []
        for point, kind, (x, y) in zip(self.plane.points, self.kinds, self.places, strict=True):
            words = f"{point.name}: distances off by {point.error:.2f}"
            if point.moves > 0.005:
                words += f"; {point.moves:.2f} away in layouts that fit nearly as well"
            marks.append(_mark(kind, x, y, words, point.doubtful))
        for name, kind, label in zip(self.names, self.kinds, self.labels, strict=True):
            if label:
                place = {"x": f"{label[0]:.1f}", "y": f"{label[1] + 0.36 * FONT:.1f}"}
                marks.append(tag("text", name, **place, class_=f"name {kind}"))
        return marks

    def _foot(self) -> list[Markup]:
        """What a distance is, and what the signs mean."""
        top, low, long, wide = self.height - 28, self.height - 9, UNIT * self.scale, self.width == WIDE
        words = "a fifth of the way from a task's best score to its worst" if wide else "a fifth from best to worst"
        bar = tag("path", d=f"M10 {top - 7}v7h{long:.1f}v-7", class_="scale")
        foot = [bar, tag("text", words, x=f"{18 + long:.1f}", y=top, class_="axis")]
        signs = "disc: how far its distances are off; hollow, with a dashed disc: do not trust its place; line: a group"
        signs = signs if wide else "hollow: do not trust"
        unnamed = self.labels.count(None)
        signs += f"; {unnamed} unnamed" if unnamed else ""
        for x, kind in ((15, "method"), (84, "task")):
            foot.append(_mark(kind, x, low - 4, kind, False))
            foot.append(tag("text", kind, x=x + 10, y=low, class_="axis"))
        return [*foot, tag("text", signs, x=130, y=low, class_="axis")]


def _overlap(a: Sequence[float], b: Sequence[float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _mark(kind: str, x: float, y: float, words: str, hollow: bool) -> Markup:
    look = f"mark {kind} doubtful" if hollow else f"mark {kind}"
    if kind == "method":
        return tag("circle", tag("title", words), cx=f"{x:.1f}", cy=f"{y:.1f}", r="4.5", class_=look)
    return tag("path", tag("title", words), d=f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z", class_=look)


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
