"""The report of a pull request: findings and records, as JSON that a privileged step can check without trusting it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from ci.git import COMMIT
from neuco_core.contract.contract import FAILED, OK, SKIPPED, WARNING, Finding
from neuco_core.errors import DataError
from neuco_core.fields import ID
from neuco_core.plugins.discovery import alike, heads
from neuco_core.records.model import Record
from neuco_core.records.store import parse_record
from neuco_core.text import one_line

LARGEST = 20_000_000
MOST_FINDINGS = MOST_RECORDS = 5000
NO_COMMIT = "0" * 40  # what git writes where there is none
WAITING = "waiting"  # the check of a finding that says what a maintainer, a machine or a server must do first
# Exit codes of `score-pr`; 2 is a wrong use of the command line.
EXIT_CODES = {"green": 0, "red": 1, WAITING: 3}

Id = Annotated[str, msgspec.Meta(pattern=rf"\A{ID.pattern}\Z")]
Ids = Annotated[tuple[Id, ...], msgspec.Meta(max_length=1000)]
Commit = Annotated[str, msgspec.Meta(pattern=rf"\A{COMMIT.pattern}\Z")]
Findings = Annotated[tuple[Finding, ...], msgspec.Meta(max_length=MOST_FINDINGS)]
RecordText = Annotated[str, msgspec.Meta(max_length=4_000_000)]
FilePath = Annotated[str, msgspec.Meta(max_length=4096)]


class PluginReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A touched plugin: what it registers, and the findings about it."""

    tree: Literal["neuco_tasks", "neuco_methods"]
    name: Id
    how: Literal["added", "changed", "removed"]
    tasks: Ids
    methods: Ids
    findings: Findings


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole pull request. ``records`` are texts, each the line of a record."""

    base: Commit
    head: Commit
    sandbox: Literal["bubblewrap"]
    plugins: Annotated[tuple[PluginReport, ...], msgspec.Meta(max_length=500)]
    general: Findings
    records: Annotated[tuple[RecordText, ...], msgspec.Meta(max_length=MOST_RECORDS)]
    core: Annotated[tuple[FilePath, ...], msgspec.Meta(max_length=MOST_FINDINGS)]
    seconds: Annotated[float, msgspec.Meta(ge=0, lt=1e9)]
    schema: Literal[1]

    @property
    def findings(self) -> list[Finding]:
        return [*self.general, *(finding for plugin in self.plugins for finding in plugin.findings)]

    @property
    def verdict(self) -> Literal["green", "red", "waiting"]:
        """``red``: something failed, or there is a plugin of which no check of ours completed and no score was made.

        ``waiting``: nothing failed, but something could not be scored or decided here, and not by the contributor's
        fault.
        """
        looked = all(any(map(_evidence, plugin.findings)) for plugin in self.plugins if plugin.how != "removed")
        statuses = {finding.status for finding in self.findings}
        if FAILED in statuses or not looked or not statuses & {OK, WARNING}:
            return "red"
        return "waiting" if any(map(is_waiting, self.findings)) else "green"

    @property
    def green(self) -> bool:
        return self.verdict == "green"

    def to_bytes(self) -> bytes:
        return (json.dumps(msgspec.to_builtins(self), allow_nan=False, indent=1, sort_keys=True) + "\n").encode()


def is_waiting(finding: Finding) -> bool:
    return (finding.check, finding.status) == (WAITING, SKIPPED)


def _evidence(finding: Finding) -> bool:
    """That a plugin can be imported and passes its own tests is only what it says of itself."""
    return finding.status == OK and (
        finding.check == "score" or finding.check.startswith(("task-", "method-", "dataset-"))
    )


def cut(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """As many findings as a report holds. What is left out may have failed, so it counts as failed."""
    if len(findings) <= MOST_FINDINGS:
        return tuple(findings)
    detail = f"{len(findings) - MOST_FINDINGS + 1} more findings than a report can hold"
    return (
        *findings[: MOST_FINDINGS - 1],
        Finding("findings", "report", "failed", detail, "Make several pull requests"),
    )


def parse(data: bytes) -> tuple[Report, list[Record]]:
    """Read a report that a stranger may have written: every field checked, every record read strictly."""
    if len(data) > LARGEST:
        raise DataError("the report is too large", expected=f"at most {LARGEST} bytes", got=len(data))
    try:
        # Not msgspec's own decoder: it refuses half a surrogate pair, which paths and messages may hold.
        report = msgspec.convert(json.loads(data.decode("utf-8"), parse_constant=_refuse), Report)
    except msgspec.ValidationError as error:
        raise DataError(f"bad report: {one_line(str(error), 300)}") from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise DataError(f"the report is not JSON: {type(error).__name__}") from error
    _once([f"{plugin.tree}/{plugin.name}" for plugin in report.plugins], "plugin")
    for plugin in report.plugins:
        for name in (*plugin.tasks, *plugin.methods):
            if alike(plugin.name) not in heads(name):
                raise DataError(f"{name!r} is outside the plugin {plugin.name!r}")
    records = [parse_record(text.encode("utf-8", "replace"), "a record in the report") for text in report.records]
    _once([record.key for record in records], "record")
    tasks = {name for plugin in report.plugins for name in plugin.tasks}
    methods = {name for plugin in report.plugins for name in plugin.methods}
    for record in records:
        if record.task not in tasks and record.method not in methods:  # nobody writes another's scores
            what = f"a record of {record.method!r} on {record.task!r}"
            raise DataError(f"{what}, neither of which is in this pull request")
    return report, records


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _once(keys: Sequence[object], name: str) -> None:
    if len(set(keys)) != len(keys):
        raise DataError(f"a {name} comes twice in the report")
