"""StepLimits of time and memory hold wherever a method does its work, also in the processes that it starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import psutil
import pytest

from neuco_core.runs import engine
from neuco_core.runs.engine import StepLimits, WorkerProcess, default_limits, family, holds_more
from neuco_core.runs.messages import Call, Embed, Failed, Returned, ScoreCell
from tests.runs.helpers import PROTOCOL, World, kill

EMBED = Embed("m", "d")
SCORE = ScoreCell(EMBED, "t", "p")

GREEDY = '''
"""Methods that work, or do not, in their encoder."""
from neuco_core import Method, hookimpl

def encoder(what):
    from neuco_methods.greedy.work import Encoder
    return Encoder(what)

@hookimpl
def neuco_methods():
    for what in ("sleeps", "eats"):
        yield Method(id=f"greedy_{what}", encoder=encoder, params={"what": what}, dim=2)
'''
WORK = """
import os, subprocess, sys, time

EATER = "import time; eaten = b'x' * 700_000_000; time.sleep(10**6)"

class Encoder:
    def __init__(self, what):
        self.what = what

    def encode(self, batch):
        if self.what == "sleeps":
            time.sleep(10**6)
        child = subprocess.Popen([sys.executable, "-c", EATER], start_new_session=True)
        with open(os.environ["TOY_LOG"], "w") as log:
            log.write(str(child.pid))
        child.wait()
"""


def test_a_share_of_memory_for_each_worker_unless_told() -> None:
    shared, alone = default_limits(4).memory, default_limits(1).memory
    assert shared is not None
    assert alone is not None
    assert shared * 4 == pytest.approx(alone, rel=0.01)
    assert default_limits(1, 5.0, 10).memory == 10


@pytest.fixture
def ended() -> WorkerProcess:
    """A worker whose process ended and was waited for."""
    worker = WorkerProcess(StepLimits())
    worker._process = subprocess.Popen([sys.executable, "-c", ""])
    worker._process.wait()
    worker._commands, worker.reports = os.pipe()
    return worker


@pytest.mark.parametrize("reused", [True, False])
def test_a_worker_that_was_waited_for_is_not_killed_by_its_number(
    reused: bool, ended: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ended._process is not None
    pid, killed = ended._process.pid, []

    def member(number: int) -> SimpleNamespace:
        return SimpleNamespace(pid=number, kill=lambda: killed.append(number))

    left, stranger = [member(pid + 1)], [member(pid), member(pid + 2)]
    monkeypatch.setattr(engine, "family", lambda pid: stranger if reused else left)
    monkeypatch.setattr(os, "killpg", lambda pid, number: killed.append(-pid))
    ended.stop()
    ended.kill()
    assert killed == ([] if reused else [-pid, pid + 1])


def test_a_group_that_may_not_be_signalled_is_let_be(ended: WorkerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended._process is not None
    pid, asked = ended._process.pid, []

    def refuse(pid: int, number: signal.Signals) -> None:
        asked.append(pid)
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refuse)
    ended.kill()
    assert asked == [pid]


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    process = WorkerProcess(StepLimits())
    yield process
    process.kill()


@pytest.mark.parametrize(("word", "shown"), [("off", False), ("1", True)])
def test_what_workers_print_is_shown_if_debugging_is_switched_on(
    word: str, shown: bool, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEUCO_DEBUG", word)
    worker.run(Call("tests.runs.calls:shout"))
    assert ("somebody should see this" in capfd.readouterr().err) is shown


def test_a_time_limit_holds_for_every_step_unless_embeddings_have_their_own() -> None:
    def seconds(limits: StepLimits) -> tuple[float, float]:
        return limits.seconds_of(SCORE), limits.seconds_of(EMBED)

    assert seconds(default_limits(1)) == (3600, 86400)
    assert seconds(default_limits(1, 5.0)) == (5, 5)
    assert seconds(default_limits(1, 5.0, None, 50.0)) == (5, 50)
    assert seconds(default_limits(1, embed_seconds=50.0)) == (3600, 50)


def test_a_worker_runs_the_function_of_an_extension(worker: WorkerProcess) -> None:
    results = [worker.run(Call(f"tests.runs.calls:{name}", {"number": 14})) for name in ("triple", "fail", "leave")]
    again = worker.run(Call("tests.runs.calls:triple", {"number": 2}))
    assert isinstance(results[0], Returned)
    assert results[0].value == {"result": 42}
    assert results[0].provenance["python"]
    assert [(item.kind, item.reason) for item in results[1:] if isinstance(item, Failed)] == [
        ("data", "14 will not do"),
        ("crash", "its process ended with exit code 3"),
    ]
    assert isinstance(again, Returned), "a new process takes the place of the one that died"


def test_encoders_are_stopped_and_their_processes_too(world: World) -> None:
    world.write("neuco_methods/greedy/__init__.py", GREEDY)
    world.write("neuco_methods/greedy/work.py", WORK)
    words = ["--protocol", PROTOCOL, "--task", "toy_[ab]", "--method", "greedy_sleeps", "--method", "greedy_eats"]
    limits = ["--time-limit", "8", "--memory-limit", "600MB"]
    done = world.neuco("score", "--all", "--jobs", "2", *words, *limits)
    assert done.returncode == 1, done.stderr
    outcomes = {(record["method"], record["failure"], record["reason"]) for record in map(json.loads, _texts(world))}
    assert outcomes == {
        ("greedy_sleeps", "timeout", "not done after 8 seconds"),
        ("greedy_eats", "memory", "more than 0.6 GB of memory"),
    }
    assert len(_texts(world)) == 4
    assert not psutil.pid_exists(int(world.log.read_text())), "it left the worker's session, and ended all the same"


def _texts(world: World) -> list[str]:
    return list(world.records().values())


FORKS = """
import os, time
shared = b"x" * 150_000_000
for _ in range(3):
    if not os.fork():
        time.sleep(60)
print("ready", flush=True)
time.sleep(60)
"""


def test_pages_that_processes_share_count_once() -> None:
    process = subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    members = family(process.pid)
    held = holds_more(process.pid, 140_000_000), holds_more(process.pid, 350_000_000)
    for member in members:
        member.kill()
    kill(process)
    assert len(members) == 4
    assert held == (True, False)
