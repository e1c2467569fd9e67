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
from typing import TypeVar

T = TypeVar("T")
PACKAGE = Path(__file__).resolve().parent


def versioned(number: int) -> Callable[[T], T]:
    """Mark a function or class as a component. The number is read from the source, without importing anything."""

    def mark(thing: T) -> T:
        return thing

    return mark


@cache
def component_versions(module: str) -> Mapping[str, int]:
    """The components of a module of neuco by name, e.g. of ``neuco_core.scoring.metrics``."""
    return {
        node.name: int(ast.unparse(call.args[0]))
        for node in _tree(module).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        for call in node.decorator_list
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "versioned"
    }


@cache
def constants(module: str) -> Mapping[str, ast.expr]:
    """The constants of a module of neuco, as syntax: plugins may import a table from it."""
    found: dict[str, ast.expr] = {}
    for node in _tree(module).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names = [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]
        value = getattr(node, "value", None)
        found |= {name: value for name in names if value is not None}
    return found


@cache
def _tree(module: str) -> ast.Module:
    base = PACKAGE.joinpath(*module.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return ast.parse(path.read_text(encoding="utf-8"))
    return ast.Module([], [])  # a name of a module, not a module: it has no components of its own
