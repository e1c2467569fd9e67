"""Code that finds its numbers in unusual places: what becomes of a record when they change there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuco_core.plugins import catalog
from neuco_core.runs.messages import Embed, ScoreCell, Scored, StepLimits
from neuco_core.runs.worker_process import WorkerProcess
from tests.command import python
from tests.runs.small import PROTOCOL, Small, same_numbers, verdict

HELPER = "neuco_methods/small/helper.py"
EXTRA = "neuco_methods/small/extra.py"
# How the helper comes to its factor → the file that is then changed, from what to what, and what is said of the record.
# Docstrings, comments and line numbers are no part of a code key, so only scoring anew (verify) finds them out.
TRICKS: dict[str, tuple[str, str, str, str, str]] = {
    "a docstring": ('"""1.0"""\nFACTOR = float(__doc__)\n', HELPER, '"""1.0', '"""3.0', "differs"),
    "a name": (
        "def one(): return 1.0\ndef two(): return 3.0\nFACTOR = globals()['o' + 'ne']()\n",
        *(HELPER, "one(): return 1.0\ndef two", "two(): return 1.0\ndef one", "stale"),
    ),
    "the length of a name": ("def a(): pass\nFACTOR = float(len(a.__name__))\n", HELPER,
                             "def a(): pass\nFACTOR = float(len(a", "def abc(): pass\nFACTOR = float(len(abc", "stale"),
    "a comment": ("import inspect, sys\n# 1.0\nFACTOR = float(inspect.getsource(sys.modules[__name__])[22:25])\n",
                  HELPER, "# 1.0", "# 3.0", "differs"),
    "the number of a line": ("import sys\nFACTOR = float(sys._getframe().f_lineno - 1)\n", HELPER, "import sys\n",
                             "import sys\n\n\n", "differs"),
    "a module found by a computed name": ("from importlib import import_module\n"
                                          "FACTOR = import_module('neuco_methods.small.ex' + 'tra').SIZE\n",
                                          EXTRA, "1.0", "3.0", "stale"),
    "a module read as text": ("from pathlib import Path\n"
                              "FACTOR = float((Path(__file__).parent / ('ex' + 'tra.py')).read_text()[7:10])\n",
                              EXTRA, "1.0", "3.0", "stale"),
    "a module in a folder without __init__.py": ("from .space.inner import SIZE as FACTOR\n",
                                                 "neuco_methods/small/space/inner.py", "1.0", "3.0", "stale"),
    "a type": ("FACTOR = 1.0\ndef scale(by):\n    global FACTOR\n    FACTOR = by\ndef a(x: scale(1.0)): pass\n",
               HELPER, "scale(1.0)", "scale(3.0)", "stale"),
    "another plugin's class": ("from neuco_methods.beside.tool import SHARE\n"
                               "class Own(type('Base', (), {'size': SHARE})): pass\nFACTOR = Own.size\n",
                               "neuco_methods/beside/tool.py", "1.0", "3.0", "stale"),
    "the state of a hook": ("STATE = {}\nclass Factor(float):\n    def __mul__(self, x): return STATE['size'] * x\n"
                            "    __rmul__ = __mul__\nFACTOR = Factor(1)\n",
                            "neuco_methods/small/__init__.py", "helper.STATE['size'] = 1.0",
                            "helper.STATE['size'] = 3.0", "stale"),
    "a linked file": ("from importlib import resources\nFOLDER = resources.files('neuco_methods.small')\n"
                      "FACTOR = float(FOLDER.joinpath('lin' + 'ked.txt').read_text())\n",
                      "elsewhere.txt", "1.0", "3.0", "stale"),
    "a list of files": ("from importlib import resources\nFACTOR = sum(float(file.read_text()) for file in "
                        "resources.files('neuco_methods.small').iterdir() if file.name == 'LICEN' + 'SE')\n",
                        "neuco_methods/small/LICENSE", "1.0", "3.0", "stale"),
    "bytecode that it loads itself": ("import marshal\nfrom pathlib import Path\n"
                                      "FACTOR = float(Path('WORLD/outside').read_text())\n",
                                      "outside", "1.0", "3.0", "differs"),  # unknown, so stale in any other process
    "a file beside its folder": ("from pathlib import Path\n"
                                 "FACTOR = float(Path(__file__).parent.parent.joinpath('shared.txt').read_text())\n",
                                 "neuco_methods/shared.txt", "1.0", "3.0", "differs"),
    "a value that is kept": ("from functools import cache\nfrom pathlib import Path\n@cache\ndef size():\n"
                             "    return float(Path('WORLD/outside').read_text())\nFACTOR = size()\n",
                             "outside", "1.0", "3.0", "differs"),
}  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    with pytest.MonkeyPatch.context() as patch:
        yield Small(tmp_path_factory.mktemp("tricks") / "world", patch)
        catalog.catalog.cache_clear()


def prepare(small: Small, helper: str) -> None:
    """The plugin with another helper, and records of it."""
    small.make()
    small.write(HELPER, helper.replace("WORLD", str(small.folder)))
    small.write(EXTRA, "SIZE = 1.0\n")
    small.write("neuco_methods/small/space/inner.py", "SIZE = 1.0\n")
    for name in ("outside", "elsewhere.txt", "neuco_methods/shared.txt", "neuco_methods/small/LICENSE"):
        small.write(name, "1.0")
    (small.method / "linked.txt").symlink_to(small.folder / "elsewhere.txt")
    if "STATE" in helper:
        small.edit("neuco_methods/small/__init__.py", "    for name", "    from . import helper\n"
                   "    helper.STATE['size'] = 1.0\n    for name")  # fmt: skip
    shutil.rmtree(small.registry)
    small.score(small.registry, small.cache)


@pytest.mark.parametrize("name", TRICKS)
def test_a_number_from_an_unusual_place_is_never_confirmed(small: Small, name: str) -> None:
    helper, file, old, new, expected = TRICKS[name]
    prepare(small, helper)
    before = small.truth()["small_one small_a"]
    assert before.ok, before.reason
    small.edit(file, old, new)
    truth = small.truth()["small_one small_a"]
    assert truth.ok, truth.reason
    assert not same_numbers(before, truth), "this change changes the numbers"
    assert verdict(small.verify()) == expected
    if expected == "stale":
        assert same_numbers(small.score(small.registry, small.cache)["small_one small_a"], truth)


def test_an_environment_variable_is_seen_by_nobody_but_a_run(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMALL_FACTOR", "1.0")
    prepare(small, "import os\nFACTOR = float(os.environ['SMALL_FACTOR'])\n")
    assert verdict(small.verify()) == "same"
    monkeypatch.setenv("SMALL_FACTOR", "3.0")
    assert verdict(small.verify()) == "differs"


STRETCH = """
import numba
from .helper import FACTOR

@numba.njit(cache=True)
def stretch(x):
    return FACTOR * x
"""
SHOW = "import neuco_methods.small.stretch as s; print(s.stretch(1.0))"
EMBED = """
from neuco_core.encode.run import EncodeOptions, method_embeddings
from neuco_core.plugins.catalog import load_method
print(method_embeddings(load_method("small_one"), "small", {}, EncodeOptions(cached=False)).sha256)
"""


def test_workers_and_commands_run_no_machine_code_that_was_left(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler looks at one file and Python at a time and a size: both still have the helper of before."""
    small.make()
    small.write("neuco_methods/small/stretch.py", STRETCH)
    small.edit("neuco_methods/small/encoder.py", "from .helper import FACTOR", "from .stretch import stretch")
    small.edit("neuco_methods/small/encoder.py", "size * FACTOR", "stretch(size)")
    helper = small.folder / HELPER
    said = []
    for factor in (3.0, 1.0):
        helper.write_text(f"FACTOR = {factor}\n")
        os.utime(helper, (1e9, 1e9))
        said.append(
            python("-c", SHOW, path=small.folder, env={"PYTHONDONTWRITEBYTECODE": "", "NUMBA_CACHE_DIR": ""}).out
        )
    assert said == ["3.0\n", "3.0\n"], "it is there, and any other process runs it"
    assert list((small.method / "__pycache__").glob("*.nbi"))

    monkeypatch.syspath_prepend(str(small.folder))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = [run_both(small.folder)]
    for folder in list(small.folder.rglob("__pycache__")):
        shutil.rmtree(folder)
    found.append(run_both(small.folder))
    assert found[0] == found[1]
    helper.write_text("FACTOR = 3.0\n")
    assert run_both(small.folder) != found[0]
    assert not list(tmp_path.glob("neuco-*")), "each removes what it compiled"


def run_both(folder: Path) -> tuple[str, str]:
    """The embeddings' hash by a worker, and by a command that encodes in its own process."""
    worker = WorkerProcess(StepLimits())
    try:
        result = worker.run(ScoreCell(Embed("small_one", "small", fresh=True), "small_a", PROTOCOL))
    finally:
        worker.kill()
    assert isinstance(result, Scored), result
    done = python("-c", EMBED, path=folder)
    assert done.code == 0, done.text
    return result.embeddings, done.out.strip()
