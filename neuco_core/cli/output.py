"""What the commands print: tables for people, JSON for programs."""

from __future__ import annotations

import io
import json
import os
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any, TypeVar

import click
from rich.cells import cell_len

from neuco_core import text as canonical
from neuco_core.plugins.catalog import catalog
from neuco_core.text import join_names

F = TypeVar("F", bound=Callable[..., Any])
NARROW = 24  # characters that a column of sentences keeps before other columns are dropped for it
WHOLE_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
NOT_SHOWN = "Not shown, for lack of room:"


def json_option(command: F) -> F:
    """Add ``--json``, passed on as ``as_json``."""
    line = "Print JSON instead of a table."
    return click.option("--json", "as_json", is_flag=True, callback=_only_json, help=line)(command)


def _only_json(ctx: click.Context, param: click.Parameter, as_json: bool) -> bool:
    if as_json:
        only_data(ctx)
    return as_json


def only_data(ctx: click.Context) -> None:
    """Leave stdout to ``echo_data``: loaders, encoders and kinds of boards may print when they run."""
    if __name__ not in ctx.meta:
        ctx.meta[__name__] = sys.stdout
        ctx.with_resource(redirect_stdout(sys.stderr))


def echo_data(text: str) -> None:
    click.echo(text, nl=False, file=click.get_current_context().meta.get(__name__))


def echo_json(value: object) -> None:
    echo_data(json_text(value))


def echo_rows(
    as_json: bool,
    data: object,
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    drop: Sequence[int] | None = None,
) -> None:
    """A table for people, or the data behind it for programs."""
    if as_json:
        echo_json(data)
    else:
        click.echo(table(headers, rows, right, drop=drop))


def json_text(value: object) -> str:
    """A value as JSON, the same every time; NaN is refused because JSON has none."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    if text.replace("\n", "").isprintable():
        return text
    # Unprintable characters occur only in strings, and ``json`` escapes only some of them.
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def warn_of_suites() -> None:
    """Report what is wrong with suites, wherever suites are listed or used; the others work as ever."""
    for sentence in catalog().suite_warnings():
        warn(sentence)


def can_ask() -> bool:
    """Whether somebody sits there: questions go to stderr, answers come from stdin."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def warn(message: str) -> None:
    click.echo(clean(f"neuco: warning: {message}"), err=True)


class OwnStream(io.TextIOWrapper):
    """A copy of one of the process's streams, which no process inherits that a plugin may start."""

    def close(self) -> None:
        """Nothing: a plugin may close what it takes for its own, and the answer or the error is still to come."""


def keep_stdout() -> None:
    """Keep the process's stdout for Python's ``sys.stdout``; what writes past it, e.g. a C library, gets stderr."""
    out, err = sys.__stdout__, sys.__stderr__
    if out is None or err is None or (sys.stdout, sys.stderr) != (out, err):
        return  # closed, or not the process's own
    out.flush()
    copies = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(2), "wb")
    sys.stdout = OwnStream(copies[0], out.encoding, out.errors, line_buffering=out.isatty())
    sys.stderr = OwnStream(copies[1], err.encoding, err.errors, line_buffering=True)
    os.dup2(2, 1)


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

    With ``drop`` it fits a terminal: headers lose their common ``prefix``, sentences are wrapped, and the columns in
    ``drop`` go, the first one first, and a line says which. Names and numbers stay whole, so that they can be copied.
    Without, or where there is no terminal, it is as wide as it is. On a terminal headers, and the cells ``strong``
    (row, column), stand out. Where that is not room enough, sentences wrap after every word, then other columns go.
    """
    head, *body = [[clean(cell) for cell in row] for row in (headers, *rows)]
    if not sys.stdout.isatty():
        whole = [max(cell_len(row[i]) for row in (head, *body)) for i in range(len(head))]
        lines = []
        for row in (head, ["-" * width for width in whole], *body):
            cells = []
            for i, cell in enumerate(row):
                fill = " " * (whole[i] - cell_len(cell))
                cells.append(fill + cell if i in right else cell + fill)
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)
    columns, gone = list(range(len(head))), []
    widths: dict[int, int] = {}
    limit = room() if drop is not None else None
    if limit is not None:
        head = [name.removeprefix(prefix) or name for name in head]
        least: dict[int, int] = {}
        for narrow, candidates in ((NARROW, drop or ()), (1, columns[:0:-1])):
            if least and sum(least[i] + 2 for i in columns) - 2 <= limit:
                break
            least = {i: _least_width(head[i], [row[i] for row in body], i in right, narrow) for i in columns}
            for column in candidates:
                if column in columns and sum(least[i] + 2 for i in columns) - 2 > limit:
                    columns.remove(column)
                    gone.append(column)
        widths = {i: max(cell_len(row[i]) for row in (head, *body)) for i in columns}
        while sum(widths[i] + 2 for i in columns) - 2 > limit:
            wide = [i for i in columns if widths[i] > least[i]]
            if not wide:
                break  # a single name is wider than the terminal, which then breaks the line itself
            widths[max(wide, key=widths.__getitem__)] -= 1
    drawn = _rich_table(head, body, right, columns, widths, strong)
    if limit and gone:
        line = f"{NOT_SHOWN} {join_names([head[i] for i in sorted(gone)], 3)}"
        drawn += "\n" + textwrap.fill(line, limit, **WHOLE_WORDS)
    return drawn


def _least_width(header: str, cells: Sequence[str], number: bool, narrow: int) -> int:
    """What a column needs: numbers and names are not cut, sentences and headers can be wrapped, ``narrow`` or wider."""
    whole = max((cell_len(cell) for cell in cells), default=0)
    texts = [header] if number else [header, *cells]
    words = [cell_len(word) for text in texts for word in text.split()]
    if not number and any(" " in cell for cell in cells):
        whole = min(whole, narrow)
    return max([whole, *words])


def _rich_table(
    head: Sequence[str],
    body: Sequence[Sequence[str]],
    right: Collection[int],
    columns: Sequence[int],
    widths: Mapping[int, int],
    strong: Collection[tuple[int, int]],
) -> str:
    # heavy (50 ms): listings into a pipe do without
    from rich.box import Box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    plain_rule = Box("    \n    \n -  \n    \n    \n    \n    \n    \n", ascii=True)
    shown = Table(box=plain_rule, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for i in columns:
        shown.add_column(Text(head[i]), justify="right" if i in right else "left", width=widths.get(i), overflow="fold")
    for number, row in enumerate(body):
        shown.add_row(*(Text(row[i], style="bold" if (number, i) in strong else "") for i in columns))
    # no-color.org: not for those who have asked for none
    coloured = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    file = io.StringIO()
    console = Console(file=file, width=10_000, force_terminal=coloured, no_color=not coloured)
    console.print(shown)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def room() -> int | None:
    """How many characters wide the terminal is; ``None`` where output goes elsewhere, and may have any width."""
    if not sys.stdout.isatty():
        return None
    asked = os.environ.get("COLUMNS", "")
    try:
        return int(asked) if asked.isdigit() else os.get_terminal_size(sys.stdout.fileno()).columns or None
    except OSError:
        return None


def say(text: str) -> None:
    """A sentence for people; lines end between words at the width of the terminal."""
    text, limit = clean(text), room()
    click.echo(textwrap.fill(text, limit, **WHOLE_WORDS) if limit else text)


def clean(text: str) -> str:
    """Names and descriptions come from contributors: no control characters, no second line."""
    return canonical.clean("".join(" " if char.isspace() else char for char in text))
