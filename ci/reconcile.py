"""Bring the registry of main in line with main: score what has no record that holds, make the boards, write it down.

Nothing that a pull request's workflow made is used: only the code of main and its registry count, so it does not
matter what was merged, when, or whether an earlier run was killed. What each plugin declares is asked in a sandbox of
its own (``describe``), cells are scored and boards are made where all plugins are data (``evaluate``), and only what
parses is taken out of a sandbox. Each batch of records is written when it is scored; a second run finds nothing to do.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ci.changed import frozen_suites
from ci.describe import CATALOG, catalog_bytes, describe_all
from ci.git import git
from ci.plugin_sandbox import PluginData, PluginSandbox
from ci.sandbox import Limits
from ci.score import Material, check_and_score, find_cells, where_all_is_data
from ci.stub_tree import SPECS
from neuco_core.boards.model import Board
from neuco_core.boards.store import lost_methods, read_board, would_lose
from neuco_core.contract.contract import Finding, Status
from neuco_core.errors import DataError
from neuco_core.files import write_atomic
from neuco_core.plugins.discovery import alike, inside
from neuco_core.records.model import Record
from neuco_core.records.store import read_all, write_records
from neuco_core.runs.verify import compare
from neuco_core.specs import Suite
from neuco_core.text import counted

MESSAGE = "Update the registry: records, boards, catalogue"
BATCH = 100  # cells whose records are written together: as many are lost at most if a run is killed
BOARDS = Limits(seconds=3600, files=2_000_000, written=50 << 30)


class Lost(NamedTuple):
    """A record whose method or task nobody registers; ``why`` if a plugin that could not be asked may do so."""

    record: Record
    noun: str
    name: str
    why: str = ""


class Reconciling:
    """One run on a checkout of main: what it changes in a registry, for any other checkout, too.

    ``lines`` say it, and ``loud`` is what nobody must overlook.
    """

    def __init__(self, boxes: PluginSandbox, withdraw: Collection[str] = ()) -> None:
        self.boxes, self.withdraw = boxes, withdraw
        self.base, self.registry = boxes.base, boxes.base / "registry"
        self.plugins = describe_all(boxes)
        self.records: list[Record] = []
        self.withdrawn: list[Record] = []
        self.files: dict[str, bytes] = {}  # by path in the registry
        self.lines: list[str] = []
        self.loud: list[str] = []

    def run(self, most: int, *, retry: bool, site: Path | None) -> None:
        """Bring the checkout's registry up to date."""
        silent = {plugin.touched.folder: plugin.problem for plugin in self.plugins if plugin.problem}
        for folder, why in silent.items():
            self.loud.append(f"{folder} cannot say what it registers, and its records stay: {why}")
        self.files[Path(CATALOG).name] = catalog_bytes(self.plugins, self.base)
        lost = list(lost_records(read_all(self.registry), registered(self.plugins), silent))
        self.withdrawn, refused = withdrawable(lost, frozen_suites(self.registry), self.withdraw)
        self.loud += refused
        planned, _ = self._where_all_is_data("plan", {"retry": retry})
        self._score(planned, most)
        self._boards(site)
        self.write(self.registry)
        gone = f", {counted(len(self.withdrawn), 'record')} withdrawn" if self.withdrawn else ""
        self.lines.append(f"{counted(len(self.records), 'record')} written{gone}")

    def write(self, registry: Path) -> None:
        """Do all of it to a registry that is as this one was. Withdrawn records are kept beside the registry's own."""
        if self.records:
            write_records(registry, self.records)
        if self.withdrawn:
            write_records(registry / "withdrawn", self.withdrawn)
            write_records(registry, [], [record.key for record in self.withdrawn])
        for name, content in self.files.items():
            path = registry / name
            if not path.is_file() or path.read_bytes() != content:
                write_atomic(path, content)

    def _where_all_is_data(self, command: str, job: Mapping[str, Any]) -> tuple[dict[str, Any], Path]:
        """Run a command of ``ci.evaluate`` on the registry as it is now."""
        whole = ("registry",)
        return where_all_is_data(self.boxes, self.plugins, command, job, registry=whole, limits=BOARDS)

    def _score(self, planned: Mapping[str, Any], most: int) -> None:
        states = Counter(state for *_, state in planned["cells"])
        counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "nothing to score"
        left = len(planned["cells"]) - most
        self.lines.append(f"plan: {counts}" + (f"; {left} are left for the next run" if left > 0 else ""))
        material = Material(self.boxes, self.plugins, merged=True)
        commit = git(self.base, "rev-parse", "HEAD").strip()
        before = {record.key: (record.failure, record.fingerprint) for record in read_all(self.registry)}
        cells = find_cells(self.plugins, [label for *label, _ in planned["cells"][:most]])
        for start in range(0, len(cells), BATCH):
            if time.monotonic() > self.boxes.deadline - 60:
                self.lines.append("the time is over: the next run goes on")
                break
            scorable = material.gather(cells[start : start + BATCH])
            made = check_and_score(self.boxes, self.plugins, scorable, commit=commit).records() if scorable else []
            # What was skipped says nothing; a failure that comes again is no news.
            again = {record.key for record in made if before.get(record.key) == (record.failure, record.fingerprint)}
            records = [r for r in made if r.ok or (r.status == "failed" and r.key not in again)]
            write_records(self.registry, records)
            self.records += records
            for record in (record for record in made if not record.ok):
                self.lines.append(f"{record.status}: {record.method} on {record.task}: {record.reason}")
        reasons = Counter(planned["skipped"]) + Counter(material.missing.values())
        self.lines += [f"{counted(count, 'cell')} not scored here: {why[:1000]}" for why, count in reasons.items()]

    def _boards(self, site: Path | None) -> None:
        """The boards that came out of a sandbox; one that would lose a method stays as it is.

        When a new version of the scorer makes every record outdated, the old board is true of what it names, and an
        empty one says nothing. What is withdrawn is of an id that nobody registers, so that no board counts it.
        """
        result, out = self._where_all_is_data("boards", {"site": site is not None})
        self.lines += result["lines"]
        for path in sorted((out / "registry" / "leaderboards").glob("*.json")):
            lost = lost_methods(self.registry, made_board(path), self.withdraw)
            if lost:
                reason = f"{would_lose(lost)}; score again, or withdraw"
                self.lines.append(f"board {path.stem} stays as it was: {reason}")
            else:
                self.files[f"leaderboards/{path.name}"] = path.read_bytes()
        if site is not None:
            shutil.copytree(out / "site", site, dirs_exist_ok=True)


def registered(plugins: Iterable[PluginData]) -> dict[str, set[str]]:
    """The ids that plugins register, by noun; two plugins with one id are refused.

    Ids are spelled as ``alike`` has them: the catalogue takes ``a-b`` and ``a_b`` for one id, and then has neither.
    """
    homes: dict[tuple[str, str], str] = {}
    for plugin in plugins:
        for row in plugin.rows:
            noun, name = row["noun"], row["spec"]["id"]
            first = homes.setdefault((noun, alike(name)), plugin.touched.folder)
            if first != plugin.touched.folder:
                what = f"two plugins register the {noun} {name!r}: {first} and {plugin.touched.folder}"
                raise DataError(what, hint="Remove one of them; until then nothing is written")
    return {noun: {name for kind, name in homes if kind == noun} for noun in SPECS}


def lost_records(
    records: Iterable[Record], ids: Mapping[str, Collection[str]], silent: Mapping[str, str]
) -> Iterable[Lost]:
    """Records of methods and tasks that nobody registers; ``silent`` are plugins that could not be asked, and why."""
    for record in records:
        if not record.registered:
            continue
        for noun, name in (("method", record.method), ("task", record.task)):
            if alike(name) not in ids[noun]:
                tree = f"neuco_{noun}s/"
                homes = (f for f in silent if f.startswith(tree) and inside(name, f.removeprefix(tree)))
                yield Lost(record, noun, name, next((f"{home}: {silent[home]}" for home in homes), ""))


def withdrawable(
    lost: Sequence[Lost], suites: Sequence[Suite], allowed: Collection[str]
) -> tuple[list[Record], list[str]]:
    """The records that go, and what is said of those that stay until a maintainer speaks.

    A frozen suite must not lose a method or a task by accident, nor by a rival's doing. A plugin that could not be
    asked loses nothing.
    """
    kept = {item.record.key for item in lost if item.why}
    refused: dict[str, None] = {}
    for item in (item for item in lost if item.name not in allowed and item.record.key not in kept):
        for suite in suites:
            if item.record.task in suite.tasks and item.record.protocol == suite.protocol:
                kept.add(item.record.key)
                hint = f"bring it back, or run `python -m ci reconcile --push --withdraw {item.name}`"
                reason = f"suite {suite.id!r} compares records of {item.noun} {item.name!r}, which no plugin registers"
                refused[f"{reason}: {hint}"] = None
    gone = {item.record.key: item.record for item in lost if item.record.key not in kept}
    return list(gone.values()), list(refused)


def made_board(path: Path) -> Board:
    """A board that came out of a sandbox: that of the suite which its file is named after."""
    board = read_board(path)
    if board.about.id != path.stem:
        raise DataError(f"what was made for suite {path.stem!r} is the board of {board.about.id!r}")
    return board


def verify(boxes: PluginSandbox, count: int) -> list[Finding]:
    """Score ``count`` records again and compare; they are chosen by lot, another lot for another commit of main."""
    registry = boxes.base / "registry"
    commit = git(boxes.base, "rev-parse", "HEAD").strip()
    records = [record for record in read_all(registry) if record.ok and record.registered]
    chosen = random.Random(commit).sample(records, min(count, len(records)))  # noqa: S311 - no secret
    if not chosen:
        raise DataError("there is no record to verify", where=registry, hint="Run `python -m ci reconcile` first")
    plugins = describe_all(boxes)
    material = Material(boxes, plugins, merged=True)
    cells = material.gather(find_cells(plugins, [(record.protocol, *record.key[:2]) for record in chosen]))
    made = check_and_score(boxes, plugins, cells, commit=commit).records() if cells else []
    spreads = {method.label: method.machine_spread for plugin in plugins for method in plugin.methods}
    return compared(chosen, made, spreads)


def compared(before: Iterable[Record], made: Iterable[Record], spreads: Mapping[str, float]) -> list[Finding]:
    """One finding for each record: the same, different, or not scored again. Nothing compared is no evidence.

    ``spreads`` are those that methods declare, by label: what depends on the machine shows neither.
    """
    now = {record.key: record for record in made}
    findings = []
    for record in before:
        method, task, protocol = record.key
        name = f"{method} on {task} under {protocol}"
        if record.key not in now:
            findings.append(Finding("verify", name, "skipped", "it could not be scored again here"))
            continue
        check = compare(record, now[record.key], spread=spreads.get(method, 0.0))
        status: Status = "skipped" if check.confirmed is None else "ok" if check.confirmed else "failed"
        cure = "Find out why: `neuco explain` and `neuco verify`; the record stays until somebody has"
        detail = f"{check.verdict}: {check.reason or 'no split differs'}"
        findings.append(Finding("verify", name, status, detail, cure if status == "failed" else ""))
    if not any(finding.status in ("ok", "failed") for finding in findings):
        findings.append(Finding("verify", "sample", "failed", "no record of the sample could be scored again"))
    return findings
