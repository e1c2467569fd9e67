"""Cards are strangers' Markdown: a small part of it is shown as such, the rest as the text that it is.

Known: headings, paragraphs, lists, tables, fenced code, ``code``, **bold**, *emphasis*, and links, of which only the
words and the address as text are shown: nothing on the page leads to an address that a stranger chose.
"""

from __future__ import annotations

import re

from neuco_core.leaderboard.site.html import Safe, join, tag, text

LONGEST = 40_000
_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*|\[([^\]]*)\]\(([^)\s]*)\)")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(.*)")
_RULE = re.compile(r"\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*")


def render(card: str) -> Safe:
    """The card as HTML; a card that is far too long is cut, and says so."""
    cut = len(card) > LONGEST
    lines = card[:LONGEST].replace("\r\n", "\n").split("\n")
    parts: list[Safe] = []
    while lines:
        parts.append(_block(lines))
    if cut:
        parts.append(tag("p", "(The card is longer; the rest is not shown.)"))
    return tag("div", *parts, class_="card-text")


def _block(lines: list[str]) -> Safe:
    """Take one block from the front of ``lines``."""
    line = lines.pop(0)
    if not line.strip():
        return Safe("")
    if line.lstrip().startswith("```"):
        code = _take(lines, lambda other: not other.lstrip().startswith("```"))
        del lines[:1]
        return tag("pre", tag("code", "\n".join(code)))
    heading = _HEADING.fullmatch(line)
    if heading:
        return tag(f"h{min(6, len(heading[1]) + 2)}", _inline(heading[2]))
    if _ITEM.fullmatch(line):
        return _list([line, *_take(lines, lambda other: bool(other.strip()) and not _HEADING.fullmatch(other))])
    if "|" in line and lines and _RULE.fullmatch(lines[0]):
        del lines[:1]
        return _table([line, *_take(lines, lambda other: "|" in other)])
    rest = _take(
        lines, lambda other: bool(other.strip()) and not _HEADING.fullmatch(other) and not _ITEM.fullmatch(other)
    )
    return tag("p", _inline(" ".join(part.strip() for part in (line, *rest))))


def _take(lines: list[str], wanted: object) -> list[str]:
    count = next((i for i, line in enumerate(lines) if not wanted(line)), len(lines))  # type: ignore[operator]
    taken = lines[:count]
    del lines[:count]
    return taken


def _list(lines: list[str]) -> Safe:
    items: list[str] = []
    for line in lines:
        found = _ITEM.fullmatch(line)
        if found:
            items.append(found[1])
        else:
            items[-1] += " " + line.strip()
    return tag("ul", *(tag("li", _inline(item)) for item in items))


def _table(lines: list[str]) -> Safe:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    head = tag("tr", *(tag("th", _inline(cell), scope="col") for cell in rows[0]))
    body = [tag("tr", *(tag("td", _inline(cell)) for cell in row)) for row in rows[1:]]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body), class_="plain"), class_="scroll")


def _inline(source: str) -> Safe:
    parts: list[Safe] = []
    end = 0
    for found in _INLINE.finditer(source):
        parts.append(text(source[end : found.start()]))
        code, bold, soft, words, address = found.groups()
        if code is not None:
            parts.append(tag("code", code))
        elif bold is not None:
            parts.append(tag("strong", bold))
        elif soft is not None:
            parts.append(tag("em", soft))
        else:
            parts.append(text(f"{words} ({address})" if address else words))
        end = found.end()
    return join((*parts, text(source[end:])))
