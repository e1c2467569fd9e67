"""The report of a pull request: findings and records, as JSON that a privileged step can check without trusting it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from neuco_core._validate import ID
from neuco_core.contract.contract import OK, Finding, passed
from neuco_core.errors import DataError
from neuco_core.plugins.discovery import inside
from neuco_core.records.model import Record
from neuco_core.records.store import LARGEST_FILE
from neuco_core.text import one_line

LARGEST = 20_000_000
MOST_FINDINGS = MOST_RECORDS = 5000
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

Id = Annotated[str, msgspec.Meta(pattern=rf"\A{ID.pattern}\Z")]
Ids = Annotated[tuple[Id, ...], msgspec.Meta(max_length=1000)]
Commit = Annotated[str, msgspec.Meta(pattern=rf"\A{COMMIT.pattern}\Z")]
Findings = Annotated[tuple[Finding, ...], msgspec.Meta(max_length=MOST_FINDINGS)]
RecordText = Annotated[str, msgspec.Meta(max_length=LARGEST_FILE)]
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
    """A whole pull request. ``records`` are texts, each the content of a record file."""

    base: Commit
    head: Commit
    sandbox: Literal["bubblewrap", "fallback"]
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
    def green(self) -> bool:
        """Nothing failed, and at least one check completed: of the whole, and of every plugin that is still there."""
        looked = all(any(f.status == OK for f in p.findings) for p in self.plugins if p.how != "removed")
        return looked and passed(self.findings)

    def to_bytes(self) -> bytes:
        return (json.dumps(msgspec.to_builtins(self), allow_nan=False, indent=1, sort_keys=True) + "\n").encode()


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
            if not inside(name, plugin.name):
                raise DataError(f"{name!r} is outside the plugin {plugin.name!r}")
    records = [_record(text, report) for text in report.records]
    _once([record.key for record in records], "record")
    return report, records


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _once(keys: Sequence[object], name: str) -> None:
    if len(set(keys)) != len(keys):
        raise DataError(f"a {name} comes twice in the report")


def _record(text: str, report: Report) -> Record:
    """A record counts only if it is a touched task's or a touched method's: nobody writes another's scores."""
    from neuco_core.records.store import parse_record

    record = parse_record(text.encode("utf-8", "replace"), "a record in the report")
    tasks = {name for plugin in report.plugins for name in plugin.tasks}
    methods = {name for plugin in report.plugins for name in plugin.methods}
    if record.task not in tasks and record.method not in methods:
        raise DataError(f"a record of {record.method!r} on {record.task!r}, neither of which is in this pull request")
    return record
