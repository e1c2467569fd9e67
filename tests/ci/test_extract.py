"""Encoders and tests of strangers: what comes out of a sandbox, and what becomes of those that misbehave."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ci.changed import TREES
from ci.describe import describe
from ci.extract import (
    MOST_CELLS,
    MOST_TABLE_CELLS,
    EncodingJob,
    check_cubes,
    make_embeddings,
    read_array,
    read_table,
    run_tests,
)
from ci.inside import write_json
from ci.plugin_sandbox import PluginData, PluginSandbox, limit
from ci.sandbox import Limits, Ran
from ci.stub_tree import LARGEST_IDS, read_json
from neuco_core.contract.contract import Broken
from neuco_core.contract.repeatability import some_rows
from neuco_core.errors import DataError, NeucoError
from neuco_core.plugins.catalog import load_method
from neuco_core.specs import Dataset
from tests.ci.helpers import ROOT, Upstream, method, need_bubblewrap, plugin_data, with_encode, write_file
from tests.contract.helpers import TEST
from tests.parts import missing

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
LIMITS = Limits(seconds=120, memory=2500 << 20)


def job_for(plugin: PluginData, folder: Path, uses_ids: bool = False) -> EncodingJob:
    """The encoder ``plain`` on a dataset of a few small images."""
    cubes = folder / "cubes"
    cubes.mkdir()
    about = {"bands": ["grey/0"], "seasons": ["scene"], "version": "1"}
    write_json(cubes / "cubes.json", {**about, "ids": [f"s{i}" for i in reversed(range(ROWS))]})
    np.save(cubes / "cubes.npy", np.random.default_rng(0).random((ROWS, 1, 1, 4, 4), np.float32))
    fields = plugin.rows[0]["spec"] | {"uses_ids": uses_ids}
    plugin.declare([{**plugin.rows[0], "spec": fields}])
    return EncodingJob(plugin, plugin.methods[0], Dataset(id="small", bands=("grey/0",), seasons=("scene",)), cubes)


class InProcess(PluginSandbox):
    """In place of the sandbox a function, from what is to be learned and the samples to the embeddings."""

    def __init__(self, folder: Path, encode: Callable[[list[str], list[str], np.ndarray], np.ndarray]) -> None:
        super().__init__(folder, folder, LIMITS)
        self.encode = encode

    def inside(self, plugin: PluginData, step: str, *arguments: str, **read: Path) -> Path:
        ids = [read_json(read[name] / "cubes.json")["ids"] for name in ("cubes", "samples")]
        values = self.encode(*ids, np.load(read["samples"] / "cubes.npy").reshape(len(ids[1]), -1))
        out = self.base / "out"
        out.mkdir(exist_ok=True)
        np.save(out / "embeddings.npy", values)
        return out


def stranger(tmp_path: Path) -> PluginData:
    return plugin_data(load_method("averaging"), at=tmp_path)


@pytest.mark.parametrize("how", ["added", "kept"])
def test_an_encoder_gets_shuffled_samples_under_names_that_say_nothing(how: str, tmp_path: Path) -> None:
    """One on main, too: it is given as many samples, as often, and in batches of the same sizes."""
    asked: list[tuple[list[str], list[str], np.ndarray]] = []

    def encode(learn: list[str], samples: list[str], values: np.ndarray) -> np.ndarray:
        asked.append((learn, samples, values))
        return values

    plugin = plugin_data(load_method("averaging"), at=tmp_path, how=how)
    job = job_for(plugin, tmp_path)
    make_embeddings(InProcess(tmp_path, encode), job)
    values = np.load(job.cubes / "cubes.npy").reshape(ROWS, -1)
    made = np.load(plugin.made / "embeddings" / job.method.label / "small.npy")
    assert np.array_equal(made, values), "in the dataset's order again"
    noisy = len(some_rows(ROWS))
    names = {name for learn, samples, _ in asked for name in (*learn, *samples)}
    assert len(names) == 2 * (2 * ROWS + noisy), "all new each time"
    assert not any(name in names for name in (f"s{i}" for i in range(ROWS)))
    for learn, _, shuffled in asked:
        assert learn != sorted(learn)
        # ids were s11, s10, …, s0: s9 is the last when they are sorted, and so is its new name
        assert np.argsort(learn).tolist() == np.argsort([f"s{i}" for i in reversed(range(ROWS))]).tolist()
        assert not np.array_equal(shuffled[:ROWS], values)
    assert not np.array_equal(asked[0][2], asked[1][2]), "in another order each time"
    calm, disturbed = np.load(plugin.made / "disturbed" / job.method.label / "small.npy")
    assert 0 < np.abs(calm - disturbed).max() < 0.1


def test_whoever_declares_that_names_are_needed_gets_them(tmp_path: Path) -> None:
    names: set[str] = set()

    def encode(learn: list[str], samples: list[str], values: np.ndarray) -> np.ndarray:
        names.update(learn, samples)
        return values

    make_embeddings(InProcess(tmp_path, encode), job_for(stranger(tmp_path), tmp_path, uses_ids=True))
    assert names == {f"s{i}" for i in range(ROWS)}


BAD: dict[str, tuple[Callable[..., Any], str]] = {
    "other numbers the second time": (
        lambda *_: np.random.default_rng().random((ROWS + len(some_rows(ROWS)), 4), np.float32),
        "different numbers for small with another batch size, order and sample names",
    ),
    "numbers by the place of the sample": (
        lambda learn, samples, values: np.arange(len(values) * 2, dtype=np.float32).reshape(-1, 2),
        "different numbers for small",
    ),
    "rows of other samples": (lambda learn, samples, values: values[1:], "not a table of floats"),
}


@pytest.mark.parametrize("name", BAD)
def test_embeddings_that_are_not_what_was_asked_for_are_refused(name: str, tmp_path: Path) -> None:
    encode, message = BAD[name]
    with pytest.raises(DataError, match=message):
        make_embeddings(InProcess(tmp_path, encode), job_for(stranger(tmp_path), tmp_path))


def test_a_plugin_of_main_takes_no_time_but_its_own(upstream: Upstream, tmp_path: Path) -> None:
    """However many are slow: half of the time is for what is judged."""
    method(tmp_path)
    boxes = PluginSandbox(upstream.base, tmp_path / "scratch", LIMITS, time.monotonic() + 60)
    folder = boxes.folders["neuco_methods"]["plain"] = tmp_path / "neuco_methods/plain"
    slow = boxes.plugin("neuco_methods", "plain")
    slow.left = 1
    sleep = ("-c", "import time; time.sleep(100)")
    assert boxes.run(slow, "encode", *sleep)[0].status == "timeout"
    with pytest.raises(DataError, match=r"no time is left for neuco_methods/plain; expected at most 6 s for each"):
        boxes.run(slow, "encode", *sleep)
    other = boxes.plugin("neuco_methods", "averaging")
    assert 5 < boxes.within(LIMITS, other).seconds <= 6
    assert boxes.within(LIMITS, plugin_data(at=folder)).seconds > 20
    boxes.left_for_main = 0
    with pytest.raises(DataError, match="no time is left for neuco_methods/averaging"):
        boxes.within(LIMITS, other)
    assert boxes.within(LIMITS, plugin_data(at=folder)).seconds > 20


def contributed(change_into: Path, base: Path) -> tuple[PluginSandbox, PluginData]:
    boxes = PluginSandbox(base, change_into / "scratch", LIMITS)
    return boxes, plugin_data(at=change_into / "neuco_methods/plain")


def test_an_encoder_in_its_sandbox_writes_no_result_but_its_own(upstream: Upstream, tmp_path: Path) -> None:
    with_encode(FORGED)(tmp_path)
    boxes, plugin = contributed(tmp_path, upstream.base)
    describe(boxes, plugin)
    with pytest.raises(DataError, match="the encoder wrote no embeddings"):
        make_embeddings(boxes, job_for(plugin, tmp_path))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("timeout", "encode: stopped at the limit of timeout; expected at most 120 s"),
        ("memory", "stopped at the limit of memory; expected at most 2500 MB"),
        ("processes", "stopped at the limit of processes; expected at most 64 processes"),
        ("files", "stopped at the limit of files; expected at most 20000 files and 4096 MB"),
        ("failed", "ended with code 7: left a pipe"),
    ],
)
def test_a_step_that_is_stopped_says_at_which_limit(
    status: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Ran(status, 7, "left  a pipe")
    monkeypatch.setattr(PluginSandbox, "run", lambda *args: (ran, tmp_path))
    with pytest.raises(DataError, match=message):
        PluginSandbox(tmp_path, tmp_path, LIMITS).inside(stranger(tmp_path), "encode-x", "encode")
    if status != "failed":
        assert limit(ran, LIMITS) in message


XML = '<testsuites><testsuite tests="{}" failures="{}" errors="0" skipped="{}"/></testsuites>'


@pytest.mark.parametrize(
    ("status", "counts", "message"),
    [
        ("ok", (2, 0, 1), ""),
        ("ok", (1, 0, 1), "0 passed, 0 failed, 1 skipped"),
        ("failed", (2, 1, 0), "1 passed, 1 failed, 0 skipped: E assert no"),
        ("failed", (1, 0, 0), "1 passed, 0 failed"),
        ("timeout", (1, 0, 0), "stopped at the limit of timeout"),
        ("ok", None, "no tests were collected: E assert no"),
    ],
)
def test_contributed_tests_count_only_if_they_ran_and_passed(
    status: str,
    counts: tuple[int, int, int] | None,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if counts:
        (tmp_path / "tests.xml").write_text(XML.format(*counts))
    monkeypatch.setattr(PluginSandbox, "run", lambda *args: (Ran(status, 0, "E  assert no"), tmp_path))
    plugin = stranger(tmp_path)
    (tmp_path / "test.py").touch()
    with pytest.raises(NeucoError, match=message) if message else nullcontext():
        run_tests(PluginSandbox(tmp_path, tmp_path, LIMITS), plugin)
    assert [finding.status for finding in plugin.findings] == ["ok"] * (not message)


LEAVES = "import os\nos._exit(0)\ndef test_x():\n    pass\n"


def test_contributed_tests_run_in_the_sandbox_all_of_them(upstream: Upstream, tmp_path: Path) -> None:
    method(tmp_path)
    write_file("neuco_methods/plain/test.py", TEST)(tmp_path)
    edit = "def test_no():\n    open('/tree/neuco_core/errors.py', 'a').write('x')\n"
    write_file("neuco_methods/plain/test_extra.py", edit)(tmp_path)
    boxes, plugin = contributed(tmp_path, upstream.base)
    with pytest.raises(Broken, match=r"1 passed, 1 failed.*Read-only file system"):
        run_tests(boxes, plugin)
    write_file("neuco_methods/plain/test.py", LEAVES)(tmp_path)
    again = PluginSandbox(upstream.base, tmp_path / "again", LIMITS)
    with pytest.raises(Broken, match="no tests were collected"):
        run_tests(again, plugin)
    for path in plugin.folder.glob("test*.py"):
        path.unlink()
    with pytest.raises(Broken, match=r"there is no test\.py"):
        run_tests(boxes, plugin)
    assert plugin.findings == []


def write_header(path: Path, shape: tuple[int, ...], size: int) -> Path:
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + size)  # zeros that take no room
    return path


def test_an_array_is_read_if_it_is_what_its_header_says(tmp_path: Path) -> None:
    path = write_header(tmp_path / "x.npy", (3, 5), 60)
    assert read_array(path, 3).shape == (3, 5)
    with pytest.raises(DataError, match="expected 4 rows"):
        read_array(path, 4)
    with pytest.raises(DataError, match="size does not match its header"):
        read_array(write_header(path, (3, 10**12), 60), 3)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[print]] * 3, dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not a table of floats"):
        read_array(tmp_path / "x.npy", 3)


def test_an_array_of_too_many_cells_is_not_read(tmp_path: Path) -> None:
    columns = MOST_CELLS // 3 + 1
    with pytest.raises(DataError, match="too large; expected at most 250000000 cells"):
        read_array(write_header(tmp_path / "x.npy", (3, columns), 12 * columns), 3)


def test_a_table_of_too_many_cells_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,label\na,1\n")
    assert read_table(path) == b"id,label\na,1\n"
    path.write_bytes(b"," * (MOST_TABLE_CELLS + 1))
    with pytest.raises(DataError, match="too large; expected at most 20000000 cells"):
        read_table(path)


@pytest.mark.parametrize(
    ("ids", "shape", "size", "message"),
    [
        (["a", "b"], (2, 1, 1, 4, 4), 128, ""),
        (["a", "a"], (2, 1, 1, 4, 4), 128, "not unique"),
        (["a", ""], (2, 1, 1, 4, 4), 128, "non-empty strings"),
        ([["a"], "b"], (2, 1, 1, 4, 4), 128, "non-empty strings"),
        ("ab", (2, 1, 1, 4, 4), 128, "must be a list"),
        ([], (0, 1, 1, 4, 4), 0, "none"),
        (["x" * LARGEST_IDS], (1, 1, 1, 4, 4), 64, "too large"),
        (["a", "b"], (3, 1, 1, 4, 4), 192, "not an array of cubes"),
        (["a", "b"], (2, 1, 16), 128, "not an array of cubes"),
        (["a", "b"], (2, 1, 1, 4, 10**12), 128, "does not match its header"),
    ],
)
def test_cubes_are_checked_before_anybody_reads_them(
    ids: Any, shape: tuple[int, ...], size: int, message: str, tmp_path: Path
) -> None:
    text = json.dumps({"ids": ids, "bands": ["grey/0"], "seasons": ["scene"], "version": "1"})
    (tmp_path / "cubes.json").write_text(text)
    write_header(tmp_path / "cubes.npy", shape, size)
    np.save(tmp_path / "plain.npy", np.zeros((shape[0], 3), np.float32))
    if not message:
        check_cubes(tmp_path)
        np.save(tmp_path / "plain.npy", np.zeros((shape[0] + 1, 3), np.float32))
        message = "not a table of floats"
    with pytest.raises(DataError, match=message):
        check_cubes(tmp_path)


QUICK = ("olinda", "averaging")  # all run their own tests outside of a sandbox anyway
# Checks that compare nothing there: two controls have no baseline; a sandbox has no other task of the same dataset.
SKIPS = {"mini": 2, "digits_even": 1, "position": 5}
FOLDERS = [path.parent for tree in TREES for path in sorted((ROOT / tree).glob("*/__init__.py"))]
PLUGINS = [
    pytest.param(
        folder, id=f"{folder.parent.name}-{folder.name}", marks=[] if folder.name in QUICK else [pytest.mark.slow]
    )
    for folder in FOLDERS
]


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> PluginSandbox:
    need_bubblewrap()
    return PluginSandbox(ROOT, tmp_path_factory.mktemp("scratch"), Limits())


@pytest.mark.parametrize("folder", PLUGINS)
def test_its_tests_pass_in_the_sandbox(folder: Path, boxes: PluginSandbox) -> None:
    plugin = boxes.plugin(folder.parent.name, folder.name, "changed")
    try:
        run_tests(boxes, plugin)
    except DataError as error:
        missing("package index", f"the environment of {folder.name}", str(error))
    (finding,) = plugin.findings
    assert finding.status == "ok", finding.detail
    if not finding.detail.endswith(f" {SKIPS.get(folder.name, 0)} skipped"):
        missing(folder.name, "a package that its tests need", finding.detail)
