"""Which code of a plugin decides its numbers: found through imports, compared without words and names."""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuco_core.plugins.code import code_key

FILES = {
    "__init__.py": '"""A package."""\n',
    "plugin.py": """
from neuco_core import Method, hookimpl

def make():
    from {name}.encoder import Encoder
    return Encoder()

@hookimpl
def neuco_methods():
    yield Method(id="{name}", title="Old words", encoder=make)
""",
    "encoder.py": '''
"""The encoder."""
from neuco_core.encoders import resize
from . import tables
from .deep.inner import FACTOR

class Encoder:
    """Encodes."""
    def encode(self, batch):
        return resize(batch.values, 2, 2) * FACTOR + tables.OFFSET + helper(1)

def helper(x):
    # a comment
    return x + 1
''',
    "tables.py": "OFFSET = 3\n",
    "deep/__init__.py": "",
    "deep/inner.py": "FACTOR = 2.0\n",
    "unused.py": "NOTHING = 1\n",
    "test.py": "from {name}.encoder import Encoder\n",
}
NUMBER = itertools.count()


class Package:
    """An outside package on the Python path; ``key`` imports it anew, as a later process would."""

    def __init__(self, folder: Path) -> None:
        self.name = f"outside{next(NUMBER)}"
        self.folder = folder / self.name
        for file, text in FILES.items():
            self.write(file, text.replace("{name}", self.name))

    def write(self, file: str, text: str) -> None:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edit(self, file: str, there: str, instead: str) -> None:
        text = (self.folder / file).read_text()
        assert there in text
        self.write(file, text.replace(there, instead))

    def rename(self, file: str, other: str) -> Path:
        return (self.folder / file).rename(self.folder / other)

    def key(self, pick: Callable[[Any], Any] = lambda module: module.make, home: str = "") -> str | None:
        for name in [name for name in sys.modules if name.partition(".")[0] == self.name]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return code_key(pick(importlib.import_module(f"{self.name}.plugin")), home, files="all")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return Package(tmp_path)


def rename_module(package: Package) -> None:
    (package.folder / "encoder.py").rename(package.folder / "network.py")
    package.edit("plugin.py", ".encoder import", ".network import")


# A change → whether it decides numbers.
SAME: dict[str, Callable[[Package], None]] = {
    "a docstring": lambda p: p.edit("encoder.py", "Encodes.", "Encodes with care."),
    "a comment": lambda p: p.edit("encoder.py", "a comment", "another comment"),
    "layout": lambda p: p.edit("encoder.py", "return x + 1", "return (\\n        x + 1\\n    )".replace("\\n", "\n")),
    "words of the registration": lambda p: p.edit("plugin.py", "Old words", "New words"),
    "a function's name": lambda p: p.edit("encoder.py", "helper(", "add_one("),
    "a class's name": lambda p: [p.edit(file, "Encoder", "Network") for file in ("encoder.py", "plugin.py")] and None,
    "a module's name": rename_module,
    "words in a module that is never imported": lambda p: p.edit("unused.py", "NOTHING", "# a comment\nNOTHING"),
    "the tests": lambda p: p.write("test.py", "assert False"),
    "type hints": lambda p: p.edit("encoder.py", "def helper(x):", "def helper(x: int) -> int:"),
    "a licence": lambda p: p.write("LICENSE", "Words"),
    "a byte order mark": lambda p: (
        (p.folder / "encoder.py").write_bytes(b"\xef\xbb\xbf" + (p.folder / "encoder.py").read_bytes()) and None
    ),
    "a card": lambda p: p.write("README.md", "# Words"),
}
OTHER: dict[str, Callable[[Package], None]] = {
    "a module that is never imported": lambda p: p.edit("unused.py", "1", "2"),
    "a module that is never imported, renamed": lambda p: p.rename("unused.py", "other.py") and None,
    "a module in a folder without __init__.py": lambda p: p.write("space/inner.py", "SIZE = 1"),
    "an extension module beside a module": lambda p: p.write("tables.abi3.so", "1"),
    "a zip file of modules": lambda p: p.write("modules.zip", "1"),
    "a conftest.py": lambda p: p.write("conftest.py", "import numpy; numpy.random.seed(1)"),
    "a number": lambda p: p.edit("encoder.py", "x + 1", "x + 2"),
    "an operator": lambda p: p.edit("encoder.py", "* FACTOR", "/ FACTOR"),
    "a constant in a second module": lambda p: p.edit("tables.py", "3", "4"),
    "a constant in a sub-package": lambda p: p.edit("deep/inner.py", "2.0", "2.5"),
    "code of the sub-package itself": lambda p: p.write("deep/__init__.py", "import numpy; numpy.seterr(all='raise')"),
    "the factory": lambda p: p.edit("plugin.py", "Encoder()", "Encoder().eval()"),
    "a file of weights": lambda p: p.write("weights.npy", "1"),
    "a file of weights in a folder": lambda p: p.write("data/weights.bin", "1"),
    "a helper renamed with what it calls": lambda p: p.edit("encoder.py", "helper(1)", "np.max(1)"),
    "settings in a TOML file": lambda p: p.write("settings.toml", "size = 1"),
    "a file that is no Python": lambda p: p.write("tables.py", "OFFSET = = 3"),
    "a file in a hidden folder": lambda p: p.write(".weights/w", "1"),
    "a file that is called a licence": lambda p: p.write("LICENSE.bin", "1"),
    "a file that is called Markdown": lambda p: p.write("weights.md", "1"),
    "a module without source": lambda p: p.write("tables.pyc", "1"),
    "another tool of neuco": lambda p: p.edit("encoder.py", "resize", "shrink"),
}


@pytest.mark.parametrize("name", SAME)
def test_what_changes_no_number_changes_no_key(name: str, package: Package) -> None:
    before = package.key()
    SAME[name](package)
    assert package.key() == before
    assert before is not None


@pytest.mark.parametrize("name", OTHER)
def test_what_may_change_a_number_changes_the_key(name: str, package: Package) -> None:
    before = package.key()
    OTHER[name](package)
    assert package.key() != before


@pytest.mark.parametrize("line", ["import importlib; importlib.import_module(NAME)", "getattr(tables, NAME)"])
def test_code_that_finds_things_by_name_may_find_the_tests(package: Package, line: str) -> None:
    package.edit("encoder.py", "# a comment", line)
    before = package.key()
    package.write("test.py", "SIZE = 3")
    assert package.key() != before


@pytest.mark.parametrize(
    "line",
    [
        "from importlib import resources",
        "from pathlib import Path; FOLDER = Path(__file__).resolve().parent / 'data'",
        "import os; FOLDER = os.path.dirname(os.path.abspath(__file__))",
        "weights.eval().type(int)",
    ],
)
def test_the_usual_ways_to_read_a_file_see_no_names(package: Package, line: str) -> None:
    package.edit("encoder.py", "# a comment", f"{line}  # a comment")
    before = package.key()
    for name in ("a docstring", "a comment", "layout", "a function's name", "a class's name", "the tests", "a card"):
        SAME[name](package)
        assert package.key() == before, name


# Code that can see the name of a function, of a class or of a module.
SEEING = {
    "its name": "helper.__name__",
    "its qualified name": "helper.__qualname__",
    "getattr": "getattr(tables, 'hel' + 'per')",
    "globals": "globals()['hel' + 'per']",
    "locals": "locals()",
    "vars": "vars()",
    "dir": "dir()",
    "a dictionary": "tables.__dict__",
    "sys.modules": "import sys; sys.modules",
    "inspect": "import inspect",
    "its class": "type(x)",
    "its text": "len(repr(helper))",
    "a formatted text": "f'{helper}'",
    "the very name": "WHICH = 'helper'",
    "the name in a path": "WHICH = 'encoder:helper'",
    "a pickle": "import pickle",
    "a pickle in an array": "np.load('x.npy', allow_pickle=True)",
    "a star": "from math import *",
    "an argument of that name": "(lambda helper: helper(x))(abs)",
    "a method of that name": "class A:\n        def helper(self): pass\n        other = helper",
    "an import under that name": "from math import sin as helper",
    "an attribute of a module": "tables.helper",
    "a name that neutral ones have": "name0 = helper",
    "its module": "helper.__module__",
    "attrgetter": "from operator import attrgetter",
    "operator": "import operator; operator.attrgetter('a')",
}


@pytest.mark.parametrize("name", SEEING)
def test_a_name_that_the_code_can_see_counts(package: Package, name: str) -> None:
    package.edit("encoder.py", "# a comment", SEEING[name])
    before = package.key()
    package.edit("encoder.py", "def helper(x)", "def assist(x)")
    package.edit("encoder.py", "OFFSET + helper(1)", "OFFSET + assist(1)")
    assert package.key() != before
    assert before is not None


@pytest.mark.parametrize("line", ["helper.__doc__", "getattr(helper, WHAT)", "import inspect"])
def test_a_docstring_that_the_code_can_read_counts(package: Package, line: str) -> None:
    package.edit("encoder.py", "# a comment", line)
    before = package.key()
    package.edit("encoder.py", "Encodes.", "3.0")
    assert package.key() != before


@pytest.mark.parametrize(
    "line", ["import inspect", "open(__file__)", "x.__code__.co_firstlineno", "[*resources.files('a').iterdir()]"]
)
def test_code_that_can_read_itself_counts_by_its_bytes(package: Package, line: str) -> None:
    package.edit("encoder.py", "# a comment", f"{line}  # a comment")
    for file in ("encoder.py", "tables.py", "README.md"):
        before = package.key()
        package.write(file, f"# 3.0\n{(package.folder / file).read_text() if file != 'README.md' else ''}")
        assert package.key() != before, file


@pytest.mark.parametrize("hint", ["set_size(3)", "(SIZE := 3)", "Literal[3]", "Encoder['3']"])
def test_a_type_that_computes_counts(package: Package, hint: str) -> None:
    package.edit("encoder.py", "def helper(x)", f"def helper(x: {hint})")
    package.edit("encoder.py", '"""The encoder."""', "from __future__ import annotations")  # so that it can be imported
    before = package.key()
    package.edit("encoder.py", "3", "4")
    assert package.key() != before


def test_neutral_names_cannot_be_mistaken_for_real_ones(package: Package) -> None:
    """The class is neutral name 1: a function that really has that name is another one."""
    package.edit("encoder.py", "helper(1)", "Encoder(1)")
    before = package.key()
    package.edit("encoder.py", "Encoder(1)", "name1(1)")
    assert package.key() != before


@pytest.mark.parametrize("text", ['"README.md"', '"see README.md"', '"*.md"', '"*"'])
def test_a_file_that_the_code_names_counts(package: Package, text: str) -> None:
    package.edit("encoder.py", "# a comment", f"file = {text}")
    before = package.key()
    package.write("README.md", "1")
    assert package.key() != before


@pytest.mark.parametrize(
    "line",
    [
        "import sys; sys.path.insert(0, '/x')",
        "from sys import meta_path",
        "import sys as s; s.path.append('/x')",
        "import importlib.util; importlib.util.spec_from_file_location('a', 'a.py')",
        "from importlib.machinery import SourceFileLoader",
        "import marshal",
        "__path__.append('modules.zip')",
    ],
)
def test_code_that_changes_where_modules_come_from_is_unknown(package: Package, line: str) -> None:
    package.edit("encoder.py", "# a comment", line)
    assert package.key() is None


def test_a_linked_folder_is_unknown(package: Package) -> None:
    (package.folder / "data").symlink_to(package.folder.parent, target_is_directory=True)
    assert package.key() is None


# What a hook does besides, if it says anything of 3.
BESIDES = {
    "an attribute": "make.size = 3",
    "a global": "global SIZE; SIZE = 3",
    "setattr": "setattr(make, 'size', 3)",
    "a walrus": "(size := 3)",
    "an item": "STATE['size'] = 3",
    "a method that changes": "STATE.update(size=3)",
    "a function of its own": "configure(3)",
    "a function of its own that registers": "harmless(3, configure(3))",
    "a nested function": "def inner(): return 3",
    "a nested class": "class Inner: size = 3",
    "a lambda": "inner = lambda: 3",
    "an import": "import numpy; SIZE = 3",
    "a sum in place": "state = STATE; state |= {'size': 3}",
    "a part of an iterator": "first = [x for x in NUMBERS if x < 3]",
    "a try": "try: pass\n    except ValueError: SIZE = 3",
    "a with": "with STATE: SIZE = 3",
    "a loop that stores elsewhere": "for make.size in (3,): pass",
    "an exception": "assert make.size < 3",
    "a builtin that is none": "tuple(3)",
}


@pytest.mark.parametrize("name", BESIDES)
def test_a_hook_that_does_more_than_register_counts(package: Package, name: str) -> None:
    own = "NUMBERS = (x for x in 'abc')\nSTATE = {}\ndef configure(size): STATE['size'] = size\n"
    own += "def harmless(*sizes): return sizes\n"
    own += "tuple = configure\n" if name == "a builtin that is none" else ""
    package.edit("plugin.py", "def make", f"{own}def make")
    package.edit("plugin.py", "    yield Method", f"    {BESIDES[name]}\n    yield Method")
    before = package.key()
    package.edit("plugin.py", "3", "4")
    assert package.key() != before


MORE_TASKS = """
@hookimpl
def neuco_tasks():
    from dataclasses import replace

    (first,) = _first()
    yield first
    yield replace(first, version=2)

def _first():
    for name, (kind, *columns) in TASKS.items():
        yield Task(id=name, kind=kind, columns=columns)

TASKS = {"a": ("regression", "x"), "b": ("classification", "y")}
"""


def test_another_task_is_no_other_code_of_cubes(package: Package) -> None:
    """A dataset's plugin declares tasks beside it, and its cubes stay as they are."""

    def key() -> str | None:
        package.key()
        return code_key(sys.modules[f"{package.name}.plugin"].make, f"{package.name}.plugin", files="named")

    before = key()
    package.edit("plugin.py", "import Method", "import Method, Task")
    package.edit("plugin.py", "\ndef make", "import json\n\ndef make")
    package.write("plugin.py", (package.folder / "plugin.py").read_text() + MORE_TASKS)
    package.write("labels.csv", "id,label")
    package.edit("unused.py", "1", "2")
    assert key() == before
    for file, there, instead in (
        ("tables.py", "3", "4"),
        ("encoder.py", "x + 1", "x + 2"),
        ("plugin.py", "r()", "r(1)"),
    ):
        package.edit(file, there, instead)
        assert key() != before
        before = key()
    package.write("plugin.py", (package.folder / "plugin.py").read_text() + "TASKS.update(file='labels.csv')\n")
    assert key() != before, "what is done at import counts, with what it is done to and what it reads"
    before = key()
    package.write("labels.csv", "id,other")
    assert key() != before


def test_a_hook_that_the_code_calls_counts(package: Package) -> None:
    package.edit("plugin.py", "return Encoder()", "return Encoder(next(neuco_methods()).title)")
    before = package.key()
    package.edit("plugin.py", "Old words", "New words")
    assert package.key() != before


def test_a_hook_may_compute_what_it_registers(package: Package) -> None:
    package.edit("plugin.py", "def make", "WAYS = {'a': ('b', 3)}\ndef words(name): return name.upper()\ndef make")
    package.edit(
        "plugin.py",
        "    yield Method",
        "    for name, (title, size) in WAYS.items():\n        text = f'{words(title)} {size}'\n    yield Method",
    )
    before = package.key()
    package.edit("plugin.py", "Old words", "New words")
    assert package.key() == before


def test_the_neighbours_of_a_lone_module_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it imports and names lies beside it; the rest of such a folder is somebody else's."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lone_plugin.py").write_text("import lone_helper\ndef make():\n    return open('lone.npy')\n")
    (tmp_path / "lone_helper.py").write_text("SIZE = 1\n")
    keys = [code_key(importlib.import_module("lone_plugin").make, files="all")]
    for name in ("lone_helper.py", "lone.npy", "others.npy"):
        (tmp_path / name).write_text("SIZE = 2\n")
        keys.append(code_key(sys.modules["lone_plugin"].make, files="all"))
    assert len(set(keys)) == 3
    assert keys[2] == keys[3]
    assert None not in keys


def test_what_a_lambda_in_a_hook_binds_counts(package: Package) -> None:
    package.edit("plugin.py", "encoder=make)", "encoder=lambda: make(size=3))")
    pick = lambda module: next(module.neuco_methods()).encoder  # noqa: E731
    before = package.key(pick)
    package.edit("plugin.py", "size=3", "size=4")
    assert package.key(pick) != before


def test_what_a_partial_binds_counts(package: Package) -> None:
    keys = {package.key(lambda module, n=n: functools.partial(module.make, size=n)) for n in (1, 2, 2)}
    assert len(keys) == 2


def test_a_name_that_is_also_an_attribute_of_others_is_seen(package: Package) -> None:
    old = "def helper(x):\n    # a comment\n    return x + 1"
    package.edit("encoder.py", old, "def mean(x):\n    return np.mean(x)")
    before = package.key()
    package.edit("encoder.py", "def mean(x):\n    return np.mean(x)", "def max(x):\n    return np.max(x)")
    assert package.key() != before


def test_values_given_to_an_object_in_a_hook_count(package: Package) -> None:
    package.edit("plugin.py", "encoder=make)", "encoder=Holder(2.0).run)")
    package.edit("plugin.py", "def make", "from .holder import Holder\n\ndef make")
    package.write("holder.py", "class Holder:\n    def __init__(self, x): self.x = x\n    def run(self): pass\n")
    pick = lambda module: next(module.neuco_methods()).encoder  # noqa: E731
    home = f"{package.name}.plugin"
    before = package.key(pick, home)
    package.edit("plugin.py", "2.0", "3.0")
    assert package.key(pick, home) != before


def test_a_partial_binds_values_and_not_their_texts(package: Package) -> None:
    import numpy as np

    def key(array: Any) -> str | None:
        return package.key(lambda module: functools.partial(module.make, array))

    one, other = np.zeros(5000), np.zeros(5000)
    other[2500] = 1
    assert key(one) != key(other)
    assert key(one) == key(one.copy())
    assert key({"a", "b"}) == key({"b", "a"})
    assert key(object()) is None, "what may differ in the next process is unknown"


def test_what_another_package_made_is_unknown(package: Package) -> None:
    import numpy as np

    assert package.key(lambda module: np.vectorize(module.make), f"{package.name}.plugin") is None


def test_two_encoders_of_one_module_have_keys_of_their_own(package: Package) -> None:
    package.edit("encoder.py", "def helper", "class Other:\n    pass\n\ndef helper")
    keys = []
    for name in ("Encoder", "Other"):
        package.key()
        module = importlib.import_module(f"{package.name}.encoder")
        keys.append(code_key(getattr(module, name)))
    assert keys[0] != keys[1]


def test_code_that_was_typed_in_has_no_key() -> None:
    space: dict[str, Any] = {"__name__": "typed_in"}
    exec("def make(): pass", space)
    assert code_key(space["make"]) is None
