"""Which changes of a plugin's code and files are noticed, and when code counts as unknown."""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neuco_methods
from neuco_core.errors import PluginError
from neuco_core.plugins.code_key import code_key
from neuco_core.versions import behind, parts_of

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
        return code_key(pick(importlib.import_module(f"{self.name}.plugin")), home)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return Package(tmp_path)


# A change → whether it may decide numbers.
SAME: dict[str, Callable[[Package], object]] = {
    "a docstring": lambda p: p.edit("encoder.py", "Encodes.", "Encodes with care."),
    "a comment": lambda p: p.edit("encoder.py", "a comment", "another comment"),
    "layout": lambda p: p.edit("encoder.py", "return x + 1", "return (\n        x + 1\n    )"),
    "the tests": lambda p: p.write("test.py", "assert False"),
    "a folder of tests": lambda p: p.write("tests/test_encoder.py", "assert False"),
    "a licence": lambda p: p.write("LICENSE", "Words"),
    "a card": lambda p: p.write("README.md", "# Words"),
    "what Python compiled": lambda p: p.write("__pycache__/encoder.cpython-311.pyc", "1"),
    "a byte order mark": lambda p: p.write("encoder.py", "\ufeff" + (p.folder / "encoder.py").read_text()),
}
OTHER: dict[str, Callable[[Package], object]] = {
    "a number": lambda p: p.edit("encoder.py", "x + 1", "x + 2"),
    "a name, which costs a new score": lambda p: p.edit("encoder.py", "helper(", "add_one("),
    "what the plugin registers": lambda p: p.edit("plugin.py", "Old words", "New words"),
    "a constant in a second module": lambda p: p.edit("tables.py", "3", "4"),
    "a constant in a sub-package": lambda p: p.edit("deep/inner.py", "2.0", "2.5"),
    "code of the sub-package itself": lambda p: p.write("deep/__init__.py", "import numpy; numpy.seterr(all='raise')"),
    "a module that nothing imports": lambda p: p.edit("unused.py", "1", "2"),
    "a module's name": lambda p: p.rename("unused.py", "other.py"),
    "a module in a folder without __init__.py": lambda p: p.write("space/inner.py", "SIZE = 1"),
    "a module without source": lambda p: p.write("tables.pyc", "1"),
    "a file that is no Python": lambda p: p.write("tables.py", "OFFSET = = 3"),
    "a file of weights": lambda p: p.write("weights.npy", "1"),
    "a file in a hidden folder": lambda p: p.write(".weights/w", "1"),
    "a file among compiled ones": lambda p: p.write("__pycache__/w", "1"),
    "a file that is called a licence": lambda p: p.write("LICENSE.bin", "1"),
    "a file that is called Markdown": lambda p: p.write("weights.md", "1"),
    "another tool of neuco": lambda p: p.edit("encoder.py", "resize", "shrink"),
}


@pytest.mark.parametrize("name", {**SAME, **OTHER})
def test_the_key_changes_with_whatever_may_change_a_number_and_with_nothing_else(name: str, package: Package) -> None:
    before = package.key()
    {**SAME, **OTHER}[name](package)
    assert before is not None
    assert (package.key() == before) == (name in SAME)


def test_a_card_that_the_code_names_counts(package: Package) -> None:
    package.edit("encoder.py", "# a comment", 'file = "README.md"')
    before = package.key()
    package.write("README.md", "1")
    assert package.key() != before


def test_a_raised_version_of_a_part_of_neuco_is_noticed(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    before = package.key()
    raised = {"resize": 2, "bilinear": 1}
    monkeypatch.setattr("neuco_core.plugins.code_key.behind", lambda module, name: raised)
    assert package.key() != before


def test_a_part_of_neuco_without_a_version_is_refused_with_the_cure() -> None:
    with pytest.raises(PluginError, match=r"metrics: finite has no version.* Mark it with @versioned\(1\)"):
        behind("neuco_core.scoring.metrics", "finite")


def test_a_table_of_neuco_counts_by_its_content(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    package.edit("encoder.py", "import resize", "import PUBLISHED_STATISTICS, resize")
    before = package.key()
    monkeypatch.setattr("neuco_core.plugins.code_key.parts_of", lambda module: parts_of(module)._replace(constants={}))
    assert package.key() != before


@pytest.mark.parametrize(
    "line",
    ["from neuco_methods.beside.tool import SHARE", "from neuco_methods import beside", "import neuco_methods.beside"],
)
def test_another_plugin_that_is_imported_counts(
    package: Package, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neuco_methods, "__path__", [*neuco_methods.__path__, str(tmp_path / "neuco_methods")])
    tool = tmp_path / "neuco_methods" / "beside" / "tool.py"
    tool.parent.mkdir(parents=True)
    tool.with_name("__init__.py").touch()
    tool.write_text("SHARE = 1\n")
    package.edit("encoder.py", "# a comment", line)
    before = package.key()
    tool.write_text("SHARE = 2\n")
    assert package.key() != before
    assert before is not None


def test_the_neighbours_of_a_lone_module_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it imports and names lies beside it; the rest of such a folder is somebody else's."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lone_plugin.py").write_text("import lone_helper\ndef make():\n    return open('lone.npy')\n")
    (tmp_path / "lone_helper.py").write_text("SIZE = 1\n")
    keys = [code_key(importlib.import_module("lone_plugin").make)]
    for name in ("lone_helper.py", "lone.npy", "others.npy"):
        (tmp_path / name).write_text("SIZE = 2\n")
        keys.append(code_key(sys.modules["lone_plugin"].make))
    assert len(set(keys)) == 3
    assert keys[2] == keys[3]
    assert None not in keys


def test_two_encoders_of_one_package_have_keys_of_their_own(package: Package) -> None:
    make = package.key()
    module = importlib.import_module(f"{package.name}.encoder")
    assert len({make, code_key(module.Encoder), code_key(module.helper)}) == 3


# What a plugin may register → whether its code is known without the plugin: what it holds may come from a session.
MADE: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "a function": (lambda module: module.make, True),
    "a lambda": (lambda module: lambda: module.make(), False),
    "a partial": (lambda module: functools.partial(module.make, 1), False),
    "a bound method": (lambda module: module.make().encode, False),
    "an object": (lambda module: module.make(), False),
}


@pytest.mark.parametrize("name", MADE)
def test_what_holds_values_is_known_only_by_the_plugin_that_made_it(name: str, package: Package) -> None:
    pick, is_known = MADE[name]
    assert (package.key(pick) is not None) is is_known
    if name != "a lambda":  # which these tests made, and not the plugin
        assert package.key(pick, f"{package.name}.plugin") is not None


UNKNOWN: dict[str, Callable[[Any], Any]] = {
    "what another package made": lambda module: np.vectorize(module.make),
    "a function of another package": lambda module: np.mean,
    "a function of these tests": lambda module: test_two_encoders_of_one_package_have_keys_of_their_own,
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_somebody_else_made_is_unknown(name: str, package: Package) -> None:
    assert package.key(UNKNOWN[name], f"{package.name}.plugin") is None


def test_a_linked_folder_is_unknown(package: Package) -> None:
    (package.folder / "data").symlink_to(package.folder.parent, target_is_directory=True)
    assert package.key() is None


def test_code_that_was_typed_in_is_unknown() -> None:
    space: dict[str, Any] = {"__name__": "typed_in"}
    exec("def make(): pass", space)
    assert code_key(space["make"]) is None
