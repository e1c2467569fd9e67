"""The pages on runs and records: every command is run, and the tables say what the code says."""

from __future__ import annotations

from pathlib import Path

from neuco_core.records.model import FAILURES
from neuco_core.runs.plan import STATES, TO_RUN
from tests import console


def test_every_command_does_what_the_document_shows(tmp_path: Path, root: Path) -> None:
    text = (root / "docs/howto/run.md").read_text(encoding="utf-8")
    folder = tmp_path / "registry"
    environment = {"HOME": str(tmp_path), "NEUCO_REGISTRY": str(folder), "PYTHONPATH": str(root)}
    for step in console.steps(text):
        done = console.run(step, tmp_path, environment)
        assert done.returncode == 0, done.stdout
        assert step.python or console.matches(step.expected, done.stdout), done.stdout


def test_the_tables_are_complete(root: Path) -> None:
    text = (root / "docs/ref/records.md").read_text(encoding="utf-8")
    for state in STATES:
        runs = "yes" if state in TO_RUN else "no"
        assert any(line.startswith(f"| {state} | ") and line.endswith(f"| {runs} |") for line in text.splitlines()), (
            state
        )
    for failure in FAILURES:
        assert f"\n| {failure} | " in text
