"""What every noun has, and the file that one is read from."""

# No `from __future__ import annotations` in these modules: the types of fields are read when a spec is made.
import dataclasses
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from neuco_core.fields import Count, Id, Names, Sha256, Size, Text, check_fields, wrong
from neuco_core.text import Brief

SCHEMES = ("https", "http", "hf", "s3", "file", "pkg")

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

    id: Id
    title: Text = ""
    description: Text = ""
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_fields(self)

    def stamped(self: T, origin: Origin) -> T:
        """The same spec with its origin."""
        return dataclasses.replace(self, origin=origin)


@dataclass(frozen=True, kw_only=True)
class Content(Spec):
    """A spec that brings content of its own: it has a version, rights, tags."""

    version: Count = 1
    license: Text = ""
    citation: Text = ""
    tags: Names = ()

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

    url: Text
    sha256: Sha256 | None = None
    size: Size | None = None
    mirrors: Names = ()

    def __post_init__(self) -> None:
        check_fields(self)
        for url in self.urls:
            if _scheme(url) not in SCHEMES or not url.partition("://")[2]:
                raise wrong(self, "url", url, "an address that starts with " + ", ".join(f"{s}://" for s in SCHEMES))

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
