"""The contract: a list of checks that authors, each plugin's ``test.py`` and continuous integration all run.

A check looks at one subject (a task or a method with its data) and returns words about what it saw. It fails by
raising: ``Broken`` for the contract, any ``NeucoError`` for what it met on the way. Nothing is checked silently:
a check that cannot be run says why, and a run in which nothing was checked is no success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from neuco_core.errors import DependencyError, NeucoError, OfflineError, UnpinnedError
from neuco_core.plugins.loading import say

OK, WARNING, FAILED, SKIPPED = "ok", "warning", "failed", "skipped"


class Broken(NeucoError):
    """The contract is not kept."""


class Warn(NeucoError):
    """The contract is kept, and somebody should look."""


class Inapplicable(NeucoError):
    """The check says nothing about this subject, for the reason given."""


@dataclass(frozen=True)
class Check:
    """One point of the contract: what it asks, why, and what to do where it is not kept."""

    id: str
    noun: str
    asks: str
    reason: str
    cure: str
    run: Callable[[Any], str]


@dataclass(frozen=True)
class Finding:
    """What a check found on a subject."""

    check: str
    noun: str
    subject: str
    status: str
    detail: str
    cure: str = ""


CHECKS: dict[str, Check] = {}


def check(
    check_id: str, noun: str, *, asks: str, reason: str, cure: str
) -> Callable[[Callable[[Any], str]], Callable[[Any], str]]:
    """Add a function to the contract; checks are run in the order in which they are defined."""

    def add(function: Callable[[Any], str]) -> Callable[[Any], str]:
        CHECKS[check_id] = Check(check_id, noun, asks, reason, cure, function)
        return function

    return add


def run_check(item: Check, subject: Any, *, allow_unpinned: bool = False) -> Finding:
    """Run one check; what it raises becomes part of the finding."""
    status, detail = OK, ""
    try:
        detail = item.run(subject)
    except Warn as warning:
        status, detail = WARNING, str(warning)
    except Inapplicable as reason:
        status, detail = SKIPPED, str(reason)
    except UnpinnedError as error:
        status, detail = (SKIPPED if allow_unpinned else FAILED), str(error)
    except (OfflineError, DependencyError) as error:
        # Not the author's fault: this machine lacks something. A skip is still no evidence.
        status, detail = SKIPPED, str(error)
    except NeucoError as error:
        status, detail = FAILED, str(error)
    except (Exception, SystemExit) as error:  # code that leaves has not passed
        status, detail = FAILED, say(error)
    cure = item.cure if status in (WARNING, FAILED) else ""
    return Finding(item.id, item.noun, subject.id, status, detail, cure)


def run_checks(
    noun: str, subject: Any, only: Iterable[str] | None = None, *, allow_unpinned: bool = False
) -> list[Finding]:
    """All checks of a noun on one subject."""
    wanted = None if only is None else set(only)
    items = [item for item in all_checks(noun) if wanted is None or item.id in wanted]
    return [run_check(item, subject, allow_unpinned=allow_unpinned) for item in items]


def all_checks(noun: str | None = None) -> list[Check]:
    """The contract, for one noun or as a whole."""
    from neuco_core.contract import method_checks, task_checks  # noqa: F401 - importing them fills the list

    items = sorted(CHECKS.values(), key=lambda item: item.noun != "task")  # tasks first; otherwise as defined
    return [item for item in items if noun in (None, item.noun)]


def passed(findings: Sequence[Finding]) -> bool:
    """No failure, and at least one check that really looked at something."""
    return any(f.status == OK for f in findings) and not any(f.status == FAILED for f in findings)
