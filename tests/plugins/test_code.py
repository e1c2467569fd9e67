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

    def key(self, pick: Callable[[Any], Any] = lambda module: module.make, home: str = "") -> str | None:
        for name in [name for name in sys.modules if name.partition(".")[0] == self.name]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return code_key(pick(importlib.import_module(f"{self.name}.plugin")), home, files=True)


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
    "a module that is never imported": lambda p: p.edit("unused.py", "1", "2"),
    "the tests": lambda p: p.write("test.py", "assert False"),
    "type hints": lambda p: p.edit("encoder.py", "def helper(x):", "def helper(x: int) -> int:"),
    "a licence": lambda p: p.write("LICENSE", "Words"),
    "a byte order mark": lambda p: (
        (p.folder / "encoder.py").write_bytes(b"\xef\xbb\xbf" + (p.folder / "encoder.py").read_bytes()) and None
    ),
    "a card": lambda p: p.write("README.md", "# Words"),
}
OTHER: dict[str, Callable[[Package], None]] = {
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


def test_an_import_by_a_computed_name_reaches_every_module(package: Package) -> None:
    package.edit("encoder.py", "# a comment", "import importlib; importlib.import_module(NAME)")
    before = package.key()
    package.edit("unused.py", "1", "2")
    assert package.key() != before


def test_reading_a_packaged_file_is_no_computed_import(package: Package) -> None:
    package.edit("encoder.py", "# a comment", "from importlib import resources")
    before = package.key()
    package.edit("unused.py", "1", "2")
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
