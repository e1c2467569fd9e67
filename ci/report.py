"""The report of a pull request: what was found, as JSON that a privileged step can check without trusting it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from neuco_core._validate import ID
from neuco_core.errors import DataError
from neuco_core.records.model import Record

SCHEMA = 1
LARGEST = 20_000_000
STATUSES = ("ok", "warning", "failed", "skipped")
HOWS = ("added", "changed", "removed")
SANDBOXES = ("bubblewrap", "fallback")
MOST_FINDINGS, MOST_WORDS, MOST_RECORDS = 5000, 2000, 5000
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    check: str
    subject: str
    status: str
    detail: str
    cure: str = ""

    def __post_init__(self) -> None:
        for name, most in (("check", 200), ("subject", 200), ("detail", MOST_WORDS), ("cure", MOST_WORDS)):
            object.__setattr__(self, name, plain(getattr(self, name), most))


def plain(value: object, most: int) -> str:
    """Words on one line that neither a terminal nor a log takes for a command."""
    words = "".join(char if char.isprintable() else "�" for char in " ".join(str(value).split()))
    return words if len(words) <= most else words[: most - 1] + "…"


@dataclass(frozen=True)
class PluginReport:
    """A touched plugin: what it registers and what was found."""

    tree: str
    name: str
    how: str
    tasks: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Report:
    """All of a pull request. ``records`` are texts, each the content of a record file."""

    base: str
    head: str
    sandbox: str
    plugins: tuple[PluginReport, ...] = ()
    general: tuple[Finding, ...] = ()
    records: tuple[str, ...] = ()
    core: tuple[str, ...] = ()
    seconds: float = 0.0
    schema: int = field(default=SCHEMA)

    @property
    def findings(self) -> list[Finding]:
        return [*self.general, *(finding for plugin in self.plugins for finding in plugin.findings)]

    @property
    def green(self) -> bool:
        """Nothing failed, every plugin that is there was looked at, and at least one thing was really checked."""
        looked = all(any(f.status == "ok" for f in p.findings) for p in self.plugins if p.how != "removed")
        checked = any(finding.status == "ok" for finding in self.findings)
        return checked and looked and not any(finding.status == "failed" for finding in self.findings)

    def to_bytes(self) -> bytes:
        return (json.dumps(asdict(self), allow_nan=False, indent=1, sort_keys=True) + "\n").encode()


def parse(data: bytes) -> tuple[Report, list[Record]]:
    """Read a report that a stranger may have written: every field checked, every record read strictly."""
    if len(data) > LARGEST:
        raise DataError("the report is too large", expected=f"at most {LARGEST} bytes", got=len(data))
    try:
        values = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the report is not JSON: {type(error).__name__}") from error
    report = _report(_object(values, "report", Report))
    _once([f"{plugin.tree}/{plugin.name}" for plugin in report.plugins], "plugin")
    records = [_record(text, report) for text in report.records]
    _once([record.key for record in records], "record")
    return report, records


def _once(keys: Sequence[object], name: str) -> None:
    if len(set(keys)) != len(keys):
        raise DataError(f"a {name} comes twice in the report")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _report(values: Mapping[str, Any]) -> Report:
    if type(values["schema"]) is not int or values["schema"] != SCHEMA:
        raise DataError("the report has another schema", expected=SCHEMA, got=_short(values["schema"]))
    for name in ("base", "head"):
        if not COMMIT.fullmatch(_text(values[name], name, 64)):
            raise DataError(f"bad {name} in the report", expected="a commit", got=_short(values[name]))
    _choice(values["sandbox"], "sandbox", SANDBOXES)
    seconds = values["seconds"]
    if type(seconds) not in (int, float) or not 0 <= seconds < 1e9:
        raise DataError("bad seconds in the report", got=_short(seconds))
    plugins = tuple(_plugin(_object(item, "plugin", PluginReport)) for item in _list(values["plugins"], "plugins", 500))
    general = tuple(_finding(item) for item in _list(values["general"], "general", MOST_FINDINGS))
    records = tuple(_text(item, "record", 4_000_000) for item in _list(values["records"], "records", MOST_RECORDS))
    core = tuple(_text(item, "core", 4096) for item in _list(values["core"], "core", MOST_FINDINGS))
    return Report(values["base"], values["head"], values["sandbox"], plugins, general, records, core, seconds)


def _plugin(values: Mapping[str, Any]) -> PluginReport:
    _choice(values["tree"], "tree", ("neuco_tasks", "neuco_methods"))
    _choice(values["how"], "how", HOWS)
    _id(values["name"], "name")
    tasks = tuple(_id(item, "task") for item in _list(values["tasks"], "tasks", 1000))
    methods = tuple(_id(item, "method") for item in _list(values["methods"], "methods", 1000))
    for item in (*tasks, *methods):
        if item != values["name"] and not item.startswith((values["name"] + "_", values["name"] + "-")):
            raise DataError(f"{item!r} is outside the plugin {values['name']!r}")
    findings = tuple(_finding(item) for item in _list(values["findings"], "findings", MOST_FINDINGS))
    return PluginReport(values["tree"], values["name"], values["how"], tasks, methods, findings)


def _finding(value: object) -> Finding:
    values = _object(value, "finding", Finding)
    _choice(values["status"], "status", STATUSES)
    for name in ("check", "subject"):
        _text(values[name], name, 200)
    for name in ("detail", "cure"):
        _text(values[name], name, MOST_WORDS)
    if not values["detail"].strip():
        raise DataError("a finding in the report gives no reason", got=_short(values["check"]))
    return Finding(**values)


def _record(text: str, report: Report) -> Record:
    """A record counts only if it is a touched task's or a touched method's: nobody writes another's scores."""
    from neuco_core.records.store import parse_record

    record = parse_record(text.encode("utf-8", "replace"), "a record in the report")
    tasks = {name for plugin in report.plugins for name in plugin.tasks}
    methods = {name for plugin in report.plugins for name in plugin.methods}
    if record.task not in tasks and record.method not in methods:
        raise DataError(f"a record of {record.method!r} on {record.task!r}, neither of which is in this pull request")
    return record


def _object(value: object, name: str, cls: type) -> dict[str, Any]:
    wanted = set(cls.__dataclass_fields__)  # type: ignore[attr-defined]
    if not isinstance(value, dict) or set(value) != wanted:
        got = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise DataError(f"bad {name} in the report", expected=", ".join(sorted(wanted)), got=_short(got))
    return value


def _list(value: object, name: str, most: int) -> Sequence[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise DataError(f"bad {name} in the report", expected=f"a list of at most {most}", got=_short(value))
    return value


def _text(value: object, name: str, most: int) -> str:
    if not isinstance(value, str) or len(value) > most:
        raise DataError(f"bad {name} in the report", expected=f"a text of at most {most}", got=_short(value))
    return value


def _choice(value: object, name: str, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise DataError(f"bad {name} in the report", expected="one of " + ", ".join(choices), got=_short(value))


def _id(value: object, name: str) -> str:
    if not isinstance(value, str) or not ID.fullmatch(value):
        raise DataError(f"bad {name} in the report", expected="an id", got=_short(value))
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
