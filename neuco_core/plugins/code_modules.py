"""The modules of a plugin: those that its code imports, directly or not, and all others that lie in its package."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuco_core.plugins.code_files import Files, UnknownCode, hashed_files, state
from neuco_core.plugins.code_hooks import only_needed, without_hooks
from neuco_core.plugins.code_trees import BY_TEXT, identifiers, is_dynamic, is_untraceable, own_names, parsed, plain
from neuco_core.plugins.code_trees import texts as texts_of
from neuco_core.plugins.discovery import IN_TREE
from neuco_core.versions import behind, component_versions, constants

TESTS = "test.py"  # a plugin's own, at the top of its package


@dataclass
class Package:
    """The modules of a plugin that were reached, in the order in which they were."""

    entry: str
    file: Path
    trees: dict[str, ast.Module] = field(default_factory=dict)
    used: dict[str, set[str]] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    others: dict[str, Path] = field(default_factory=dict)

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
        parts = module.split(".")
        if self.folder is not None and (module == self.root or module.startswith(self.root + ".")):
            base = self.folder.joinpath(*parts[self.root.count(".") + 1 :])
        elif parts[0] in IN_TREE and len(parts) > 1 and (other := _in_tree(*parts[:2])):
            self.others[".".join(parts[:2])] = other
            base = other.joinpath(*parts[2:])
        elif self.folder is None and module.isidentifier():
            base = self.file.with_name(module)  # a lone module's neighbour
        else:
            return None
        return next((p for p in (base / "__init__.py", base.with_suffix(".py")) if p.is_file()), None)

    def reach(self, module: str) -> None:
        """Take in a module and whatever it imports."""
        path = self.path(module)
        if path is None or module in self.trees:
            return
        tree = self.trees[module] = parsed(path)
        if is_untraceable(tree) and not (self.folder and path == self.folder / TESTS):
            raise UnknownCode
        for node in ast.walk(tree):
            for target in self._imported(node, module, path.name == "__init__.py"):
                self.reach(target)
        if self.folder and is_dynamic(tree):
            for file in sorted(self.folder.rglob("*.py")):
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

    def canonical(self, entries: list[str], *, files: Files, keep_hooks: bool) -> dict[str, Any]:
        """All that the modules and files of the plugin say, and where the code begins.

        Names are neutral unless the code could see them; then docstrings and types count, too, and if it could see
        its own text, every byte of it. The modules that no import leads to count under their own names: whatever
        else leads to them does so by name.
        """
        if not keep_hooks:
            without_hooks(self.trees.values())
        if files == "named" and own_names(self.trees) is not None:
            only_needed(self.trees.values(), [entry.partition(".")[0] for entry in entries])
            kept = {name for tree in self.trees.values() for name in identifiers(tree)}
            self.bound = {pair for pair in self.bound if pair.rpartition(" ")[2] in kept}
        by_text = any(identifiers(tree) & BY_TEXT for tree in self.trees.values())
        own = own_names(self.trees)
        names, words = own or {}, own is None
        number = {} if words else {module: f"module{place}" for place, module in enumerate(self.trees)}
        found: dict[str, Any] = {} if files == "none" else {"files": self._data_files(by_text, files == "named")}
        if files == "all" and (rest := self._rest(by_name=words)):
            found["rest"] = rest
        if words:
            found["modules"] = list(self.trees)
        trees = [
            plain(_Imports(self, module, number, names, words).visit(tree), names, words=words)
            for module, tree in self.trees.items()
        ]
        begin = [[names.get(part, part) for part in entry.split(".")] for entry in entries]
        return {"code": [*trees, begin, sorted(self.bound)], **found}

    def versions(self) -> Mapping[str, Any]:
        """Versions of the components of neuco that are imported, by name; a table that is imported counts whole."""
        found: dict[str, Any] = {}
        for module, names in self.used.items():
            known, tables = component_versions(module), constants(module)
            for name in known:
                found |= behind(module, name) if name in names or "*" in names else {}
            found |= {name: plain(value, {}) for name, value in tables.items() if name in names or "*" in names}
        return found

    def _rest(self, *, by_name: bool) -> list[list[Any]]:
        """The modules that no import leads to, but for the plugin's tests if its code cannot find them by name."""
        reached = {self.path(module) for module in self.trees}
        rest = []
        for root, folder in self._folders().items():
            for file in sorted(folder.rglob("*.py")):
                if file not in reached and (by_name or file != folder / TESTS) and file.is_file():
                    name = f"{root}/{file.relative_to(folder).as_posix()}".lstrip("/")
                    rest.append([name, _whole(file, state(file))])
        return rest

    def _data_files(self, by_text: bool, only_named: bool) -> list[list[str]]:
        """Name and sha256 of each file that may hold numbers."""
        texts = {text for tree in self.trees.values() for text in texts_of(tree)} | ({"*"} if by_text else set())
        if self.folder is None:
            return hashed_files({"": self.file.parent}, texts, lone=self.file)
        return hashed_files(self._folders(), texts, only_named=only_named)

    def _folders(self) -> dict[str, Path]:
        return {"": self.folder, **dict(sorted(self.others.items()))} if self.folder else {}


@functools.lru_cache(maxsize=4096)
def _whole(path: Path, _: tuple[int, ...]) -> Any:
    """A module with all its names, read once in a process while it stays as it is."""
    return plain(parsed(path), {})


def _in_tree(tree: str, plugin: str) -> Path | None:
    """The folder of a plugin in one of neuco's own folders."""
    places = [Path(place) / plugin for place in getattr(sys.modules.get(tree), "__path__", ())]
    return next((place for place in places if place.is_dir()), None)


class _Imports(ast.NodeTransformer):
    """Import statements as what they bind: a plugin's modules may be renamed, and neuco's may move.

    What is imported from neuco is kept apart, in ``bound``: how those statements are cut and ordered means nothing.
    """

    def __init__(
        self, package: Package, module: str, number: Mapping[str, str], names: Mapping[str, str], words: bool
    ) -> None:
        self.package, self.module, self.number, self.names, self.words = package, module, number, names, words
        self.is_package = (package.path(module) or Path()).name == "__init__.py"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        base = _absolute(node, self.module, self.is_package)
        if base.partition(".")[0] == "neuco_core" or (base == "__future__" and not self.words):
            return None
        own = self.names if base in self.number else {}
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
