"""Text for people: strangers' words made safe to print, and short ways to say numbers of things."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet would run


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


def as_cell(value: object) -> object:
    """A value for a CSV that people open: text that a spreadsheet would run as a formula gets a quote before it.

    Not for embeddings, labels and tables of a set of images: neuco reads them back, and ids must stay as they are.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def shorten(value: object, longest: int = 80) -> str:
    """The repr of a value for an error message; a text that is cut keeps its quotes."""
    text = repr(value)
    end = text[0] if isinstance(value, str) else ""
    return text if len(text) <= longest else f"{text[: longest - 1 - len(end)]}…{end}"


def counted(count: int, noun: str) -> str:
    """1 method, 2 methods."""
    return f"{count} {noun}" + ("" if count == 1 else "es" if noun.endswith("s") else "s")


def join_names(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def common_prefix(names: Sequence[str]) -> str:
    """What all names begin with, up to an underscore or a dash: ``mini_`` of ``mini_clouds`` and ``mini_crops``."""
    low, high = min(names, default=""), max(names, default="")
    shared = low[: next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))]
    return "" if low == high else shared[: max(shared.rfind("_"), shared.rfind("-")) + 1]


LONGEST_REPR, LONGEST_VALUE = 320, 70


class Brief:
    """Dataclasses with a ``repr`` of a few lines at most, however much they hold: it is what a notebook shows."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:  # before the dataclass would make one
            cls.__repr__ = brief  # type: ignore[method-assign]


def brief(value: Any) -> str:
    """``Type(field=value, …)`` with what differs from the defaults, each cut short."""
    fields = [field for field in dataclasses.fields(value) if _differs(value, field)]
    text = ", ".join(f"{field.name}={_short(getattr(value, field.name))}" for field in fields)
    cut = text if len(text) <= LONGEST_REPR else text[: LONGEST_REPR - 1] + "…"
    return f"{type(value).__name__}({cut})"


def _differs(owner: object, field: dataclasses.Field[Any]) -> bool:
    made = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
    value = getattr(owner, field.name)
    if isinstance(value, Mapping | tuple | str) and not value:
        return False
    return field.repr and not (value is made or (type(value) is type(made) and value == made))


def _short(value: object) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"<{value.dtype} {value.shape}>"
    if isinstance(value, Mapping) and len(value) > 3:
        return f"{{{', '.join(map(repr, list(value)[:2]))}, … {len(value)} in all}}"
    if isinstance(value, tuple) and len(value) > 3:
        return f"({', '.join(shorten(item, 30) for item in value[:2])}, … {len(value)} in all)"
    return shorten(value, LONGEST_VALUE)
