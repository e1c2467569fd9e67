"""What every noun has, and the file that one is read from."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from neuco_core import _validate as v
from neuco_core.text import Brief

SCHEMES = ("https", "http", "hf", "s3", "file", "pkg")
SCALARS = (str, int, float, bool)

T = TypeVar("T", bound="Spec")


@dataclass(frozen=True)
class Origin:
    """Where a spec came from; stamped by the plugin manager, never by the plugin."""

    plugin: str
    source: str
    distribution: str = ""
    version: str = ""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} ({self.source})" if self.distribution else self.source


@dataclass(frozen=True, kw_only=True)
class Spec(Brief):
    """What every registered noun has: an id, words for people, and where it came from."""

    id: str
    title: str = ""
    description: str = ""
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        v.check_id(self, "id")
        v.check_text(self, "title", "description")
        v.check_instance(self, "origin", Origin, optional=True)

    def stamped(self: T, origin: Origin) -> T:
        """The same spec with its origin."""
        return dataclasses.replace(self, origin=origin)


@dataclass(frozen=True, kw_only=True)
class Content(Spec):
    """A spec that brings content of its own: it has a version, rights, tags."""

    version: int = 1
    license: str = ""
    citation: str = ""
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        v.check_int(self, "version", 1)
        v.check_text(self, "license", "citation")
        v.freeze_strings(self, "tags")

    @property
    def label(self) -> str:
        """The name in keys and tables: ``x@2``, and of version 1 the id alone."""
        return versioned_id(self.id, self.version)


def versioned_id(spec_id: str, version: int) -> str:
    return spec_id if version == 1 else f"{spec_id}@{version}"


def exact(label: str) -> str:
    """A label for a look-up: of version 1, too, since the id alone would give the newest."""
    return label if "@" in label else f"{label}@1"


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""


@dataclass(frozen=True)
class Remote(Brief):
    """A file somewhere, and the sha256 that says which file it is.

    ``sha256=None`` means that nobody has verified it yet ("unpinned"): it can be listed, not loaded.
    Schemes: ``https://``, ``http://``, ``hf://datasets/owner/name@revision/path``, ``s3://bucket/key``
    (with ``?versionId=…``), ``file:///path``, and ``pkg://package/path`` for a file inside a Python package.
    """

    url: str
    sha256: str | None = None
    size: int | None = None
    mirrors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        v.freeze_strings(self, "mirrors")
        for url in (self.url, *self.mirrors):
            if not v.is_text(url) or _scheme(url) not in SCHEMES or not url.partition("://")[2]:
                raise v.fail(self, "url", url, "an address that starts with " + ", ".join(f"{s}://" for s in SCHEMES))
        if self.sha256 is not None and not (v.is_text(self.sha256) and v.SHA256.fullmatch(self.sha256)):
            raise v.fail(self, "sha256", self.sha256, "64 lower-case hexadecimal digits, or None while unverified")
        v.check_int(self, "size", 0, optional=True)

    @property
    def pinned(self) -> bool:
        return self.sha256 is not None

    @property
    def urls(self) -> tuple[str, ...]:
        """The address and its mirrors, in the order they are tried."""
        return (self.url, *self.mirrors)


def resolve(target: Callable[..., Any] | str) -> Any:
    """What a name such as ``"package.module:function"`` stands for; a function stands for itself."""
    if not isinstance(target, str):
        return target
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def check_target(spec: Spec, field: str) -> None:
    value = getattr(spec, field)
    named = v.is_text(value) and all(value.partition(":"))
    if not named and not callable(value):
        raise v.fail(spec, field, value, "a function, or its name as 'package.module:function'")


def to_json(value: object) -> Any:
    """A spec as plain JSON values; a function is shown by its name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if callable(value):
        return f"{getattr(value, '__module__', '?')}:{getattr(value, '__qualname__', type(value).__name__)}"
    return value
