"""Hooks that only register: what they pass on (parameters, bands) is known from the spec, and words change no number.

Any other hook counts as code. So the list here is of what is harmless, and not of what is not.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator

BUILTINS = frozenset(
    (
        *(
            "dict",
            "tuple",
            "list",
            "set",
            "frozenset",
            "str",
            "int",
            "float",
            "bool",
            "len",
            "range",
            "enumerate",
            "zip",
        ),
        *("sorted", "reversed", "min", "max", "sum", "round", "abs", "partial"),
    )
)
METHODS = frozenset(
    (
        *("items", "keys", "values", "get", "format", "replace", "join", "split", "rsplit", "partition", "rpartition"),
        *("lower", "upper", "title", "capitalize", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix"),
        *("startswith", "endswith", "index", "count", "partial"),
    )
)
HARMLESS = (
    *(ast.Expr, ast.Assign, ast.For, ast.If, ast.Return, ast.Pass, ast.Yield, ast.YieldFrom),
    *(ast.Constant, ast.Name, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr, ast.FormattedValue),
    *(ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.Attribute),
    *(ast.Starred, ast.Call, ast.keyword, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.comprehension, ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop),
    *(ast.ImportFrom, ast.alias),
)
SOURCES = ("neuco_core", "dataclasses", "functools")  # importing from them does nothing else


def without_hooks(trees: Collection[ast.Module]) -> None:
    """Take out of modules the hooks that only register, and that no other code uses."""
    for tree in trees:
        for hook in [node for node in tree.body if isinstance(node, ast.FunctionDef) and _is_hook(node)]:
            others = (node for one in trees for item in one.body if item is not hook for node in ast.walk(item))
            if _is_plain(hook, tree, frozenset()) and not _is_used(hook.name, others):
                tree.body = [node for node in tree.body if node is not hook]


def _is_hook(node: ast.FunctionDef) -> bool:
    if len(node.decorator_list) != 1 or any(ast.unparse(node.args)):
        return False
    (mark,) = node.decorator_list
    options = [word.value for word in mark.keywords] if isinstance(mark, ast.Call) else []
    mark = mark.func if isinstance(mark, ast.Call) else mark
    named = "hookimpl" in (getattr(mark, "id", ""), getattr(mark, "attr", ""))
    return named and all(isinstance(option, ast.Constant) for option in options)


def _is_used(name: str, nodes: Iterable[ast.AST]) -> bool:
    """Whether a hook is called, imported or looked up by the code itself, which may then use what it yields."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and any(alias.name in (name, "*") for alias in node.names):
            return True
        if name in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "value", "")):
            return True
    return False


def _is_plain(function: ast.FunctionDef, tree: ast.Module, callers: frozenset[str]) -> bool:
    """Whether a function computes what it yields or returns, and nothing else that other code could notice."""
    parts = [part for statement in function.body for part in ast.walk(statement)]
    if not all(_is_harmless_part(part, tree, callers | {function.name}) for part in parts):
        return False
    stored = (part for part in parts if isinstance(getattr(part, "ctx", None), ast.Store | ast.Del))
    if not all(isinstance(part, ast.Name | ast.Tuple | ast.List | ast.Starred) for part in stored):
        return False
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return not any(_is_used_up(value, tree) for value in _values(tree, names))


def _is_harmless_part(part: ast.AST, tree: ast.Module, callers: frozenset[str]) -> bool:
    if isinstance(part, ast.ImportFrom):
        return not part.level and (part.module or "").partition(".")[0] in SOURCES
    return isinstance(part, HARMLESS) and (not isinstance(part, ast.Call) or _may_call(part.func, tree, callers))


def _may_call(called: ast.expr, tree: ast.Module, callers: frozenset[str]) -> bool:
    if isinstance(called, ast.Attribute):
        return called.attr in METHODS
    if not isinstance(called, ast.Name):
        return False
    own = [node for node in tree.body if getattr(node, "name", "") == called.id]
    if own:
        (first, *more) = own
        plain_function = isinstance(first, ast.FunctionDef) and not first.decorator_list and not more
        return plain_function and called.id not in callers and _is_plain(first, tree, callers)  # type: ignore[arg-type]
    return called.id in _specs(tree) or (called.id in BUILTINS and not list(_values(tree, {called.id})))


def _specs(tree: ast.Module) -> set[str]:
    """What a module imports from neuco, which are its specs, and what makes one of another."""
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    ours = [node for node in froms if (node.module or "").partition(".")[0] in SOURCES]
    return {alias.asname or alias.name for node in ours for alias in node.names}


def _values(tree: ast.Module, names: Collection[str]) -> Iterator[ast.expr]:
    """What a module binds to some names."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        bound = {part.id for target in targets if target for part in ast.walk(target) if isinstance(part, ast.Name)}
        if bound & set(names) and isinstance(value := getattr(node, "value", None), ast.expr):
            yield value


def _is_used_up(value: ast.expr, tree: ast.Module) -> bool:
    """An iterator that a hook reads from is at another place afterwards, and other objects may do anything."""
    if isinstance(value, ast.Call):
        name = getattr(value.func, "id", "")
        return name not in (BUILTINS - {"zip", "enumerate", "reversed"}) | _specs(tree)
    return isinstance(value, ast.GeneratorExp | ast.Lambda)


def only_needed(trees: Collection[ast.Module], entries: Iterable[str]) -> None:
    """Leave out of modules the functions, tables and imports that nothing needs but the hooks that are gone.

    A dataset's plugin also declares tasks, and one more of them changes no cube. What may do something when it is
    imported stays.
    """
    parts = [(tree, statement) for tree in trees for statement in tree.body]
    needed = {id(statement) for tree, statement in parts if not _is_idle(statement, tree)}
    while True:
        used = {*entries, *(name for _, part in parts if id(part) in needed for name in _uses(part))}
        more = {id(part) for _, part in parts if _bound(part) & used} - needed
        if not more:
            break
        needed |= more
    for tree in trees:
        tree.body = [statement for statement in tree.body if id(statement) in needed]


def _is_idle(statement: ast.stmt, tree: ast.Module) -> bool:
    """Whether a statement of a module only gives something a name."""
    if isinstance(statement, ast.FunctionDef):
        defaults = [*statement.args.defaults, *(item for item in statement.args.kw_defaults if item)]
        return not statement.decorator_list and all(isinstance(item, ast.Constant) for item in defaults)
    if isinstance(statement, ast.Import | ast.ImportFrom):
        names = (
            [statement.module or "."] if isinstance(statement, ast.ImportFrom) else [a.name for a in statement.names]
        )
        tops = {name.partition(".")[0] for name in names} if not getattr(statement, "level", 0) else {"."}
        return tops <= sys.stdlib_module_names | {"neuco_core"} and bool(_bound(statement))
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if value is None or not _bound(statement):
        return False
    return all(_is_harmless_part(part, tree, frozenset()) for part in ast.walk(value))


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement gives; none if it may do more than that."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names} - {"*", "annotations"}
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    parts = [part for target in targets if target is not None for part in ast.walk(target)]
    plain_names = all(isinstance(part, ast.Name | ast.Tuple | ast.expr_context) for part in parts)
    return {part.id for part in parts if isinstance(part, ast.Name)} if plain_names else set()


def _uses(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.split(r"\W+", node.value)
