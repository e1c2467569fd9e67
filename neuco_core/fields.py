"""What the fields of specs may hold: annotated types, which msgspec checks when a spec is made."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args

import msgspec
from msgspec import Meta

from neuco_core.errors import SpecError

ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
SHA256 = re.compile(r"[0-9a-f]{64}")
LARGEST = sys.float_info.max  # a bound that infinity and NaN do not keep


def choice(options: Iterable[str]) -> Meta:
    """Of a text: one of these."""
    options = tuple(options)
    return Meta(pattern=rf"\A({'|'.join(options)})\Z", description="one of " + ", ".join(options))


def bounds(**limits: float) -> Meta:
    """Of a number: finite, and within ``ge``, ``gt``, ``le``, ``lt``."""
    names = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    expected = " and ".join(["a finite number", *(f"{names[name]} {limit:g}" for name, limit in limits.items())])
    arguments: dict[str, Any] = {**limits, "description": expected}
    if "gt" not in limits:
        arguments.setdefault("ge", -LARGEST)
    if "lt" not in limits:
        arguments.setdefault("le", LARGEST)
    return Meta(**arguments)


# The descriptions stand in error messages, behind "expected".
_ID = "1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit"
_LONE = "\ud800-\udfff"  # surrogates, which could be neither printed nor written
_NAMES = "a list of non-empty strings, no duplicates; ('x',) for a single one"
Id = Annotated[str, Meta(pattern=rf"\A{ID.pattern}\Z", description=_ID)]
OptionalId = Annotated[str, Meta(pattern=rf"\A({ID.pattern})?\Z", description=_ID)]
Sha256 = Annotated[str, Meta(pattern=rf"\A{SHA256.pattern}\Z", description="64 lower-case hexadecimal digits")]
Text = Annotated[str, Meta(pattern=rf"\A[^{_LONE}]*\Z", description="a string")]
Names = Annotated[tuple[Annotated[str, Meta(pattern=rf"\A[^{_LONE}]+\Z")], ...], Meta(description=_NAMES)]
Flag = Annotated[bool, Meta(description="True or False")]
Count = Annotated[int, Meta(ge=1, description="a whole number of at least 1")]
Size = Annotated[int, Meta(ge=0, description="a whole number of at least 0")]
Number = Annotated[float, bounds()]
Share = Annotated[float, bounds(ge=0)]
if TYPE_CHECKING:
    Scalar = Any  # whoever reads a parameter knows which it is
else:
    Scalar = Text | int | bool | Number
Params = Annotated[Mapping[Text, Scalar], Meta(description="a mapping: strings mapped to str, int, float, bool")]
FUNCTION = Meta(description="a function")
Function = Annotated[Callable[..., Any], FUNCTION]
Target = Annotated[Any, Meta(description="a function, or its name as 'package.module:function'")]


class Frozen(Mapping[str, Any]):
    """An immutable, hashable, picklable mapping, so that a spec that holds one is all three too."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any]) -> None:
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


def check_fields(owner: Any) -> None:
    """Check each field of a frozen dataclass by its type; lists become tuples, and mappings cannot change later."""
    for field in dataclasses.fields(owner):
        value: Any = getattr(owner, field.name)
        kind: Any = field.type
        optional = NoneType in get_args(kind)
        if optional and value is None:
            continue
        kind = get_args(kind)[0] if optional else kind
        (meta,) = getattr(kind, "__metadata__", (None,))
        expected = (meta.description if meta else f"a {kind.__name__}") + (" or None" if optional else "")
        try:
            kept = msgspec.convert(float(value) if isinstance(value, float) else value, kind)  # numpy's are floats too
        except msgspec.ValidationError:
            raise wrong(owner, field.name, value, expected) from None
        if isinstance(kept, dict):
            kept = Frozen(kept)
        repeated = isinstance(kept, tuple) and len(set(kept)) < len(kept)
        if repeated or not (_plain(value) and _plain(kept)) or (kind == Target and not _is_target(kept)):
            raise wrong(owner, field.name, value, expected)
        if isinstance(kept, tuple | Frozen):
            object.__setattr__(owner, field.name, kept)


def wrong(owner: object, field: str, value: object, expected: object) -> SpecError:
    """The error for a value that a field may not have."""
    name = getattr(owner, "id", None) or getattr(owner, "name", None)
    where = f"{type(owner).__name__}({name!r})" if isinstance(name, str) else type(owner).__name__
    return SpecError(f"bad {field}", where=where, expected=expected, got=repr(value))


def _plain(value: object) -> bool:
    """Whether text and numbers are of no subclass, whose methods could answer one thing here and another later."""
    if isinstance(value, Mapping):
        return all(_plain(item) for pair in value.items() for item in pair)
    if isinstance(value, tuple):
        return all(map(_plain, value))
    return not isinstance(value, str | int) or type(value) in (str, int, bool)


def _is_target(value: object) -> bool:
    return callable(value) or (isinstance(value, str) and all(value.partition(":")))
