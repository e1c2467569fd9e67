"""Bring the registry of main in line with main: score what has no record that holds, make the boards, write it down.

Nothing that a pull request's workflow made is used: only the code of main and its registry count, so it does not
matter what was merged, when, or whether an earlier run was killed. What each plugin declares is asked in a sandbox of
its own (``describe``), cells are scored and boards are made where all plugins are data (``evaluate``), and only what
parses is taken out of a sandbox. A method is judged as in a pull request each time that it is scored: it may be honest
until it is merged. Each batch of records is written when it is scored; a second run finds nothing to do.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ci.changed import frozen_suites
from ci.describe import CATALOG, catalog_bytes, describe_all
from ci.git import git
from ci.plugin_sandbox import PluginData, PluginSandbox
from ci.sandbox import Limits
from ci.score import CellToScore, Material, check_and_score, find_cells, where_all_is_data
from ci.stub_tree import SPECS
from neuco_core.boards.cells import from_records
from neuco_core.boards.kinds.neuco import task_scores
from neuco_core.boards.model import Board
from neuco_core.boards.stats.uncertainty import mean_interval
from neuco_core.boards.store import lost_methods, read_board, would_lose
from neuco_core.contract.contract import FAILED, Finding, Status
from neuco_core.errors import DataError
from neuco_core.files import write_atomic
from neuco_core.plugins.discovery import alike, heads
from neuco_core.records.model import Record
from neuco_core.records.store import read_all, write_records
from neuco_core.runs.verify import TOLERANCE, compare
from neuco_core.specs import Suite
from neuco_core.text import counted

MESSAGE = "Update the registry: records, boards, catalogue"
RIVALS = 5  # methods with a score, from which on the best of them is a bar
BATCH = 100  # cells of a plugin whose records are written together: as many are lost at most if a run is killed
DISHONEST = ("method-honest", FAILED)
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

    def __init__(self, boxes: PluginSandbox, withdraw: Collection[str] = (), accept: Collection[str] = ()) -> None:
        """A maintainer's word: ids that may go (``withdraw``), methods whose records are right (``accept``)."""
        self.boxes, self.withdraw, self.accept = boxes, withdraw, accept
        self.base, self.registry = boxes.base, boxes.base / "registry"
        self.plugins = describe_all(boxes)
        self.known = {record.key: record for record in read_all(self.registry)}  # as the run began
        self.records: list[Record] = []
        self.withdrawn: list[Record] = []
        self.files: dict[str, bytes] = {}  # by path in the registry
        self.lines: list[str] = []
        self.loud: list[str] = []

    def run(self, most: int, *, retry: bool, site: Path | None) -> None:
        """Bring the checkout's registry up to date."""
        silent = {plugin.touched.folder: plugin.problem for plugin in self.plugins if plugin.problem}
        for folder, why in silent.items():
            self.loud.append(f"{folder} is left out, and its records stay: {why}")
        self.files[Path(CATALOG).name] = catalog_bytes(self.plugins, self.base)
        ids = {noun: {alike(name) for plugin in self.plugins for name in plugin.ids(noun)} for noun in SPECS}
        lost = list(lost_records(self.known.values(), ids, silent))
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
        cells = find_cells(self.plugins, [label for *label, _ in planned["cells"]])
        by_plugin: dict[str, list[CellToScore]] = {}
        # In random order, so that cells that fail or are held back each night cannot hold up the others.
        for cell in random.sample(cells, min(most, len(cells))):
            by_plugin.setdefault(cell.methods.touched.folder, []).append(cell)
        material = Material(self.boxes, self.plugins, merged=True)
        skipped = Counter[str](planned["skipped"])
        for own in by_plugin.values():
            for start in range(0, len(own), BATCH):
                skipped += self._judge(own[0].methods, material.gather(own[start : start + BATCH]))
        skipped += Counter(material.missing.values())
        self.lines += [f"{counted(count, 'cell')} not scored here: {why[:1000]}" for why, count in skipped.items()]

    def _judge(self, plugin: PluginData, cells: Sequence[CellToScore]) -> Counter[str]:
        """Check and score cells of one plugin as in a pull request, and write what may be; gives why cells were not."""
        if not cells:
            return Counter()
        commit = git(self.base, "rev-parse", "HEAD").strip()
        try:
            with self.boxes.timed(plugin):
                result = check_and_score(self.boxes, self.plugins, cells, commit=commit, touched=[plugin])
        except DataError as error:
            return Counter({f"{plugin.touched.folder}: {error}": len(cells)})
        dishonest = {item.subject: item.detail for item in result.findings if (item.check, item.status) == DISHONEST}
        made_before = {record.inputs["embeddings"] for record in self.known.values() if record.ok}
        written = []
        for record in result.records():
            old, name = self.known.get(record.key), f"{record.method} on {record.task} under {record.protocol}"
            if not record.ok:
                self.lines.append(f"{record.status}: {name}: {record.reason}")
                # What was skipped says nothing; a failure that comes again is no news.
                again = old is not None and (old.failure, old.fingerprint) == (record.failure, record.fingerprint)
                if record.status == "failed" and not again:
                    written.append(record)
                continue
            # What a task that came later says of embeddings that did not change takes no record away.
            new = record.inputs["embeddings"] not in made_before
            reason = dishonest.get(record.method, "") if new else ""
            reason = reason or moved(old, record) or (leads(record, self.known.values()) if new and not old else "")
            if reason and record.method not in self.accept:
                cure = f"look at the code; if it is right, run `python -m ci reconcile --push --accept {record.method}`"
                self.loud.append(f"held back: {name}: {reason}: {cure}")
            else:
                written.append(record)
        write_records(self.registry, written)
        self.records += written
        return Counter(cell["reason"] for cell in result.unscored if cell["state"] == "skipped")

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


def moved(old: Record | None, new: Record) -> str:
    """How a score left the interval of the one that it replaces, in words; "" if it did not, or for a known reason.

    If the embeddings are the same, labels or the scorer made the difference: code of main, or data that was merged.
    What a plugin says of its own code is no reason, and labels that changed by themselves are none.
    """
    if old is None or old.mean is None or new.mean is None:
        return ""
    other = {name for name in ("embeddings", "labels", "labels_from") if old.inputs[name] != new.inputs[name]}
    if "embeddings" not in other and other != {"labels"}:
        return ""
    low, high = interval(old)
    if low - TOLERANCE <= new.mean <= high + TOLERANCE:
        return ""
    return f"its score is {new.mean:.4f}, and was {old.mean:.4f} ({low:.4f} to {high:.4f})"


def leads(first: Record, others: Iterable[Record]) -> str:
    """How a method's first score is better than the interval of the best on record, in words; "" if it is not.

    There is no earlier score to compare it with, so only one above the current best is held back. Where few methods
    have a score, as after a run on a new task that was cut short, the best of them says nothing.
    """
    cell, sign = (first.task, first.task_version, first.protocol), 1 if first.greater_is_better else -1
    scored = [other for other in others if other.ok and other.registered]
    rivals = [other for other in scored if (other.task, other.task_version, other.protocol) == cell]
    if len(rivals) < RIVALS or first.mean is None:
        return ""
    best = max(rivals, key=lambda record: sign * (record.mean or 0.0))
    low, high = interval(best)
    if sign * first.mean <= max(sign * low, sign * high) + TOLERANCE:
        return ""
    on_record = f"the best on record, {best.method}, has {best.mean:.4f} ({low:.4f} to {high:.4f})"
    return f"its first score is {first.mean:.4f}; {on_record}"


def interval(record: Record) -> tuple[float, float]:
    """The interval of the mean score of one record; the mean twice if its splits give none."""
    cells = from_records([record], Suite(id="one", protocol=record.protocol, tasks={record.task: record.task_version}))
    scores = task_scores(cells, cells.tasks[0])
    if not scores.resamples:
        return record.mean or 0.0, record.mean or 0.0
    (low,), (high,) = mean_interval(scores)
    return low, high


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
                homes = (f for f in silent if f.startswith(tree) and alike(f.removeprefix(tree)) in heads(name))
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
