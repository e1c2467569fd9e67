"""Versions of the code that decides numbers, written where the code is.

A record notes the versions of the components that made it. Whoever changes the numbers of a component raises its
version, and exactly the records that used it become stale; whoever only moves or rewords code raises nothing.
``tests/golden`` keeps the numbers of each version, so that a forgotten version is a failing test.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from neuco_core.errors import PluginError

T = TypeVar("T")
PACKAGE = Path(__file__).resolve().parent


def versioned(number: int) -> Callable[[T], T]:
    """Mark a function or class as a component. The number is read from the source, without importing anything."""
    return lambda thing: thing


class Parts(NamedTuple):
    """The functions and classes of a module, the versions of those that are components, and its constants."""

    defined: dict[str, ast.FunctionDef | ast.ClassDef]
    versions: dict[str, int]
    constants: dict[str, ast.expr]  # plugins may import a table
    imported: dict[str, tuple[str, str]]  # from neuco itself: a name here, its module and its name there


@cache
def parts_of(module: str) -> Parts:
    """What stands at the top of a module of neuco, such as ``neuco_core.scoring.metrics``."""
    base = PACKAGE.joinpath(*module.split(".")[1:])
    files = [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]
    parts = Parts({}, {}, {}, {})  # without a file it is a name of a module: it has no components of its own
    for node in ast.parse(files[0].read_text(encoding="utf-8")).body if files else ():
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            parts.defined[node.name] = node
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "versioned":
                    parts.versions[node.name] = int(ast.unparse(call.args[0]))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id.isupper():
                    parts.constants[target.id] = node.value
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{PACKAGE.name}."):
            parts.imported.update({alias.asname or alias.name: (node.module, alias.name) for alias in node.names})
    return parts


@cache
def behind(module: str, name: str) -> Mapping[str, int]:
    """The versions of a component and of those that it uses, directly or through other functions of its module."""
    parts = parts_of(module)
    if name not in parts.versions:
        raise PluginError(
            f"{name} has no version, so nobody could tell when its numbers change",
            where=module,
            hint="Mark it with @versioned(1)",
        )
    reached, waiting = {name}, [name]
    versions: dict[str, int] = {}
    while waiting:
        part = waiting.pop()
        if part in parts.versions:
            versions[part] = parts.versions[part]
        used = {node.id for node in ast.walk(parts.defined[part]) if isinstance(node, ast.Name)}
        for origin, original in (parts.imported[other] for other in used & parts.imported.keys()):
            if original in parts_of(origin).versions:
                versions |= behind(origin, original)
        new = used & parts.defined.keys() - reached
        reached |= new
        waiting += sorted(new)
    return dict(sorted(versions.items()))
