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
from typing import Any

from neuco_core.jsonio import hashed
from neuco_core.plugins.discovery import IN_TREE
from neuco_core.versions import behind, component_versions, constants

# Modules and functions that import by a name which the syntax tree does not show.
DYNAMIC = frozenset(("importlib", "importlib.util", "import_module", "__import__", "exec", "eval", "runpy"))
# Files of a plugin that never reach a number.
SILENT = (".py", ".pyc", ".pyi", ".md", ".rst", ".typed", ".toml", ".ipynb")


def code_key(function: Callable[..., Any] | None, *, files: bool = False) -> str | None:
    """The key of a function's code; None if its source cannot be found, e.g. because it was typed into a session.

    With ``files``, the data files of the plugin's package count as well: weights may lie beside an encoder.
    """
    function, bound = _unwrapped(function)
    name = getattr(function, "__module__", None) or type(function).__module__
    module = sys.modules.get(name)
    source = getattr(module, "__file__", None)
    if source is None or not Path(source).is_file():
        return None
    package = _Package(name, Path(source))
    entry = getattr(function, "__qualname__", None) or type(function).__qualname__
    # A lambda, a local function or an object may have been made, and given its values, inside of a hook.
    package.keep_hooks = "<" in entry or not hasattr(function, "__qualname__")
    package.reach(name)
    key = {"code": package.canonical(entry), "bound": bound, "neuco": package.versions()}
    if files:
        key["files"] = package.data_files()
    return hashed(key)


def _unwrapped(function: Any) -> tuple[Any, list[str]]:
    """The function inside of ``functools.partial`` objects, and what they bind."""
    bound: list[str] = []
    while isinstance(function, functools.partial):
        bound += [repr(function.args), repr(sorted(function.keywords.items()))]
        function = function.func
    return function, bound


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
        tree = ast.parse(path.read_text(encoding="utf-8"))
        # Hooks register; what they pass on (parameters, bands) is known from the spec, and words change no number.
        tree.body = [node for node in tree.body if self.keep_hooks or not _is_hook(node)]
        self.trees[module] = tree
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
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

    def canonical(self, entry: str) -> list[Any]:
        """The trees without names of the plugin's own, and where the code begins."""
        number = {module: f"module{place}" for place, module in enumerate(self.trees)}
        trees = [_plain(_Imports(self, module, number).visit(tree), self.names) for module, tree in self.trees.items()]
        return [*trees, [self.names.get(part, part) for part in entry.split(".")], sorted(self.bound)]

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
        files = [path for path in sorted(self.folder.rglob("*")) if path.is_file() and path.suffix not in SILENT]
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
        names = [ast.alias(self.number.get(f"{base}.{alias.name}", alias.name), alias.asname) for alias in node.names]
        return ast.ImportFrom(self.number.get(base, base), names, 0)

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


def _plain(node: Any, names: Mapping[str, str]) -> Any:
    """A syntax tree as lists and texts: the same for every version of Python, whatever fields it adds."""
    if isinstance(node, list):
        return [_plain(item, names) for item in node]
    if not isinstance(node, ast.AST):
        return names.get(node, node) if isinstance(node, str) else repr(node)
    if isinstance(node, ast.Constant):
        return ["Constant", repr(node.value)]
    if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _has_docstring(node):
        node.body = node.body[1:]
    skipped = ("ctx", "type_comment", "kind", "lineno", "end_lineno", "col_offset", "end_col_offset")
    values = [(name, _plain(getattr(node, name, None), names)) for name in node._fields if name not in skipped]
    return [type(node).__name__, *([name, value] for name, value in values if value not in ([], "None"))]


def _has_docstring(node: Any) -> bool:
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
