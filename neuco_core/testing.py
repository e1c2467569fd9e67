"""The contract as tests, for a plugin's ``test.py`` in this repository or in any other.

    from neuco_core.testing import contract

    test_contract = contract("task", "soil_ph")

gives one test for each point of the contract (``neuco check --help`` lists them). Without any file,
``pytest --neuco soil_ph`` does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from neuco_core.contract.contract import FAILED, SKIPPED, Check, all_checks, run_check
from neuco_core.contract.subjects import MethodSubject, Subject, TaskSubject
from neuco_core.specs import Method, Task


@cache
def subject(noun: str, name: str) -> Subject:
    """A task or method with its data; kept, because all tests of a contract look at the same one."""
    from neuco_core.plugins.catalog import catalog

    if noun == "task":
        return TaskSubject(catalog().load(Task, name))
    return MethodSubject(catalog().load(Method, name))


def contract(noun: str, *names: str, allow_unpinned: bool = False) -> Callable[[str, str], None]:
    """A test function that holds tasks or methods to the contract, one test for each check and name."""

    @pytest.mark.parametrize("name", names)
    @pytest.mark.parametrize("check", [item.id for item in all_checks(noun)])
    def test_contract(check: str, name: str) -> None:
        hold(next(item for item in all_checks(noun) if item.id == check), noun, name, allow_unpinned=allow_unpinned)

    return test_contract


def hold(item: Check, noun: str, name: str, *, allow_unpinned: bool = False) -> None:
    """Run one check as (part of) a test: it passes, fails with reason and cure, or is skipped with the reason."""
    finding = run_check(item, subject(noun, name), allow_unpinned=allow_unpinned)
    if finding.status == SKIPPED:
        # Justified: the finding says why this machine or this subject leaves nothing to check.
        pytest.skip(finding.detail)
    if finding.status == FAILED:
        pytest.fail(f"{finding.detail}\nwhy: {item.reason}\ncure: {item.cure}", pytrace=False)
