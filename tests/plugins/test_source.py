"""Plugins are loaded from source, installed ones too, and what numba compiles of them stays apart from neuco's own."""

from __future__ import annotations

import importlib.util
import marshal
from pathlib import Path

import pytest

from tests.command import Said, python

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
