"""What is compiled is kept for other processes, or only time is lost; plugins are loaded from source, and apart."""

from __future__ import annotations

import importlib.util
import marshal
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import Said, neuco_here, python
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


LOAD = """
import sys
from neuco_core.plugins.running import run_from_source
run_from_source(["outside.plugin:hooks", "lone"])
import outside.plugin, outside.deep.inner, lone, beside, {last}
print(outside.plugin.SIZE, outside.deep.inner.SIZE, lone.SIZE, beside.SIZE)
"""
FILES = ("outside/__init__.py", "outside/plugin.py", "outside/deep/inner.py", "lone.py", "beside.py", "elsewhere.py")


def forge(source: Path) -> Path:
    """Bytecode that says 3 beside a source that says 1, with the source's time and size."""
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("SIZE = 1\n")
    status = source.stat()
    stamps = b"".join(number.to_bytes(4, "little") for number in (0, int(status.st_mtime), status.st_size))
    target = Path(importlib.util.cache_from_source(str(source)))
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(importlib.util.MAGIC_NUMBER + stamps + marshal.dumps(compile("SIZE = 3", str(source), "exec")))
    return target


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    for file in FILES:
        forge(tmp_path / file)
    return tmp_path


def run(folder: Path, code: str) -> Said:
    return python("-c", code, path=folder, env={"PYTHONDONTWRITEBYTECODE": ""})


def test_forged_bytecode_is_run_by_python_and_not_by_neuco(forged: Path) -> None:
    assert run(forged, "import outside.plugin, beside; print(outside.plugin.SIZE, beside.SIZE)").out == "3 3\n"
    kept = {path: path.read_bytes() for path in forged.rglob("*.pyc")}
    done = run(forged, LOAD.format(last="elsewhere"))
    assert done.out == "1 1 1 1\n", done.err
    assert {path: path.read_bytes() for path in forged.rglob("*.pyc")} == kept, "and none is written"


def test_in_a_worker_what_people_edit_is_run_from_source(forged: Path) -> None:
    code = "from neuco_core.plugins.running import run_from_source\nrun_from_source(everywhere=True)\n"
    installed = forged / "site-packages" / "library.py"
    forge(installed)
    code += f"import sys; sys.path.append({str(installed.parent)!r})\nimport elsewhere, library\n"
    assert run(forged, f"{code}print(elsewhere.SIZE, library.SIZE)").out == "1 3\n"


def test_a_module_without_source_is_refused(forged: Path) -> None:
    compiled = importlib.util.cache_from_source(str(forged / "outside/plugin.py"))
    Path(compiled).rename(forged / "outside/plugin.pyc")
    (forged / "outside/plugin.py").unlink()
    done = run(forged, LOAD.format(last="elsewhere"))
    assert "ImportError: outside.plugin is compiled and has no source; expected a .py file" in done.err


NUMBA = """
import os, sys
from neuco_core.plugins.running import compiled_apart
sys.path.insert(0, sys.argv[1])
with compiled_apart():
    import stretched
    from neuco_core.scoring import kernel
    stretched.stretch(1.0)
    print(stretched.stretch._cache.cache_path)
    print(kernel.fit.stats.cache_path)
print(os.environ["NUMBA_CACHE_DIR"])
"""


def test_neuco_keeps_its_kernel_and_plugins_keep_nothing(tmp_path: Path) -> None:
    (tmp_path / "stretched.py").write_text("import numba\n@numba.njit(cache=True)\ndef stretch(x): return 2 * x\n")
    lasting = str(tmp_path / "lasting")
    done = python("-c", NUMBA, tmp_path, env={"NUMBA_CACHE_DIR": lasting, "TMPDIR": str(tmp_path)})
    apart, kernel, after = done.out.split()
    assert apart.startswith(f"{tmp_path}/neuco-")
    assert kernel.startswith(lasting)
    assert after == lasting
    assert not list(tmp_path.glob("neuco-*")), "it ends with the process"
