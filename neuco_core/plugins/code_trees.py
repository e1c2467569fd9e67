"""Syntax trees as plain lists: the same for every layout, wording and version of Python.

Names of a plugin's own functions and classes are replaced by neutral ones, so that renaming them changes nothing;
but not a name that the code could tell apart from its substitute.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

# By which a module may come from anywhere, or from compiled files that nobody checks.
UNTRACEABLE = frozenset(
    (
        *(
            "meta_path",
            "path_hooks",
            "path_importer_cache",
            "__path__",
            "__cached__",
            "addsitedir",
            "zipimport",
            "marshal",
        ),
        *("spec_from_file_location", "machinery", "SourceFileLoader", "SourcelessFileLoader", "cache_from_source"),
    )
)
# Functions of Python that do the same as what follows; a method such as ``model.eval`` is something else.
BUILT_IN = frozenset(
    (
        *("getattr", "hasattr", "setattr", "delattr", "globals", "locals", "vars", "dir", "type", "modules"),
        *("eval", "exec", "compile"),
    )
)
# By which code can see names, docstrings or annotations, or find something by a name that it computes.
BY_NAME = frozenset(
    (
        *("__name__", "__qualname__", "__module__", "__doc__", "__dict__", "__annotations__", "__class__", "__mro__"),
        *(
            "__bases__",
            "__subclasses__",
            "__init_subclass__",
            "__getattr__",
            "__getattribute__",
            "__spec__",
            "__loader__",
        ),
        *("__builtins__", "__package__", "__wrapped__", "__closure__", "__defaults__", "__kwdefaults__", "__slots__"),
        *("getmembers", "attrgetter", "methodcaller", "get_type_hints", "singledispatch"),
        *("pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "copyreg", "builtins", "gc", "ctypes"),
    )
)
# By which code can see its own text: then its layout and its comments count as well.
BY_TEXT = frozenset(
    (
        *(
            "inspect",
            "ast",
            "tokenize",
            "linecache",
            "dis",
            "symtable",
            "traceback",
            "__code__",
            "_getframe",
            "__file__",
        ),
        *("get_source", "get_data", "currentframe", "extract_stack", "iterdir", "listdir", "scandir", "walk", "fwalk"),
        *("__traceback__", "tb_lineno", "f_lineno", "stacklevel"),
    )
)
NEUTRAL = re.compile(r"(name|module)\d+")
DOTTED = re.compile(r"[\w.:]+")
INERT = (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.BitOr, ast.Tuple, ast.List, ast.Load, ast.Constant)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def parsed(path: Path) -> ast.Module:
    """The tree of a file in whatever encoding it declares; what is no Python counts by its bytes."""
    data = path.read_bytes()
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([ast.Expr(ast.Constant(hashlib.sha256(data).hexdigest().encode()))], [])


def plain(node: Any, names: Mapping[str, str], inside_class: bool = False, *, words: bool = False) -> Any:
    """A syntax tree as lists and texts, whatever fields a version of Python adds; ``words`` are docstrings and types.

    The plugin's own names are replaced where they are defined and where they stand alone; an attribute or a keyword
    of the same name may be somebody else's.
    """
    if isinstance(node, list):
        return [plain(item, names, inside_class, words=words) for item in node]
    if not isinstance(node, ast.AST):
        return node if isinstance(node, str) else repr(node)
    if isinstance(node, ast.Constant):
        return ["Constant", repr(node.value)]
    if isinstance(node, ast.Name):
        return ["Name", names.get(node.id, node.id)]
    skipped = {"ctx", "type_comment", "kind", "lineno", "end_lineno", "col_offset", "end_col_offset"}
    if not words:
        skipped.add("returns")
        if not inside_class or isinstance(node, ast.arg):  # in a class, annotations may make fields
            skipped.add("annotation")
    fields = {name: getattr(node, name, None) for name in node._fields if name not in skipped}
    if not words and has_docstring(node):
        fields["body"] = node.body[1:]
    within = isinstance(node, ast.ClassDef)
    values = [(name, plain(value, names, within, words=words)) for name, value in fields.items()]
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and not inside_class:
        values = [(name, names.get(value, value) if name == "name" else value) for name, value in values]
    return [type(node).__name__, *([name, value] for name, value in values if value not in ([], "None"))]


def has_docstring(node: ast.AST) -> TypeGuard[ast.Module | Definition]:
    if not isinstance(node, ast.Module | Definition):
        return False
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def texts(tree: ast.Module) -> Iterator[str]:
    """The texts in a module's code; a docstring is none, but may well speak of a file."""
    words = {id(getattr(node.body[0], "value", None)) for node in ast.walk(tree) if has_docstring(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in words:
            yield node.value


def identifiers(tree: ast.Module) -> set[str]:
    """Every name, attribute and imported name that the code uses; ``Path(__file__).parent`` and the like use none."""
    folders = {id(name) for node in ast.walk(tree) for name in _folder_of_file(node)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in folders:
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            if node.attr not in BUILT_IN or getattr(node.value, "id", "") in ("sys", "builtins"):
                found.add(node.attr)
        elif isinstance(node, Definition):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in (*modules, *(alias.name for alias in node.names)):
                found |= {name, *name.split(".")}
        elif isinstance(node, ast.keyword) and _unpickles(node):
            found.add("pickle")
    return found - {"annotations"}


def _folder_of_file(node: ast.AST) -> Iterator[ast.Name]:
    """The name ``__file__`` where only the folder of the file is taken: a module's own name and text stay unseen."""
    inner: ast.AST | None = None
    if isinstance(node, ast.Attribute) and node.attr in ("parent", "parents", "with_name"):
        inner = node.value
    elif isinstance(node, ast.Call) and _called(node) == "dirname" and len(node.args) == 1:
        inner = node.args[0]
    while isinstance(inner, ast.Call) and _called(inner) in ("resolve", "absolute", "Path", "abspath", "realpath"):
        inner = inner.args[0] if inner.args else getattr(inner.func, "value", None)
    if isinstance(inner, ast.Name) and inner.id == "__file__":
        yield inner


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def _unpickles(node: ast.keyword) -> bool:
    """A pickle names classes, so numpy and torch find them by name where they are allowed to."""
    safe = {"allow_pickle": False, "weights_only": True}
    return node.arg in safe and getattr(node.value, "value", None) is not safe[node.arg]


def is_dynamic(tree: ast.Module) -> bool:
    """Whether the code imports by a computed name; ``from importlib import resources`` does not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "importlib":
            if any(alias.name != "resources" for alias in node.names):
                return True
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            if any(module.partition(".")[0] in ("importlib", "runpy", "pkgutil") for module in modules):
                return not all(module.startswith("importlib.resources") for module in modules)
        elif isinstance(node, ast.Name) and node.id in ("__import__", "exec", "eval", "import_module"):
            return True
    return False


def is_untraceable(tree: ast.Module) -> bool:
    """Whether modules may come from anywhere: the code looks at where Python searches for them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "sys" and any(a.name == "path" for a in node.names):
            return True
        if isinstance(node, ast.Import) and any(a.name == "sys" and a.asname for a in node.names):
            return True  # under another name its path would not be noticed
        if isinstance(node, ast.Attribute) and node.attr == "path" and getattr(node.value, "id", "") == "sys":
            return True
    return bool(identifiers(tree) & UNTRACEABLE)


def own_names(trees: Mapping[str, ast.Module]) -> dict[str, str] | None:
    """Neutral names for a plugin's functions and classes; None if the code may find something by its name."""
    used = set().union(*(identifiers(tree) for tree in trees.values()))
    names: dict[str, str] = {}
    kept = {word for tree in trees.values() for word in _kept(tree, trees)}
    for statement in (statement for tree in trees.values() for statement in tree.body):
        # A decorator may register its function under its name, which then means something.
        definition = statement if isinstance(statement, ast.FunctionDef | ast.ClassDef) else None
        if definition and not definition.decorator_list and definition.name not in kept:
            names.setdefault(definition.name, f"name{len(names)}")
    seen = used & (BUILT_IN | BY_NAME | BY_TEXT) or any(NEUTRAL.fullmatch(name) for name in used)
    if seen or any(_acts(tree, names) for tree in trees.values()):
        return None
    return names


def _kept(tree: ast.Module, modules: Iterable[str]) -> Iterator[str]:
    """Names that also stand where they are not replaced: there a renamed function would be told from another one."""
    foreign = {alias.asname or alias.name.partition(".")[0] for alias in _foreign(tree, modules)} | {"self", "cls"}
    yield from foreign
    yield from (module.rpartition(".")[2] for module in modules)
    for text in texts(tree):
        if DOTTED.fullmatch(text):
            yield from re.split(r"[.:]", text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if _root(node) not in foreign:
                yield node.attr
        elif isinstance(node, ast.ClassDef):
            yield from (item.name for item in node.body if isinstance(item, Definition))
        elif not isinstance(node, Definition | ast.Name | ast.Constant | ast.alias | ast.keyword | ast.ImportFrom):
            for value in (getattr(node, name, None) for name in node._fields):
                yield from [value] if isinstance(value, str) else []
                yield from (item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _foreign(tree: ast.Module, modules: Iterable[str]) -> Iterator[ast.alias]:
    """What is imported from elsewhere than the plugin, and so has a name that is not the plugin's to change."""
    tops = {module.partition(".")[0] for module in modules}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias for alias in node.names if alias.name.partition(".")[0] not in tops)
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] not in tops:
            yield from node.names


def _root(node: ast.expr) -> str:
    """The name at the beginning of ``a.b(c).d``; "" if there is none."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _acts(tree: ast.Module, names: Collection[str]) -> bool:
    """Whether docstrings, types or names of a module do something: types that compute, a star that brings any name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
        if isinstance(node, ast.FormattedValue) and getattr(node.value, "id", "") in names:
            return True  # the text of a function or a class holds its name
        if (
            isinstance(node, ast.Call)
            and _called(node) in ("str", "repr", "ascii", "format", "print")
            and {getattr(item, "id", "") for item in node.args} & set(names)
        ):
            return True
        for part in (getattr(node, name, None) for name in ("annotation", "returns")):
            if part is not None and any(_computes(item, names) for item in ast.walk(part)):
                return True
    return False


def _computes(node: ast.AST, names: Collection[str]) -> bool:
    if isinstance(node, ast.Constant):
        return not (node.value is None or node.value is ... or isinstance(node.value, str))
    if isinstance(node, ast.Subscript):
        return _root(node) in names
    return not isinstance(node, INERT)
