"""The key of a plugin's code: as long as it is the same, so are the numbers that the code made.

It is coarse on purpose. It is taken of everything in the plugin's package: the syntax trees of its modules without
docstrings, and the bytes of its other files; then of every other plugin in neuco's folders that it imports. Comments,
layout, tests, the words about a plugin (its card, its licence) and where its samples are do not count. Anything else
makes records stale, and scoring a cell again takes seconds. From neuco itself only versions count (see ``versions``),
from other packages nothing: a method names those in ``requires``.

What no key can see is what a run reads elsewhere: files outside of the package, variables of the environment, another
installed package. ``neuco verify`` runs the code again for this reason.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import resolve_name
from pathlib import Path
from typing import Any, NamedTuple

from neuco_core.files import hashed
from neuco_core.plugins.discovery import IN_TREE
from neuco_core.specs import Spec
from neuco_core.versions import behind, parts_of

POSITIONS = "positions.csv"
WORDS = re.compile(rf"{re.escape(POSITIONS)}|(README|LICENSE|CHANGELOG)(\.md|\.rst|\.txt)?|py\.typed|\.DS_Store")
TESTS = ("test.py", "tests")  # at the top of a package
COMPILED = (".pyc", ".nbi", ".nbc")  # in __pycache__; plugins run from source (see ``running``), so nobody reads these


@dataclass(frozen=True)
class StandIn:
    """A function that takes the place of one that ran elsewhere, in a sandbox, and goes by the key of its code."""

    key: str
    call: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


class _UnknownCode(Exception):
    """Code without a source, or that may come from anywhere."""


def code_key(function: Callable[..., Any] | None, home: str = "") -> str | None:
    """The key of a function's code; None if it cannot be known, e.g. because it was typed into a session.

    ``home`` is the module that registers it. Without one, only a function or class that stands in a module is known:
    what a lambda, a partial or an object holds may have come from the session.
    """
    if isinstance(function, StandIn):
        return function.key
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    owner: Any = inner if hasattr(inner, "__qualname__") else type(inner)
    module, name = owner.__module__, owner.__qualname__
    bound = function is not owner or getattr(function, "__self__", None) is not None
    if not home and (bound or "<" in name):
        return None
    # The files of the plugin's package and of those that it imports, and the versions of neuco's parts.
    packages: dict[str, list[list[str]]] = {}
    versions: dict[str, Any] = {}
    first = _package(home or module)
    waiting = {first: _locate(first)} if first != "neuco_core" else {}
    try:
        while waiting:
            package, location = waiting.popitem()
            if location is None:
                return None
            files = _files(package, location)
            packages[package] = [[path, content.sha256] for path, content in files.items()]
            for origin, imported in sorted({pair for content in files.values() for pair in content.imports}):
                if origin.partition(".")[0] == "neuco_core":
                    versions |= _versions(origin, imported)
                for other in (_package(origin), _package(f"{origin}.{imported}")):
                    if other not in packages and (path := _locate(other, location)) is not None:
                        waiting[other] = path
    except (_UnknownCode, OSError):
        return None
    if module.startswith("neuco_core."):
        versions |= _versions(module, name)
    elif _package(module) not in packages:
        return None  # made by somebody else's code, such as a decorator: what it does is not in these packages
    entry = [module.removeprefix(_package(module)), name]
    return hashed({"entry": entry, "packages": [packages[name] for name in sorted(packages)], "neuco": versions})


def home_of(spec: Spec) -> str:
    """The module that registers a spec: of a directory of ours, or what an entry point names."""
    origin = spec.origin
    if origin is None:
        return ""
    tree, name = Path(origin.source).parent.name, Path(origin.source).name
    return f"{tree}.{name}" if tree in IN_TREE else origin.source.partition(":")[0]


def folder_of(spec: Spec) -> Path | None:
    """The folder of the plugin that registers a spec; a lone module has none."""
    if spec.origin and Path(spec.origin.source).is_dir():
        return Path(spec.origin.source)
    path = _locate(_package(home_of(spec)))
    return path if path is not None and path.is_dir() else None


def _package(module: str) -> str:
    """The plugin that a module belongs to: a directory of ours, or the top-level package of an installed one."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] in IN_TREE else 1])


def _locate(package: str, importer: Path | None = None) -> Path | None:
    """The folder of a plugin, or the file of a lone module, such as a script, which may import others beside it."""
    tree, _, plugin = package.partition(".")
    if tree in IN_TREE:
        folders = [Path(folder) / plugin for folder in getattr(sys.modules.get(tree), "__path__", ())]
        return next((folder for folder in folders if plugin and folder.is_dir()), None)
    if importer is not None:
        beside = importer.with_name(f"{package}.py")
        return beside if importer.is_file() and beside.is_file() else None
    module = sys.modules.get(package)
    locations = [*getattr(module, "__path__", ()), getattr(module, "__file__", None)]
    return Path(locations[0]) if locations[0] else None


class _Content(NamedTuple):
    """A file: the hash of what counts in it; of a module also its text, and the names that it imports from where."""

    sha256: str
    text: str = ""
    imports: frozenset[tuple[str, str]] = frozenset()


_contents: dict[tuple[object, ...], _Content] = {}  # by file and state


def _files(package: str, location: Path) -> dict[str, _Content]:
    """Everything in a package that counts, hidden or not; of a lone module also the files beside it that it names."""
    if location.is_file():
        module = _content(location, package)
        beside = (path for path in sorted(location.parent.iterdir()) if path.suffix != ".py" and path.is_file())
        return {"": module, **{path.name: _content(path) for path in beside if path.name in module.text}}
    files: dict[str, _Content] = {}
    for path in sorted(location.rglob("*")):
        if path.is_symlink() and path.is_dir():
            raise _UnknownCode  # what it leads to is not part of the package, and may change unseen
        relative = path.relative_to(location)
        compiled = path.parent.name == "__pycache__" and path.suffix in COMPILED
        if path.is_file() and not compiled and relative.parts[0] not in TESTS:
            files[relative.as_posix()] = _content(path, ".".join((package, *relative.parent.parts)))
    # Words about the plugin do not count, unless the code names their file: then it may read it as data.
    code = "".join(content.text for content in files.values())
    about = {name for name in files if WORDS.fullmatch(Path(name).name) and Path(name).name not in code}
    return {name: content for name, content in files.items() if name not in about}


def _content(path: Path, package: str = "") -> _Content:
    """Read once in a process while the file stays as it is; ``package`` is what its relative imports start from."""
    state = path.stat()  # the time of the last change of state cannot be set back
    key = path, package, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
    if key in _contents:
        return _contents[key]
    data = path.read_bytes()
    content = _Content(hashlib.sha256(data).hexdigest())
    if path.suffix == ".py":
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):  # no Python: it counts by its bytes
            tree = ast.parse(data)
            imports: set[tuple[str, str]] = set()
            for node in ast.walk(tree):  # wherever the statement stands
                if isinstance(node, ast.Import):
                    imports |= {(alias.name, "*") for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    module = "." * node.level + (node.module or "")
                    origin = resolve_name(module, package) if node.level else module
                    imports |= {(origin, alias.name) for alias in node.names}
            content = _Content(hashed(_dump(tree)), data.decode("utf-8", "replace"), frozenset(imports))
    _contents[key] = content
    return content


def _dump(node: Any) -> Any:
    """A syntax tree as lists without docstrings. Fields that a newer Python adds are empty for old code: left out."""
    if isinstance(node, list):
        return [_dump(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: getattr(node, name, None) for name in node._fields}
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
        fields["body"] = node.body[1:]
    return [type(node).__name__, *([name, _dump(value)] for name, value in fields.items() if value not in (None, []))]


def _versions(module: str, name: str) -> dict[str, Any]:
    """Versions of the parts of neuco behind an imported name; a table that is imported counts whole."""
    versions: dict[str, Any] = {}
    for part, imported in ((module, name), (f"{module}.{name}", "*")):  # the name may be that of a module
        parts = parts_of(part)
        for component in parts.versions:
            if imported in (component, "*"):
                versions |= behind(part, component)
        for constant, value in parts.constants.items():
            if imported in (constant, "*"):
                versions[constant] = hashed(_dump(value))
    return versions
