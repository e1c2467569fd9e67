"""A hook that only registers is words; what it does besides, and the values that it binds, are code."""

from __future__ import annotations

import functools
import sys
from typing import Any

import pytest

from neuco_core.plugins.code import code_key
from tests.plugins.outside import Package

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


def test_what_a_lambda_in_a_hook_binds_counts(package: Package) -> None:
    package.edit("plugin.py", "encoder=make)", "encoder=lambda: make(size=3))")
    pick = lambda module: next(module.neuco_methods()).encoder  # noqa: E731
    before = package.key(pick)
    package.edit("plugin.py", "size=3", "size=4")
    assert package.key(pick) != before


def test_what_a_partial_binds_counts(package: Package) -> None:
    keys = {package.key(lambda module, n=n: functools.partial(module.make, size=n)) for n in (1, 2, 2)}
    assert len(keys) == 2


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
