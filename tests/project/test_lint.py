"""The tree is as `make lint` wants it. mypy takes longer and runs in `make lint` only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import python


@pytest.mark.parametrize("command", [("check",), ("format", "--check")])
def test_ruff_finds_nothing(command: tuple[str, ...], root: Path) -> None:
    done = python("-m", "ruff", *command, ".", cwd=root)
    assert done.code == 0, done.text
