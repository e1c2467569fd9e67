"""What every shipped method owes: a card, a test of its own, light imports, and an id that its folder explains."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from neuco_core.plugins.catalog import list_methods, load_method
from neuco_core.testing import TinyCubes, encode_all
from tests.command import python

HEAVY = ("numpy", "pandas", "torch", "sklearn", "xarray", "scipy", "pyarrow", "numba", "boto3", "pooch")
HEADINGS = ("What", "Source", "Licence", "Caveats", "Citation")
FOLDERS = sorted(path.parent for path in Path(__file__).parents[2].glob("neuco_methods/*/__init__.py"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_has_a_card_and_a_test_that_asserts(folder: Path) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert [heading for heading in HEADINGS if f"**{heading}.**" not in card] == []
    tree = ast.parse((folder / "test.py").read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    assert len(tests) >= 3
    for test in tests:
        assert any(isinstance(node, ast.Assert | ast.With) for node in ast.walk(test)), test.name


def test_every_folder_gives_methods_named_after_it() -> None:
    methods = [method for method in list_methods() if method.origin and "neuco_methods" in method.origin.source]
    folders = {folder.name for folder in FOLDERS}
    owners = {
        method.id: [f for f in folders if method.id == f or method.id.startswith((f"{f}_", f"{f}-"))]
        for method in methods
    }
    assert all(owners.values()), owners
    assert {folder for owner in owners.values() for folder in owner} == folders
    assert all(method.title and method.description for method in methods)


@pytest.mark.parametrize("name", ["averaging", "band_statistics", "random"])
def test_the_declared_dimension_is_what_four_seasons_of_27_bands_give(name: str) -> None:
    method = load_method(name)
    assert method.encoder is not None
    assert encode_all(lambda: method.encoder(**method.params), TinyCubes(count=2)).shape[1] == method.dim


def test_listing_methods_imports_nothing_heavy() -> None:
    code = (
        "import sys; from neuco_core.plugins.catalog import list_methods; assert len(list_methods()) > 10; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert python("-c", code).text.strip() == "[]"


def test_hooks_can_be_called_again_after_an_encoder_was_made() -> None:
    # A function named like the module beside it would be replaced by that module at its first import.
    import neuco_methods.averaging as plugin

    for _ in range(2):
        for method in plugin.neuco_methods():
            assert method.encoder is not None
            assert hasattr(method.encoder(**method.params), "encode")
