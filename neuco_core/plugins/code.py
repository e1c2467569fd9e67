"""What code decides a number: one key for all that an encoder, metric, probe, splitter or loader of a plugin can reach.

The key is a hash of syntax trees, so comments, docstrings and layout do not count, nor do the names of the plugin's
own modules, functions and classes. Reached are the modules of the plugin's package that the code imports, directly
or not, wherever the import stands. From neuco itself only versions count (see ``versions``), from other packages
nothing: a method names those in ``requires``. Code that imports by a computed name may reach every module.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from neuco_core.jsonio import hashed
from neuco_core.plugins.discovery import IN_TREE
from neuco_core.specs import Spec
from neuco_core.versions import behind, component_versions, constants

# Modules and functions that import by a name which the syntax tree does not show.
DYNAMIC = frozenset(("importlib", "importlib.util", "import_module", "__import__", "exec", "eval", "runpy", "pkgutil"))
# Files of a plugin that never reach a number.
SILENT = (".py", ".pyc", ".pyi", ".md", ".rst", ".typed", ".ipynb", "~")
SILENT_NAMES = ("README", "LICENSE", "CHANGELOG", "pyproject.toml")


class _UnknownCode(Exception):
    """Something that has no source, or a value that cannot be compared between two processes."""


def code_key(function: Callable[..., Any] | None, home: str = "", *, files: bool = False) -> str | None:
    """The key of a function's code; None if it cannot be known, e.g. because it was typed into a session.

    ``home`` is the module that registers it. With ``files``, the data files of the plugin's package count as well:
    weights may lie beside an encoder.
    """
    try:
        return hashed(_key(function, home, files))
    except _UnknownCode:
        return None


def home_of(spec: Spec) -> str:
    """The module that registers a spec: of a directory of ours, or what an entry point names."""
    origin = spec.origin
    if origin is None:
        return ""
    tree, name = Path(origin.source).parent.name, Path(origin.source).name
    return f"{tree}.{name}" if tree in IN_TREE else origin.source.partition(":")[0]


def _key(function: Any, home: str, files: bool) -> dict[str, Any]:
    bound: list[Any] = []
    while isinstance(function, functools.partial):
        bound += [_value(function.args, home), _value(function.keywords, home)]
        function = function.func
    owner = getattr(function, "__self__", None)
    entries = [function if hasattr(function, "__qualname__") else type(function)]
    if owner is not None and not isinstance(owner, ModuleType):
        entries.append(owner if isinstance(owner, type) else type(owner))
    package = _Package(entries[0].__module__, _file(entries[0].__module__))
    if home and home.split(".", maxsplit=1)[0] != package.root.split(".")[0]:
        raise _UnknownCode  # made by somebody else's code, such as a decorator: what it does is not in this package
    # A lambda, a local function, a method or an object may have got its values inside of a hook.
    made = "<" in entries[0].__qualname__ or owner is not None or function is not entries[0]
    package.keep_hooks = made or bool(getattr(function, "__closure__", None))
    for module in dict.fromkeys((*(entry.__module__ for entry in entries), home)):
        parts = module.split(".")
        for end in range(len(parts), 0, -1):  # importing a module runs the packages around it
            package.reach(".".join(parts[:end]))
    names = [entry.__qualname__ for entry in entries]
    key = {"code": package.canonical(names), "bound": bound, "neuco": package.versions()}
    return {**key, "files": package.data_files()} if files else key


def _file(module: str) -> Path:
    source = getattr(sys.modules.get(module), "__file__", None)
    if source is None or not Path(source).is_file():
        raise _UnknownCode
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
        return _key(value, home, False)
    raise _UnknownCode


@dataclass
class _Package:
    """The modules of a plugin that were reached, in the order in which they were."""

    entry: str
    file: Path
    trees: dict[str, ast.Module] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    used: dict[str, set[str]] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    keep_hooks: bool = False

    @functools.cached_property
    def root(self) -> str:
        """The plugin's package: a directory of ours, or the top-level package of an installed one."""
        parts = self.entry.split(".")
        return ".".join(parts[: 2 if parts[0] in IN_TREE else 1])

    @functools.cached_property
    def folder(self) -> Path | None:
        """The folder of the plugin's package; None for a lone module, such as a script."""
        depth = self.entry.count(".") - self.root.count(".")
        if self.file.name != "__init__.py":
            depth -= 1
        return None if depth < 0 else self.file.parents[depth]

    def path(self, module: str) -> Path | None:
        """The file of a module of the plugin, found without importing it."""
        if module == self.entry:
            return self.file
        if self.folder is None or not (module == self.root or module.startswith(self.root + ".")):
            return None
        base = self.folder.joinpath(*module.split(".")[self.root.count(".") + 1 :])
        return next((p for p in (base / "__init__.py", base.with_suffix(".py")) if p.is_file()), None)

    def reach(self, module: str) -> None:
        """Take in a module and whatever it imports."""
        path = self.path(module)
        if path is None or module in self.trees:
            return
        tree = _parsed(path)
        # Hooks register; what they pass on (parameters, bands) is known from the spec, and words change no number.
        tree.body = [node for node in tree.body if self.keep_hooks or not _is_hook(node)]
        self.trees[module] = tree
        for statement in tree.body:
            # A decorator may register its function under its name, which then means something.
            if isinstance(statement, ast.FunctionDef | ast.ClassDef) and not statement.decorator_list:
                self.names.setdefault(statement.name, f"name{len(self.names)}")
        for node in ast.walk(tree):
            for target in self._imported(node, module, path.name == "__init__.py"):
                self.reach(target)
        if self.folder and any(_is_dynamic(node) for node in ast.walk(tree)):
            for file in sorted(self.folder.rglob("*.py")):
                if file.name != "test.py":
                    parts = file.relative_to(self.folder).with_suffix("").parts
                    self.reach(".".join((self.root, *parts)).removesuffix(".__init__"))

    def _imported(self, node: ast.AST, module: str, is_package: bool) -> Iterator[str]:
        """The modules that an import statement may load, with the packages around them."""
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
            self.used |= {target: {"*"} for target in targets if target.startswith("neuco_core.")}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, is_package)
            if base.partition(".")[0] == "neuco_core":
                self.used.setdefault(base, set()).update(alias.name for alias in node.names)
                self.bound.update(f"{alias.name} as {alias.asname or alias.name}" for alias in node.names)
            targets = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            return
        for target in targets:
            if target.startswith("neuco_core.") and target not in self.used:
                self.used[target] = {"*"}  # if this is a module, and not a name in one, any part of it may be used
            parts = target.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))

    def canonical(self, entries: list[str]) -> list[Any]:
        """The trees without names of the plugin's own, and where the code begins."""
        number = {module: f"module{place}" for place, module in enumerate(self.trees)}
        trees = [_plain(_Imports(self, module, number).visit(tree), self.names) for module, tree in self.trees.items()]
        begin = [[self.names.get(part, part) for part in entry.split(".")] for entry in entries]
        return [*trees, begin, sorted(self.bound)]

    def versions(self) -> Mapping[str, Any]:
        """Versions of the components of neuco that are imported, by name; a table that is imported counts whole."""
        found: dict[str, Any] = {}
        for module, names in self.used.items():
            known, tables = component_versions(module), constants(module)
            for name in known:
                found |= behind(module, name) if name in names or "*" in names else {}
            found |= {name: _plain(value, {}) for name, value in tables.items() if name in names or "*" in names}
        return found

    def data_files(self) -> list[list[str]]:
        """Name and sha256 of each file in the plugin's package that may hold numbers."""
        if self.folder is None:
            return []
        files = [path for path in sorted(self.folder.rglob("*")) if path.is_file()]
        files = [path for path in files if not path.name.endswith(SILENT) and not path.name.startswith(SILENT_NAMES)]
        return [
            [path.relative_to(self.folder).as_posix(), _sha256(path, path.stat().st_mtime_ns, path.stat().st_size)]
            for path in files
            if not any(part.startswith((".", "__pycache__")) for part in path.relative_to(self.folder).parts)
        ]


@functools.lru_cache(maxsize=4096)
def _sha256(path: Path, changed: int, size: int) -> str:
    """The hash of a file, computed once in a process while it stays as it is."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Imports(ast.NodeTransformer):
    """Import statements as what they bind: a plugin's modules may be renamed, and neuco's may move.

    What is imported from neuco is kept apart, in ``bound``: how those statements are cut and ordered means nothing.
    """

    def __init__(self, package: _Package, module: str, number: Mapping[str, str]) -> None:
        self.package, self.module, self.number = package, module, number
        self.is_package = (package.path(module) or Path()).name == "__init__.py"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        base = _absolute(node, self.module, self.is_package)
        if base.partition(".")[0] == "neuco_core":
            return None
        if base == "__future__":
            return None
        own = self.package.names if base in self.number else {}
        names = [(self.number.get(f"{base}.{alias.name}") or own.get(alias.name, alias.name)) for alias in node.names]
        pairs = zip(names, node.names, strict=True)
        kept = [ast.alias(name, own.get(alias.asname or "", alias.asname)) for name, alias in pairs]
        return ast.ImportFrom(self.number.get(base, base), kept, 0)

    def visit_Import(self, node: ast.Import) -> ast.AST:
        return ast.Import([ast.alias(self.number.get(alias.name, alias.name), alias.asname) for alias in node.names])


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The module that ``from … import`` names, with the dots resolved."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _is_hook(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        getattr(mark.func if isinstance(mark, ast.Call) else mark, "id", "") == "hookimpl"
        or getattr(mark.func if isinstance(mark, ast.Call) else mark, "attr", "") == "hookimpl"
        for mark in node.decorator_list
    )


def _is_dynamic(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return any(alias.name in DYNAMIC for alias in node.names) or getattr(node, "module", "") in DYNAMIC - {
            "importlib"
        }
    return isinstance(node, ast.Name) and node.id in DYNAMIC


def _parsed(path: Path) -> ast.Module:
    """The tree of a file in whatever encoding it declares; what is no Python counts by its bytes."""
    data = path.read_bytes()
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError):
        return ast.Module([ast.Expr(ast.Constant(hashlib.sha256(data).hexdigest().encode()))], [])


def _plain(node: Any, names: Mapping[str, str], inside_class: bool = False) -> Any:
    """A syntax tree as lists and texts: the same for every version of Python, whatever fields it adds.

    The plugin's own names are replaced where they are defined and where they stand alone; an attribute or a keyword
    of the same name may be somebody else's.
    """
    if isinstance(node, list):
        return [_plain(item, names, inside_class) for item in node]
    if not isinstance(node, ast.AST):
        return node if isinstance(node, str) else repr(node)
    if isinstance(node, ast.Constant):
        return ["Constant", repr(node.value)]
    if isinstance(node, ast.Name):
        return ["Name", names.get(node.id, node.id)]
    if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _has_docstring(node):
        node.body = node.body[1:]
    skipped = {"ctx", "type_comment", "kind", "lineno", "end_lineno", "col_offset", "end_col_offset", "returns"}
    if not inside_class or isinstance(node, ast.arg):  # in a class, annotations may make fields
        skipped.add("annotation")
    within = isinstance(node, ast.ClassDef)
    values = [(name, _plain(getattr(node, name, None), names, within)) for name in node._fields if name not in skipped]
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and not inside_class:
        values = [(name, names.get(value, value) if name == "name" else value) for name, value in values]
    return [type(node).__name__, *([name, value] for name, value in values if value not in ([], "None"))]


def _has_docstring(node: Any) -> bool:
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
