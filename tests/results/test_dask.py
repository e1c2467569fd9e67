"""The dask engine on a real cluster of processes on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.results.helpers import METHODS, PROTOCOL, TASKS, World, kill

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


def address(file: Path, process: subprocess.Popen[str]) -> str:
    """Where the scheduler is, as soon as it says so."""
    while process.poll() is None:
        if file.exists() and file.read_text().endswith("}"):
            return str(json.loads(file.read_text())["address"]).removeprefix("tcp://")
        time.sleep(0.05)
    raise RuntimeError("the scheduler ended")


def test_one_of_two_workers_killed_and_the_records_equal_the_local_ones(world: World) -> None:
    assert world.score(registry="here").returncode == 0
    file = world.folder / "scheduler.json"
    worker = ["worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", *LOOPBACK]
    slow = {"TOY_SLEEP": "0.4"}
    world.log.unlink()
    with (
        running(world, "scheduler", "--port", "0", "--scheduler-file", str(file), *LOOPBACK) as scheduler,
        running(world, *worker, **slow) as first,
        running(world, *worker, **slow),
    ):
        words = world.score_words("--engine", f"dask://{address(file, scheduler)}")
        run = subprocess.Popen(
            world.command(*words), env=world.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # In the middle of a cell of the worker that is going to die.
        while run.poll() is None and not (len(world.logged()) > 6 and psutil.Process(first.pid).children()):
            time.sleep(0.01)
        first.kill()
        out, errors = run.communicate(timeout=240)
    assert run.returncode == 0, errors
    assert f"{CELLS} scored" in out
    assert world.records() == world.records("here")


def test_a_cell_that_kills_dask_workers_is_given_up_and_others_are_done(world: World) -> None:
    words = ["score", "--all", "--protocol", PROTOCOL, "--engine", "dask", "--jobs", "1"]
    words += ["--method", "toy_evil", "--method", "toy_one", "--task", "toy_[aef]"]
    done = world.neuco(*words, TOY_PARENT="1")
    assert done.returncode == 1, done.stderr
    records = {name.partition("@")[0]: json.loads(text) for name, text in world.records().items()}
    assert {records[f"toy_one/toy_{letter}"]["status"] for letter in "aef"} == {"ok"}
    evil = {letter: records[f"toy_evil/toy_{letter}"] for letter in "aef"}
    assert {letter: record["failure"] for letter, record in evil.items()} == {"a": "crash", "e": "method", "f": "crash"}
    assert "SIGABRT" in evil["a"]["reason"], "a crash that dask does not notice"
    assert "3 dask workers that ran it died" in evil["f"]["reason"]


PROGRAM = """
import sys
from neuco_core.results import dask_engine as engine
from neuco_core.results.steps import Group, Limits, Step

engine.GRACE_SECONDS = engine.CONNECT_SECONDS = 2.0
group = Group("toy_one", "toy", (Step("toy_one", "toy", "toy_a", "neuco-2025"),))
try:
    list(engine.DaskEngine(sys.argv[1]).run([group], Limits()))
except engine.EngineError as error:
    print(error)
"""


def run_briefly(world: World, place: str) -> str:
    """What an impatient engine says in the end."""
    command = [sys.executable, "-c", PROGRAM, place]
    return subprocess.run(command, env=world.env(), capture_output=True, text=True, timeout=120, check=True).stdout


def test_a_scheduler_without_workers_is_given_up(world: World) -> None:
    file = world.folder / "scheduler.json"
    with running(world, "scheduler", "--port", "0", "--scheduler-file", str(file), *LOOPBACK) as scheduler:
        assert "dask: no worker is left" in run_briefly(world, address(file, scheduler))


def test_no_scheduler(world: World) -> None:
    assert "no dask scheduler" in run_briefly(world, "127.0.0.1:9")
