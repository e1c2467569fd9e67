"""Embeddings survive what happens to runs: kills at any moment, workers that die or have other data, full disks."""

from __future__ import annotations

import shutil
import subprocess
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
from tests.runs.helpers import PROTOCOL, World

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


# How a folder is laid over the cache, really: a disk of one page, one that can only be read, one that is another's.
DISKS = {
    "full": (("--size", "4096", "--tmpfs", "CACHE"), "No space left"),
    "read-only": (("--ro-bind", "EMPTY", "CACHE"), "Read-only file system"),
    "denied": (("--unshare-user", "--cap-drop", "ALL", "--bind", "EMPTY", "CACHE"), "Permission denied"),
}
needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap makes the small disks")


@needs_bubblewrap
@pytest.mark.parametrize("disk", DISKS)
def test_a_run_goes_on_without_a_cache_and_says_so_once(world: World, disk: str) -> None:
    places = {"EMPTY": world.folder / "empty", "CACHE": world.folder / "cache"}
    for folder in places.values():
        folder.mkdir()
    places["EMPTY"].chmod(0o555)
    options, reason = DISKS[disk]
    chosen = ("--method", "toy_one,toy_two", "--task", "toy_a,toy_b,toy_c")
    line = world.command("score", *chosen, "--protocol", PROTOCOL, "--jobs", "2")
    inside = ["bwrap", "--dev-bind", "/", "/", *(str(places.get(word, word)) for word in options), "--", *line]
    done = subprocess.run(inside, env=world.env(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("embeddings cannot be kept in") == 1, "not by each worker, of each method"
    assert reason in done.stderr
    assert len(world.records()) == 6
    assert all('"status":"ok"' in record for record in world.records().values())
    embedded = [line for line in world.logged() if line.startswith("embed")]
    assert len(embedded) == 2 * embedded.count("embed 2"), "workers share what one of them made"


def test_what_a_machine_lacks_is_not_recorded(world: World) -> None:
    """The encoder meets a full disk: nothing is said about the method, and the next run tries again."""
    work = world.folder / "neuco_methods" / "toy" / "work.py"
    text = work.read_text()
    full = 'raise OSError(28, "No space left on device")'
    work.write_text(text.replace('        log("embed", self.dim)', f"        {full}"))
    command = ("score", "--method", "toy_one", "--task", "toy_a", "--protocol", PROTOCOL)
    done = world.neuco(*command)
    assert done.returncode == 1
    assert "this machine cannot" in done.stdout
    assert world.records() == {}
    work.write_text(text)
    assert world.neuco(*command).returncode == 0
