"""Text that shows a reviewer something else than what runs."""

from __future__ import annotations

import io
import re
import tokenize
import unicodedata
from collections.abc import Iterator

# Turn the reading direction around, or are not seen at all.
HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Python ends a line, or a page, where an editor may show none.
BREAKS = re.compile("\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029]")
CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.MULTILINE)
CODE = (".py", ".pyi", ".toml", ".cfg", ".ini", ".yml", ".yaml", ".sh")
LONGEST_LINE = 2000
LARGEST_SOURCE = 1_000_000  # bytes


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
    return _odd_source(path, content, text)


def _odd_source(path: str, content: bytes, text: str) -> str:
    if not path.endswith((".py", ".pyi")):
        return ""
    coding = CODING.search(b"\n".join(content.split(b"\n", 2)[:2]))
    if coding and coding[1].lower().replace(b"_", b"-") not in (b"utf-8", b"utf8", b"ascii", b"us-ascii"):
        return f"declares the encoding {coding[1].decode()}, and reviewers see another text than Python"
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            return f"line {number} has {len(line)} characters, and nobody reads to its end"
    for token in _names(text):
        # Python takes such letters for the plain ones: a name that looks unlike `eval` may be it.
        if not token.string.isascii() and unicodedata.normalize("NFKC", token.string).isascii():
            return f"the name {token.string!r} in line {token.start[0]}, which Python reads as another"
    return ""


def _names(text: str) -> Iterator[tokenize.TokenInfo]:
    """The names in a source, as far as it is Python."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                yield token
    except (tokenize.TokenError, SyntaxError):
        return
