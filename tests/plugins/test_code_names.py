"""Names, words and types of a plugin's code count where the code can see them."""

from __future__ import annotations

import pytest

from tests.plugins.outside import Package

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


def test_a_name_that_is_also_an_attribute_of_others_is_seen(package: Package) -> None:
    old = "def helper(x):\n    # a comment\n    return x + 1"
    package.edit("encoder.py", old, "def mean(x):\n    return np.mean(x)")
    before = package.key()
    package.edit("encoder.py", "def mean(x):\n    return np.mean(x)", "def max(x):\n    return np.max(x)")
    assert package.key() != before
