"""A worker as a process, for tests: `python -m tests.challenge.evalai_worker SETTINGS`, in JSON.

With ``kill`` it ends itself by SIGKILL at the n-th place, for n = 1, 1 + kill, … until it is through; each time a
second worker, which is not killed, does the rest. A queue and a folder of its own belong to each n.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from neuco_extensions.challenge.evalai import worker as module
from neuco_extensions.challenge.evalai.api import Account, Api
from neuco_extensions.challenge.evalai.worker import Deliveries, EvalAIWorker, Job
from neuco_extensions.challenge.journal import Verdict
from tests.challenge.actor import in_child
from tests.challenge.evalai_server import CHALLENGE, TOKEN

SECRET = "label-of-sample-42-is-3.14159"
STEPS = [
    (Deliveries, "receive"),
    (Deliveries, "update"),
    (Api, "running"),
    (module, "bring"),
    (EvalAIWorker, "_verdict"),
    (Api, "put"),
    (Api, "acknowledge"),
]


def evaluate_in(folder: Path, seconds: float = 0.0) -> Callable[[Job, Path], Verdict]:
    """What files say is done: ``score 12.3``, or ``boom``. Each evaluation leaves a line."""

    def evaluate(job: Job, path: Path) -> Verdict:
        with (folder / "evaluations.txt").open("a") as file:
            file.write(f"{job.submission} {os.getpid()} {path.name}\n")
        time.sleep(seconds)
        word, _, number = path.read_text().partition(" ")
        if word != "score":
            raise RuntimeError(f"{SECRET} in {path}")
        return Verdict("scored", {"mean_q": float(number)}, {"hidden_task": 0.123456}, SECRET)

    return evaluate


def account(server: str, queue: str, **more: Any) -> Account:
    quick: dict[str, Any] = {"backoff": 0.01, "poll": 0.02, "hold": 0.0, "per_minute": 10_000, "files": ()}
    return Account(server, queue, CHALLENGE, **{"token": TOKEN, **quick, **more})


def _die_at(number: int) -> None:
    """Count the places before and after each step, and end at one of them as kill -9 would."""
    passed = 0

    def reach() -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def counting(own: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **more: Any) -> Any:
            reach()
            result = own(*args, **more)
            reach()
            return result

        return counted

    for owner, name in STEPS:
        setattr(owner, name, counting(getattr(owner, name)))


def main(settings: dict[str, Any]) -> None:
    folder, server = Path(settings["folder"]), settings["server"]
    if not settings.get("kill"):
        evaluate = evaluate_in(folder, settings["seconds"])
        EvalAIWorker(account(server, settings["queue"]), folder, evaluate, tell=print).run(once=True)
        return

    def life(number: int, last: int) -> None:
        if last:
            _die_at(last)
        else:
            time.sleep(0.1)  # until the queue hands it out again
        own = folder / str(number)
        EvalAIWorker(account(server, f"queue{number}"), own, evaluate_in(own), tell=print).run(once=True)

    for number in range(1, 100, settings["kill"]):
        (folder / str(number)).mkdir(parents=True)
        killed = in_child(partial(life, number, number))
        in_child(partial(life, number, 0))
        print(number, int(killed), flush=True)
        if not killed:
            return


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
