"""A cache that is full or cannot be written is the machine's matter: methods are scored, or nothing is recorded."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.runs.helpers import PROTOCOL, World

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
