"""What the pages show, and that it is true: scales, colours, words, links, and files left over from an earlier site."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from neuco_core.boards.model import Board, BoardCell, BoardRow, BoardTask, Column, Interval, Section
from neuco_core.plugins.catalog import load_task
from neuco_core.site import render
from neuco_core.site.board_page import board_page, view_data
from neuco_core.site.board_table import heat, shades, short_names
from neuco_core.site.figures import Scale, scale, text
from neuco_core.site.item_pages import details_script, method_page, record_facts, strips, task_page
from neuco_core.site.page_data import PageData, gather, label_histogram
from neuco_core.site.render import environment
from neuco_core.site.write import LIST, read_list, write_site
from neuco_core.specs import Panel
from tests.parts import missing
from tests.site.made_pages import IMAGE, Elements, made_source, turned


def strip(splits: tuple[float, ...], mean: float, interval: Interval | None, on: Scale) -> str:
    return str(environment().globals["figures"].strip(splits, mean, interval, on, "", "x"))  # type: ignore[attr-defined]


def test_what_lies_beyond_a_strip_is_an_arrow_with_its_value() -> None:
    drawn = strip((0.5, 7.0, 9.0), 5.5, Interval(5.0, 6.0), Scale(0.0, 1.0))
    assert drawn.count("h0") == 1
    assert 'class="dot"' not in drawn
    assert 'class="bar"' not in drawn
    assert drawn.count('class="beyond"') == 2
    assert "<title>2 splits beyond the axis: 7.000 to 9.000</title>▸" in drawn
    assert "<title>mean beyond the axis: 5.500</title>▸" in drawn
    assert "2 of 3 splits beyond the axis" in drawn
    below = strip((), 0.1, Interval(-2.0, 0.2), Scale(0.0, 1.0))
    assert "<title>interval beyond the axis, to −2.000</title>◂" in below
    assert 'class="dot"' in below
    assert "beyond" not in strip((0.0, 1.0), 0.5, Interval(0.4, 0.6), Scale(0.0, 1.0))
    source = made_source(methods=4, tasks=2)
    assert "an arrow at its edge" in task_page(source, source.board.tasks[0], strips(source))


def test_only_the_bad_end_of_a_scale_is_cut() -> None:
    values = [1.0, 1.5, 2.0, 2.5, 3.0, 1e6]
    assert scale(values, greater_is_better=False).high < 4
    assert scale(values, greater_is_better=True).high > 1e6
    assert scale([-value for value in values], greater_is_better=True).low > -4
    assert scale([-value for value in values], greater_is_better=False).low < -1e6


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-40712.3, 12345.678, ("−4.07e4", "1.23e4")),
        (12345.1, 12346.9, ("12345", "12347")),
        (0.12345, 0.98765, ("0.123", "0.988")),
        (-1.5e-7, 2e-7, ("−1.5e−7", "2e−7")),
    ],
)
def test_the_ends_of_an_axis_are_short_and_differ(low: float, high: float, words: tuple[str, str]) -> None:
    drawn = str(environment().globals["figures"].strip_axis(Scale(low, high)))  # type: ignore[attr-defined]
    assert tuple(re.findall(r'class="axis(?: end)?">([^<]+)<', drawn)) == words


def heat_of(means: list[float], greater_is_better: bool = True) -> Callable[[float], int] | None:
    task = BoardTask("t", greater_is_better=greater_is_better)
    rows = [BoardRow(f"m{i}", 1, cells={"t": BoardCell({"score": mean})}) for i, mean in enumerate(means)]
    board = Board(kind="made", columns=(), rows=tuple(rows), rule="", tasks=(task,))
    return heat(board, board.cell_columns[0], task)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("count", [3, 5, 8, 40])
def test_heat_is_not_bleached_and_only_the_best_is_bold(sign: int, count: int) -> None:
    means = [-sign * 1e6, *(sign * i / count for i in range(1, count))]
    level = heat_of(means, greater_is_better=sign > 0)
    assert level is not None
    levels = [level(mean) for mean in means]
    assert levels == sorted(levels)
    assert levels[0] == levels[1] == 0
    assert [level == 10 for level in levels] == [False] * (count - 1) + [True]
    assert len(set(levels)) >= min(count - 1, 9)


@pytest.mark.parametrize("name", ["site", "odd"])
def test_every_page_can_be_reached_and_every_file_is_listed(name: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(name)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert read_list(folder / LIST).keys() == files - {LIST}
    waiting, seen = [(folder / "index.html").resolve()], set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        elements = Elements(path.read_text(encoding="utf-8"))
        waiting += [(path.parent / link).resolve() for link in elements.links if link.endswith(".html")]
        # What scrolls can be reached by keyboard, and has a name of its own.
        boxes = [a for name, a in elements.started if name == "pre" or "scroll" in (a.get("class") or "").split()]
        assert all(box.get("tabindex") == "0" and box.get("role") == "region" for box in boxes), path
        labels = [box.get("aria-label") for box in boxes]
        assert all(labels), path
        assert len(set(labels)) == len(labels), path
    assert seen == {path.resolve() for path in folder.rglob("*.html")}


def test_few_methods_and_tasks_without_a_score_say_so(odd: Path, site: Path) -> None:
    page = (odd / "boards/alone/index.html").read_text(encoding="utf-8")
    assert "1 ranked method, 1 task" in page
    assert "Only one method is ranked" in page
    for words in ("separated from", "changes no order", "1 methods", "P(first) 1"):
        assert words not in page
    assert not re.search(r'class="cell h\d', page), "there is no colour where nothing differs"
    failed = [(odd / f"boards/failed/{name}.html").read_text(encoding="utf-8") for name in ("task/t00", "method/m000")]
    assert "No scores yet" in failed[0]
    assert "<table" not in failed[0]
    assert "Dots are" not in "".join(failed)
    assert "not ranked" in (odd / "boards/nobody/index.html").read_text(encoding="utf-8")
    # Published means are not called a distribution.
    published = next((site / "boards/neuco-paper-table-4/method").glob("*.html")).read_text(encoding="utf-8")
    assert "Distribution" not in published
    assert "Mean on the scale of the task" in published


@pytest.mark.parametrize("means", [[], [0.5], [0.5, 0.5, 0.5]])
def test_there_is_no_heat_where_nothing_differs(means: list[float]) -> None:
    assert heat_of(means) is None


def test_tasks_where_less_is_better_say_so() -> None:
    source = turned(made_source(methods=4, tasks=2), 1)
    page = board_page(source)
    assert page.count('title="t01 (lower is better)"') == 1
    assert short_names(source.board.tasks) == {"t00": "t00", "t01": "t01"}
    assert page.count("<small>lower is better</small>") == 1
    assert "None" not in page
    on = strips(source)
    assert "<dd>lower is better</dd>" not in task_page(source, source.board.tasks[0], on)
    assert "<dd>lower is better</dd>" in task_page(source, source.board.tasks[1], on)
    assert method_page(source, source.board.rows[0], on).count("lower is better") == 1
    first = source.board.rows[0]
    interval = first.intervals["rank"]
    assert f'<b>1</b><small class="range">{interval.low}–{interval.high}</small>' in page
    assert "Splits cannot show what would change if an encoder were trained again" in page
    assert "How often the method is first if splits are resampled" in page
    assert "<dt>P(first)</dt>" in method_page(source, first, on)
    command = f"neuco score --method {first.method} --task t00 --protocol neuco-2025"
    assert command in task_page(source, source.board.tasks[0], on)


def test_classes_have_a_bar_and_a_name_each() -> None:
    histogram = label_histogram(load_task("digits_class"))
    assert histogram is not None
    assert histogram.classes == tuple("0123456789")
    source = dataclasses.replace(made_source(methods=4, tasks=2), labels={"t00": histogram})
    page = task_page(source, source.board.tasks[0], strips(source))
    assert "1797 labels, 10 classes" in page
    assert re.findall(r'class="axis middle">(\d)<', page) == list("0123456789")
    assert page.count('class="count"') == 10


def test_a_second_site_leaves_no_pages_of_the_first(tmp_path: Path) -> None:
    write_site([made_source(methods=5, tasks=2), made_source(methods=3, tasks=2, name="other")], tmp_path)
    theirs, changed = tmp_path / "boards/made/method/mine.html", tmp_path / "boards/made/method/m004.html"
    theirs.write_text("mine", encoding="utf-8")
    changed.write_text("changed by somebody", encoding="utf-8")
    write_site([made_source(methods=3, tasks=1)], tmp_path)
    names = {path.name for path in (tmp_path / "boards/made/method").iterdir()}
    assert names == {"m000.html", "m001.html", "m002.html", "mine.html", "m004.html", "m000.js", "m001.js"}
    assert not (tmp_path / "boards/other").exists()
    assert not (tmp_path / "boards/made/task/t01.html").exists()


def test_a_full_disk_is_an_error_with_a_cure_and_leaves_the_site_as_it_was(
    tmp_path: Path, committed_registry: Path
) -> None:
    if shutil.which("bwrap") is None:
        missing("bubblewrap", "it makes the small disk; see ci/parts.sh")
    command = [sys.executable, "-m", "neuco_core.cli", "leaderboard", "site", "--out", f"{tmp_path}/site", "olinda"]
    script = f'mkdir {tmp_path}/site; echo old > {tmp_path}/site/index.html; {shlex.join(command)}; echo "code $?"; '
    script += f"find {tmp_path} -type f; cat {tmp_path}/site/index.html"
    inside = ["bwrap", "--dev-bind", "/", "/", "--size", "200000", "--tmpfs", str(tmp_path), "--", "sh", "-c", script]
    environment = {**os.environ, "NEUCO_REGISTRY": str(committed_registry)}
    done = subprocess.run(inside, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == f"code 4\n{tmp_path}/site/index.html\nold\n"
    assert done.stderr.endswith(
        f"neuco: error: the site cannot be written: No space left on device ({tmp_path}/site). "
        "Make room there, or choose another --out\n"
    )


EMPTY = sha256(b"").hexdigest()


@pytest.mark.parametrize(
    ("listed", "path"),
    [
        ("../outside.txt", "outside.txt"),
        ("link/outside.txt", "outside.txt"),
        *((name, f"site/{name}") for name in (".git/HEAD", "boards/made/notes.html", "assets/x/y.css", "index.html\n")),
        ("boards/../.git/HEAD", "site/.git/HEAD"),
        ("/WHOLE/mine.txt", "site/mine.txt"),
    ],
)
def test_a_list_that_was_edited_removes_nothing_that_no_site_writes(tmp_path: Path, listed: str, path: str) -> None:
    out, kept = tmp_path / "site", tmp_path / path
    (out / "boards").mkdir(parents=True)
    (out / "link").symlink_to(tmp_path)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(b"")
    names = {listed.replace("/WHOLE", str(out)): EMPTY, "x" * 300: EMPTY, "a": 5}
    (out / LIST).write_text(json.dumps(names), encoding="utf-8")
    write_site([made_source(methods=2, tasks=1, name="other", replicates=10)], out)
    assert kept.exists()
    (out / LIST).write_text("[", encoding="utf-8")
    assert read_list(out / LIST) == {}


def test_names_of_tasks_lose_what_they_share() -> None:
    def names(*ids: str) -> list[str]:
        return list(short_names([BoardTask(name) for name in ids]).values())

    assert names("mini_biomass_mean", "mini_clouds") == ["biomass mean", "clouds"]
    assert names("a_x", "a_x_y") == ["x", "x y"]
    assert names("alone_task") == ["alone task"]
    assert names("biomass", "biota") == ["biomass", "biota"]


def test_a_copy_is_named_beside_the_method_that_it_is() -> None:
    source = made_source(methods=5, tasks=2)
    first, second, *rest = source.board.rows
    twin = structs.replace(second, rank=None, same_as=first.method, intervals={})
    copied = dataclasses.replace(source, board=structs.replace(source.board, rows=(first, *rest, twin), groups=()))
    page = board_page(copied)
    assert f">= {twin.method}</small>" in page
    assert page.count('<th scope="row" class="name">') == 4
    assert [row["id"] for row in view_data(copied, shades(copied))["rows"]] == [r.method for r in (first, *rest)]
    assert "the same as" in page
    assert "The same as" in method_page(copied, twin, strips(copied))


def test_robustness_is_tinted_by_the_places_moved() -> None:
    source = made_source(methods=4, tasks=2)
    columns = (
        Column("method", "Method", format="method"),
        Column("a", "A", format="rank"),
        Column("b", "B", format="range"),
    )
    first = source.board.rows[0].method
    lead = f"{first} is first; nobody moves without task {source.board.tasks[0].id}."
    part = Section("Other rules", columns, ((first, 1, Interval(1, 3)),), lead=lead, about="robustness")
    page = board_page(dataclasses.replace(source, board=structs.replace(source.board, sections=(part,))))
    named = f"{source.method_title(first)} is first; nobody moves without task {source.task_title('t00')}."
    assert text(named) in page  # people know methods by their titles
    assert '<td class="number m0">1</td><td class="number m2">1–3</td>' in page


def test_the_cells_of_a_method_are_told_with_their_record(committed_registry: Path) -> None:
    (source,) = gather(committed_registry, ["mini"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", source.updated)
    words = details_script(source, "pca", {"random": [None]})
    assert words.startswith('neuco.give("pca", {"against":{"random":[null]},"tasks":{"mini_biomass_mean":')
    facts = dict(record_facts(source, "pca", "mini_clouds"))
    assert len(facts["Labels (sha256)"]) == len(facts["Record"]) == 64
    line = "neuco verify pca/mini_clouds"
    assert line in words
    assert line in method_page(source, next(r for r in source.board.rows if r.method == "pca"), strips(source))
    page = task_page(source, source.board.tasks[0], strips(source))
    assert page.count("<img ") == 4
    assert "spring · summer · fall · winter" in page
    assert source.pictures["mini_clouds"][0].png().startswith(b"\x89PNG")


class Catalog:
    """A catalogue with these panels."""

    def __init__(self, *panels: Panel) -> None:
        self.panels = {panel.id: panel for panel in panels}

    def all(self, kind: type[Panel]) -> Mapping[str, Panel]:
        return self.panels


def hostile(page: PageData, subject: str = "") -> dict[str, Any]:
    return {"words": IMAGE, "subject": subject}


def broken(page: PageData, subject: str = "") -> dict[str, Any]:
    raise RuntimeError("a stranger's mistake")


def nothing(page: PageData, subject: str = "") -> None:
    return None


def test_a_panel_is_shown_escaped_and_a_broken_or_empty_one_harms_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    template = "<p class='mine'>{{ words }} {{ subject }} {{ page.title }}</p>"
    panels = [
        Panel(id="broken", title="Broken", data=broken, template=template),
        Panel(id="missing", title="Missing", data=hostile, template="{{ not_given }}"),
        Panel(id="nowhere", title="Nowhere", data="no.such.module:data", template=template),
        Panel(id="nothing", title="Nothing", data=nothing, template=template),
        Panel(id="shown", title=f"Shown {IMAGE}", data=hostile, template=template),
        Panel(id="of-method", title="Of a method", data=hostile, template=template, about="method"),
        Panel(id="of-task", title="Of a task", data=hostile, template=template, about="task"),
    ]
    monkeypatch.setattr(render, "catalog", lambda: Catalog(*panels))
    source = made_source(methods=4, tasks=2, replicates=10)
    page = board_page(source)
    assert [panel.id for panel in render.panels(source, "board")] == ["shown"]
    assert '<a href="#shown">Shown &lt;img' in page
    assert "<p class='mine'>&lt;img" in page
    assert IMAGE not in page
    for name in ("broken", "missing", "nowhere"):
        assert f"the panel {name} is left out" in caplog.text
    on = strips(source)
    assert f"{source.board.rows[0].method} A made-up suite" in method_page(source, source.board.rows[0], on)
    assert "t00 A made-up suite" in task_page(source, source.board.tasks[0], on)
