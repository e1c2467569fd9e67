"""What the tests of the readers share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from neuco_core.errors import DataError


@dataclass(frozen=True)
class Case:
    """Bytes that somebody hands in as a CSV, and either what is read from them or what the error says."""

    name: str
    data: bytes
    error: str = ""
    ids: tuple[str, ...] = ("a", "b")
    values: Any = (1.0, 2.0)
    options: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def refusal(path: Path, error: pytest.ExceptionInfo[DataError]) -> str:
    """The message, which must be one line of a bearable length, and name the file."""
    text = str(error.value)
    assert "\n" not in text
    assert len(text.replace(str(path), "")) < 300
    assert str(path) in text
    return text
