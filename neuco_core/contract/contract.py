"""The contract: a list of checks that authors, each plugin's ``test.py`` and continuous integration all run.

A check looks at one subject (a task, a method or a dataset with its data) and returns a few words about it. It fails by
raising: ``Broken`` if the contract is not kept, any other ``NeucoError`` for what went wrong on the way. A check that
cannot be run says why, and a run in which no check completed is not a success. Nor is one in which an essential check
found nothing to look at: no evidence is not ok.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from neuco_core.contract.builtin import CHECKS
from neuco_core.env import show_in_debug
from neuco_core.errors import DependencyError, NeucoError, OfflineError, UnpinnedError
from neuco_core.plugins.catalog import catalog
from neuco_core.plugins.loading import say
from neuco_core.specs import Check, resolve
from neuco_core.text import one_line

Status: TypeAlias = Literal["ok", "warning", "failed", "skipped"]
OK: Status = "ok"
WARNING: Status = "warning"
FAILED: Status = "failed"
SKIPPED: Status = "skipped"
LABELS = ("task-source", "task-labels")  # what all other checks of labels rely on
MOST_NAME, MOST_WORDS = 200, 2000  # characters


class Broken(NeucoError):
    """The contract is not kept."""


class Warn(NeucoError):
    """The contract is kept, but somebody should look."""


class Inapplicable(NeucoError):
    """The check does not apply to this subject, for the reason given: nobody could bring what it needs."""


class NoEvidence(NeucoError):
    """What the check needs is not here, for the reason given; elsewhere, or later, it could be run."""


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a check found on a subject: printable text, one line each. CI sends findings through a stranger's hands.

    ``lacking`` marks an essential check that was skipped for want of evidence, so that nothing is known yet.
    """

    check: Annotated[str, msgspec.Meta(max_length=MOST_NAME)]
    subject: Annotated[str, msgspec.Meta(max_length=MOST_NAME)]
    status: Status
    detail: Annotated[str, msgspec.Meta(max_length=MOST_WORDS, pattern=r"\S")]
    cure: Annotated[str, msgspec.Meta(max_length=MOST_WORDS)] = ""
    lacking: bool = False

    def __post_init__(self) -> None:
        for name, most in (("check", MOST_NAME), ("subject", MOST_NAME), ("detail", MOST_WORDS), ("cure", MOST_WORDS)):
            msgspec.structs.force_setattr(self, name, one_line(getattr(self, name), most))


def run_check(item: Check, subject: Any, *, allow_unpinned: bool = False) -> Finding:
    """Run one check; what it raises becomes part of the finding."""
    # Not the author's fault, and still not evidence: this machine lacks something.
    missing = (NoEvidence, OfflineError, DependencyError, *((UnpinnedError,) if allow_unpinned else ()))
    status, lacking, cure = OK, False, item.cure
    try:
        detail = resolve(item.run)(subject)
    except Warn as warning:
        status, detail = WARNING, str(warning)
    except Inapplicable as reason:
        status, detail = SKIPPED, str(reason)
    except missing as reason:
        status, detail, lacking = SKIPPED, str(reason), item.essential
    except Broken as error:  # its hint is for this very case, the check's cure for all cases
        status, cure = FAILED, error.hint or item.cure
        detail = str(Broken(error.what, where=error.where, expected=error.expected, got=error.got))
    except UnpinnedError as error:
        status, detail, cure = FAILED, str(error), ""  # it says itself what to do; the check has seen nothing to cure
    except (Exception, SystemExit) as error:  # code that exits has not passed
        show_in_debug(error)
        status, detail = FAILED, str(error) if isinstance(error, NeucoError) else say(error)
    return Finding(item.id, subject.id, status, detail, cure if status in (WARNING, FAILED) else "", lacking)


def run_checks(
    noun: str, subject: Any, only: Iterable[str] | None = None, *, allow_unpinned: bool = False
) -> list[Finding]:
    """All checks of a noun on one subject."""
    wanted = None if only is None else set(only)
    items = [item for item in all_checks(noun) if wanted is None or item.id in wanted]
    findings = [run_check(item, subject, allow_unpinned=allow_unpinned) for item in items]
    return _each_error_once(findings, {item.id for item in items if item.essential})


def _each_error_once(findings: list[Finding], essential: Container[str]) -> list[Finding]:
    """An error that several checks met is that of one check, with its cure; the others could not be made for it."""
    failed: dict[str, list[str]] = {}
    for finding in findings:
        if finding.status == FAILED:
            failed.setdefault(finding.detail, []).append(finding.check)
    merged: list[Finding] = []
    for finding in findings:
        checks = failed.get(finding.detail, [])
        first = next((check for check in checks if check in LABELS), checks[0] if checks else finding.check)
        if finding.status == FAILED and finding.check != first:
            reason = f"no labels: `{first}` says why" if first in LABELS else f"the same error as `{first}`"
            lacking = finding.check in essential
            finding = msgspec.structs.replace(finding, status=SKIPPED, detail=reason, cure="", lacking=lacking)
        merged.append(finding)
    return merged


def all_checks(noun: str | None = None) -> list[Check]:
    """The contract, for one noun or as a whole: our checks in their order, then those of extensions."""
    registered = catalog().all(Check)
    ours = [registered[item.id] for item in CHECKS if item.id in registered]
    others = [item for item in registered.values() if item not in ours]
    return [item for item in (*ours, *others) if noun in (None, item.noun)]
