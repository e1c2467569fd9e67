"""From untrusted plugins to data: labels, cubes, embeddings and the results of tests, each from a sandbox of its own.

An encoder learns from the dataset in its order, under names that keep that order, because what it learns may depend on
it. It then encodes the same samples shuffled, under names that say nothing: what it knows of names and places is of no
use. Names, shuffling and noise are made outside, where no contributed code can look.

Arrays and tables from a sandbox are measured before they are read or parsed. Contributed tests share their process with
pytest, so they can write the file of results themselves: they help the contributor and the reviewer, and no score
depends on them.
"""

from __future__ import annotations

import math
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ci.inside import BATCHES, write_json
from ci.plugin_sandbox import COPY, CUBES, SAMPLES, PluginData, PluginSandbox
from ci.sandbox import OUT, TREE
from ci.stub_tree import LARGEST_IDS, read_json
from neuco_core.contract.checks.plugin import declared_sources, outcome_of_tests, pytest_command, read_report
from neuco_core.contract.probing import Probes
from neuco_core.contract.repeatability import disagreement, some_rows, with_noise
from neuco_core.encode.requirements import check_bands
from neuco_core.errors import DataError, UnpinnedError
from neuco_core.fetch.fetch import fetch, find_pin
from neuco_core.fetch.links import dataset_root
from neuco_core.specs import Dataset, Method, Task

MOST_IDS = 1_000_000  # samples of one dataset
LARGEST_TABLE = 200_000_000  # bytes
MOST_CELLS = 250_000_000  # of one array: 2 GB as doubles
MOST_TABLE_CELLS = 20_000_000  # parsed, each takes up to a hundred bytes


def fetch_sources(plugin: PluginData, specs: Iterable[Task | Method | Dataset]) -> None:
    """Fetch what specs of a plugin declare, outside the sandbox: here is a network, and the sha256 is checked."""
    for spec in specs:
        for remote in declared_sources(plugin.touched.tree, plugin.touched.name, spec):
            pin = find_pin(remote)
            if pin is not None and pin.sha256 and not remote.url.startswith("pkg://"):
                plugin.fetched[pin.sha256] = fetch(remote)


def make_labels(boxes: PluginSandbox, plugin: PluginData) -> None:
    """Labels that the plugin's loaders make, twice; both must be equal."""
    loaded = [task.label for task in plugin.tasks if task.loader]
    if not loaded or (plugin.made / "labels").is_dir():
        return
    ask = ("labels", plugin.touched.tree, plugin.touched.name)
    first, second = (boxes.inside(plugin, step, *ask) for step in ("labels1", "labels2"))
    for name in loaded:
        labels = read_table(first / f"{name}.csv")
        if labels != read_table(second / f"{name}.csv"):
            raise DataError(f"the loader of {name} gives different labels the second time")
        path = plugin.made / "labels" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(labels)


def make_cubes(boxes: PluginSandbox, plugin: PluginData, dataset: Dataset) -> Path:
    """Have a dataset's plugin write its cubes; gives the folder."""
    folder = plugin.made / "cubes" / dataset.id
    if not (folder / "cubes.npy").is_file():
        fetch_sources(plugin, [dataset])
        root = dataset_root(dataset.id)
        ask = ("cubes", plugin.touched.tree, plugin.touched.name, dataset.id)
        read = {} if root is None else {COPY[1:]: root}
        out = boxes.inside(plugin, f"cubes-{dataset.id}", *ask, *([COPY] if read else []), **read)
        check_cubes(out)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("cubes.json", "cubes.npy", "plain.npy"):
            shutil.move(out / name, folder / name)
    return folder


def check_cubes(folder: Path) -> None:
    """Exported cubes must be what everybody who reads them expects; the array itself is not read for that."""
    described = read_json(folder / "cubes.json", LARGEST_IDS)
    for name in ("ids", "bands", "seasons"):
        values = described.get(name) if isinstance(described, dict) else None
        if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
            raise DataError(f"{name} of cubes must be a list of non-empty strings", where="cubes.json")
        if not 0 < len(values) <= MOST_IDS or len(set(values)) < len(values):
            expected = f"1 to {MOST_IDS} different ones"
            raise DataError(f"{name} of cubes are too many, none or not unique", where="cubes.json", expected=expected)
    shape, dtype, size = array_header(folder / "cubes.npy")
    wanted = tuple(len(described[name]) for name in ("ids", "seasons", "bands"))
    if dtype != np.float32 or len(shape) != 5 or shape[:3] != wanted:
        expected = f"float32, {len(wanted) + 2} dimensions that begin with {wanted}"
        raise DataError("not an array of cubes", where="cubes.npy", expected=expected, got=f"{dtype} {shape}")
    if math.prod(shape) * dtype.itemsize != size:
        what = "the file's size does not match its header"
        raise DataError(what, where="cubes.npy", expected=shape, got=f"{size} bytes")
    read_array(folder / "plain.npy", shape[0])


def array_header(path: Path) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape and type of an array, and how many bytes follow its header; the array is not read."""
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            if version != (1, 0):
                raise DataError("unsupported npy version", where=path.name, expected="1.0", got=version)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file, max_header_size=4096)
            size = path.stat().st_size - file.tell()
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"not an array: {error}", where=path.name) from error
    return shape, dtype, size


def read_array(path: Path, rows: int) -> np.ndarray:
    """A table of floats with that many rows; its header must match the size of the file before it is read."""
    shape, dtype, size = array_header(path)
    if dtype not in (np.float32, np.float64) or len(shape) != 2 or shape[0] != rows or min(shape) < 1:
        raise DataError("not a table of floats", where=path.name, expected=f"{rows} rows", got=f"{dtype} {shape}")
    if dtype.itemsize * shape[0] * shape[1] != size:
        raise DataError(
            "the file's size does not match its header", where=path.name, expected=shape, got=f"{size} bytes"
        )
    if shape[0] * shape[1] > MOST_CELLS:
        raise DataError("the array is too large", where=path.name, expected=f"at most {MOST_CELLS} cells", got=shape)
    return np.asarray(np.load(path, allow_pickle=False))


def read_table(path: Path) -> bytes:
    """The bytes of a CSV."""
    if not path.is_file():
        raise DataError("the loader wrote no labels", where=path.name)
    if path.stat().st_size > LARGEST_TABLE:
        raise DataError("the file is too large", where=path.name, expected=f"at most {LARGEST_TABLE} bytes")
    table = path.read_bytes()
    cells = table.count(b",") + table.count(b"\n") + table.count(b"\r")
    if cells > MOST_TABLE_CELLS:
        expected = f"at most {MOST_TABLE_CELLS} cells"
        raise DataError("the table is too large", where=path.name, expected=expected, got=cells)
    return table


@dataclass(frozen=True)
class EncodingJob:
    """An encoder and the cubes that it is run on."""

    owner: PluginData
    method: Method
    dataset: Dataset
    cubes: Path

    def keep(self, kind: str, values: np.ndarray) -> None:
        path = self.owner.result(kind, self.method, self.dataset)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, values, allow_pickle=False)


def make_embeddings(boxes: PluginSandbox, job: EncodingJob) -> None:
    """Run an encoder on one dataset twice, in batches of two sizes; both must agree.

    A method on main is run as one of a pull request is: what it could tell the two by, it could behave by.
    """
    check_bands(job.method, job.dataset.id, job.dataset.bands)
    for name, remote in job.method.weights.items():
        if find_pin(remote) is None:
            what = f"the weights {name!r} of {job.method.id} are not pinned"
            hint = f"A maintainer must fetch and verify them once: `neuco data pin --method {job.method.id}`"
            raise UnpinnedError(what, where=remote.url, hint=hint)
    fetch_sources(job.owner, [job.method])
    first, _ = _encode(boxes, job, BATCHES[0])
    again, noisy = _encode(boxes, job, BATCHES[1])
    if problem := disagreement(first, again, job.method.tolerance):
        what = f"different numbers for {job.dataset.id} with another batch size, order and sample names"
        raise DataError(what, **problem)
    job.keep("embeddings", first)
    calm = first[some_rows(len(first))]
    job.keep("disturbed", np.stack([calm, noisy if len(noisy) else calm]))


def _encode(boxes: PluginSandbox, job: EncodingJob, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """One run: embeddings of all samples in their order, and of some with a little noise."""
    about = read_json(job.cubes / "cubes.json", LARGEST_IDS)
    ids, uses_ids = about["ids"], job.method.uses_ids
    noisy = np.array([], dtype=int) if uses_ids else some_rows(len(ids))
    rows = np.concatenate([np.arange(len(ids)), noisy])
    order = np.arange(len(ids)) if uses_ids else np.random.default_rng(secrets.randbits(128)).permutation(len(rows))
    # The name of the folder can be read inside, and says nothing.
    with tempfile.TemporaryDirectory(dir=boxes.scratch) as name:
        learn, samples = Path(name) / "learn", Path(name) / "samples"
        for folder, names in ((learn, sorted_names(ids)), (samples, new_names(len(rows)))):
            folder.mkdir()
            write_json(folder / "cubes.json", {**about, "ids": ids if uses_ids else names})
        os.link(job.cubes / "cubes.npy", learn / "cubes.npy")
        cubes = np.load(job.cubes / "cubes.npy", mmap_mode="r", allow_pickle=False)
        shape = (len(rows), *cubes.shape[1:])
        shuffled = np.lib.format.open_memmap(samples / "cubes.npy", mode="w+", dtype=np.float32, shape=shape)
        for target, source in enumerate(order):
            cube = cubes[rows[source]]
            shuffled[target] = with_noise(cube) if source >= len(ids) else cube
        shuffled.flush()
        step = f"encode-{job.method.label}-{job.dataset.id}-{batch}"
        arguments = (job.owner.touched.name, job.method.label, job.dataset.id, str(batch), CUBES, SAMPLES)
        out = boxes.inside(job.owner, step, "encode", *arguments, **{CUBES[1:]: learn, SAMPLES[1:]: samples})
    if not (out / "embeddings.npy").is_file():
        raise DataError("the encoder wrote no embeddings", where=job.dataset.id)
    with suppress(DataError, msgspec.ValidationError):  # what is not there, or damaged, warns of nothing
        probes = msgspec.convert(read_json(out / "probes.json"), Probes)
        path = job.owner.result("probes", job.method, job.dataset).with_suffix(".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, msgspec.to_builtins(probes))
    values = read_array(out / "embeddings.npy", len(rows))[np.argsort(order)]
    return values[: len(ids)], values[len(ids) :]


def applies(method: Method, dataset: Dataset) -> bool:
    """Whether an encoder can be run on a dataset: it has the bands."""
    try:
        check_bands(method, dataset.id, dataset.bands)
    except DataError:
        return False
    return True


def new_names(count: int) -> list[str]:
    """Names that say nothing."""
    return [secrets.token_hex(16) for _ in range(count)]


def sorted_names(ids: Sequence[str]) -> list[str]:
    """Names that say nothing but their order when sorted, by which an encoder may learn."""
    renamed = dict(zip(sorted(ids), sorted(new_names(len(ids))), strict=True))
    return [renamed[name] for name in ids]


def run_tests(boxes: PluginSandbox, plugin: PluginData) -> None:
    """All tests of a plugin, also those beside ``test.py``; raises if one fails or none passes."""
    command = pytest_command(plugin.folder, f"{TREE}/{plugin.touched.folder}", f"{OUT}/tests.xml")
    ran, out = boxes.run(plugin, "tests", *command)
    if ran.status not in ("ok", "failed"):
        raise DataError(f"stopped at the limit of {ran.status}", hint="Make the tests smaller")
    plugin.say("tests", "ok", outcome_of_tests(read_report(out / "tests.xml"), ran.output, ok=ran.ok))
