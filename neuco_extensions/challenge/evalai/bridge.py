"""Between EvalAI's submissions and the challenge's own: the same journal, evaluation and feedback as everywhere.

A team of EvalAI is the team ``evalai-NUMBER`` here; it is entered into the rules with its first submission. Its token
is thrown away: such a team submits on EvalAI only.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import cast

from neuco_core.errors import NeucoError, SpecError, UsageError
from neuco_core.fetch.transfer import TransientError
from neuco_extensions.challenge.evalai.worker import Job
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import RefusedError
from neuco_extensions.challenge.outcome import Code, Outcome
from neuco_extensions.challenge.teams import add_team

PAUSE = 0.5  # seconds between two looks at a submission that another worker has


class Bridge:
    """An ``Evaluate`` for the worker. What is the hosts' fault costs no team its submission: it waits."""

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        self.folder, self.threads = folder, threads
        self.host = Host(folder)

    def close(self) -> None:
        self.host.close()

    def __call__(self, job: Job, path: Path) -> Outcome:
        try:
            return self._evaluate(job, path)
        except RefusedError as error:
            return Outcome(error.code)
        except (NeucoError, OSError, sqlite3.Error) as error:  # what is wrong with a file is an outcome, not an error
            what = f"it cannot be evaluated here ({type(error).__name__})"
            raise TransientError(what, hint=f"See why with: neuco challenge evaluate {self.folder}") from error

    def _evaluate(self, job: Job, path: Path) -> Outcome:
        team = self._team(job)
        source = f"evalai:{job.submission}"
        own = self.host.submit(team, job.phase, path, public=job.public, source=source, now=job.submitted)
        if job.again and own.state == "failed":
            self.host.journal.retry(own.id)
            own = self.host.journal.get(own.id)
        while own.open:
            # Those of the same team that came before it have their turn first, or another worker has it.
            done = self.host.work(only=own.id, threads=self.threads) or self.host.work(threads=self.threads)
            if done is None:
                time.sleep(PAUSE)
            own = self.host.journal.get(own.id)
        return Outcome(cast(Code, own.code or "failed"), own.feedback, own.scores, own.detail)

    def _team(self, job: Job) -> str:
        name = f"evalai-{job.team}"
        if name not in self.host.challenge.teams:
            with suppress(UsageError):  # another worker was first
                self._add(name, job.team_name)
            with closing(self.host):
                self.host = Host(self.folder)
        return name

    def _add(self, name: str, title: str) -> None:
        shown = "".join(char if char.isprintable() else "?" for char in title)[:200]
        try:
            add_team(self.folder, name, shown or name)
        except SpecError:  # a name that the rules cannot hold
            add_team(self.folder, name, name)
