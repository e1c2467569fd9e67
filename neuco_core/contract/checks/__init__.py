"""What the checks of the contract do; ``neuco_core.contract.builtin`` lists them with what each asks for, and why.

Here are the words that all must have alike: licences that tools know, citations that lead on.
"""

from __future__ import annotations

import re

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from neuco_core.contract.contract import Broken
from neuco_core.contract.subjects import Subject

DOI = re.compile(r"\b10\.\d{4,9}/\S+")
ARXIV = re.compile(r"\barXiv:\d{4}\.\d{4,5}\b")
ENTRY = re.compile(r"@(\w+)\s*\{\s*([^\s,{}]+)\s*,(.*)\}\s*", re.DOTALL)
FIELD = r'(\w+)\s*=\s*(?:"[^"]*"|\w+)\s*'
FIELDS = re.compile(rf"\s*{FIELD}(?:,\s*{FIELD})*,?\s*", re.DOTALL)


def require_description(subject: Subject) -> None:
    for field in ("title", "description"):
        if not getattr(subject.spec, field):
            raise Broken(f"no {field}")


def check_license(text: str) -> str:
    """An SPDX expression in its standard spelling."""
    expected = "an SPDX expression such as CC-BY-4.0"
    if not text:
        raise Broken("no licence", expected=expected)
    try:
        standard = str(canonicalize_license_expression(text))
    except InvalidLicenseExpression as error:
        raise Broken("bad licence", expected=expected, got=repr(text)) from error
    if standard != text:
        raise Broken("bad licence", expected=standard, got=text)
    return standard


def check_citation(text: str) -> str:
    """A DOI, an arXiv number, or a BibTeX entry with a title and a year."""
    if text.lstrip().startswith("@"):
        return _check_bibtex(text)
    match = DOI.search(text) or ARXIV.search(text)
    if not match:
        raise Broken("bad citation", expected="a DOI, an arXiv number or a BibTeX entry", got=repr(text))
    return match.group()


def _check_bibtex(text: str) -> str:
    match = ENTRY.fullmatch(text.strip())
    body = match[3] if match else ""
    while body != (inner := re.sub(r"\{[^{}]*\}", "_", body)):  # a value in braces is a word, whatever is in it
        body = inner
    if not match or not FIELDS.fullmatch(body):
        raise Broken("bad BibTeX", expected="@type{key, field = {value}, …}", got=repr(text))
    names = [name.lower() for name in re.findall(FIELD, body)]
    for name in ("title", "year"):
        if name not in names:
            raise Broken(f"BibTeX without {name}", got=f"{match[1]}{{{match[2]}}} with {', '.join(names)}")
    return f"{match[1]} {match[2]}"
