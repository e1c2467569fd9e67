"""random_reg: its facts, and its labels without and with a copy of the dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core import load_task
from neuco_tasks.ssl4eo_s12_downstream import checks


def test_declares_the_published_facts() -> None:
    task = load_task("random_reg")
    assert task.kind == "regression"
    assert task.metric == "r2"
    assert task.control
    checks.check_declaration(task, unit="1", r2=None)


def test_says_what_to_do_without_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_without_data("random_reg", tmp_path, monkeypatch)


def test_reads_a_linked_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_linked_copy("random_reg", "random_reg__regr.csv", tmp_path, monkeypatch)
