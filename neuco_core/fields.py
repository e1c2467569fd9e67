"""What the fields of specs may hold: annotated types, which msgspec checks when a spec is made."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_args

import msgspec
from msgspec import Meta

from neuco_core.errors import SpecError
from neuco_core.text import Brief

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


class Frozen(dict[str, Any]):
    """An immutable, hashable, picklable mapping, so that a spec that holds one is all three too."""

    def _refuse(self, *arguments: object, **more: object) -> NoReturn:
        raise TypeError("a mapping in a spec cannot be changed")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))

    def __reduce__(self) -> tuple[object, ...]:
        return Frozen, (dict(self),)


class Checked(Brief):
    """A frozen dataclass whose fields are checked by their types when it is made."""

    def __post_init__(self) -> None:
        """Lists become tuples, and mappings cannot change later."""
        cls: Any = type(self)
        for name, kind, default, expected in _rules(cls):
            value = getattr(self, name)
            if value is default:
                continue
            try:
                kept = msgspec.convert(float(value) if isinstance(value, float) else value, kind)  # numpy's are floats
            except msgspec.ValidationError:
                raise wrong(self, name, value, expected) from None
            parts: Iterable[Any] = (value,)
            if isinstance(kept, dict):
                kept, parts = Frozen(kept), (*kept, *kept.values())
            elif isinstance(kept, tuple):
                parts = kept
            if isinstance(kept, tuple | dict):
                object.__setattr__(self, name, kept)
            # Text and numbers of a subclass could answer one thing here and another later.
            disguised = any(isinstance(part, str | int) and type(part) not in (str, int, bool) for part in parts)
            repeated = isinstance(kept, tuple) and len(set(kept)) < len(kept)
            target = kind != Target or callable(kept) or (isinstance(kept, str) and all(kept.partition(":")))
            if disguised or repeated or not target:
                raise wrong(self, name, value, expected)


@cache
def _rules(cls: type[Any]) -> list[tuple[str, Any, object, str]]:
    """Of each field of a dataclass: its name, type and default, and in words what it may hold."""
    rules = []
    for field in dataclasses.fields(cls):
        kind: Any = field.type
        optional = NoneType in get_args(kind)  # then the default is None, which needs no check
        kind = get_args(kind)[0] if optional else kind
        (meta,) = getattr(kind, "__metadata__", (None,))
        expected = (meta.description if meta else f"a {kind.__name__}") + (" or None" if optional else "")
        rules.append((field.name, kind, field.default, expected))
    return rules


def wrong(owner: object, field: str, value: object, expected: object) -> SpecError:
    """The error for a value that a field may not have."""
    name = getattr(owner, "id", None) or getattr(owner, "name", None)
    where = f"{type(owner).__name__}({name!r})" if isinstance(name, str) else type(owner).__name__
    return SpecError(f"bad {field}", where=where, expected=expected, got=repr(value))
