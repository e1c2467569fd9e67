"""Strangers' words as HTML: cards, which are Markdown, and addresses in sentences.

Raw HTML stays the text that it is, pictures are not loaded, and only web addresses lead anywhere. The address of a link
is always shown, so that nobody is led elsewhere than is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from neuco_core.site.figures import tag, text
from neuco_core.text import clean

LONGEST = 40_000
# Addresses that a text names: web addresses, DOIs and papers of arXiv. What ends a sentence ends no address.
ADDRESS = re.compile(
    r"https?://[^\s<>\"'`]*[\w/#=&-]|\b(?:doi:\s?)?(10\.\d{4,9}/[^\s<>\"'`,;]*[\w)])|\barXiv:(\d{4}\.\d{4,5})",
    re.IGNORECASE,
)


def linked(sentence: str) -> Markup:
    """Text in which web addresses, DOIs and arXiv numbers can be clicked; only http and https ever lead anywhere."""
    parts: list[Markup] = []
    end = 0
    for match in ADDRESS.finditer(sentence):
        doi, paper = match.groups()
        address = f"https://doi.org/{doi}" if doi else f"https://arxiv.org/abs/{paper}" if paper else match[0]
        parts += [text(sentence[end : match.start()]), tag("a", match[0], href=address, rel="nofollow noreferrer")]
        end = match.end()
    return Markup("").join([*parts, text(sentence[end:])])


class CardRenderer(RendererHTML):
    """Headings below those of the page, boxes that scroll, addresses beside links."""

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return text(tokens[idx].content) if env.get("link") else linked(tokens[idx].content)

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        env["link"] = str(tokens[idx].attrGet("href"))
        return f'<a href="{text(env["link"])}" rel="nofollow noreferrer">'

    def link_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        address = env.pop("link", "")
        plain = "".join(token.content for token in tokens[:idx] if token.type == "text")
        return "</a>" if plain.endswith(address) else f" ({text(address)})</a>"

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        label = f"Code, part {idx + 1} of the card"
        code = tag("code", tokens[idx].content.rstrip("\n"))
        return tag("pre", code, tabindex="0", role="region", aria_label=label)

    code_block = fence

    def table_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        label = f"Table, part {idx + 1} of the card"
        return f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table class="plain">'

    def table_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return "</table></div>"

    def cell_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return '<th scope="col">' if tokens[idx].tag == "th" else "<td>"  # no style: the page's policy refuses it

    th_open = td_open = cell_open

    def heading_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<h{min(6, int(tokens[idx].tag[1]) + 2)}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"</h{min(6, int(tokens[idx].tag[1]) + 2)}>\n"


MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=CardRenderer).enable("table").disable("image")
MARKDOWN.validateLink = lambda url: url.lower().startswith(("http://", "https://"))  # type: ignore[method-assign]


def render_card(card: str) -> Markup:
    """The card as HTML; a card that is far too long is cut, and says so."""
    html = MARKDOWN.render(clean(card[:LONGEST]))
    cut = tag("p", "(The card is longer; the rest is not shown.)") if len(card) > LONGEST else ""
    return Markup(html) + cut  # noqa: S704 (HTML is off, text is escaped)
