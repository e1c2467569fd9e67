"""The page on sizes prints what it shows, and names every coder."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core.plugins.catalog import catalog
from neuco_core.specs import Coder
from neuco_extensions.coded.probe import OURS
from tests import console
from tests.fetch.helpers import own_settings


def test_the_commands_print_what_the_page_shows(
    root: Path, committed_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (root / "docs/howto/rate.md").read_text(encoding="utf-8")
    own_settings(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    settings = {"HOME": str(tmp_path), "COLUMNS": "200", "NEUCO_REGISTRY": str(committed_registry)}
    for variable, value in settings.items():
        monkeypatch.setenv(variable, value)
    assert len(console.steps(text)) >= 3
    assert not console.play(text, tmp_path, settings, {})


def test_the_page_names_every_coder(root: Path) -> None:
    text = (root / "docs/howto/rate.md").read_text(encoding="utf-8")
    ours = [key.removeprefix(OURS) for key in catalog().all(Coder) if key.startswith(OURS)]
    assert len(ours) > 14
    assert [name for name in ours if f"`{name}" not in text] == []
