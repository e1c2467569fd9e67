"""The documentation as a web site: the hook of mkdocs that ``mkdocs.yml`` names.

Its pages are the Markdown files of the tree, whose links are true in the tree. Here each page gets its place on the
site, and its links follow. A card comes from a contributor: markup in a page is shown, not used; a link or a picture
that leads neither into the tree nor to https, or a file of another kind among the pages, or a drawing that does more
than draw, ends the build. So does ``:::`` on any page but ``RUNNING``: it imports what it names, outside any sandbox.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, InclusionLevel
from mkdocs.structure.nav import Link

from ci.changed import RUNNING, deceptive

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
CARDS = re.compile(r"neuco_(tasks|methods)/([^/]+)/README\.md")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")
KINDS = (".md", ".png", ".svg")
COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE)
# Not in docs/: whoever changes what runs in a reader's browser changes the core.
ASSETS = {
    "ci/site/iframe-worker.js": "iframe-worker.js",
    "ci/site/site.css": "site.css",
    "neuco_core/site/assets/icon.svg": "icon.svg",
}
BOARDS = "leaderboard/index.html"  # where `make docs` and the workflow `pages` put the boards


def places(root: Path) -> dict[str, str]:
    """By path in the tree: where a file is on the site."""
    cards = sorted(path.relative_to(root).as_posix() for path in root.glob("neuco_*/*/README.md"))
    docs = root / "docs"
    pages = {path.relative_to(root).as_posix(): path.relative_to(docs).as_posix() for path in sorted(docs.rglob("*.*"))}
    named = {card: f"{match[1]}/{match[2]}.md" for card in cards if (match := CARDS.fullmatch(card))}
    notebooks = sorted(path.relative_to(root).as_posix() for path in root.glob("examples/*.ipynb"))
    read = {path: path.replace(".ipynb", ".md") for path in notebooks}
    return {**TOP, **pages, **named, **read, **ASSETS}


def as_page(notebook: Path) -> str:
    """A notebook as Markdown: its text, its code, and what that prints."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
        printed = ["".join(output["text"]) for output in cell.get("outputs", ()) if "text" in output]
        parts += [f"```text\n{output.rstrip()}\n```" for output in printed]
    return "\n\n".join(parts)


def moved(link: str, page: str, where: dict[str, str], root: Path, code: str = "") -> str | None:
    """A link of a page of the tree as it is on the site; None if its target is not there, nor below ``code``."""
    parts = urlsplit(link)
    if parts.scheme == "https" or link.startswith("#"):
        return link
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), parts.path))
    if parts.scheme or parts.netloc or target.startswith(("/", "..")) or not (root / target).exists():
        raise PluginError(f"{page}: the link {link!r} leads nowhere; expected a file of the tree, or https://…")
    if target in where:
        path = posixpath.relpath(where[target], posixpath.dirname(where[page]) or ".")
        return urlunsplit(("", "", path, "", parts.fragment))
    return f"{code}/{target}" if code else None


class Links(Treeprocessor):
    """Moves the links of a page, before mkdocs itself looks at them."""

    page = ""
    where: dict[str, str]
    root: Path
    code: str

    def run(self, root: Element) -> None:
        for element in root.iter():
            if element.tag == "a" and (link := element.get("href")):
                self._move(element, "href", moved(link, self.page, self.where, self.root, self.code))
            elif element.tag == "img":
                source = element.get("src", "")
                if urlsplit(source).scheme:
                    raise PluginError(f"{self.page}: the picture {source!r} is elsewhere; put it beside the page")
                self._move(element, "src", moved(source, self.page, self.where, self.root))

    def _move(self, element: Element, name: str, link: str | None) -> None:
        if link is not None:
            element.set(name, link)
        elif name == "src":
            raise PluginError(f"{self.page}: the picture {element.get(name)!r} is not on the site; put it into docs/")
        else:  # a file that is not on the site, as long as nobody knows where else it can be read
            element.tag = "span"
            del element.attrib[name]


class Plain(Extension):
    """Markdown without markup in it, and with links that follow their pages."""

    def __init__(self, links: Links) -> None:
        super().__init__()
        self.links = links

    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.deregister("html_block")
        md.inlinePatterns.deregister("html")
        self.links.md = md
        md.treeprocessors.register(self.links, "neuco-links", 1)  # after the inline patterns, before mkdocs' own


LINKS = Links()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    LINKS.root = Path(config.config_file_path).parent
    LINKS.where = places(LINKS.root)
    LINKS.code = f"{config.repo_url.rstrip('/')}/blob/main" if config.repo_url else ""
    config.markdown_extensions.append(Plain(LINKS))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = [file.src_uri for file in files if file.src_dir == config.docs_dir]
    if other := [name for name in pages if not name.endswith(KINDS)]:
        raise PluginError(f"docs/: {', '.join(other)}: expected pages and pictures, {' '.join(KINDS)}")
    for name in pages:
        if name.endswith(".svg") and (reason := deceptive(name, Path(config.docs_dir, name).read_bytes())):
            raise PluginError(f"docs/{name}: {reason}")
    for path, target in LINKS.where.items():
        if not path.startswith("docs/"):
            # One entry for each card would fill the menu; the tables of tasks and methods lead to them.
            level = InclusionLevel.NOT_IN_NAV if CARDS.fullmatch(path) else InclusionLevel.UNDEFINED
            source: dict[str, str] = {"abs_src_path": str(LINKS.root / path)}
            if path.endswith(".ipynb"):
                source = {"content": as_page(LINKS.root / path)}
            files.append(File.generated(config, target, inclusion=level, **source))
    return files


def on_nav(nav: Navigation, **_: Any) -> Navigation:
    nav.items.insert(1, Link("Leaderboards", BOARDS))
    return nav


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    (LINKS.page,) = (path for path, target in LINKS.where.items() if target == page.file.src_uri)
    text = spaced(COMMENT.sub("", markdown))
    if ":::" in text and LINKS.page not in RUNNING:
        allowed = ", ".join(RUNNING)
        raise PluginError(f"{LINKS.page}: `:::` imports code as the site is built; only {allowed} may have it")
    return text


def spaced(text: str) -> str:
    """A list right under a line of text is a list on GitHub; here it needs an empty line before it."""
    lines, fenced = [""], False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        text_above = lines[-1] and not lines[-1].startswith(" ") and not ITEM.match(lines[-1])
        if not fenced and text_above and ITEM.match(line):
            lines.append("")
        lines.append(line)
    return "\n".join(lines[1:]) + "\n"
