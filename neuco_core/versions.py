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
from typing import TypeGuard, TypeVar

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
        if _is_definition(node)
        for call in node.decorator_list
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "versioned"
    }


@cache
def behind(module: str, name: str) -> Mapping[str, int]:
    """The versions of a component and of those of its module that it uses, directly or through other functions."""
    known = component_versions(module)
    defined = {node.name: node for node in _tree(module).body if _is_definition(node)}
    reached, waiting = {name}, [name]
    while waiting:
        used = {node.id for node in ast.walk(defined[waiting.pop()]) if isinstance(node, ast.Name)}
        new = used & defined.keys() - reached
        reached |= new
        waiting += sorted(new)
    return {part: known[part] for part in sorted(reached) if part in known}


def _is_definition(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.ClassDef]:
    return isinstance(node, ast.FunctionDef | ast.ClassDef)


@cache
def constants(module: str) -> Mapping[str, ast.expr]:
    """The constants of a module of neuco, as syntax: plugins may import a table from it."""
    found: dict[str, ast.expr] = {}
    for node in _tree(module).body:
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
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
