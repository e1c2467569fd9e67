"""The rule of the ranking for browsers: Python that computes with numpy, translated to JavaScript that does the same.

Ranks are computed in one place. So the page does not repeat the rule: its very source is translated when the site is
made, and calls ``arrays.js`` where it calls numpy. What the translation does not know it refuses, by line: a rule that
grew something new makes no page, rather than a wrong one.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
from collections.abc import Callable

from neuco_core.errors import DataError

METHODS = {"sum", "std"}  # of arrays
FUNCTIONS = {
    *("np.argsort", "np.arange", "np.asarray", "np.broadcast_to", "np.empty", "np.ones", "np.quantile"),
    *(
        "np.put_along_axis",
        "np.round",
        "np.take_along_axis",
        "np.where",
        "np.zeros",
        "np.maximum.accumulate",
    ),
}
OPTIONS = {"axis", "keepdims"}
LEFT_OUT = {"dtype"}  # all numbers of JavaScript are floats
SIGNS: dict[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"},
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">="},
}
UNARY: dict[type[ast.AST], str] = {ast.USub: "arrays.neg({})", ast.Invert: "arrays.not({})", ast.Not: "!({})"}


def script(*wanted: Callable[..., object]) -> str:
    """A file that defines ``rule`` with these functions; those that they call come along."""
    made: dict[str, str] = {}
    waiting = list(wanted)
    while waiting:
        function = waiting.pop()
        if function.__name__ not in made:
            translation = Function(function)
            made[function.__name__] = translation.text()
            waiting += translation.called
    names = ", ".join(function.__name__ for function in wanted)
    head = '// Made from the Python that ranks boards; see compiled.py.\n"use strict";\n'
    return (
        f"{head}const rule = (() => {{\n{''.join(made[name] for name in sorted(made))}  return {{ {names} }};\n}})();\n"
    )


class Function:
    """One function, and those of its module that it calls."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.module = inspect.getmodule(function)
        self.where = f"{function.__module__}.{function.__name__}"
        lines, self.line = inspect.getsourcelines(function)
        (self.tree,) = ast.parse("".join(lines)).body
        self.called: list[Callable[..., object]] = []
        self.locals: set[str] = set()

    def text(self) -> str:
        tree = self.tree
        if not isinstance(tree, ast.FunctionDef) or tree.decorator_list:
            raise self.unknown(tree)
        names = [argument.arg for argument in tree.args.args]
        self.locals = {
            node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        declared = ", ".join(sorted(self.locals - set(names)))
        self.locals |= set(names)
        body = "".join(self.statement(node, "    ") for node in tree.body)
        return f"  function {tree.name}({', '.join(names)}) {{\n    let {declared};\n{body}  }}\n"

    def unknown(self, node: ast.AST) -> DataError:
        at = self.line + getattr(node, "lineno", 1) - 1
        what = f"no JavaScript is known for {type(node).__name__}: {ast.unparse(node)[:80]}"
        return DataError(
            what, where=f"{self.where}, line {at}", hint="Write it otherwise, or teach views/site/compiled.py"
        )

    def statement(self, node: ast.stmt, indent: str) -> str:
        match node:
            case ast.Expr(ast.Constant(str())):
                return ""  # a docstring
            case ast.Expr(value):
                return f"{indent}{self.of(value)};\n"
            case ast.Return(value) if value:
                return f"{indent}return {self.of(value)};\n"
            case ast.Assign([ast.Subscript(owner, index)], value):
                return f"{indent}arrays.set({self.of(owner)}, [{self.index(index)}], {self.of(value)});\n"
            case ast.Assign([target], value) | ast.AnnAssign(target, _, ast.expr() as value):
                return f"{indent}{self.target(target)} = {self.of(value)};\n"
            case ast.If(test, body, other):
                inner = ["".join(self.statement(part, f"{indent}  ") for part in part_of) for part_of in (body, other)]
                end = f" else {{\n{inner[1]}{indent}}}" if other else ""
                return f"{indent}if ({self.of(test)}) {{\n{inner[0]}{indent}}}{end}\n"
        raise self.unknown(node)

    def target(self, node: ast.expr) -> str:
        match node:
            case ast.Name(name):
                return name
            case ast.Tuple(parts):
                return f"[{', '.join(map(self.target, parts))}]"
        raise self.unknown(node)

    def of(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value) if value is None or isinstance(value, str | int | float):
                return json.dumps(value)
            case ast.Name(name):
                return self.name(node, name)
            case ast.Attribute(ast.Name(owner), name) if owner in self.locals:
                return f"{owner}.{name}"
            case ast.Tuple(parts):
                return f"[{', '.join(map(self.of, parts))}]"
            case ast.BinOp(left, sign, right) if type(sign) in SIGNS:
                return f'arrays.op("{SIGNS[type(sign)]}", {self.of(left)}, {self.of(right)})'
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
                return f"-{value}"
            case ast.UnaryOp(sign, value) if type(sign) in UNARY:
                return UNARY[type(sign)].format(self.of(value))
            case ast.BoolOp(sign, parts):
                return f"({(' && ' if isinstance(sign, ast.And) else ' || ').join(map(self.of, parts))})"
            case ast.Compare(left, [ast.Is() | ast.IsNot() as sign], [ast.Constant(None)]):
                return f"{self.of(left)} {'=' if isinstance(sign, ast.Is) else '!'}== null"
            case ast.Compare(left, [sign], [right]) if type(sign) in SIGNS:
                return f'arrays.op("{SIGNS[type(sign)]}", {self.of(left)}, {self.of(right)})'
            case ast.Subscript(owner, index):
                return f"arrays.get({self.of(owner)}, [{self.index(index)}])"
            case ast.Call():
                return self.call(node)
        raise self.unknown(node)

    def name(self, node: ast.expr, name: str) -> str:
        """A variable, or a number or text that the module defines."""
        value = getattr(self.module, name, None)
        if name in self.locals:
            return name
        if isinstance(value, str | int | float):
            return json.dumps(value)
        raise self.unknown(node)

    def index(self, node: ast.expr) -> str:
        match node:
            case ast.Tuple(parts):
                return ", ".join(map(self.index, parts))
            case ast.Constant(value) if value is ...:
                return '"..."'
            case ast.Slice(lower, upper, None):
                return f"{{ slice: [{self.of(lower) if lower else 'null'}, {self.of(upper) if upper else 'null'}] }}"
        return self.of(node)

    def call(self, node: ast.Call) -> str:
        given = [word for word in node.keywords if word.arg not in LEFT_OUT]
        words = ast.unparse(node.func)
        values = list(map(self.of, node.args))
        function = getattr(self.module, words, None) if isinstance(node.func, ast.Name) else None
        if isinstance(function, type) and dataclasses.is_dataclass(function):
            return self.record(node, function)
        if inspect.isfunction(function) and inspect.getmodule(function) is self.module and not given:
            self.called.append(function)
            return f"{words}({', '.join(values)})"
        if any(word.arg not in OPTIONS for word in given):
            raise self.unknown(node)
        options = f"{{ {', '.join(f'{word.arg}: {self.of(word.value)}' for word in given)} }}"
        if words in FUNCTIONS:
            return f"arrays.{words.removeprefix('np.').replace('.', '_')}({', '.join((*values, options))})"
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and not values:
            return f"arrays.{node.func.attr}({self.of(node.func.value)}, {options})"
        raise self.unknown(node)

    def record(self, node: ast.Call, kind: type) -> str:
        """A dataclass is an object with its fields; fields that are not given have their defaults."""
        fields = dataclasses.fields(kind)
        values = {field.name: json.dumps(field.default) for field in fields if field.default is not dataclasses.MISSING}
        values |= {field.name: self.of(value) for field, value in zip(fields, node.args, strict=False)}
        if node.keywords or len(values) < len(fields):
            raise self.unknown(node)
        return f"({{ {', '.join(f'{name}: {value}' for name, value in values.items())} }})"
