"""A cache that is full or cannot be written is the machine's matter: methods are scored, or nothing is recorded."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from neuco_core.errors import DataError, PluginError
from neuco_core.runs.work import explain_error
from tests.runs.helpers import PROTOCOL, World

# How a folder is laid over the cache, really: a disk of one page, and one that can only be read.
DISKS = {"full": ("--size", "4096", "--tmpfs"), "read-only": ("--ro-bind", "empty")}
needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap makes the small disks")


@needs_bubblewrap
@pytest.mark.parametrize("disk", DISKS)
def test_a_run_goes_on_without_a_cache_and_says_so(world: World, disk: str) -> None:
    empty, cache = world.folder / "empty", world.folder / "cache"
    for folder in (empty, cache):
        folder.mkdir()
    words = [str(empty) if word == "empty" else word for word in DISKS[disk]]
    line = world.command("score", "--method", "toy_one", "--task", "toy_a", "--protocol", PROTOCOL)
    inside = ["bwrap", "--dev-bind", "/", "/", *words, str(cache), "--", *line]
    done = subprocess.run(inside, env=world.env(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "embeddings cannot be kept in" in done.stderr
    assert {"full": "No space left", "read-only": "Read-only file system"}[disk] in done.stderr
    (record,) = world.records().values()
    assert '"status": "ok"' in record


def caused(error: Exception, cause: OSError) -> Exception:
    error.__cause__ = cause
    return error


FULL, DENIED = OSError(28, "No space left on device"), PermissionError(13, "Permission denied")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FULL, "skipped"),
        (caused(PluginError("its encoder failed"), FULL), "skipped"),
        (caused(DataError("not writable"), DENIED), "skipped"),
        (caused(PluginError("its encoder failed"), DENIED), "failed"),
    ],
)
def test_whose_fault_an_error_is(error: Exception, status: str) -> None:
    result = explain_error(error)
    assert (result["status"], result.get("machine", False)) == (status, status == "skipped")


def test_what_a_machine_lacks_is_not_recorded(world: World, tmp_path: Path) -> None:
    """The encoder meets a full disk: nothing is said about the method, and the next run tries again."""
    work = world.folder / "neuco_methods" / "toy" / "work.py"
    text = work.read_text()
    full = 'raise OSError(28, "No space left on device")'
    work.write_text(text.replace('        log("embed", self.dim)', f"        {full}"))
    words = ("score", "--method", "toy_one", "--task", "toy_a", "--protocol", PROTOCOL)
    done = world.neuco(*words)
    assert done.returncode == 1
    assert "this machine cannot" in done.stdout
    assert world.records() == {}
    work.write_text(text)
    assert world.neuco(*words).returncode == 0
