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
from pathlib import Path
from typing import Any

from neuco_extensions.challenge.evalai import worker as module
from neuco_extensions.challenge.evalai.api import Account, Api
from neuco_extensions.challenge.evalai.deliveries import Deliveries
from neuco_extensions.challenge.evalai.worker import EvalAIWorker, Job
from neuco_extensions.challenge.journal import Verdict

SECRET = "label-of-sample-42-is-3.14159"
STEPS = [
    (Deliveries, "receive"),
    (Deliveries, "running"),
    (Api, "running"),
    (module, "bring"),
    (EvalAIWorker, "_verdict"),
    (Deliveries, "evaluated"),
    (Api, "put"),
    (Deliveries, "step"),
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
    from tests.challenge.evalai_server import CHALLENGE, TOKEN

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


def _in_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(settings: dict[str, Any]) -> None:
    folder = Path(settings["folder"])
    if not settings.get("kill"):
        folder.mkdir(parents=True, exist_ok=True)
        own = account(settings["server"], settings["queue"], **settings.get("more", {}))
        evaluate = evaluate_in(folder, settings.get("seconds", 0.0))
        EvalAIWorker(own, folder, evaluate, tell=print).run(once=True)
        return
    for number in range(1, 100, settings["kill"]):
        own, place = account(settings["server"], f"queue{number}"), folder / str(number)
        place.mkdir(parents=True)

        def work(number: int, own: Account = own, place: Path = place) -> None:
            if number:
                _die_at(number)
            else:
                time.sleep(0.1)  # until the queue hands it out again
            EvalAIWorker(own, place, evaluate_in(place), tell=print).run(once=True)

        code = _in_child(lambda work=work, number=number: work(number))  # type: ignore[misc]
        again = _in_child(lambda work=work: work(0))  # type: ignore[misc]
        print(number, code, again, flush=True)
        if code == 0:
            return


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
