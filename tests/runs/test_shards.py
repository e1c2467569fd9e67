"""Embeddings that survive what happens to runs: killed at any moment, on workers that die or have other data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuco_core.errors import DataError, PluginError, UsageError
from neuco_core.plugins.catalog import load_method
from neuco_core.runs.engine import LocalEngine, StepLimits
from neuco_core.runs.messages import Embed, Embedded, Encoded, EncodeShard, Failed
from neuco_core.runs.shards import _rows, encode_shards
from neuco_core.runs.worker import WorkerSteps
from neuco_core.specs import Method, Remote
from neuco_core.tables.embeddings import content_hash
from tests.command import python

KILLED = """
import os, random, signal, sys, time
import numpy as np
from neuco_core.encode import run
from neuco_core.testing import TinyCubes
from tests.encode.mean import MEAN

run.CHUNK = 16
class Halting(TinyCubes):
    left = 10**6  # reads; then it says so, and waits for its end
    def read(self, ids):
        Halting.left -= 1
        if Halting.left <= 0:
            os.write(halted, b".")
            time.sleep(600)
        return super().read(ids)

def embed(progress=False, cached=True):
    source = Halting(400, ("etm/B1",), ("scene",), 4)
    options = run.EncodeOptions(batch_size=8, progress=progress, cached=cached)
    return run.encode_dataset(MEAN, source.dataset(), {}, options)

random.seed(7)
whole = embed(cached=False)
kills = 0
for _ in range(int(sys.argv[1])):
    reads, wait = random.randint(1, 5), random.uniform(0, 0.1)
    hears, halted = os.pipe()
    child = os.fork()
    if not child:
        Halting.left = reads
        embed()
        os._exit(0)
    os.close(halted)
    os.read(hears, 1)  # what was read before is being encoded and kept meanwhile
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    kills += os.WIFSIGNALED(os.waitpid(child, 0)[1])
seen = []
last = embed(lambda done, total: seen.append(done))
print(kills, len(seen), last.sha256 == whole.sha256)
"""


@pytest.mark.parametrize("times", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments_and_resumed_it_is_the_same(times: int, tmp_path: Path, root: Path) -> None:
    done = python("-c", KILLED, str(times), env={"NEUCO_CACHE": str(tmp_path)}, path=root, cwd=root)
    kills, steps, same = done.out.split()
    assert same == "True", done.err
    assert int(kills) == times
    assert int(steps) > 0


def test_what_a_worker_sends_is_verified() -> None:
    method, ids, rows = load_method("random"), ("a", "b"), np.ones((2, 3), np.float32)
    sha256 = content_hash(ids, rows)
    assert np.array_equal(_rows(method, ids, Encoded(rows.tobytes(), 3, sha256, 0))[0], rows)
    for result, words in (
        (Encoded(rows.tobytes(), 3, content_hash(ids, 2 * rows), 0), "does not match its hash"),
        (Encoded(b"????", 3, sha256, 0), "cannot be read"),
        (Encoded(rows.tobytes(), 5, sha256, 0), "cannot be read"),
        (Failed("crash", "its process was ended by SIGKILL"), "ended by SIGKILL"),
    ):
        with pytest.raises(DataError, match=words):
            _rows(method, ids, result)
    with pytest.raises(PluginError, match="numbers"):
        _rows(method, ids, Encoded(rows[:1].tobytes(), 3, sha256, 0))


def test_a_worker_with_other_data_or_code_refuses() -> None:
    result = WorkerSteps().do(EncodeShard("averaging", "digits", {}, key="0" * 32, start=0, stop=4))
    assert isinstance(result, Failed)
    assert "data, code or packages are not those of the machine that gathers" in result.reason


def test_a_method_that_reads_a_file_has_nothing_to_encode() -> None:
    method = Method(id="file", files={"digits": Remote("file:///m.npz", sha256="1" * 64)})
    with pytest.raises(UsageError, match="nothing to encode in shards"):
        encode_shards(LocalEngine(), StepLimits(), method, "digits", {})


def test_a_record_tells_device_precision_and_packages() -> None:
    made = WorkerSteps().do(Embed("averaging", "digits", fresh=True))
    assert isinstance(made, Embedded)
    assert {name: made.encoding[name] for name in ("samples", "device", "precision")} == {
        "samples": 1797,
        "device": "cpu",
        "precision": "float32",
    }
    assert set(made.encoding["packages"]) == {"numpy"}
