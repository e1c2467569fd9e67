"""Small checks of the specs, which raise a SpecError that names the field."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from neuco_core.errors import SpecError

ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
SHA256 = re.compile(r"[0-9a-f]{64}")


class Frozen(Mapping[str, Any]):
    """An immutable, hashable, picklable mapping, so that a spec that holds one is all three too."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._items.items())))

    def __repr__(self) -> str:
        return repr(self._items)


def fail(owner: object, field: str, value: object, expected: object, hint: str = "") -> SpecError:
    name = getattr(owner, "id", None) or getattr(owner, "name", None)
    where = f"{type(owner).__name__}({name!r})" if isinstance(name, str) else type(owner).__name__
    return SpecError(f"bad {field}", where=where, expected=expected, got=repr(value), hint=hint)


def set_field(owner: object, field: str, value: object) -> None:
    """Replace a field of a frozen dataclass while it is being created."""
    object.__setattr__(owner, field, value)


def check_id(owner: object, field: str) -> None:
    value = getattr(owner, field)
    if not is_text(value) or not ID.fullmatch(value):
        raise fail(owner, field, value, "1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit")


def check_text(owner: object, *fields: str) -> None:
    for field in fields:
        value = getattr(owner, field)
        if not is_text(value):
            raise fail(owner, field, value, "a string")


def is_text(value: object) -> TypeGuard[str]:
    """Whether this is a ``str`` and no subclass, whose own methods could answer one thing here and another later.

    A lone surrogate could be neither printed nor written.
    """
    return type(value) is str and not any("\ud800" <= char <= "\udfff" for char in value)


def check_choice(owner: object, field: str, choices: Iterable[str]) -> None:
    value = getattr(owner, field)
    choices = tuple(choices)
    if not is_text(value) or value not in choices:
        raise fail(owner, field, value, "one of " + ", ".join(choices))


def check_int(owner: object, field: str, least: int, *, optional: bool = False) -> None:
    value = getattr(owner, field)
    if optional and value is None:
        return
    if type(value) is not int or value < least:
        raise fail(owner, field, value, f"a whole number of at least {least}")


def check_number(
    owner: object, field: str, *, above: float = -math.inf, below: float = math.inf, least: float = -math.inf
) -> None:
    value = getattr(owner, field)
    ok = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not ok or not above < value < below or value < least:
        limits = [f"above {above:g}"] * math.isfinite(above) + [f"at least {least:g}"] * math.isfinite(least)
        limits += [f"below {below:g}"] * math.isfinite(below)
        raise fail(owner, field, value, " and ".join(["a finite number", *limits]))


def check_bool(owner: object, *fields: str) -> None:
    for field in fields:
        if not isinstance(getattr(owner, field), bool):
            raise fail(owner, field, getattr(owner, field), "True or False")


def check_callable(owner: object, field: str, *, optional: bool = True) -> None:
    value = getattr(owner, field)
    if not (callable(value) or (optional and value is None)):
        raise fail(owner, field, value, "a function" + " or None" * optional)


def check_instance(owner: object, field: str, cls: type, *, optional: bool = False) -> None:
    value = getattr(owner, field)
    if not (isinstance(value, cls) or (optional and value is None)):
        raise fail(owner, field, value, f"a {cls.__name__}" + " or None" * optional)


def freeze_strings(owner: object, field: str) -> None:
    """Turn a list of strings into a tuple; a lone string is the usual slip, and would become its letters."""
    value = getattr(owner, field)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise fail(owner, field, value, "a list of strings", "Write ('x',) for a single one")
    value = tuple(value)
    if not all(is_text(item) and item for item in value):
        raise fail(owner, field, value, "a list of non-empty strings")
    if len(set(value)) != len(value):
        raise fail(owner, field, value, "no duplicates")
    set_field(owner, field, value)


def freeze_mapping(owner: object, field: str, values: type | tuple[type, ...]) -> None:
    value = getattr(owner, field)
    if not isinstance(value, Mapping):
        raise fail(owner, field, value, "a mapping")
    value = dict(value)  # read once: what is checked is what is kept
    for key, item in value.items():
        finite = not isinstance(item, float) or math.isfinite(item)
        plain = is_text(key) and (is_text(item) or not isinstance(item, str))
        if not plain or not isinstance(item, values) or not finite:
            names = values.__name__ if isinstance(values, type) else ", ".join(cls.__name__ for cls in values)
            raise fail(owner, field, {key: item}, f"strings mapped to {names}")
    set_field(owner, field, Frozen(value))
