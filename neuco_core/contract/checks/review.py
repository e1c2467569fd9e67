"""What nobody can review: files whose name or content is not what it seems, or is too large.

`neuco check` looks at a plugin's folder with these functions, continuous integration at what a pull request changes.
"""

from __future__ import annotations

import io
import itertools
import re
import tokenize
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

from neuco_core.files import LARGEST_DATA

TREES = ("neuco_tasks", "neuco_methods")
PLUGIN = re.compile(rf"({'|'.join(TREES)})/([^/]+)/(.+)", re.DOTALL)
# No reviewer can read what these do, and Python prefers them to a source file of the same name.
COMPILED = (".so", ".pyd", ".dll", ".dylib", ".pyc", ".pyo", ".pth", ".egg", ".whl")
# Files with which git itself hides changes from a reviewer, or runs filters.
STEERING = (".gitattributes", ".gitmodules", ".lfsconfig", ".mailmap")
LARGEST_FILE = 50_000_000  # bytes
LARGEST_SOURCE = 1_000_000
LONGEST_LINE = 2000
PUBLISH = " in a plugin: publish it (`neuco data upload`, Hugging Face, a release) and declare its address and sha256"
CODE = (".py", ".pyi", ".toml", ".cfg", ".ini", ".yml", ".yaml", ".sh", ".svg")
# An SVG of shapes and text, with the notes of matplotlib. Browsers run scripts in others, and load what they name.
SHAPES = re.compile(
    r"\{http://www\.w3\.org/2000/svg\}(?:svg|g|defs|use|marker|clipPath|style|title|desc|metadata|path|rect|circle|ellipse"
    r"|line|polyline|polygon|text|tspan)"
)
NOTES = re.compile(
    r"\{http://(www\.w3\.org/1999/02/22-rdf-syntax-ns#|creativecommons\.org/ns#|purl\.org/dc/[^}]+)\}\w+"
)
DECLARED = re.compile(r"<!(?!DOCTYPE|--|\[CDATA\[)\w*|<\?(?!xml\s)[-\w]*")  # entities, default attributes, style sheets
OUTSIDE = re.compile(r"url\((?!['\"]?#)|image-set\(|[@\\]|//", re.IGNORECASE)
STYLED_OUTSIDE = re.compile(rf"url\(|{OUTSIDE.pattern}", re.IGNORECASE)
DRAWN_ELSEWHERE, COPIES = re.compile(r"\}(marker|clipPath)$"), re.compile(r"\}(marker|clipPath|use)$")
# Turn the reading direction around, or are not seen at all.
HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Python ends a line, or a page, where an editor may show none.
BREAKS = re.compile("\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029]")
CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.MULTILINE)


def odd_path(path: str) -> str:
    """Why a file cannot be reviewed, by its name alone; "" if it can."""
    if path.lower().endswith(COMPILED):
        return "compiled code, which nobody can review"
    if Path(path).name in STEERING and path.startswith(TREES):
        return "a file that tells git what to hide or to filter"
    # A name that is not UTF-8 has backslashes here.
    plain = path.isascii() and path.isprintable() and "\\" not in path
    if PLUGIN.fullmatch(path) and not (plain and all(part == part.strip() for part in path.split("/"))):
        return "a name that may look like another; use printable ASCII, no backslash, no space at either end"
    return ""


def too_large(path: str, size: int) -> str:
    """Why a file of so many bytes is refused; "" if it is not. Data of a plugin stays in git for ever."""
    data = PLUGIN.fullmatch(path) and not path.endswith(CODE)  # of sources `deceptive` says more
    most, cure = (LARGEST_DATA, PUBLISH) if data else (LARGEST_FILE, "")
    return f"{size / 1e6:.1f} MB; at most {most / 1e6:g} MB{cure}" if size > most else ""


def deceptive(path: str, content: bytes) -> str:
    """Why a file cannot be reviewed by reading it; "" if it can, or if it is data."""
    code = path.endswith(CODE)
    if code and len(content) > LARGEST_SOURCE:
        return f"source of {len(content)} bytes; at most {LARGEST_SOURCE}: put data into files of data"
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return "source that is not UTF-8" if code else ""
    if not code and "\0" in text:
        return ""  # not text
    # Spreadsheets write a byte-order mark, and some of them end lines with carriage returns alone.
    seen = text if code else text.removeprefix("\ufeff")
    seen = seen.replace("\r\n", "\n").replace("\r", "\n") if path.endswith(".csv") else seen
    for pattern, what in ((HIDDEN, "an invisible character"), (BREAKS, "a control character")):
        match = pattern.search(seen)
        if match:
            return f"{what}, U+{ord(match[0]):04X}, in line {seen.count(chr(10), 0, match.start()) + 1}"
    if path.endswith(".svg") and (part := _active_part(content)):
        return f"not a plain drawing: {part}"
    if not path.endswith((".py", ".pyi")):
        return ""
    coding = CODING.search(b"\n".join(content.split(b"\n", 2)[:2]))
    if coding and coding[1].lower().replace(b"_", b"-") not in (b"utf-8", b"utf8", b"ascii", b"us-ascii"):
        return f"declares the encoding {coding[1].decode()}, and reviewers see another text than Python"
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            return f"line {number} has {len(line)} characters, and nobody reads to its end"
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            name = token.string
            # Python takes such letters for the plain ones: a name that looks unlike `eval` may be it.
            if token.type == tokenize.NAME and not name.isascii() and unicodedata.normalize("NFKC", name).isascii():
                return f"the name {name!r} in line {token.start[0]}, which Python reads as another"
    except (tokenize.TokenError, SyntaxError):
        return ""  # no Python, from here on
    return ""


def _active_part(drawing: bytes) -> str:
    """What an SVG does besides drawing, or could load; "" if it only draws."""
    if declared := DECLARED.search(drawing.decode()):
        return declared[0]
    try:
        # As bytes: what it shows depends on the encoding that it declares. There are no entities left to expand.
        elements = list(ElementTree.fromstring(drawing).iter())  # noqa: S314
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        return f"no XML: {error}"
    # A copy of copies of copies: ten small elements become a thousand million in the reader's browser.
    groups = {element.get("id") for element in elements if len(element) or element.tag.endswith("}use")}
    for element in elements:
        if NOTES.fullmatch(element.tag):
            continue
        if not SHAPES.fullmatch(element.tag):
            return f"<{element.tag.rpartition('}')[2]}>"
        for name, value in element.items():
            key = name.rpartition("}")[2]
            if key.startswith("on") or (key == "href" and not value.startswith("#")) or OUTSIDE.search(value):
                return f"{key}={value[:100]!r}"
            if key == "href" and value[1:] in groups:
                return f"{key}={value[:100]!r}, a copy of more than one shape"
        if DRAWN_ELSEWHERE.search(element.tag):
            for part in itertools.islice(element.iter(), 1, None):
                if COPIES.search(part.tag) or "url(" in " ".join(part.attrib.values()).lower():
                    return f"<{element.tag.rpartition('}')[2]}> that refers to what is drawn elsewhere"
        if element.tag.endswith("}style") and (len(element) or STYLED_OUTSIDE.search(element.text or "")):
            return "a style that reaches outside, or has elements in it"
    return ""
