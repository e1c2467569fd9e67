"""Panels of extensions: a tab of a board, a section of a method or a task; one that fails harms nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from neuco_core.site import render
from neuco_core.site.board_page import board_page
from neuco_core.site.item_pages import method_page, scales, task_page
from neuco_core.site.page_data import PageData
from neuco_core.specs import Panel
from tests.site.made_pages import IMAGE, made_source


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
    on = scales(source)
    assert f"{source.board.rows[0].method} A made-up suite" in method_page(source, source.board.rows[0], on)
    assert "t00 A made-up suite" in task_page(source, source.board.tasks[0], on)
