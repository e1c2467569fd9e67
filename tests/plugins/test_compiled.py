"""What neuco compiles is kept for other processes; where that cannot be, or went wrong, only time is lost."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import neuco_here, python
from tests.parts import missing

MODULE = """
from neuco_core.plugins.compiled import compiled, first_call, is_kept

@compiled(keep=False)
def one(x):
    return x + 1

@compiled(keep=True)
def two(x):
    return one(one(x))

if __name__ != "__main__":
    first_call(two, 1.0)
"""
CALL = """
import doubled
print(doubled.two(5.0), sum(doubled.two.stats.cache_misses.values()), doubled.is_kept(doubled.two))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "doubled.py").write_text(MODULE)
    return tmp_path


def compiled_in(folder: Path) -> list[Path]:
    return sorted((folder / "__pycache__").glob("*.nb?"))


def call(folder: Path, *before: str) -> subprocess.Popen[str]:
    command = [*before, sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(folder)!r})\n{CALL}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def started_at_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[str]]]:
    """A folder with compiled code, and what the processes said that met it empty."""
    folder = tmp_path_factory.mktemp("at-once")
    (folder / "doubled.py").write_text(MODULE)
    return folder, [process.communicate()[0].split() for process in [call(folder) for _ in range(4)]]


def test_of_processes_that_start_at_once_one_compiles(started_at_once: tuple[Path, list[list[str]]]) -> None:
    folder, outputs = started_at_once
    assert [value for value, _, _ in outputs] == ["7.0"] * 4
    assert sorted(compiled for _, compiled, _ in outputs) == ["0", "0", "0", "1"]
    assert [path.name.partition("-")[0] for path in compiled_in(folder)] == ["doubled.two", "doubled.two"]


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


DAMAGE: dict[str, Callable[[list[Path]], object]] = {
    "code cut off": lambda files: cut_off(files[0]),
    "index cut off": lambda files: cut_off(files[1]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_is_damaged_is_compiled_again(
    started_at_once: tuple[Path, list[list[str]]], tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(started_at_once[0], folder)
    DAMAGE[name](compiled_in(folder))
    out, err = call(folder).communicate()
    assert out.startswith("7.0 "), err
    assert call(folder).communicate()[0] == "7.0 0 True\n", "and is kept again"


@pytest.mark.parametrize("disk", ["full", "read-only"])
def test_a_disk_that_takes_nothing_is_nobodys_failure(folder: Path, disk: str) -> None:
    if shutil.which("bwrap") is None:
        missing("bubblewrap", "it makes the small disks")
    cache = folder / "__pycache__"
    cache.mkdir()
    words = ("--size", "4096", "--tmpfs", str(cache)) if disk == "full" else ("--ro-bind", "/", "/")
    out, err = call(folder, "bwrap", "--dev-bind", "/", "/", *words, "--").communicate()
    assert out.startswith("7.0 "), err


def test_doctor_says_whether_a_first_score_will_wait(tmp_path: Path) -> None:
    """Not compiled here, but with the same words: compiling takes ten seconds."""
    lacking = python("-m", "neuco_core.cli", "doctor", "--json", env={"NUMBA_CACHE_DIR": str(tmp_path)}).json
    rows = {row["check"]: (row["status"], row["detail"]) for row in lacking if row["check"].startswith("kernel ")}
    wanted = ("missing", "will be compiled when it is first needed: neuco doctor --compile")
    assert rows == {"kernel probe": wanted, "kernel csv": wanted}
    rows = {row["check"]: row["status"] for row in neuco_here("doctor", "--compile", "--json").json}
    assert (rows["kernel probe"], rows["kernel csv"]) == ("ok", "ok")
