"""Metadata that others can use: licences that tools know, citations that can be followed."""

from __future__ import annotations

import re

from neuco_core.contract.contract import Broken

DOI = re.compile(r"\b10\.\d{4,9}/\S+")
ARXIV = re.compile(r"\barXiv:\d{4}\.\d{4,5}\b")
ENTRY = re.compile(r"@(\w+)\s*\{\s*([^\s,{}]+)\s*,(.*)\}\s*", re.DOTALL)


def check_license(text: str) -> str:
    """An SPDX expression in its standard spelling."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    if not text:
        raise Broken("no licence", expected="an SPDX expression such as CC-BY-4.0")
    try:
        standard = str(canonicalize_license_expression(text))
    except InvalidLicenseExpression as error:
        raise Broken("bad licence", expected="an SPDX expression such as CC-BY-4.0", got=repr(text)) from error
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
    if not match:
        raise Broken("bad BibTeX", expected="@type{key, field = {value}, …}", got=repr(text))
    fields = _fields(match[3])
    for name in ("title", "year"):
        if name not in fields:
            raise Broken(
                f"BibTeX without {name}", got=f"{match[1]}{{{match[2]}}} with {', '.join(fields) or 'nothing'}"
            )
    return f"{match[1]} {match[2]}"


def _fields(text: str) -> dict[str, str]:
    """``name = {value}`` or ``name = "value"`` or ``name = 2025``, with braces balanced."""
    fields: dict[str, str] = {}
    rest = text.strip()
    while rest:
        head = re.match(r"(\w+)\s*=\s*", rest)
        if not head:
            raise Broken("bad BibTeX", expected="name = {value}", got=repr(rest[:40]))
        value, rest = _value(rest[head.end() :])
        fields[head[1].lower()] = value
        rest = rest.lstrip().removeprefix(",").lstrip()
    return fields


def _value(text: str) -> tuple[str, str]:
    if not text.startswith(("{", '"')):
        match = re.match(r"\w+", text)
        if not match:
            raise Broken("bad BibTeX", expected="{value}", got=repr(text[:40]))
        return match.group(), text[match.end() :]
    closing = "}" if text[0] == "{" else '"'
    depth = 0
    for position, char in enumerate(text[1:], start=1):
        if char == closing and depth == 0:
            return text[1:position], text[position + 1 :]
        depth += (char == "{") - (char == "}")
    raise Broken("bad BibTeX", expected=f"a closing {closing}", got=repr(text[:40]))
