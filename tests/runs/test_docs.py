"""docs/ref/records.md: every command in it is run, and its tables say what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core.records.model import FAILURES
from neuco_core.runs.plan import STATES, TO_RUN
from tests import console


@pytest.fixture
def text(root: Path) -> str:
    return (root / "docs/ref/records.md").read_text(encoding="utf-8")


def test_every_command_does_what_the_document_shows(text: str, tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "registry"
    environment = {"HOME": str(tmp_path), "NEUCO_REGISTRY": str(folder), "PYTHONPATH": str(root)}
    for step in console.steps(text):
        done = console.run(step, tmp_path, environment)
        assert done.returncode == 0, done.stdout
        assert step.python or console.matches(step.expected, done.stdout), done.stdout


def test_the_tables_are_complete(text: str) -> None:
    for state in STATES:
        runs = "yes" if state in TO_RUN else "no"
        assert any(line.startswith(f"| {state} | ") and line.endswith(f"| {runs} |") for line in text.splitlines()), (
            state
        )
    for failure in FAILURES:
        assert f"\n| {failure} | " in text
