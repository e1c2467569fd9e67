"""The plane as a drawing: for a page, whose style sheet colours it, and as a file that is light or dark by itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from unicodedata import east_asian_width

import numpy as np
from scipy.spatial import ConvexHull

from neuco_core.boards.views.site.html import Safe, tag
from neuco_core.text import common_prefix, counted, one_line
from neuco_extensions.predict.labels import arrange
from neuco_extensions.predict.plane import MapPoint, Plane

# For programs that know no style sheets; that of the site has the same, and those for dark.
INK, SOFT, CARD, COLOURS = "#17212b", "#5a6773", "#ffffff", {"method": "#0b7285", "task": "#c2410c"}
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
        widths = [FONT * _ems(name) for name in self.names]
        foot = np.array([[0.0, self.height - FOOT, width, self.height]])
        self.labels = arrange(self.places, widths, FONT * 1.2, (width, self.height), foot)

    @property
    def left_out(self) -> int:
        """Names without room; who is pointed at says it."""
        return sum(label is None for label in self.labels)

    def svg(self, **attributes: object) -> Safe:
        words = f"Map of {counted(len(self.plane.methods), 'method')} and {counted(len(self.plane.tasks), 'task')}"
        size = {"viewBox": f"0 0 {self.width:g} {self.height}", "width": f"{self.width:g}", "height": self.height}
        ground = tag("rect", width=f"{self.width:g}", height=self.height, fill=CARD, class_="ground")
        parts = (*self._discs(), *self._groups(), *self._lines(), *self._marks(), *self._names(), *self._foot())
        inner = (tag("title", words), ground, *parts)
        return tag("svg", *inner, **size, **attributes, role="img", aria_label=words, class_="map")

    def _discs(self) -> list[Safe]:
        """The error of each point, as large as it is on the map; dashed where the place is not to be trusted."""
        found, faint = [], f"{min(0.06, FOG / len(self.names)):.3f}"
        for point, kind, (x, y) in zip(self.plane.points, self.kinds, self.places, strict=True):
            where = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{point.error * self.scale:.1f}"}
            look: dict[str, object] = {"fill": COLOURS[kind], "fill_opacity": faint}
            if point.doubtful:
                look |= {"stroke": COLOURS[kind], "stroke_opacity": "0.4", "stroke_dasharray": "3 4"}
            found.append(tag("circle", **where, **look, class_=f"disc {kind}" + " doubtful" * point.doubtful))
        return found

    def _groups(self) -> list[Safe]:
        """A line around the points of each group of two or more."""
        found, turns = [], np.linspace(0, 2 * np.pi, 24, endpoint=False)
        ring = AROUND * np.stack([np.cos(turns), np.sin(turns)], axis=1)
        keys = [(kind, point.group) for kind, point in zip(self.kinds, self.plane.points, strict=True)]
        for kind, group in dict.fromkeys(keys):
            own = self.places[[key == (kind, group) for key in keys]]
            if group and len(own) > 1:
                cloud = (own[:, None] + ring).reshape(-1, 2)
                corners = cloud[ConvexHull(cloud).vertices]
                line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + "z"
                look = {"fill": "none", "stroke": COLOURS[kind], "stroke_opacity": "0.55"}
                found.append(tag("path", d=line, **look, class_=f"group {kind}"))
        return found

    def _lines(self) -> list[Safe]:
        found = []
        for (x, y), label in zip(self.places, self.labels, strict=True):
            if label and label.line:
                ends = {"x1": f"{x:.1f}", "y1": f"{y:.1f}", "x2": f"{label.line[0]:.1f}", "y2": f"{label.line[1]:.1f}"}
                found.append(tag("line", **ends, stroke=SOFT, stroke_width="0.8", class_="leader"))
        return found

    def _marks(self) -> list[Safe]:
        named = zip(self.plane.points, self.kinds, self.places, strict=True)
        return [_mark(kind, x, y, f"{point.name}: {told(point)}", point.doubtful) for point, kind, (x, y) in named]

    def _names(self) -> list[Safe]:
        found = []
        for name, kind, label in zip(self.names, self.kinds, self.labels, strict=True):
            if label:
                place = {"x": f"{label.x:.1f}", "y": f"{label.y + 0.36 * FONT:.1f}"}
                style = {"font_style": "italic"} if kind == "task" else {}
                found.append(_text(name, **place, fill=COLOURS[kind], **style, class_=f"name {kind}"))
        return found

    def _foot(self) -> list[Safe]:
        """What a distance is, and what the signs mean."""
        top, low, long, wide = self.height - 28, self.height - 9, UNIT * self.scale, self.width == WIDE
        words = "a fifth of the way from a task's best score to its worst" if wide else "a fifth from best to worst"
        bar = tag("path", d=f"M10 {top - 7}v7h{long:.1f}v-7", fill="none", stroke=SOFT, class_="scale")
        found = [bar, _text(words, x=f"{18 + long:.1f}", y=top, fill=SOFT, class_="axis")]
        signs = "disc: how far its distances are off; hollow, with a dashed disc: do not trust its place; line: a group"
        signs = signs if wide else "hollow: do not trust"
        signs += f"; {self.left_out} unnamed" if self.left_out else ""
        for x, kind in ((15, "method"), (84, "task")):
            found.append(_mark(kind, x, low - 4, kind, False))
            found.append(_text(kind, x=x + 10, y=low, fill=SOFT, class_="axis"))
        return [*found, _text(signs, x=130, y=low, fill=SOFT, class_="axis")]


def _ems(name: str) -> float:
    """How wide a name is, in units of the font's size; letters of East Asian scripts are squares."""
    return sum(1.0 if east_asian_width(letter) in "WF" else LETTER for letter in name)


def _mark(kind: str, x: float, y: float, words: str, hollow: bool) -> Safe:
    look = {"fill": CARD if hollow else COLOURS[kind], "stroke": COLOURS[kind], "stroke_width": "2"}
    class_ = f"mark {kind}" + " doubtful" * hollow
    if kind == "method":
        return tag("circle", tag("title", words), cx=f"{x:.1f}", cy=f"{y:.1f}", r="4.5", **look, class_=class_)
    return tag("path", tag("title", words), d=f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z", **look, class_=class_)


def _text(words: str, **attributes: object) -> Safe:
    return tag("text", words, **attributes, font_size=f"{FONT:g}", font_family="sans-serif")


def told(point: MapPoint) -> str:
    """What is known of a point's place."""
    words = f"distances off by {point.error:.2f}"
    return words + (f"; {point.moves:.2f} away in layouts that fit nearly as well" if point.moves > 0.005 else "")


def short_names(points: Sequence[MapPoint], titles: Mapping[str, str], longest: int) -> list[str]:
    """Without what they all begin with, and what follows a dot if that is enough; an id instead of a long title."""
    named = {point.name: titles.get(point.name, point.name) for point in points}
    prefix, heads = common_prefix([*named.values()]), Counter(title.split(" · ")[0] for title in named.values())
    found = []
    for name, title in named.items():
        head = title.split(" · ")[0]
        short = (head if heads[head] == 1 else title).removeprefix(prefix)
        found.append(one_line(name if len(short) > longest >= len(name) else short, longest))
    return found


def standalone(drawing: Drawing) -> str:
    """A file of its own: with what the site's style sheet says of maps, and the colours that it names."""
    sheet = (files("neuco_core.boards.views.site") / "assets" / "style.css").read_text(encoding="utf-8")
    colours = re.search(r":root \{.*?\n\}", sheet, re.DOTALL)
    rules = [colours[0] if colours else "", *(line for line in sheet.splitlines() if line.startswith(".map "))]
    head, rest = drawing.svg(xmlns="http://www.w3.org/2000/svg").split(">", 1)
    return f"{head}><style>{' '.join(rules)}</style>{rest}\n"
