"""The contract as a pytest plugin: ``pytest --neuco soil_ph`` adds one test for each check of that task or method.

pytest loads this wherever neuco is installed, so it imports nothing until it is asked for something.
"""

from __future__ import annotations

from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("neuco", "the contract of neuco's tasks and methods")
    group.addoption("--neuco", action="append", default=[], metavar="ID", help="Check this task or method; repeatable.")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    names = config.getoption("--neuco")
    if not names:
        return
    from neuco_core.contract.contract import all_checks
    from neuco_core.errors import NeucoError
    from neuco_core.plugins.catalog import catalog

    for name in names:
        try:
            nouns = [noun for noun in ("task", "method", "dataset") if catalog().plugins.find(noun, name) is not None]
        except NeucoError as error:
            raise pytest.UsageError(str(error)) from error
        if not nouns:
            raise pytest.UsageError(f"--neuco: no task or method {name!r}; see `neuco tasks` and `neuco methods`")
        for noun in [noun for noun in nouns if noun != "dataset"] or nouns:  # tasks try the dataset beside them
            for check in all_checks(noun):
                test = f"{name}::{check.id}"
                items.append(CheckItem.from_parent(session, name=test, noun=noun, subject=name, check=check))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run that is green, but in which an essential check found nothing to look at, ends as ``neuco check`` does."""
    if exitstatus == 0 and any(item.lacking for item in session.items if isinstance(item, CheckItem)):
        from neuco_core.errors import LACKING

        session.exitstatus = LACKING


class CheckItem(pytest.Item):
    """One check of one task or method."""

    def __init__(self, *, noun: str, subject: str, check: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.noun, self.subject, self.check = noun, subject, check
        self.lacking = False  # of evidence

    def runtest(self) -> None:
        from neuco_core.testing import examine, tell

        finding = examine(self.check, self.noun, self.subject)
        self.lacking = finding.lacking
        tell(self.check, finding)

    def reportinfo(self) -> tuple[str, None, str]:
        return "neuco", None, self.name
