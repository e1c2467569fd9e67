"""Which code and files of a plugin decide its numbers: found through imports, compared without words and names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuco_core.plugins.code import code_key
from tests.plugins.outside import Package


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
