"""What code decides a number: one key for all that an encoder, metric, probe, splitter or loader of a plugin can reach.

The key is a hash of syntax trees, so comments, docstrings and layout do not count, nor do the names of the plugin's
own modules, functions and classes, unless the code can see them (``code_trees``). Reached are the modules of the
plugin's package, and of other plugins in neuco's folders, that the code imports, directly or not, wherever the import
stands (``code_modules``). From neuco itself only versions count (see ``versions``), from other packages nothing: a
method names those in ``requires``. Other modules and files of the package count as well (``code_files``), hidden ones
too.

What no key can see is what a run reads elsewhere: files outside the package, variables of the environment, another
installed package. ``neuco verify`` runs the code again for this reason.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from neuco_core.jsonio import hashed
from neuco_core.plugins.code_files import Files, UnknownCode
from neuco_core.plugins.code_modules import Package
from neuco_core.plugins.discovery import IN_TREE
from neuco_core.specs import Spec
from neuco_core.versions import behind, component_versions


@dataclass(frozen=True)
class StandIn:
    """A function that takes the place of one that ran elsewhere, in a sandbox, and goes by the key of its code."""

    key: str
    call: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


def code_key(function: Callable[..., Any] | None, home: str = "", *, files: Files = "none") -> str | None:
    """The key of a function's code; None if it cannot be known, e.g. because it was typed into a session.

    ``home`` is the module that registers it. Of the other modules and files of the plugin's package, all count, since
    weights may lie beside an encoder; or the files that the code names; or none.
    """
    if isinstance(function, StandIn):
        return function.key
    try:
        return hashed(_key(function, home, files))
    except UnknownCode:
        return None


def home_of(spec: Spec) -> str:
    """The module that registers a spec: of a directory of ours, or what an entry point names."""
    origin = spec.origin
    if origin is None:
        return ""
    tree, name = Path(origin.source).parent.name, Path(origin.source).name
    return f"{tree}.{name}" if tree in IN_TREE else origin.source.partition(":")[0]


def _key(function: Any, home: str, files: Files) -> dict[str, Any]:
    bound: list[Any] = []
    while isinstance(function, functools.partial):
        bound += [_value(function.args, home), _value(function.keywords, home)]
        function = function.func
    owner = getattr(function, "__self__", None)
    entries = [function if hasattr(function, "__qualname__") else type(function)]
    if owner is not None and not isinstance(owner, ModuleType):
        entries.append(owner if isinstance(owner, type) else type(owner))
    if entries[0].__module__.partition(".")[0] == "neuco_core":
        if owner is not None or getattr(function, "__closure__", None):
            raise UnknownCode  # what it holds may be anybody's
        return {"neuco": _version(entries[0]), "bound": bound}
    package = Package(entries[0].__module__, _file(entries[0].__module__))
    if home and home.split(".", maxsplit=1)[0] != package.root.split(".")[0]:
        raise UnknownCode  # made by somebody else's code, such as a decorator: what it does is not in this package
    for module in dict.fromkeys((*(entry.__module__ for entry in entries), home)):
        parts = module.split(".")
        for end in range(len(parts), 0, -1):  # importing a module runs the packages around it
            package.reach(".".join(parts[:end]))
    names = [entry.__qualname__ for entry in entries]
    # A lambda, a local function, a method or an object may have got its values inside of a hook.
    made = "<" in names[0] or owner is not None or function is not entries[0]
    keep_hooks = made or bool(getattr(function, "__closure__", None))
    code = package.canonical(names, files=files, keep_hooks=keep_hooks)
    return {**code, "bound": bound, "neuco": package.versions()}


def _version(function: Any) -> list[Any]:
    """Code of neuco itself goes by its version."""
    name, module = function.__qualname__, function.__module__
    return [name, dict(behind(module, name)) if name in component_versions(module) else {}]


def _file(module: str) -> Path:
    source = getattr(sys.modules.get(module), "__file__", None)
    if source is None or not Path(source).is_file():
        raise UnknownCode
    return Path(source)


def _value(value: Any, home: str) -> Any:
    """A bound value as JSON; one whose text may differ between processes is unknown."""
    if value is None or isinstance(value, str | int | float | bool | complex | bytes):
        return repr(value)
    if isinstance(value, tuple | list):
        return [_value(item, home) for item in value]
    if isinstance(value, dict):
        return [[_value(key, home), _value(item, home)] for key, item in value.items()]
    if isinstance(value, set | frozenset):
        return sorted(hashed(_value(item, home)) for item in value)
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        return [str(value.dtype), list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()]
    if callable(value):
        return _key(value, home, "none")
    raise UnknownCode
