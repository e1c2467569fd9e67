"""random_cls: its facts, and its labels without and with a copy of the dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core import load_task
from neuco_tasks.ssl4eo_s12_downstream import checks


def test_declares_the_published_facts() -> None:
    task = load_task("random_cls")
    assert task.kind == "classification"
    assert task.metric == "f1"
    assert task.control
    checks.check_declaration(task, unit="", r2=None)


def test_says_what_to_do_without_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_without_data("random_cls", tmp_path, monkeypatch)


def test_reads_a_linked_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_linked_copy("random_cls", "random_cls__cls.csv", tmp_path, monkeypatch)
