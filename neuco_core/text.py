"""Text for people: strangers' words made safe to print, and short ways to say numbers of things."""

from __future__ import annotations

from collections.abc import Sequence


def clean(text: str) -> str:
    """A stranger's text without characters that control a terminal or the reading order; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)


def one_line(text: str, longest: int = 2000) -> str:
    """The same on one line; of one that is too long the middle is cut: what it is about comes first, why comes last."""
    text = clean(" ".join(text.split()))
    if len(text) <= longest:
        return text
    start = longest // 3
    return f"{text[:start]}…{text[start + 1 - longest :]}"


def shorten(value: object, longest: int = 80) -> str:
    """The repr of a value for an error message."""
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def counted(count: int, noun: str) -> str:
    """1 method, 2 methods."""
    return f"{count} {noun}" + ("" if count == 1 else "es" if noun.endswith("s") else "s")


def join_names(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
