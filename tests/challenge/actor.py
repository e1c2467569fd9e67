"""Processes of a simulated challenge: ``python -m tests.challenge.actor submit|work|die …``. Any may be killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import RefusedError
from tests.challenge.parts import DEV
from tests.challenge.parts import work as evaluate


def submit(folder: str, plan: str, log: str, gate: str = "") -> None:
    """Send all that the plan says, and note each answer when it has come; what was answered is not sent again.

    With a ``gate``, say that all is ready and wait until it opens, so that several begin at once.
    """
    answered = {json.loads(line)[0] for line in Path(log).read_text().splitlines()} if Path(log).exists() else set()
    with Host(folder) as host, Path(log).open("a") as file:
        while gate and not Path(gate).exists():
            Path(log).with_suffix(".ready").touch()
            time.sleep(0.001)
        for number, (team, phase, path, moment) in enumerate(json.loads(Path(plan).read_text())):
            if number in answered:
                continue
            try:
                answer: int | str = host.submit(team, phase, Path(path), now=datetime.fromisoformat(moment)).id
            except RefusedError as error:
                answer = error.code
            file.write(json.dumps([number, answer]) + "\n")
            file.flush()


def work(folder: str, until: str) -> None:
    """Evaluate until the file ``until`` is there and nothing waits."""
    with Host(folder) as host:
        while True:
            last = Path(until).exists()
            if not evaluate(host):
                if last and not any(entry.open for entry in host.journal.submissions()):
                    return
                time.sleep(0.05)


def die(folder: str, file: str, stride: str) -> None:
    """Be killed at each ``stride``-th step of a submission in turn, and carry on; prints what is there then."""
    shutil.copytree(folder, f"{folder}-0")
    _once(Path(f"{folder}-0"), Path(file), 0)  # imports all there is, once for all children
    step = 0
    while True:
        step += int(stride)
        copy = Path(f"{folder}-{step}")
        shutil.copytree(folder, copy)
        killed = in_child(partial(_once, copy, Path(file), step))
        in_child(partial(_once, copy, Path(file), 0))
        with Host(copy) as host:
            rows = [(entry.id, entry.state, entry.scores, entry.feedback) for entry in host.journal.submissions()]
            kept = sorted(path.name for path in (copy / "private/files").rglob("*") if path.is_file())
            print(json.dumps({"step": step, "killed": killed, "rows": rows, "files": kept}), flush=True)
        shutil.rmtree(copy)
        if not killed:
            return


def in_child(do: Callable[[], None]) -> bool:
    """Whether a process that does this is killed."""
    child = os.fork()
    if child == 0:
        try:
            do()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("a process failed")
    return os.WIFSIGNALED(status)


def die_before(last: int, steps: Sequence[tuple[Any, str]]) -> Callable[..., None]:
    """Have this process killed before a step by its number, 0 for none; steps are functions: their owner and name.

    What is returned counts as a step whenever it is called.
    """
    passed = 0

    def count(*_: object) -> None:
        nonlocal passed
        passed += 1
        if passed == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            count()
            return step(*args, **options)

        return call

    for owner, name in steps:
        setattr(owner, name, counted(getattr(owner, name)))
    return count


def _once(folder: Path, file: Path, last: int) -> None:
    """Submit and evaluate; with ``last``, be killed before that step: a statement, a sync, a rename."""
    with Host(folder) as host:
        host.journal._db.set_trace_callback(die_before(last, [(os, "fsync"), (Path, "replace")]))
        host.submit("alpha", "dev", file, now=DEV)
        evaluate(host)


if __name__ == "__main__":
    {"submit": submit, "work": work, "die": die}[sys.argv[1]](*sys.argv[2:])
