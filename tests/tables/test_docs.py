"""docs/formats.md: its code runs, and its example of a label file is read as it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from neuco_core.tables.labels import read_labels
from neuco_tasks.ssl4eo_s12_downstream import fake


@pytest.fixture
def text(root: Path) -> str:
    return (root / "docs" / "formats.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_code_runs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.write_folder(tmp_path / "copy", count=3, side=8)
    monkeypatch.setenv("NEUCO_DATASET_SSL4EO_S12_DOWNSTREAM", str(tmp_path / "copy"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    code = blocks(text, "python")
    assert len(code) == 5
    for block in code:
        exec(compile(block, "docs/formats.md", "exec"), names)
    assert names["same"].identical(names["cube"])
    assert names["batch"].seasons == ("spring", "fall")
    assert names["sample"]["image"].shape[1:] == (2, 1, 8, 8)
    assert names["labels"].verified
    assert (names["found"].dim, names["found"].ids) == (2, ("0007", "0009"))


def test_the_example_is_read_as_it_says(text: str, tmp_path: Path) -> None:
    (example,) = blocks(text, "csv")
    (tmp_path / "x.csv").write_text(example)
    labels = read_labels(tmp_path / "x.csv", "regression")
    assert labels.ids == ("0007", "0009")
    assert labels.dropped == {"empty_label": 1}
