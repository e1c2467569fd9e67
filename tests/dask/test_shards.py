"""``neuco embed`` on dask's workers."""

from __future__ import annotations

import time

import psutil
import pytest

from neuco_core.tables.embeddings import read_embeddings
from tests.dask.test_dask import cluster
from tests.runs.helpers import World

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
