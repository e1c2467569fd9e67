"""heatisland_std: its facts, and its labels without and with a copy of the dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core import load_task
from neuco_tasks.ssl4eo_s12_downstream import checks


def test_declares_the_published_facts() -> None:
    task = load_task("heatisland_std")
    assert task.kind == "regression"
    assert task.metric == "r2"
    assert not task.control
    checks.check_declaration(task, unit="K", r2=-1.157)


def test_says_what_to_do_without_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_without_data("heatisland_std", tmp_path, monkeypatch)


@pytest.mark.parametrize("file", ["heat-island_std__regr.csv", "heatisland_std__regr.csv"])
def test_reads_a_linked_copy_in_either_spelling(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_linked_copy("heatisland_std", file, tmp_path, monkeypatch)
