"""Cards are strangers' Markdown: a small part of it is shown as such, the rest as the text that it is.

Known: headings, paragraphs, lists, tables, fenced code, ``code``, **bold**, *emphasis*, and links. The address of a
link is always shown, so that nobody is led elsewhere than is said, and only web addresses lead anywhere.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from itertools import groupby

from neuco_core.boards.views.site.html import Safe, code_box, join, linked, scroll, tag

LONGEST = 40_000
# Every run ends where the same alternative could start again. So no part of a card is read once for each start, and
# a card takes time in proportion to its length, whatever is in it.
_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*|\[([^\[\]]*)\]\(([^\[)\s]*)\)")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|(\d{1,9})[.)])\s+(.*)")
_RULE = re.compile(r":?-{2,}:?")
Lines = deque[str]


def render(card: str) -> Safe:
    """The card as HTML; a card that is far too long is cut, and says so."""
    cut = len(card) > LONGEST
    lines = deque(card[:LONGEST].replace("\r\n", "\n").split("\n"))
    parts: list[Safe] = []
    while lines:
        parts.append(_block(lines, len(parts) + 1))
    if cut:
        parts.append(tag("p", "(The card is longer; the rest is not shown.)"))
    return tag("div", *parts, class_="card-text")


def _block(lines: Lines, number: int) -> Safe:
    """Take one block from the front of ``lines``; its number makes the names of boxes that scroll different."""
    line = lines.popleft()
    if not line.strip():
        return Safe("")
    if _is_fence(line):
        code = _take(lines, lambda other: not _is_fence(other))
        if lines:
            lines.popleft()
        return code_box("\n".join(code), f"Code, part {number} of the card")
    if heading := _HEADING.fullmatch(line):
        return tag(f"h{min(6, len(heading[1]) + 2)}", _inline(heading[2]))
    if _ITEM.fullmatch(line):
        return _lists([line, *_take(lines, lambda other: bool(other.strip()) and not _HEADING.fullmatch(other))])
    if "|" in line and lines and _is_rule(lines[0]):
        lines.popleft()
        return _table([line, *_take(lines, lambda other: "|" in other)], f"Table, part {number} of the card")
    rest = _take(
        lines, lambda other: bool(other.strip()) and not _HEADING.fullmatch(other) and not _ITEM.fullmatch(other)
    )
    return tag("p", _inline(" ".join(part.strip() for part in (line, *rest))))


def _is_fence(line: str) -> bool:
    return line.lstrip().startswith("```")


def _is_rule(line: str) -> bool:
    """The line below the head of a table."""
    return all(map(_RULE.fullmatch, _cells(line)))


def _take(lines: Lines, wanted: Callable[[str], bool]) -> list[str]:
    taken = []
    while lines and wanted(lines[0]):
        taken.append(lines.popleft())
    return taken


def _lists(lines: Iterable[str]) -> Safe:
    """Neighbouring items of one kind are a list; a line without a mark belongs to the item above it."""
    items: list[tuple[str | None, list[str]]] = []
    for line in lines:
        found = _ITEM.fullmatch(line)
        if found:
            items.append((found[1], [found[2]]))
        else:
            items[-1][1].append(line.strip())
    return join(_list(list(own)) for _, own in groupby(items, key=lambda item: item[0] is None))


def _list(items: list[tuple[str | None, list[str]]]) -> Safe:
    first = items[0][0]
    entries = [tag("li", _inline(" ".join(words))) for _, words in items]
    if first is None:
        return tag("ul", *entries)
    return tag("ol", *entries, start=int(first) if int(first) != 1 else None)


def _table(lines: Iterable[str], label: str) -> Safe:
    head, *rows = [_cells(line) for line in lines]
    top = tag("tr", *(tag("th", _inline(cell), scope="col") for cell in head))
    body = [tag("tr", *(tag("td", _inline(cell)) for cell in row)) for row in rows]
    return scroll("div", tag("table", tag("thead", top), tag("tbody", *body), class_="plain"), label=label)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _inline(source: str) -> Safe:
    parts: list[Safe] = []
    end = 0
    for found in _INLINE.finditer(source):
        parts.append(linked(source[end : found.start()]))
        code, bold, soft, words, address = found.groups()
        marked = [tag(name, own) for name, own in (("code", code), ("strong", bold), ("em", soft)) if own is not None]
        parts += marked or [linked(f"{words} ({address})" if address and address != words else words)]
        end = found.end()
    return join((*parts, linked(source[end:])))
