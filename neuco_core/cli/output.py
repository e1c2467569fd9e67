"""What the commands print: tables for people, JSON for programs."""

from __future__ import annotations

import io
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Collection, Sequence
from contextlib import redirect_stdout, suppress
from typing import Any, TextIO, TypeVar

import click

from neuco_core import text as canonical

F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """Add ``--json``, passed on as ``as_json``."""
    words = "Print JSON instead of a table."
    return click.option("--json", "as_json", is_flag=True, callback=_only_json, help=words)(command)


def _only_json(ctx: click.Context, param: click.Parameter, as_json: bool) -> bool:
    if as_json:
        only_data(ctx)
    return as_json


def only_data(ctx: click.Context) -> None:
    """Leave stdout to ``echo_data``: loaders, encoders and kinds of boards may print when they run."""
    ctx.meta[__name__] = sys.stdout
    ctx.with_resource(redirect_stdout(sys.stderr))


def echo_data(text: str) -> None:
    click.echo(text, nl=False, file=click.get_current_context().meta.get(__name__))


def echo_json(value: object) -> None:
    echo_data(json_text(value))


def json_text(value: object) -> str:
    """A value as JSON, the same every time; NaN is refused because JSON has none."""
    lines = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=2, sort_keys=True).split("\n")
    return "\n".join(line if line.isprintable() else _escaped(line) for line in lines) + "\n"


def warn_of_suites() -> None:
    """Say what is wrong with suites, wherever suites are listed or used; the others work as ever."""
    from neuco_core.plugins.catalog import catalog

    for name, error in catalog().suite_problems().items():
        click.echo(clean(f"neuco: warning: suite {name!r} cannot be used: {error}"), err=True)


class OwnStream(io.TextIOWrapper):
    """A copy of one of the process's streams, which no process inherits that a plugin may start."""

    def __init__(self, old: TextIO, number: int) -> None:
        file = os.fdopen(os.dup(number), "wb")
        super().__init__(file, old.encoding, old.errors, line_buffering=old.isatty() or number == 2)

    def close(self) -> None:
        """Nothing: a plugin may close what it takes for its own, and the answer or the error is still to come."""


def keep_stdout() -> None:
    """Keep the process's stdout for Python's ``sys.stdout``; what writes past it, e.g. a C library, gets stderr."""
    old = sys.__stdout__
    if old is None or sys.__stderr__ is None or (sys.stdout, sys.stderr) != (old, sys.__stderr__):
        return  # closed, or not the process's own
    old.flush()
    sys.stdout, sys.stderr = OwnStream(old, 1), OwnStream(sys.__stderr__, 2)
    os.dup2(2, 1)


def end_stdout() -> None:
    """The answer is complete: what a plugin prints when the process ends goes to stderr."""
    if isinstance(sys.stdout, OwnStream):
        with suppress(OSError):
            sys.stdout.flush()
        sys.stdout = sys.stderr


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
