"""What every shipped method owes beside the contract: an id that its folder explains, and hooks without effects."""

from __future__ import annotations

from pathlib import Path

from neuco_core.plugins.catalog import list_methods
from tests.command import python

FOLDERS = sorted(path.parent for path in Path(__file__).parents[2].glob("neuco_methods/*/__init__.py"))


def test_every_folder_gives_methods_named_after_it() -> None:
    methods = [method for method in list_methods() if method.origin and "neuco_methods" in method.origin.source]
    folders = {folder.name for folder in FOLDERS}
    owners = {
        method.id: [f for f in folders if method.id == f or method.id.startswith((f"{f}_", f"{f}-"))]
        for method in methods
    }
    assert all(owners.values()), owners
    assert {folder for owner in owners.values() for folder in owner} == folders


def test_an_encoder_can_be_tried_without_pytest_and_the_contract() -> None:
    code = "import sys; from neuco_core.testing import TinyCubes, check_encoder, contract; print(*sys.modules)"
    modules = set(python("-c", code).out.split())
    assert "neuco_core.testing" in modules
    assert modules & {"pytest", "torch", "neuco_core.contract.contract"} == set()


def test_hooks_can_be_called_again_after_an_encoder_was_made() -> None:
    # A function named like the module beside it would be replaced by that module at its first import.
    import neuco_methods.averaging as plugin

    for _ in range(2):
        for method in plugin.neuco_methods():
            assert method.encoder is not None
            assert hasattr(method.encoder(**method.params), "encode")
