"""What the commands print: tables for people, JSON for programs."""

from __future__ import annotations

import io
import json
import os
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from typing import Any, TextIO, TypeVar

import click

from neuco_core import text as canonical
from neuco_core.text import join_names

F = TypeVar("F", bound=Callable[..., Any])
HEADER, TEXT = 9, 24  # the widths below which headers of numbers, and columns of text, are not cut at first
NOT_SHOWN = "Not shown, for lack of room:"


def json_option(command: F) -> F:
    """Add ``--json``, passed on as ``as_json``."""
    words = "Print JSON instead of a table."
    return click.option("--json", "as_json", is_flag=True, callback=_only_json, help=words)(command)


def _only_json(ctx: click.Context, param: click.Parameter, as_json: bool) -> bool:
    """With ``--json``, leave stdout to ``echo_json``: loaders, encoders and kinds of boards may print when they run."""
    if as_json:
        ctx.meta[__name__] = sys.stdout
        ctx.with_resource(redirect_stdout(sys.stderr))
    return as_json


def echo_json(value: object) -> None:
    """Print a value as JSON, the same every time; NaN is refused because JSON has none."""
    lines = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=2, sort_keys=True).split("\n")
    text = "\n".join(line if line.isprintable() else _escaped(line) for line in lines)
    click.echo(text, file=click.get_current_context().meta.get(__name__))


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


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    *,
    drop: Sequence[int] | None = None,
    prefix: str = "",
    strong: Collection[tuple[int, int]] = (),
) -> str:
    """A plain table; the columns whose indices are in ``right`` are aligned right.

    With ``drop`` it fits a terminal: names lose their common ``prefix``; headers and text are cut short; the columns in
    ``drop`` go, the first one first, and a line says which; at last the widest columns are cut. Without, or where there
    is no terminal, it is as wide as it is. On a terminal headers, and the cells ``strong`` (row, column), stand out.
    """
    cells = [[clean(cell) for cell in row] for row in (headers, *rows)]
    columns, limit = list(range(len(headers))), room() if drop is not None else None
    widths = {i: max(_width(row[i]) for row in cells) for i in columns}
    gone: list[int] = []
    if limit:
        cells = [[cell.removeprefix(prefix) if prefix != cell else cell for cell in row] for row in cells]
        widths, gone = _fit(cells, right, drop or (), limit)
        columns = [i for i in columns if i not in gone]
    bold = {(0, i) for i in columns} | {(row + 1, i) for row, i in strong} if coloured() else set()
    lines = [
        "  ".join(_pad(_cut(row[i], widths[i]), widths[i], i in right, (n, i) in bold) for i in columns).rstrip()
        for n, row in enumerate(cells)
    ]
    lines.insert(1, "  ".join("-" * widths[i] for i in columns))
    if gone:
        lines.append(f"{NOT_SHOWN} {join_names([cells[0][i] for i in sorted(gone)], 3)}")
    return "\n".join(lines)


def _fit(
    cells: Sequence[Sequence[str]], right: Collection[int], drop: Sequence[int], limit: int
) -> tuple[dict[int, int], list[int]]:
    """Widths with which a table has room, and the columns that go for it."""
    whole = {i: max(_width(row[i]) for row in cells) for i in range(len(cells[0]))}
    body = {i: max((_width(row[i]) for row in cells[1:]), default=0) for i in whole}
    # Numbers are never cut while anything else can give way.
    least = {i: max(body[i], min(whole[i], HEADER)) if i in right else min(whole[i], TEXT) for i in whole}
    gone: list[int] = []
    while _total(least) > limit and len(gone) < len(drop):
        gone.append(drop[len(gone)])
        del least[gone[-1]]
    while _total(least) > limit and max(least.values()) > 1:
        least[max(least, key=lambda i: least[i])] -= 1
    for i, width in least.items():  # what room is left goes to the first columns
        least[i] = width + max(0, min(whole[i] - width, limit - _total(least)))
    return least, gone


def _total(widths: Mapping[int, int]) -> int:
    return sum(widths.values()) + 2 * (len(widths) - 1)


def _cut(text: str, width: int) -> str:
    """A sentence loses its end, a name its middle: names mostly differ at both ends."""
    kept = len(text)
    while _width(text) > width and kept:
        kept -= 1
        tail = 0 if " " in text.strip() else kept // 2
        cut = text[: kept - tail] + "…" + (text[-tail:] if tail else "")
        if _width(cut) <= width:
            return cut
    return text


def room() -> int | None:
    """How many characters wide the terminal is; ``None`` where output goes elsewhere, and may have any width."""
    if not sys.stdout.isatty():
        return None
    asked = os.environ.get("COLUMNS", "")
    try:
        return int(asked) if asked.isdigit() else os.get_terminal_size(sys.stdout.fileno()).columns or None
    except OSError:
        return None


def coloured() -> bool:
    """Only on a terminal, and not for those who have asked for none (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def say(text: str) -> None:
    """A sentence for people; lines end between words at the width of the terminal."""
    limit = room()
    lines = (
        textwrap.wrap(clean(text), limit, break_long_words=False, break_on_hyphens=False) if limit else [clean(text)]
    )
    click.echo("\n".join(lines))


def clean(text: str) -> str:
    """Names and descriptions come from contributors: no control characters, no second line."""
    return canonical.clean("".join(" " if char.isspace() else char for char in text))


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def _pad(text: str, width: int, right: bool, bold: bool) -> str:
    fill, shown = " " * (width - _width(text)), click.style(text, bold=True) if bold and text else text
    return fill + shown if right else shown + fill
