"""Cells of a pull request or of main: which are asked for, the data that they need, and what their scores say."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from ci import sandbox
from ci.extract import EncodingJob, applies, fetch_sources, make_cubes, make_embeddings, make_labels
from ci.plugin_sandbox import PINS, PluginData, PluginSandbox, copy_main, in_cache, limit
from ci.report import WAITING
from ci.sandbox import OUT, TREE, Limits
from ci.stub_tree import read_json, write_stub
from neuco_core.contract.contract import FAILED, Finding
from neuco_core.errors import DataError, NeucoError
from neuco_core.fetch.transfer import TransientError
from neuco_core.protocol import DEFAULT_PROTOCOL
from neuco_core.records.model import Record
from neuco_core.records.store import parse_record
from neuco_core.specs import Method, Suite, Task, versioned_id
from neuco_core.text import counted

AFTER_MERGE = "both are new: contributed encoders see only main's datasets, so it is scored after the merge"
CURE = (
    "Repair the encoder; if it needs what is not here, as a package or a network, contribute its embeddings as a file: "
    "`neuco new method NAME --embeddings FILE`"
)
NEXT = "Nothing for the contributor to do: a maintainer reads the reason, provides what is missing, and runs this again"
HOURS = 2  # more than any evaluation needs
LARGEST_RESULT = 1 << 28  # bytes
# What scoring needs of a registry; its records are as many as they are large.
REGISTRY = ("registry/suites", "registry/schema", "registry/published", "registry/confirmed.json", PINS)
Pair = tuple[str, str]  # labels of a method and a task


@dataclass(frozen=True)
class CellToScore:
    """One method on one task under a protocol, with the plugins that they come from."""

    protocol: str
    method: Method
    task: Task
    methods: PluginData
    tasks: PluginData

    @property
    def pair(self) -> Pair:
        return self.method.label, self.task.label


def choose(plugins: Sequence[PluginData], suites: Iterable[Suite]) -> Iterator[CellToScore]:
    """The touched rows and columns under the protocol of each suite; of a task that is in none, under its dataset's."""
    tasks = [(task, plugin) for plugin in plugins for task in plugin.tasks]
    methods = [(method, plugin) for plugin in plugins for method in plugin.methods]
    newest = {method.id: method.version for method, _ in sorted(methods, key=lambda item: item[0].version)}
    members: dict[str, set[str]] = {}
    for suite in suites:
        members.setdefault(suite.protocol, set()).update(versioned_id(*item) for item in suite.tasks.items())
    compared = set().union(*members.values()) if members else set()
    protocols = {dataset.id: dataset.protocol for plugin in plugins for dataset in plugin.datasets}
    for task, _ in tasks:
        if task.label not in compared and not task.control:
            members.setdefault(protocols.get(task.dataset) or DEFAULT_PROTOCOL, set()).add(task.label)
    for protocol, names in members.items():
        for task, home in tasks:
            for method, plugin in methods:
                replaced = plugin.kept and method.version < newest[method.id]
                if task.label in names and not (home.kept and plugin.kept) and not replaced:
                    yield CellToScore(protocol, method, task, plugin, home)


def find_cells(plugins: Sequence[PluginData], wanted: Iterable[Sequence[str]]) -> list[CellToScore]:
    """The cells of main by protocol, method and task; those that no plugin registers are left out."""
    methods = {method.label: (method, plugin) for plugin in plugins for method in plugin.methods}
    tasks = {task.label: (task, plugin) for plugin in plugins for task in plugin.tasks}
    cells = []
    for protocol, method_label, task_label in wanted:
        if method_label in methods and task_label in tasks:
            (method, owner), (task, home) = methods[method_label], tasks[task_label]
            cells.append(CellToScore(protocol, method, task, owner, home))
    return cells


@dataclass
class Material:
    """The data of cells; ``missing`` says why a cell cannot be scored here, and whose fault that is.

    If the plugins are ``merged``, somebody has read them, and new encoders are run on new datasets too.
    """

    boxes: PluginSandbox
    plugins: Sequence[PluginData]
    merged: bool = False
    missing: dict[Pair, str] = field(default_factory=dict)
    _failed: dict[tuple[str, ...], str] = field(default_factory=dict)

    def gather(self, cells: Iterable[CellToScore]) -> list[CellToScore]:
        """Make labels, cubes and embeddings for the cells; gives those that can be scored."""
        scored = []
        for cell in cells:
            if reason := self._labels(cell) or self._embeddings(cell):
                self.missing[cell.pair] = reason
            else:
                scored.append(cell)
        return scored

    def _labels(self, cell: CellToScore) -> str:
        def make() -> None:
            fetch_sources(cell.tasks, [cell.task])
            make_labels(self.boxes, cell.tasks)

        return self._once(cell.tasks, "labels", make, cell.task.label)

    def _embeddings(self, cell: CellToScore) -> str:
        method, methods = cell.method, cell.methods
        if method.files:
            name = cell.task.dataset
            if name not in method.files:  # the scorer says so, in a record
                return ""
            only = replace(method, files={name: method.files[name]})
            return self._once(methods, "files", lambda: fetch_sources(methods, [only]), method.label, name)
        pairs = ((plugin, dataset) for plugin in self.plugins for dataset in plugin.datasets)
        owner, dataset = next((pair for pair in pairs if pair[1].id == cell.task.dataset), (None, None))
        if owner is None or dataset is None or dataset.cubes is None:
            return ""
        if not (self.merged or owner.kept or methods.kept):
            return AFTER_MERGE
        if not applies(method, dataset):  # the scorer says so, in a record
            return ""
        reason = self._once(owner, "cubes", lambda: make_cubes(self.boxes, owner, dataset), dataset.id)
        if reason:
            return reason
        job = EncodingJob(methods, method, dataset, owner.made / "cubes" / dataset.id)
        return self._once(methods, "encode", lambda: make_embeddings(self.boxes, job), method.label, dataset.id)

    def _once(self, plugin: PluginData, step: str, make: Callable[[], object], *names: str) -> str:
        """Why a step failed, "" if it did not. A failure of a contributed plugin is a finding, once.

        Not if a server did not answer: that is nobody's fault, and another run may be luckier.
        """
        key = (step, *names)
        if key not in self._failed:
            self._failed[key] = ""
            try:
                make()
            except Exception as error:  # results of a stranger's code may be broken in any way
                message = str(error) if isinstance(error, NeucoError) else f"{type(error).__name__}: {error}"
                self._failed[key] = f"{' on '.join(names)}: {message}"
                if not (plugin.kept or isinstance(error, TransientError)):
                    plugin.say(step, "failed", self._failed[key], CURE if step == "encode" else "")
        return self._failed[key]


class Scores(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ``ci.evaluate`` says of touched plugins and of cells; ``texts`` are the records as they were written."""

    findings: list[Finding] = []
    problems: list[dict[str, Any]] = []
    texts: list[str] = []
    unscored: list[dict[str, str]] = []
    foreign: list[Pair] = []

    def records(self) -> list[Record]:
        return [parse_record(text.encode(), "a new record") for text in self.texts]


def where_all_is_data(
    boxes: PluginSandbox,
    plugins: Sequence[PluginData],
    command: str,
    job: Mapping[str, Any],
    *,
    registry: Sequence[str] = REGISTRY,
    limits: Limits,
    read: Mapping[str, Path] | None = None,
) -> tuple[dict[str, Any], Path]:
    """Run a command of ``ci.evaluate`` in a tree of stubs; gives what it gives, and the folder of its files."""
    tree, out = Path(tempfile.mkdtemp(dir=boxes.scratch)), Path(tempfile.mkdtemp(dir=boxes.scratch))
    copy_main(boxes.base, tree, registry)
    for plugin in plugins:
        if not plugin.problem:
            write_stub(tree / plugin.touched.folder, plugin.folder, plugin.rows, plugin.made)
    (tree / "job.json").write_text(json.dumps(job), encoding="utf-8")
    limits = boxes.within(limits)
    arguments = ("-m", "ci.evaluate", OUT, command, f"{TREE}/job.json")
    ran = sandbox.run(arguments, read={TREE: tree, **(read or {})}, out=out, limits=limits)
    if ran.status not in ("ok", "failed"):
        raise DataError(f"{command}: stopped at the limit of {ran.status}", expected=limit(ran, limits))
    if not ran.ok:
        raise DataError(f"{command} failed: {' '.join(ran.output.split())[-500:]}")
    result: dict[str, Any] = read_json(out / "result.json", LARGEST_RESULT)
    if "error" in result:
        raise DataError(f"{command} failed: {result['error']}")
    return result, out


def check_and_score(
    boxes: PluginSandbox,
    plugins: Sequence[PluginData],
    cells: Sequence[CellToScore],
    *,
    commit: str,
    touched: Sequence[PluginData] = (),
    cards: Collection[str] = (),
) -> Scores:
    """Check what is ``touched`` and score cells, where all plugins are data and what reads strangers' files has limits.

    ``cards`` are folders of plugins of which nothing but the card or the tests changed.
    """
    boxes.tell(f"checking the contract of {counted(len(touched), 'plugin')} and scoring {counted(len(cells), 'cell')}")
    limits = replace(boxes.limits, seconds=HOURS * 3600)
    for plugin in touched:
        limits = boxes.within(limits, plugin)
    by_protocol: dict[str, list[Pair]] = {}
    for cell in cells:
        by_protocol.setdefault(cell.protocol, []).append(cell.pair)
    of_cards = [plugin for plugin in touched if plugin.touched.folder in cards]
    job = {
        "tasks": [task.label for plugin in touched for task in plugin.tasks],
        "methods": [method.label for plugin in touched for method in plugin.methods],
        "datasets": [dataset.id for plugin in touched if only_datasets(plugin) for dataset in plugin.datasets],
        "cells": by_protocol,
        "touched": [plugin.touched.folder.replace("/", ".") for plugin in touched],
        # A contributor brings labels that are pinned; those that main has are a maintainer's to pin.
        "unpinned": [task.label for plugin in touched for task in plugin.tasks if plugin.touched.how == "changed"],
        "cards": [spec.label for plugin in of_cards for spec in (*plugin.tasks, *plugin.methods)],
        "commit": commit,
        "seconds": boxes.limits.seconds,
        "time": limits.seconds / 2,  # in which cells are begun, so that what was scored is not lost with the others
    }
    read = in_cache({sha: path for plugin in plugins for sha, path in plugin.fetched.items()})
    if cells or any(plugin.tasks for plugin in touched):
        read |= boxes.warm()
    result, _ = where_all_is_data(boxes, plugins, "score", job, limits=limits, read=read)
    return msgspec.convert(result, Scores)


def only_datasets(plugin: PluginData) -> bool:
    return bool(plugin.datasets) and not plugin.tasks and not plugin.methods


def report_cells(plugin: PluginData, result: Scores, records: Sequence[Record], missing: Mapping[Pair, str]) -> None:
    """Say what became of a plugin's cells; without any score it is waiting, or has failed if nothing could fit it.

    An untouched method that cannot be scored on a task, where another can, has only itself to blame: the task's labels
    were checked by themselves. But if none can, the task is such that nobody fits it.
    """
    labels = {spec.label for spec in (*plugin.tasks, *plugin.methods)}
    records = [record for record in records if labels & set(record.key[:2])]
    skipped = Counter(reason for pair, reason in missing.items() if labels & set(pair))
    unfit: set[str] = set()
    for cell in result.unscored:
        if not labels & {cell["method"], cell["task"]}:
            continue
        if cell["state"] == "skipped":
            skipped[cell["reason"]] += 1
        else:
            unfit.add(cell["reason"])
    fitting = {record.key[1] for record in records if record.ok} & {task.label for task in plugin.tasks}
    for record in records:
        pair, failure = record.key[:2], f"{record.method} on {record.task}: {record.failure}: {record.reason}"
        if record.status == "skipped":  # while it was run: a full disk, for example
            skipped[record.reason] += 1
        elif record.status == "failed" and (pair in result.foreign or pair[1] in fitting):
            skipped[failure] += 1
        elif record.status == "failed":
            plugin.say("score", "failed", failure)
    for reason, count in skipped.items():
        plugin.say("score", "skipped", f"{counted(count, 'cell')} not scored here: {reason}")
    scored = sum(record.ok for record in records)
    if scored:
        plugin.say("score", "ok", f"{scored} cells scored")
    elif any(finding.status == FAILED for finding in plugin.findings):
        return
    elif skipped:
        plugin.say(WAITING, "skipped", f"nothing could be scored here: {'; '.join(skipped)}", NEXT)
    else:
        reasons = "; ".join(sorted(unfit)) or "no method or task fits"
        plugin.say("score", "failed", f"nothing was scored: {reasons}")
