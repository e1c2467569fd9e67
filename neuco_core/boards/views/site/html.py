"""A small way to write HTML in which text is escaped unless it was built here."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from neuco_core.text import clean

# Only the site's own files may run or style anything: whatever slipped through as text could still do nothing.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)
VOID = frozenset(("meta", "link", "input", "wbr", "img"))
# Addresses that a text names: web addresses, DOIs and papers of arXiv. What ends a sentence ends no address.
ADDRESS = re.compile(
    r"https?://[^\s<>\"'`]*[\w/#=&-]|\b(?:doi:\s?)?(10\.\d{4,9}/[^\s<>\"'`,;]*[\w)])|\barXiv:(\d{4}\.\d{4,5})",
    re.IGNORECASE,
)


class Safe(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Safe:
    return value if isinstance(value, Safe) else Safe(escape(clean(str(value)), quote=True))


def tag(element: str, /, *children: object, **attributes: object) -> Safe:
    """An element; ``class_`` is class, ``_`` is ``-``; an attribute that is None or False is left out."""
    parts = [f"<{element}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        parts.append(f" {key.rstrip('_').replace('_', '-')}")
        if value is not True:
            parts.append(f'="{text(value)}"')
    parts.append(">")
    if element not in VOID:
        parts += [*map(text, children), f"</{element}>"]
    return Safe("".join(parts))


def join(parts: Any, between: str = "") -> Safe:
    return Safe(between.join(map(text, parts)))


def linked(words: str) -> Safe:
    """Text in which web addresses, DOIs and arXiv numbers can be clicked; only http and https ever lead anywhere."""
    parts: list[Safe] = []
    end = 0
    for found in ADDRESS.finditer(words):
        doi, paper = found.groups()
        address = f"https://doi.org/{doi}" if doi else f"https://arxiv.org/abs/{paper}" if paper else found[0]
        parts += [text(words[end : found.start()]), tag("a", found[0], href=address, rel="nofollow noreferrer")]
        end = found.end()
    return join((*parts, text(words[end:])))


def data(name: str, value: object) -> Safe:
    """A value for the page's scripts."""
    return Safe(f'<script type="application/json" id="{name}">{literal(value)}</script>')


def literal(value: object) -> str:
    """A value as JSON that is also JavaScript. A ``<`` only occurs inside texts, where its escape means the same."""
    dumped = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return dumped.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def page(title: str, body: Safe, *, up: str, scripts: tuple[str, ...] = (), about: str = "", picture: str = "") -> str:
    """A whole page; ``up`` leads from it to the top of the site. ``about`` and ``picture`` are its preview card."""
    card = {"og:title": f"{title} · neuco", "og:type": "website", "og:description": about, "og:image": picture}
    head = join(
        (
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("title", f"{title} · neuco"),
            *([tag("meta", name="description", content=about)] if about else []),
            *(tag("meta", property=name, content=value) for name, value in card.items() if value),
            *([tag("meta", name="twitter:card", content="summary_large_image")] if picture else []),
            tag("link", rel="icon", href=f"{up}assets/icon.svg", type="image/svg+xml"),
            tag("link", rel="stylesheet", href=f"{up}assets/style.css"),
            tag("script", src=f"{up}assets/theme.js"),
        )
    )
    top = tag(
        "header",
        tag("a", "neuco", class_="brand", href=f"{up}index.html"),
        tag("nav", tag("a", "All boards", href=f"{up}index.html"), aria_label="Site"),
        tag("button", "Theme: auto", id="theme", type="button", class_="quiet", data_needs_script=True, hidden=True),
        class_="top",
    )
    skip = tag("a", "Skip to the content", class_="skip", href="#main")
    main = tag("main", body, id="main", tabindex="-1")
    foot = tag("footer", "Made with neuco. This page needs no server and loads nothing from elsewhere.")
    end = join(tag("script", src=f"{up}assets/{name}") for name in scripts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{skip}{top}{main}{foot}{end}</body></html>\n'


def section(title: str, *children: object, id_: str, note: str = "") -> Safe:
    heading = tag("h2", title, id=f"{id_}-title")
    said = [tag("p", note, class_="note")] if note else []
    return tag("section", heading, *said, *children, id=id_, aria_labelledby=f"{id_}-title")


def table(headers: Any, rows: Any, *, caption: str, class_: str = "") -> Safe:
    """A plain table; the first cell of a row is its header. A (text, "number") pair is set flush right."""
    head = tag("tr", *(_cell("th", header, scope="col") for header in headers))
    body = [tag("tr", _cell("th", row[0], scope="row"), *(_cell("td", cell) for cell in row[1:])) for row in rows]
    parts = (tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return scroll("div", tag("table", *parts, class_=f"plain {class_}".strip()), label=caption)


def scroll(element: str, *children: object, label: str, class_: str | None = "scroll") -> Safe:
    """A box that may scroll: the keyboard must get there, and a screen reader must say what it is."""
    return tag(element, *children, class_=class_, tabindex="0", role="region", aria_label=label)


def code_box(code: str, label: str) -> Safe:
    return scroll("pre", tag("code", code), label=label, class_=None)


def _cell(name: str, cell: object, **attributes: object) -> Safe:
    value, class_ = cell if isinstance(cell, tuple) else (cell, None)
    return tag(name, value, class_=class_, **attributes)


def num(value: float | int | None, digits: int = 3) -> str:
    """A number for people: a real minus sign, a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")
