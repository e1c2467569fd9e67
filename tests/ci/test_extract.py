"""Encoders and tests of strangers, each in its sandbox: what comes out, and what becomes of those that misbehave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ci.changed import Touched
from ci.describe import describe
from ci.extract import Encoding, make_embeddings
from ci.inside import write_json
from ci.plugin_sandbox import PluginData, PluginSandbox
from ci.plugin_tests import run_tests
from ci.sandbox import Limits
from neuco_core.errors import DataError
from neuco_core.specs import Dataset
from tests.ci.helpers import Upstream
from tests.ci.prs import with_encode, write_file
from tests.ci.test_sandbox import need_bubblewrap

ROWS = 12
FORGED = """
import json, os
print('{"green": true, "mean": 0.999}')
for place in ("/out", "."):
    try:
        open(place + "/result.json", "w").write('{"findings": [], "records": []}')
        open(place + "/small.json", "w").write(json.dumps({"ids": list(batch.ids)}))
    except OSError:
        pass
os._exit(0)
"""
PICKLED = f"""
import os, numpy
numpy.save("/out/embeddings.npy", numpy.array([[print]] * {ROWS}, dtype=object), allow_pickle=True)
os._exit(0)
"""
GIGANTIC = """
import json, os, numpy
rows = len(json.load(open("/samples/cubes.json"))["ids"])  # some samples come twice
with open("/out/embeddings.npy", "wb") as file:
    words = {"descr": "<f4", "fortran_order": False, "shape": (rows, 10**12)}
    numpy.lib.format.write_array_header_1_0(file, words)
os._exit(0)
"""
ENCODERS = {
    "a socket": ("import socket\nsocket.create_connection(('127.0.0.1', 9))", "its encoder failed with"),
    "a write outside": ("open('/tree/neuco_core/errors.py', 'w')", "Read-only file system"),
    "forks without end": ("import os\nwhile True:\n    os.fork()", "processes"),
    "sleeps for ever": ("import time\ntime.sleep(10**6)", "limit of timeout"),
    "eats memory": ("hoard = []\nwhile True:\n    hoard.append(bytearray(b'x') * (1 << 26))", "memory"),
    "a forged result": (FORGED, "the encoder wrote no embeddings"),
    "a pipe among the results": ("import os\nos.mkfifo('/out/embeddings.npy')\nos._exit(0)", "left a pipe"),
    "a link among the results": (
        "import os\nos.symlink('/etc/hostname', '/out/embeddings.npy')\nos._exit(0)",
        "left a link",
    ),
    "results that are pickled": (PICKLED, "not a table of floats"),
    "results of a size that nobody has": (GIGANTIC, "does not match its header"),
    "results without end": ("for i in range(10**6):\n    open(f'/out/{i}', 'w').close()", "limit of files"),
    "other numbers the second time": (
        "import numpy\nreturn numpy.random.default_rng().random((len(batch.ids), 4), 'f4')",
        "different numbers for small with another batch size, order and sample names",
    ),
}
LIMITS = Limits(seconds=120, memory=2500 << 20)  # a busy machine fills 2.5 GB in half a minute


def contributed(change_into: Path, base: Path) -> tuple[PluginSandbox, PluginData]:
    need_bubblewrap()
    boxes = PluginSandbox(base, change_into / "scratch", LIMITS, "bubblewrap")
    folder = change_into / "neuco_methods/plain"
    return boxes, PluginData(Touched("neuco_methods", "plain", "added"), folder, change_into / "made")


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_that_misbehaves_is_stopped_and_named(name: str, upstream: Upstream, tmp_path: Path) -> None:
    body, words = ENCODERS[name]
    with_encode(body)(tmp_path)
    boxes, plugin = contributed(tmp_path, upstream.base)
    describe(boxes, plugin)
    if "timeout" in words:
        boxes.limits = replace(LIMITS, seconds=3)
    cubes = tmp_path / "cubes"
    cubes.mkdir()
    about = {"bands": ["grey/0"], "seasons": ["scene"], "version": "1"}
    write_json(cubes / "cubes.json", {**about, "ids": [f"s{i}" for i in range(ROWS)]})
    np.save(cubes / "cubes.npy", np.random.default_rng(0).random((ROWS, 1, 1, 4, 4), np.float32))
    dataset = Dataset(id="small", bands=("grey/0",), seasons=("scene",))
    with pytest.raises(DataError, match=words):
        make_embeddings(boxes, Encoding(plugin, plugin.methods[0], dataset, cubes))


TESTS = {
    "no tests": ("def check_nothing():\n    pass\n", "no tests were collected"),
    "one that fails": ("def test_no():\n    assert 'a' * 2000 == 'the end'\n", "0 passed, 1 failed"),
    "one that leaves before it is asked": (
        "import os\nos._exit(0)\ndef test_x():\n    pass\n",
        "no tests were collected",
    ),
    "one that writes into another plugin": (
        "def test_x():\n    open('/tree/neuco_core/errors.py', 'a').write('x')\n",
        "Read-only file system",
    ),
}


@pytest.mark.parametrize("name", TESTS)
def test_contributed_tests_count_only_if_they_ran_and_passed(name: str, upstream: Upstream, tmp_path: Path) -> None:
    code, words = TESTS[name]
    write_file("neuco_methods/plain/__init__.py", "")(tmp_path)
    write_file("neuco_methods/plain/test.py", code)(tmp_path)
    boxes, plugin = contributed(tmp_path, upstream.base)
    run_tests(boxes, plugin)
    (finding,) = plugin.findings
    assert (finding.check, finding.status, words in finding.detail) == ("tests", "failed", True), finding


def test_a_failing_test_beside_test_py_is_not_overlooked(upstream: Upstream, tmp_path: Path) -> None:
    for name, code in (("test.py", "def test_x():\n    pass\n"), ("test_extra.py", TESTS["one that fails"][0])):
        write_file(f"neuco_methods/plain/{name}", code)(tmp_path)
    boxes, plugin = contributed(tmp_path, upstream.base)
    run_tests(boxes, plugin)
    assert "1 passed, 1 failed" in plugin.findings[0].detail
    (plugin.folder / "test.py").unlink()
    run_tests(boxes, plugin)
    assert plugin.findings[1].detail == "there is no test.py"
