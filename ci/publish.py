"""On main: add the records that main's own runs made, withdraw those of removed plugins, rebuild boards and site.

Nothing that a pull request's workflow made comes here, and no plugin speaks for another. What each plugin registers
is found out in a sandbox of its own (``as_data``); which records hold, and the boards, are worked out from that data
in another sandbox (``apply``), where no plugin is imported. Records are packed here, from the reports that were
accepted, and never copied out of a sandbox; of what comes out only boards are taken, if they parse and continue their
history. With ``push`` all this is done on what main is at that moment, for everything merged since our last commit
(``catchup``), and done again if someone else was faster. Where main takes no push, the same commit is proposed in a
pull request (``own``), and until that is merged the next run makes all of it again.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ci import sandbox
from ci.apply import Decision, carry_out
from ci.as_data import write_data_tree
from ci.catchup import PENDING, REVERT, Accepted, CatchUp, Parsed, Pending, pending_bytes, read_pending
from ci.changed import COMMIT, git
from ci.github import GitHub
from ci.guard import lost_cells, next_boards, refuse_losses, registered, suites_of, to_withdraw
from ci.living import described, living_suites, write_living
from ci.own import BRANCH, MESSAGE, edits, last_own, propose
from ci.report import parse
from ci.sandbox import OUT, TREE, Limits
from ci.stub import read_json
from neuco_core.errors import DataError, NeucoError
from neuco_core.files import write_atomic
from neuco_core.records.model import Key, Record, record_line
from neuco_core.text import join_names

TRIES = 20
RESCORE = "rescore.yml"
LIMITS = Limits(seconds=3600, files=2_000_000, written=50 << 30)
BODY = "Publishing made this commit, and main takes no push. Merge it as it is: an edited one is refused afterwards."


class Published(NamedTuple):
    """What was done, line by line; and what nobody must overlook."""

    lines: list[str]
    loud: list[str]


def publish(
    repo: Path,
    reports: Sequence[bytes],
    *,
    site: Path | None = None,
    push: bool = False,
    since: str = "",
    withdraw: Collection[str] = (),
    take_over: bool = False,
    github: GitHub | None = None,
    urls: Sequence[str] = (),
) -> Published:
    """Apply reports to a checkout of main; with ``push``, to main itself, and the checkout stays as it is.

    ``since`` is the commit before the merge that this run is about. ``withdraw`` are ids of which a suite compares
    records and that may go all the same; ``take_over`` is a maintainer's word that edits of the registry are meant.
    ``urls`` say where the packs of records can be fetched.
    """
    since = since if since.strip("0") else ""
    if since and not COMMIT.fullmatch(since):
        raise DataError("not a commit", expected="the whole hash of the commit before the merge", got=since)
    with tempfile.TemporaryDirectory(prefix="neuco-publish-", ignore_cleanup_errors=True) as folder:
        work = Publishing(reports, since, withdraw, site, Path(folder), take_over, github, urls)
        return work.push(repo) if push else work.try_out(repo)


class Publishing:
    """Reports on their way into the registry of a tree."""

    def __init__(
        self,
        reports: Sequence[bytes],
        since: str,
        withdraw: Collection[str],
        site: Path | None,
        scratch: Path,
        take_over: bool,
        github: GitHub | None,
        urls: Sequence[str],
    ) -> None:
        self.reports, self.since, self.withdraw, self.site, self.scratch = reports, since, withdraw, site, scratch
        self.take_over, self.github, self.urls = take_over, github, urls

    def try_out(self, repo: Path) -> Published:
        """Change a checkout, whatever its history: the reports are the user's own."""
        parsed = [parse(data) for data in self.reports]
        for report, _ in parsed:
            if report.verdict == "red":
                raise DataError("a report that is not green is not published", got=report.head)
        accepted = Accepted(parsed, list(read_pending(repo)))
        return Published(self.apply(repo, self.scratch / "once", accepted), accepted.loud)

    def push(self, repo: Path) -> Published:
        for number in range(TRIES):
            start = main_of(repo)
            own = last_own(repo, start)
            edited = edits(repo, own, start, self.since)
            if not self.take_over:
                refuse_edits(edited)
            tree = self.scratch / f"tree{number}"
            git(repo, "worktree", "add", "--quiet", "--detach", str(tree), start)
            try:
                catch_up, before = CatchUp(repo, start, own, self.since), read_pending(tree)
                heads = [*catch_up.heads, *(item.head for item in before)]
                parsed, bad = self._parsed(heads)
                accepted = catch_up.accept(parsed, before)
                accepted.loud += bad
                lines = [f"taken over by hand: {path}" for path in edited]
                lines += self.apply(tree, self.scratch / f"try{number}", accepted)
                git(tree, "add", "--all", "--force", "registry")
                if not edited and not git(tree, "status", "--porcelain", "registry"):
                    lines.append("nothing to publish")
                    return self._end(accepted, lines)
                # Even if nothing changed: later edits are told by what differs from this commit.
                git(tree, "commit", "--quiet", "--allow-empty", "-m", MESSAGE)
                lines.append(self._deliver(repo, tree, start, accepted.loud))
                return self._end(accepted, lines)
            except DataError:
                if main_of(repo) == start:
                    raise
                time.sleep(secrets.randbelow(1000) / 1000)  # main moved: start again from what it is now
            finally:
                git(repo, "worktree", "remove", "--force", str(tree))
        raise DataError(f"main moved {TRIES} times during publishing", hint="Run it again when it is quieter")

    def _deliver(self, repo: Path, tree: Path, start: str, loud: list[str]) -> str:
        """Push to main; if main takes no push although nobody was faster, propose a pull request."""
        try:
            git(tree, "push", "--quiet", "origin", "HEAD:refs/heads/main")
        except DataError:
            if main_of(repo) != start:
                raise
            done = propose(tree, start)
            if self.github is None:
                return f"{done}; open a pull request from it to main"
            try:
                return f"{done}; {self.github.propose(BRANCH, MESSAGE, BODY)}"
            except NeucoError as error:  # e.g. workflows may not open pull requests: nothing is lost by that
                loud.append(f"no pull request could be opened from {BRANCH} to main: {error}")
                return done
        return "pushed"

    def _end(self, accepted: Accepted, lines: list[str]) -> Published:
        """Have everything scored again if a merge asks for it; only a run about a merge does, so none starts itself."""
        if accepted.rescore and self.since:
            lines.append("what is to be scored has changed: re-scoring is due (`python -m ci rescore`)")
            if self.github is not None:
                try:
                    lines.append(self.github.start(RESCORE))
                except NeucoError as error:
                    accepted.loud.append(f"re-scoring could not be started: {error}")
        return Published(lines, accepted.loud)

    def _parsed(self, heads: Iterable[str]) -> tuple[list[Parsed], list[str]]:
        """The reports that were given, and those that earlier runs of the workflow left; and what is wrong with some.

        A report that cannot be read holds up nobody: it is as if it were not there, and that is told.
        """
        parsed, bad = _read(self.reports)
        known = {report.head for report, _ in parsed}
        wanted = [head for head in dict.fromkeys(heads) if head not in known] if self.github else []
        late, worse = _read(data for head in wanted for data in self.github.reports_of(head))  # type: ignore[union-attr]
        return parsed + late, bad + worse

    def apply(self, tree: Path, scratch: Path, accepted: Accepted) -> list[str]:
        """Change the registry of ``tree``, with its code and what its plugins declare."""
        from neuco_core.records.store import read_all

        scratch.mkdir(parents=True)
        registry, kind = tree / "registry", sandbox.engine()
        records = {record.key: record for _, records in accepted.parsed for record in records}
        silent = write_data_tree(tree, scratch / "data", scratch=scratch, limits=Limits(), kind=kind)
        self._cannot_be_asked(accepted, silent)
        ids = registered(scratch / "data")
        # A plugin that cannot be asked takes no task off a page: then the living suites stay as they are.
        suites = {} if silent else living_suites(described(scratch / "data"), registry)
        if suites:
            accepted.rescore = write_living(registry, suites) or accepted.rescore
            write_living(scratch / "data" / "registry", suites)
        lost = list(lost_cells([record.key for record in read_all(registry)], ids, silent))
        refuse_losses(lost, suites_of(registry), self.withdraw)
        gone = to_withdraw(lost)
        # Where boards are made, a record of an unknown task is an error.
        aside = {*gone, *(item.key for item in lost if item.noun == "task")}
        new = lost_cells(records, ids, silent)
        unclear = {item.key: item for item in new if not item.is_gone}
        offered = {key: record for key, record in records.items() if key not in unclear}
        decision = self._decide(scratch, offered.values(), aside, kind)
        taken = [offered[key] for key in decision.kept if key in offered]
        if len(taken) != len(decision.kept):
            raise DataError("a record was chosen that no report has", where=registry)
        boards, staying = next_boards(scratch / "out" / "registry", registry, self.withdraw)
        carry_out(registry, taken, gone, self.urls)
        for path, content in boards.items():
            write_atomic(path, content)
        _write_pending(tree, accepted.pending)
        if self.site is not None:
            shutil.copytree(scratch / "out" / "site", self.site, dirs_exist_ok=True)
        words = "could not be asked what it registers, and its records stay"
        lines = accepted.lines + [f"{folder} {words}: {why}" for folder, why in silent.items()]
        for (method, task, _), item in unclear.items():
            lines.append(f"left out {method} on {task}: {item.noun} {item.name!r} could not be asked: {item.why}")
        count = f"{len(taken)} records taken over, {len(gone)} withdrawn"
        return [*lines, count, *decision.lines, *staying]

    def _cannot_be_asked(self, accepted: Accepted, silent: dict[str, str]) -> None:
        """A plugin that was scored and cannot say here what it registers is pending; its records are left out below."""
        for report, _ in accepted.parsed:
            for folder in (f"{plugin.tree}/{plugin.name}" for plugin in report.plugins):
                if folder in silent:
                    what = f"it was scored, and cannot be asked here what it registers: {silent[folder]}"
                    accepted.loud.append(f"pending: {folder}: {what}")
                    accepted.pending.append(Pending(folder, report.head, what[:900]))

    def _decide(self, scratch: Path, records: Iterable[Record], aside: Iterable[Key], kind: str) -> Decision:
        """Which records hold, and the boards that they give: worked out where only data is imported."""
        job = scratch / "job"
        (job / "records").mkdir(parents=True)
        for number, record in enumerate(records):
            (job / "records" / f"{number}.json").write_bytes(record_line(record))
        (job / "aside.json").write_bytes(msgspec.json.encode(sorted(aside)))
        arguments = ("-m", "ci.apply", OUT, "/job", *(("--site",) if self.site else ()))
        read = {TREE: scratch / "data", "/job": job}
        ran = sandbox.run(arguments, read=read, out=scratch / "out", limits=LIMITS, kind=kind)
        if not ran.ok:
            raise DataError(f"publishing failed: {' '.join(ran.output.split())[-500:] or ran.status}")
        try:
            return msgspec.convert(read_json(scratch / "out" / "decision.json"), Decision)
        except msgspec.ValidationError as error:
            raise DataError(f"publishing failed: bad decision: {error}") from error


def _read(reports: Iterable[bytes]) -> tuple[list[Parsed], list[str]]:
    parsed, bad = [], []
    for data in reports:
        try:
            parsed.append(parse(data))
        except DataError as error:
            bad.append(f"a report cannot be read and brings nothing: {error}")
    return parsed, bad


def _write_pending(tree: Path, pending: Sequence[Pending]) -> None:
    path = tree / PENDING
    if pending:
        write_atomic(path, pending_bytes(sorted(pending, key=lambda item: item.plugin)))
    else:
        path.unlink(missing_ok=True)


def refuse_edits(paths: Sequence[str]) -> None:
    """Records and boards that somebody else than this module wrote would be ranked like any other."""
    if paths:
        what = "records or boards were edited on main, which only publishing may do"
        raise DataError(what, got=join_names(paths), hint=REVERT)


def main_of(repo: Path) -> str:
    git(repo, "fetch", "--quiet", "origin", "refs/heads/main")
    return git(repo, "rev-parse", "FETCH_HEAD").strip()
