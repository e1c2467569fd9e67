"""What the commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import click

from neuco_core import text as canonical

F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """Add ``--json``, passed on as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)


def echo_json(value: object) -> None:
    """Print a value as JSON, the same every time; NaN is refused because JSON has none."""
    lines = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=2, sort_keys=True).split("\n")
    click.echo("\n".join(line if line.isprintable() else _escaped(line) for line in lines))


def _escaped(line: str) -> str:
    """The same JSON; unprintable characters occur only in strings, and ``json`` escapes only some of them."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    """A plain table; the columns whose indices are in ``right`` are aligned right."""
    cells = [[clean(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(_width(row[i]) for row in cells) for i in range(len(headers))]
    lines = ["  ".join(_pad(cell, widths[i], i in right) for i, cell in enumerate(row)).rstrip() for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def clean(text: str) -> str:
    """Names and descriptions come from contributors: no control characters, no second line."""
    return canonical.clean("".join(" " if char.isspace() else char for char in text))


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def _pad(text: str, width: int, right: bool) -> str:
    fill = " " * (width - _width(text))
    return fill + text if right else text + fill
