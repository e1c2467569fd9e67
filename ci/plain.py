"""The comment for a terminal: the same words without markup, tables with columns that stand below each other."""

from __future__ import annotations

import html
import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence

from ci.comment import SIGNS
from neuco_core.text import clean

RULE = re.compile(r"\|(-+\|)+")
TAGS = re.compile(r"<!--.*?-->|</?(?:code|sub|details|summary)(?: open)?>")
WORDS = {sign: status.upper() if status == "failed" else status for status, sign in SIGNS.items()}
NARROWEST = 30  # of a last column that is wrapped


def plain(markdown: str, width: int = 0) -> str:
    """Our own Markdown as text. Whatever a stranger wrote has its punctuation as entities there, so it is no markup."""
    width = width or shutil.get_terminal_size((100, 24)).columns
    lines: list[str] = []
    rows: list[list[str]] = []
    for line in [*markdown.splitlines(), ""]:
        if line.startswith("|"):
            rows += [] if RULE.fullmatch(line.replace(" ", "")) else [[_words(cell) for cell in line[1:-1].split("|")]]
            continue
        lines += _table(rows, width)
        rows = []
        lines.append(textwrap.fill(_words(line), width, subsequent_indent="  " * line.startswith("- ")))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _words(text: str) -> str:
    text = TAGS.sub("", re.sub(r"^#+ ", "", text.replace("<br>", " ")).replace("**", ""))
    text = clean(html.unescape(text)).replace("`", "").replace("marked ❌", "marked FAILED").strip()
    return WORDS.get(text, text)  # a sign is wider than it is long


def _table(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """All columns but the last as wide as they are, the last one wrapped."""
    if not rows:
        return
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]) - 1)]
    room = max(NARROWEST, width - sum(widths) - 2 * len(widths))
    for number, row in enumerate(rows):
        start = "".join(f"{cell:{size}}  " for cell, size in zip(row, widths, strict=False))
        first, *more = textwrap.wrap(row[-1], room) or [""]
        yield (start + first).rstrip()
        yield from (" " * len(start) + part for part in more)
        if number == 0:
            yield "-" * min(width, len(start) + min(room, max(len(cells[-1]) for cells in rows)))
