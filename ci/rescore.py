"""Score main again where a record is missing or outdated; or score a sample again and compare.

Everything runs as for a pull request: each plugin becomes data in a sandbox of its own, and the same evaluation scores
it. The report is of the same form, about one commit of main (``base`` is ``head``), and `publish` takes it like any
other. A verification brings no records: a score that does not come again is reported, never replaced.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ci import sandbox
from ci.as_data import describe_all, write_tree
from ci.boxes import Boxes, PluginData
from ci.catchup import read_pending
from ci.cells import Cell, Material
from ci.changed import git
from ci.report import MOST_RECORDS, PluginReport, Report
from ci.sandbox import OUT, TREE, Limits
from ci.score_pr import MINUTES, Scoring
from ci.stub import read_json
from neuco_core.contract.contract import Finding, Status
from neuco_core.errors import DataError
from neuco_core.records.model import Key, Record
from neuco_core.records.store import parse_record, read_all
from neuco_core.text import counted

MOST_CELLS = min(2000, MOST_RECORDS)  # of one report; the next run goes on


class Wanted(NamedTuple):
    """Cells by protocol, method and task; what is said about them; and the records that must come again."""

    cells: list[tuple[str, str, str]]
    findings: list[Finding]
    records: Mapping[Key, Record]
    holding: Collection[str] = ()  # folders of pending plugins all of whose cells have records that hold


class Rescoring:
    """One run on a checkout of main."""

    def __init__(self, base: Path, limits: Limits, kind: str, minutes: float = MINUTES) -> None:
        self.scoring = Scoring(base, base, "", limits, kind, merged=True, minutes=minutes)
        self.base, self.scratch, self.kind = self.scoring.base, self.scoring.scratch, self.scoring.kind
        self.boxes = Boxes(self.base, self.scratch, limits, self.kind, self.scoring.deadline)

    def run(self, suites: Sequence[str] = (), most: int = MOST_CELLS, sample: int = 0, seed: str = "") -> Report:
        start = time.monotonic()
        head = git(self.base, "rev-parse", "HEAD").strip()
        plugins = describe_all(self.boxes)
        wanted = self._sample(sample, seed or head) if sample else self._planned(plugins, suites, most)
        material = Material(self.boxes, plugins, merged=True)
        cells = list(_cells(wanted.cells, plugins))
        made = self.scoring._evaluate(self.boxes, plugins, [], material.gather(cells))["records"] if cells else []
        findings = [*wanted.findings, *_missing(material.missing.values())]
        if wanted.records:
            spreads = {method.label: method.machine_spread for plugin in plugins for method in plugin.methods}
            again = [parse_record(text.encode(), "a new record") for text in made]
            findings += _compared(wanted.records, again, spreads)
            made = []
        return Report(
            base=head,
            head=head,
            sandbox=self.kind,  # type: ignore[arg-type] # one of two words, checked by whoever reads the report
            plugins=tuple(
                _reports(plugins, [parse_record(text.encode(), "a new record") for text in made], wanted.holding)
            ),
            general=tuple(findings),
            records=tuple(made),
            core=(),
            seconds=round(time.monotonic() - start, 1),
            schema=1,
        )

    def _planned(self, plugins: Sequence[PluginData], suites: Sequence[str], most: int) -> Wanted:
        """What `plan` calls new, stale or worth another try, in a tree of data."""
        tree, out = self.scratch / "plan", self.scratch / "out" / "plan"
        write_tree(tree, self.base, plugins, ("neuco_core", "ci", "registry"))
        limits = self.boxes.within(self.scoring.limits)
        ran = sandbox.run(("-m", "ci.replan", OUT, *suites), read={TREE: tree}, out=out, limits=limits, kind=self.kind)
        if not ran.ok:
            raise DataError(f"the plan failed: {' '.join(ran.output.split())[-500:] or ran.status}")
        planned: dict[str, Any] = read_json(out / "plan.json")
        cells = [(protocol, method, task) for protocol, method, task, _ in planned["cells"]]
        states = Counter(state for *_, state in planned["cells"])
        words = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "nothing to score"
        left = f"; {len(cells) - most} are left for the next run" if len(cells) > most else ""
        findings = [Finding("plan", "all suites", "ok", words + left)]
        for reason, count in planned["skipped"].items():
            findings.append(Finding("plan", "all suites", "skipped", f"{counted(count, 'cell')}: {reason[:1000]}"))
        # Of some suites only, nobody can say so.
        pending = () if suites else {item.plugin for item in read_pending(self.base)}
        holding = [p.touched.folder for p in plugins if p.touched.folder in pending and _holds(p, planned)]
        return Wanted(cells[:most], findings, {}, holding)

    def _sample(self, count: int, seed: str) -> Wanted:
        """Records with a score, chosen by lot: another lot for another seed, the same for the same."""
        records = [record for record in read_all(self.base / "registry") if record.ok and record.registered]
        chosen = random.Random(seed).sample(records, min(count, len(records)))  # noqa: S311 - no secret
        if not chosen:
            raise DataError("there is no record to verify", where=self.base / "registry", hint="Re-score first")
        cells = [(record.protocol, *record.key[:2]) for record in chosen]
        return Wanted(cells, [], {record.key: record for record in chosen})


def _cells(wanted: Sequence[tuple[str, str, str]], plugins: Sequence[PluginData]) -> list[Cell]:
    methods = {method.label: (method, plugin) for plugin in plugins for method in plugin.methods}
    tasks = {task.label: (task, plugin) for plugin in plugins for task in plugin.tasks}
    return [
        Cell(protocol, methods[method][0], tasks[task][0], methods[method][1], tasks[task][1])
        for protocol, method, task in wanted
        if method in methods and task in tasks
    ]


def _missing(reasons: Sequence[str] | Any) -> list[Finding]:
    counts = Counter(reasons).items()
    return [
        Finding("data", "cells", "skipped", f"{counted(n, 'cell')} not scored here: {why[:1000]}") for why, n in counts
    ]


def _compared(
    before: Mapping[Key, Record], made: Sequence[Record], spreads: Mapping[str, float] = MappingProxyType({})
) -> list[Finding]:
    """One finding for each record: the same, different, or not scored again. Nothing compared is no evidence.

    ``spreads`` are those that methods declare, by label: what depends on the machine shows neither.
    """
    from neuco_core.runs.verify import compare

    now = {record.key: record for record in made}
    findings = []
    for key, record in before.items():
        name = f"{key[0]} on {key[1]} under {key[2]}"
        if key not in now:
            findings.append(Finding("verify", name, "skipped", "it could not be scored again here"))
            continue
        check = compare(record, now[key], spread=spreads.get(key[0], 0.0))
        cure = "Find out why: `neuco explain` and `neuco verify`; the record stays until somebody has"
        words = f"{check.verdict}: {check.reason or 'no split differs'}"
        status: Status = "skipped" if check.confirmed is None else "ok" if check.confirmed else "failed"
        findings.append(Finding("verify", name, status, words, cure if status == "failed" else ""))
    if not any(finding.status in ("ok", "failed") for finding in findings):
        findings.append(Finding("verify", "sample", "failed", "no record of the sample could be scored again"))
    return findings


def _holds(plugin: PluginData, planned: Mapping[str, Any]) -> bool:
    own = {(noun, name) for noun in ("method", "task") for name in plugin.ids(noun)}
    held, busy = (set(map(tuple, planned[name])) for name in ("held", "busy"))
    return bool(own & held) and not own & busy


def _reports(plugins: Sequence[PluginData], records: Sequence[Record], holding: Collection[str]) -> list[PluginReport]:
    """The plugins that records are of; those with a score have the evidence that settles what was pending.

    So have those whose records all hold: a merge of the core and of a plugin's card leaves nothing to score.
    """
    reports = []
    for plugin in plugins:
        tasks, methods = plugin.ids("task"), plugin.ids("method")
        own = [record for record in records if record.task in tasks or record.method in methods]
        if own or plugin.touched.folder in holding:
            scored = sum(record.ok for record in own)
            status, words = "ok", f"{scored} of {len(own)} cells scored" if own else "every record holds"
            if own and not scored:
                status, words = "skipped", own[0].reason
            finding = Finding("score", plugin.touched.name, status, words[:1000])  # type: ignore[arg-type]
            tree, name = plugin.touched.tree, plugin.touched.name
            reports.append(PluginReport(tree, name, "changed", tasks, methods, (finding,)))  # type: ignore[arg-type]
    return reports


def rescore(
    base: Path, limits: Limits, kind: str, *, suites: Sequence[str] = (), most: int = MOST_CELLS, sample: int = 0
) -> Report:
    """The report of a run on a checkout of main."""
    run = Rescoring(base, limits, kind)
    with run.scoring._temporary:
        return run.run(suites, most, sample)
