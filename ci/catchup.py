"""What publishing has to catch up on: everything merged since its last commit, and what it left pending then.

A merge whose plugins have no usable report does not hold up the others: its plugins are *pending*, in
``registry/pending.json``, until a report about them arrives, late or from re-scoring.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from ci.changed import TREES, Changes, changed, git
from ci.own import Own, anchor, first_parents
from ci.report import Commit, FilePath, PluginReport, Report, is_waiting
from neuco_core.errors import DataError
from neuco_core.files import read_limited
from neuco_core.jsonio import dump
from neuco_core.records.model import Record
from neuco_core.text import join_names, one_line

PENDING = "registry/pending.json"
LARGEST = 10_000_000
REVERT = "Revert the merge; if it is meant, a maintainer starts the workflow `publish` by hand"
JUDGED = "the merge changed what judges it; re-scoring will score it"
NO_REPORT = "no report is about it; see why the job `score` left none, and run it again"

Parsed = tuple[Report, list[Record]]


class Pending(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plugin whose merge is not published yet, and why."""

    plugin: FilePath
    head: Commit
    why: Annotated[str, msgspec.Meta(max_length=1000)]


class PendingFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pending: tuple[Pending, ...] = ()
    schema: Literal[1] = 1


def read_pending(tree: Path) -> tuple[Pending, ...]:
    path = tree / PENDING
    try:
        return msgspec.json.decode(read_limited(path, LARGEST), type=PendingFile).pending if path.exists() else ()
    except (OSError, ValueError) as error:
        raise DataError(f"not a list of pending plugins: {error}", where=path, hint="Restore it") from error


def pending_bytes(items: Sequence[Pending]) -> bytes:
    return dump({"pending": [msgspec.to_builtins(item) for item in items], "schema": 1})


class Refused(NamedTuple):
    """Why a report brings no records, and whether somebody must look at it."""

    why: str
    loud: bool = True


@dataclass
class Accepted:
    """What the reports bring. ``loud`` is what nobody must overlook; ``rescore``: what scores has changed."""

    parsed: list[Parsed] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    loud: list[str] = field(default_factory=list)
    rescore: bool = False

    @property
    def folders(self) -> list[str]:
        return [folder for report, _ in self.parsed for folder in _folders(report)]


class CatchUp:
    """Matches reports with merges. What git says of a merge counts, not what a report says."""

    def __init__(self, repo: Path, tip: str, own: Own | None, since: str) -> None:
        self.repo, self.tip = repo, tip
        line = first_parents(repo, tip)
        self.age = {commit: number for number, commit in enumerate(reversed(line))}
        start = own.base if own else anchor(repo, tip)
        if start not in self.age:
            raise DataError(
                "publishing's last commit was made from another main", got=start, hint="Was main rewritten?"
            )
        self.start = self.age[start]
        # What this run is about, if it is about a merge: from ``since`` to what is checked out.
        end = self.age.get(git(repo, "rev-parse", "HEAD").strip(), -1)
        self.mine = range(self.age[since] + 1, end + 1) if since in self.age else range(0)
        self.line = line[::-1]
        self._changes: dict[tuple[str, str], Changes] = {}

    @property
    def heads(self) -> list[str]:
        """The commits on main since our last one."""
        return self.line[self.start + 1 :]

    def between(self, base: str, head: str) -> Changes:
        if (base, head) not in self._changes:
            self._changes[base, head] = changed(self.repo, base, head)
        return self._changes[base, head]

    def accept(self, reports: Sequence[Parsed], before: Sequence[Pending]) -> Accepted:
        """The reports whose records may join the registry, and what is left pending."""
        self._refuse_unreadable()
        result = Accepted()
        reasons: dict[str, Refused] = {}
        for report, records in reports:
            refused = self._why_not(report, records)
            if refused is None:
                result.parsed.append((report, records))
                reasons |= _waiting(report)
                continue
            reasons |= dict.fromkeys(_folders(report), refused)
            words = f"the report on {report.head[:12]} brings no records: {refused.why}"
            (result.loud if refused.loud else result.lines).append(words)
        # Of a cell that two reports have, the later one's record counts: the earlier is of code that was replaced.
        result.parsed.sort(key=lambda item: self.age[item[0].head])
        settled = [(self.age[report.head], set(_with_evidence(report))) for report, _ in result.parsed]
        needs: dict[str, Pending] = {item.plugin: item for item in before}
        for item in self._needs(result):
            needs[item.plugin] = item  # the newest merge of a plugin counts
        for item in self._still_there(needs.values()):
            at = self.age.get(item.head, 0)
            if not any(at <= when and item.plugin in folders for when, folders in settled):
                self._leave(result, item, reasons.get(item.plugin))
        return result

    def _leave(self, result: Accepted, item: Pending, refused: Refused | None) -> None:
        why = one_line(refused.why, 900) if refused else item.why
        result.pending.append(Pending(item.plugin, item.head, why))
        # Of another merge's plugins its own run has told, or will tell when it ends.
        is_mine = self.age.get(item.head, -1) in self.mine and refused is None and why != JUDGED
        (result.loud if is_mine else result.lines).append(f"pending: {item.plugin}: {why}")

    def _needs(self, result: Accepted) -> Iterator[Pending]:
        """Every plugin that a merge since our last commit touched and left there."""
        for number in range(self.start + 1, len(self.line)):
            head = self.line[number]
            changes = self.between(self.line[number - 1], head)
            result.rescore = result.rescore or (bool(changes.core) and number in self.mine)
            if changes.core:
                words = f"no record is taken over: the merge changed what judges it ({join_names(changes.core)})"
                result.lines.append(f"{words}; re-scoring follows")
            why = JUDGED if changes.core else NO_REPORT
            yield from (Pending(item.folder, head, why) for item in changes.plugins if item.how != "removed")

    def _still_there(self, items: Collection[Pending]) -> Iterator[Pending]:
        names = git(self.repo, "ls-tree", "-d", "-z", "--name-only", self.tip, *(f"{tree}/" for tree in TREES))
        there = set(names.split("\0"))
        yield from (item for item in sorted(items, key=lambda item: item.plugin) if item.plugin in there)

    def _refuse_unreadable(self) -> None:
        changes = self.between(self.line[self.start], self.tip)
        for what in (*changes.bad_names, *(f"{path}: {why}" for path, why in changes.unreadable)):
            raise DataError("main has what every pull request is refused for", got=what, hint=REVERT)

    def _why_not(self, report: Report, records: Sequence[Record]) -> Refused | None:
        if report.base not in self.age or report.head not in self.age or self.age[report.base] > self.age[report.head]:
            return Refused("it is about other commits than main's")
        if records and report.sandbox != "bubblewrap":
            return Refused("its records were made without bubblewrap")
        if report.base != report.head:
            changes = self.between(report.base, report.head)
            if changes.core:
                return Refused(JUDGED, loud=False)
            others = set(_folders(report)) - {item.folder for item in changes.plugins}
            if others:
                return Refused(f"it is about {join_names(sorted(others))}, which the merge did not touch")
            if report.verdict == "red":
                return _red(report)
        # One that is about a single commit of main is of re-scoring: what failed there has records that say so.
        return None


def _red(report: Report) -> Refused:
    failed = [finding for finding in report.findings if finding.status == "failed"]
    words = f"{failed[0].subject}: {failed[0].detail}" if failed else "a plugin has no evidence"
    return Refused(f"it is not green: {one_line(words, 500)}")


def _waiting(report: Report) -> dict[str, Refused]:
    """The plugins of a report that wait for somebody else, and what for; what was scored of them counts anyway."""
    details = {
        f"{plugin.tree}/{plugin.name}": [finding.detail for finding in plugin.findings if is_waiting(finding)]
        for plugin in report.plugins
    }
    return {name: Refused(f"it is waiting: {join_names(why, 1)}", loud=False) for name, why in details.items() if why}


def _with_evidence(report: Report) -> list[str]:
    """The plugins that a report settles."""
    plugins = [plugin for plugin in report.plugins if any(finding.status == "ok" for finding in plugin.findings)]
    return [name for name in _folders_of(plugins) if name not in _waiting(report)]


def _folders(report: Report) -> list[str]:
    return _folders_of(report.plugins)


def _folders_of(plugins: Sequence[PluginReport]) -> list[str]:
    return [f"{plugin.tree}/{plugin.name}" for plugin in plugins]
