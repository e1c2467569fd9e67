"""The pages about scoring say what the commands do: every command is run, every key and option is named."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from neuco_core.cli.bench import bench
from neuco_core.compat.neuco_bench.config import SEARCH, TOP
from tests import console

DOCS = Path(__file__).resolve().parents[2] / "docs"
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")


def test_commands_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the numbers, which are those of one machine."""
    monkeypatch.delenv("NEUCO_OFFLINE")
    shutil.copytree(DOCS.parent / "registry", tmp_path / "registry")
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    for step in console.steps((DOCS / "scoring.md").read_text(encoding="utf-8")):
        done = console.run(step, tmp_path, {"HOME": str(tmp_path)})
        assert done.returncode == 0, f"{step.command}:\n{done.stdout}"
        shown = tuple(NUMBER.sub("#", line) for line in step.expected)
        assert console.matches(shown, NUMBER.sub("#", done.stdout)), f"{step.command}:\n{done.stdout}"


def test_every_key_and_option_of_bench_is_explained() -> None:
    text = (DOCS / "bench.md").read_text(encoding="utf-8")
    for key in (*TOP, *SEARCH):
        assert f"`{key}`" in text, key
    for option in bench.params:
        assert any(f"`{name}`" in text for name in option.opts), option.name


def test_links_between_the_pages() -> None:
    for page in ("scoring.md", "bench.md"):
        for target in re.findall(r"\]\(([^)#]+)", (DOCS / page).read_text(encoding="utf-8")):
            assert (DOCS / target).exists(), target
