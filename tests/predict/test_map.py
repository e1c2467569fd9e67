"""Methods and tasks as points of a plane, with what is wrong about each; and the drawing of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from neuco_core.errors import DataError
from neuco_core.site.write import standalone
from neuco_extensions.predict.map_figure import FONT, NARROW, WIDE, Drawing, short_names
from neuco_extensions.predict.plane import FAR, POOR, MapPoint, fit_plane, grouped
from neuco_extensions.predict.table import gaps
from tests.command import neuco_here as neuco
from tests.predict.test_predictor import as_table, made, written
from tests.site.made_pages import IMAGE, MARKUP


def test_errors_are_what_the_distances_are_off() -> None:
    table = made(10, 6)
    plane = fit_plane(table)
    ends = [np.array([(point.x, point.y) for point in side]) for side in (plane.methods, plane.tasks)]
    off = np.hypot(*(ends[0][:, None] - ends[1]).transpose(2, 0, 1)) - gaps(table.values)
    assert [p.error for p in plane.methods] == pytest.approx(np.sqrt(np.nanmean(off**2, 1)), abs=1e-3)
    assert [p.error for p in plane.tasks] == pytest.approx(np.sqrt(np.nanmean(off**2, 0)), abs=1e-3)
    wanted = np.sqrt(np.nansum(off**2) / np.nansum(gaps(table.values) ** 2))
    assert plane.stress == pytest.approx(wanted, abs=1e-3)
    assert [p.known for p in plane.methods] == table.known.sum(1).tolist()


def test_units_of_tasks_do_not_matter_it_is_the_same_twice_and_more_starts_fit_better() -> None:
    table = made(8, 5, share=1.0)
    other = replace(table, values=7 * table.values - 100)
    first, again, second = fit_plane(table), fit_plane(table), fit_plane(other)
    assert first == again
    assert [p.x for p in first.points] == pytest.approx([p.x for p in second.points], abs=0.02)
    large = made(15, 9)
    assert fit_plane(large).stress < fit_plane(large, starts=1).stress


def test_tasks_that_order_methods_alike_are_a_group() -> None:
    order = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    values = np.stack([order + 0.01 * t for t in range(3)] + [order[::-1] + 0.01 * t for t in range(3)], axis=1)
    plane = fit_plane(as_table(values))
    assert [p.group for p in plane.tasks] == [1, 1, 1, 2, 2, 2]
    assert plane.stress < POOR
    assert grouped(np.random.default_rng(0).normal(size=(40, 2))) == [0] * 40


def test_who_is_good_at_everything_is_central() -> None:
    values = np.add.outer(np.arange(6.0), np.zeros(5)) + np.random.default_rng(0).normal(0, 0.2, (6, 5))
    plane = fit_plane(as_table(values))
    assert min(plane.methods, key=lambda point: point.reach).name == "m5"
    assert max(plane.methods, key=lambda point: point.reach).name == "m0"


def test_a_table_that_no_plane_holds_is_said_to_be_distorted() -> None:
    plane = fit_plane(as_table(np.random.default_rng(0).normal(size=(12, 12))))
    assert plane.distorted
    assert plane.doubtful
    first, second = plane.warnings("marked")
    assert "distances are distorted" in first
    assert f"{len(plane.doubtful)} of 24 points, marked" in second
    assert all(p.error > FAR or p.moves > FAR for p in plane.doubtful)


def test_who_has_too_few_results_is_left_out_and_small_tables_are_refused() -> None:
    values = made(8, 6, share=1.0).values
    values[0, 2:] = np.nan
    table = replace(made(8, 6), values=values)
    assert "m0" not in [p.name for p in fit_plane(table).methods]
    with pytest.raises(DataError, match="too small for a map"):
        fit_plane(made(4, 6, share=1.0))


def test_equal_scores_and_huge_tables_are_defined() -> None:
    plane = fit_plane(as_table(np.ones((6, 5))))
    assert plane.stress == pytest.approx(0, abs=1e-3)
    assert Drawing(plane, {}).svg().count("<text") > 5
    with pytest.raises(DataError, match="too large for a map; expected at most 1000 methods and tasks"):
        fit_plane(as_table(np.ones((10_000, 200))))


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_point_is_numbered_and_each_name_has_room(width: float) -> None:
    """Also of letters as wide as they are high; not every machine has a font to see it."""
    table, letters = made(20, 10), "地球観測基盤モデル地球観測基盤モデル地球観測基盤モデル"
    plane = fit_plane(replace(table, methods=tuple(f"{letters}{number:02}" for number in range(20))))
    drawing = Drawing(plane, {}, width)
    texts = [part for part in ElementTree.fromstring(drawing.svg()).iter("text") if "name" in part.get("class", "")]
    beside, listed, names = texts[:30], texts[30::2], texts[31::2]
    assert [part.text for part in beside] == [part.text for part in listed] == [str(number + 1) for number in range(30)]
    assert [part.text for part in names] == drawing.names
    column = width / (len({part.get("x") for part in names}))
    for number, name in zip(listed, names, strict=True):
        assert float(name.get("x", "")) + FONT * len(name.text or "") <= float(number.get("x", "")) + column
        assert drawing.floor < float(name.get("y", "")) < drawing.height
    assert len({(part.get("x"), part.get("y")) for part in names}) == 30


def test_names_are_as_short_as_they_can_be_and_still_differ() -> None:
    def named(titles: dict[str, str]) -> list[str]:
        points = [MapPoint(name, 0, 0, 0, 0, 0, 3) for name in titles]
        return short_names(points, titles, 12)

    assert named({"a": "Clay · 1", "b": "DOFA · 1", "c": "DOFA · 2"}) == ["Clay", "DOFA · 1", "DOFA · 2"]
    assert named({"mini_a": "mini_a", "mini_b": "mini_b"}) == ["a", "b"]
    assert named({"pre": "A very long title, pre", "post": "A very long title, post"}) == ["pre", "post"]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_drawing_is_whole_and_names_cannot_do_anything(width: float) -> None:
    table = replace(made(8, 5, share=1.0), methods=(IMAGE, MARKUP, *"cdefgh"))
    plane = fit_plane(table)
    drawn = ElementTree.fromstring(standalone(Drawing(plane, {}, width).svg()))
    space = "{http://www.w3.org/2000/svg}"
    marks = [part for part in drawn.iter() if "mark" in part.get("class", "").split()]
    assert len(marks) == 13 + 2  # and two in the legend
    assert any((part.text or "").startswith(IMAGE) for part in drawn.iter(f"{space}title"))
    assert {part.tag.removeprefix(space) for part in drawn.iter()} == {
        *("svg", "style", "title", "rect", "circle", "path", "text")
    }
    assert standalone(Drawing(plane, {}, width).svg()).count("http") == 1  # the name space


def test_map_at_the_command_line(tmp_path: Path) -> None:
    picture, numbers = tmp_path / "map.svg", tmp_path / "map.json"
    table, small = written(tmp_path / "known.csv", made(10, 6)), written(tmp_path / "small.csv", made(4, 6))
    shown = neuco("predict", "map", table, "--out", picture)
    assert shown.code == 0
    assert f"Stress {fit_plane(made(10, 6)).stress:.3f}" in shown.out
    assert ElementTree.parse(picture).getroot().get("class") == "map"
    before = picture.read_bytes()
    assert neuco("predict", "map", table, "--out", picture).code == 0
    assert picture.read_bytes() == before
    plane = neuco("predict", "map", table, "--out", numbers, "--json").json
    assert plane == json.loads(numbers.read_text())
    assert len(plane["methods"]) == 10
    refused = neuco("predict", "map", table, "--out", tmp_path / "map.png")
    assert refused.code == 2
    assert ".svg or .json" in refused.err
    assert "too small for a map" in neuco("predict", "map", small).err
