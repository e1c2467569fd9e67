"""The dask engine on a real cluster of processes on this machine."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import distributed
import psutil
import pytest
from distributed import WorkerPlugin

from neuco_core.errors import UsageError
from neuco_core.runs.engine import EngineError, Schedule, StepLimits, open_engine
from neuco_core.runs.messages import Embed, Embedded, Group, ScoreCell
from neuco_core.tables.embeddings import read_embeddings
from neuco_extensions.dask import engine
from neuco_extensions.dask.engine import DaskEngine, _quiet, _Run, _Sent
from tests.runs.helpers import METHODS, PROTOCOL, TASKS, World, kill

CELLS = len(METHODS) * len(TASKS)
LOOPBACK = ["--host", "127.0.0.1", "--no-dashboard"]


@contextmanager
def running(world: World, *words: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    """A dask process that ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        env=world.env(DASK_DISTRIBUTED__WORKER__DAEMON="false", **env),
        cwd=world.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        kill(process)
        psutil.wait_procs(children, timeout=60)


@contextmanager
def cluster(world: World, workers: int, **env: str) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """The engine of a scheduler with so many workers; the processes of the scheduler and of these."""
    file = world.folder / "scheduler.json"
    worker = ["worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", *LOOPBACK]
    with ExitStack() as stack:
        words = ["scheduler", "--port", "0", "--scheduler-file", str(file), *LOOPBACK]
        processes = [stack.enter_context(running(world, *words))]
        processes += [stack.enter_context(running(world, *worker, **env)) for _ in range(workers)]
        while not (file.exists() and file.read_text().endswith("}")):  # as soon as the scheduler says where it is
            assert processes[0].poll() is None, "the scheduler ended"
            time.sleep(0.05)
        yield str(json.loads(file.read_text())["address"]).replace("tcp", "dask"), processes


def test_one_of_two_workers_killed_and_the_records_equal_the_local_ones(world: World) -> None:
    assert world.score(registry="here").returncode == 0
    world.log.unlink()
    with cluster(world, workers=2, TOY_SLEEP="0.2") as (address, (_, first, _)):
        run = world.start(*world.score_words("--engine", address))
        # In the middle of a cell of the worker that is going to die.
        while run.poll() is None and not (len(world.logged()) > 6 and psutil.Process(first.pid).children()):
            time.sleep(0.01)
        first.kill()
        out, errors = run.communicate(timeout=240)
    assert run.returncode == 0, errors
    assert f"{CELLS} scored" in out
    assert world.records() == world.records("here")


@pytest.mark.slow
def test_two_runs_share_a_scheduler(world: World) -> None:
    with cluster(world, workers=2, TOY_SLEEP="0.1") as (address, _):
        words = world.score_words("--engine", address, methods=METHODS[:2])
        runs = [world.start(*words, registry=registry) for registry in ("left", "right")]
        messages = [run.communicate(timeout=240) for run in runs]
        with distributed.Client(address.replace("dask", "tcp")) as client:
            plugins = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.worker_plugins))
    assert [run.returncode for run in runs] == [0, 0], messages
    assert len(world.records("left")) == 2 * len(TASKS)
    assert world.records("left") == world.records("right")
    assert not [name for name in plugins if "neuco" in name], "a run that ended leaves nothing on the scheduler"


@pytest.mark.slow
def test_a_cell_that_kills_dask_workers_is_given_up_and_others_are_done(world: World) -> None:
    words = ["score", "--all", "--protocol", PROTOCOL, "--engine", "dask", "--jobs", "1"]
    words += ["--method", "toy_evil", "--method", "toy_one", "--task", "toy_[aef]"]
    done = world.neuco(*words, TOY_PARENT="1")
    assert done.returncode == 1, done.stderr
    records = {name: json.loads(text) for name, text in world.records().items()}
    assert {records[f"toy_one/toy_{letter}"]["status"] for letter in "aef"} == {"ok"}
    evil = {letter: records[f"toy_evil/toy_{letter}"] for letter in "aef"}
    assert {letter: record["failure"] for letter, record in evil.items()} == {"a": "crash", "e": "method", "f": "crash"}
    assert "SIGABRT" in evil["a"]["reason"], "a crash that dask does not notice"
    assert "3 dask workers that ran it died" in evil["f"]["reason"]


def given_up(address: str, monkeypatch: pytest.MonkeyPatch, patience: float) -> str:
    """What an engine without much patience says in the end."""
    for name in ("GRACE_SECONDS", "CONNECT_SECONDS"):
        monkeypatch.setattr(engine, name, patience)
    embed = Embed("toy_one", "toy")
    with pytest.raises(EngineError) as caught:
        list(DaskEngine(address).run([Group((ScoreCell(embed, "toy_a", "neuco-2025"),), embed)], StepLimits()))
    return str(caught.value)


@pytest.mark.slow
def test_a_scheduler_without_workers_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with cluster(world, workers=0) as (name, _):
        error = given_up(name.removeprefix("dask://"), monkeypatch, 2.0)
    worker = name.replace("dask", "dask worker tcp")
    (warning,) = [record.getMessage() for record in caplog.records if record.name == engine.__name__]
    assert warning.startswith(f"{name} has no worker: waiting 2 seconds for one."), "said at once, not in the end"
    assert worker in warning
    assert "no dask worker for 2 seconds" in error
    assert worker in error


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    error = given_up("127.0.0.1:9", monkeypatch, 0.2)
    assert error.startswith("no dask scheduler")
    assert "dask scheduler --port 9" in error


def test_a_dask_worker_that_is_killed_as_it_starts_is_one_line(world: World) -> None:
    killed = "import os, sys\nif '--multiprocessing-fork' in sys.orig_argv:\n    os.kill(os.getpid(), 9)\n"
    world.write("sitecustomize.py", killed)
    run = world.start(*world.score_words("--engine", "dask"))
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert errors.count("neuco: error: dask: dask's workers do not start") == 1, errors
    assert "unexpected" not in errors


class Dies(WorkerPlugin):  # type: ignore[misc]
    """In place of the engine's own."""

    def __init__(self, _: StepLimits) -> None:
        pass

    def setup(self, worker: object) -> None:
        raise KeyError("tcp://127.0.0.1:1")


def test_whatever_dask_says_of_a_worker_that_is_gone_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuco_extensions.dask.worker_plugin.PoolPlugin", Dies)
    with pytest.raises(EngineError, match=r"cannot run neuco: .*127.0.0.1:1"):
        list(DaskEngine().run([Group((Embed("averaging", "mini"),))], StepLimits()))


def begun(world: World, run: subprocess.Popen[str]) -> None:
    """Wait until a cell is being scored."""
    while run.poll() is None and not any(line.startswith("cell") for line in world.logged()):
        time.sleep(0.01)


@pytest.mark.slow
def test_a_scheduler_that_dies_is_one_error_with_the_command_to_go_on(world: World) -> None:
    with cluster(world, workers=1, TOY_SLEEP="1") as (address, (scheduler, _)):
        run = world.start(*world.score_words("--engine", address))
        begun(world, run)
        scheduler.kill()
        _, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    messages = [line for line in errors.splitlines() if not line.startswith("[")]
    assert len(messages) == 1, errors
    assert f"the scheduler is gone ({address})" in messages[0]
    assert "neuco score --all" in messages[0]
    assert f"--engine {address}" in messages[0]


@pytest.mark.slow
def test_an_interrupt_of_a_cluster_on_this_machine_is_one_line(world: World) -> None:
    run = world.start(*world.score_words("--engine", "dask", "--jobs", "2"), TOY_SLEEP="1")
    begun(world, run)
    started = psutil.Process(run.pid).children(recursive=True)
    os.killpg(run.pid, signal.SIGINT)  # as the keyboard does: to all processes of the group
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 130
    assert [line for line in errors.splitlines() if line and not line.startswith("[")] == ["neuco: interrupted"]
    assert not psutil.wait_procs(started, timeout=60)[1]


@pytest.mark.slow
def test_an_interrupt_ends_what_runs_elsewhere(world: World) -> None:
    with cluster(world, workers=1, TOY_SLEEP="60") as (address, _):
        run = world.start(*world.score_words("--engine", address))
        begun(world, run)
        cells = [item for item in psutil.process_iter() if _is_worker_of(item, world)]
        os.killpg(run.pid, signal.SIGINT)
        _, errors = run.communicate(timeout=60)
        assert run.returncode == 130
        assert errors.split() == ["neuco:", "interrupted"]
        assert len(cells) == 1
        assert not psutil.wait_procs(cells, timeout=50)[1], "the cell that was under way is stopped"


def _is_worker_of(process: psutil.Process, world: World) -> bool:
    try:
        return process.environ().get("TOY_LOG") == str(world.log) and "neuco_core.runs.worker" in process.cmdline()
    except psutil.Error:  # it ended meanwhile, or is another user's
        return False


@pytest.mark.parametrize("name", ["dask://", "dask://127.0.0.1", "dask://:8786", "dask://h:x", "dask://h:1/x"])
def test_an_engine_without_an_address_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"expected e.g. dask://127.0.0.1:8786.*--engine dask"):
        open_engine(name, 1)


def test_a_step_under_which_two_workers_died_has_the_next_one_for_itself() -> None:
    """Its neighbour on the same dask worker would die with it; others go on meanwhile."""

    def cell(method: str, task: str = "t") -> ScoreCell:
        return ScoreCell(Embed(method, "d"), task, "p")

    steps = tuple(cell("m", f"t{i}") for i in range(3))
    schedule = Schedule([Group(steps, Embed("m", "d"))])
    embed = schedule.next("left")
    assert embed == Embed("m", "d")
    list(schedule.ended(embed, Embedded(8)))
    run = _Run(None, StepLimits(), "", "")
    run.sent = {1: _Sent(cell("n"), "left")}
    bad, weak = _Sent(cell("bad"), "gone", 2), _Sent(cell("weak"), "gone", 1)
    run.again = [bad, weak]
    assert run._next(schedule, "left") == _Sent(weak.step, "left", 1), "the worker that is busy gets something else"
    alone = run._next(schedule, "right")
    assert alone == _Sent(bad.step, "right", 2)
    run.sent[2] = alone
    run.again = [weak]
    assert run._next(schedule, "right") is None, "nothing beside it"
    run.again = []
    assert run._next(schedule, "right") is None
    assert run._next(schedule, "left") == _Sent(steps[0], "left")


@pytest.mark.parametrize(("word", "level"), [("0", logging.CRITICAL + 1), ("1", logging.INFO)])
def test_dask_is_heard_if_debugging_is_switched_on(word: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("distributed.of_a_test")
    logger.setLevel(logging.INFO)
    monkeypatch.setenv("NEUCO_DEBUG", word)
    with _quiet():
        assert logger.level == level


SLOW = '''
"""Means, slowly, with a note of each batch."""
import os, time
from neuco_core import Method, hookimpl

class Slow:
    def encode(self, batch):
        time.sleep(float(os.environ.get("TOY_SLEEP", "0")))
        with open(os.environ["TOY_LOG"], "a") as log:
            log.write(f"{batch.ids[0]}\\n")
        return batch.values.mean(axis=(1, 2, 3))

def make():
    return Slow()

@hookimpl
def neuco_methods():
    yield Method(id="slow", encoder=make)
'''
BATCHES = 29  # of 64 samples; digits has 1797


@pytest.mark.slow
def test_two_dask_workers_one_killed_and_the_file_is_the_same(world: World) -> None:
    world.write("neuco_methods/slow/__init__.py", SLOW)
    files = {name: world.folder / f"{name}.npz" for name in ("here", "there")}
    words = ["embed", "--method", "slow", "--dataset", "digits", "--out"]
    assert world.neuco(*words, str(files["here"]), "--fresh").returncode == 0
    world.log.unlink()
    with cluster(world, workers=2, TOY_SLEEP="0.05") as (place, *_):
        run = world.start(*words, str(files["there"]), "--engine", place)
        while run.poll() is None and len(world.logged()) < 6:
            time.sleep(0.01)
        # The worker under which a process encodes.
        busy = [p for p in psutil.Process().children() if p.pid != run.pid and _encodes(p)]
        busy[0].kill()
        _, errors = run.communicate(timeout=240)
    assert run.returncode == 0, errors
    assert read_embeddings(files["there"]).sha256 == read_embeddings(files["here"]).sha256
    assert BATCHES <= len(world.logged()) <= BATCHES + 4, "a worker that dies loses its shard of four batches, no more"


def _encodes(process: psutil.Process) -> bool:
    return any("neuco_core.runs.worker" in child.cmdline() for child in process.children())
