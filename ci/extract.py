"""From untrusted plugins to data: whatever imports a plugin runs inside a sandbox of its own."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci import contributed
from ci.boxes import COPY, Boxes, PluginData
from ci.collect import array_header, read_array, read_table
from ci.sandbox import TREE
from ci.stub import LARGEST_IDS, NOUNS, own_sources, place_of, read_json, read_rows, spec_of
from neuco_core.errors import DataError, NeucoError
from neuco_core.plugins.discovery import inside
from neuco_core.specs import Dataset, Method, Task

MOST_IDS = 1_000_000  # samples of one dataset
MOST_SPECS = 200  # of one plugin in a pull request


def describe(boxes: Boxes, plugin: PluginData) -> None:
    """Ask a plugin what it registers. The answer is checked: it may speak only for itself."""
    own = plugin.touched
    try:
        out = boxes.inside(plugin, "describe", "describe", own.tree, own.name)
        rows = read_rows(out / "describe.json")
        _check_all(plugin, rows)
    except Exception as error:  # what comes out of a sandbox may be broken in any way
        plugin.problem = _words(error)
        cure = "Repair the plugin; `neuco check` shows the same on your machine"
        plugin.say("import", "failed", plugin.problem, cure)
        return
    plugin.rows = rows
    names = ", ".join(f"{row['noun']} {row['spec']['id']}" for row in rows)
    if rows:
        plugin.say("import", "ok", f"registers {names}")
    else:
        plugin.say("import", "failed", "it registers nothing", "Yield at least one task or method from its hook")


def _check_all(plugin: PluginData, rows: Sequence[Mapping[str, Any]]) -> None:
    if len(rows) > MOST_SPECS:
        raise DataError("it registers too much", expected=f"at most {MOST_SPECS} specs", got=len(rows))
    for row in rows:
        _check(plugin, row)


def _check(plugin: PluginData, row: Mapping[str, Any]) -> None:
    own = plugin.touched
    if row["noun"] not in NOUNS:
        text = f"the plugin registers a {row['noun']}, which is code that takes part in scoring"
        raise DataError(text, hint="Propose it as a change to neuco_core, for a maintainer to review")
    spec = spec_of(row)
    if not inside(spec.id, own.name):
        raise DataError(f"{spec.id!r} is outside the plugin {own.name!r}")
    list(own_sources(own.tree, own.name, spec))


def fetch_sources(plugin: PluginData, specs: Iterable[Task | Method | Dataset]) -> None:
    """Fetch what specs of a plugin declare, outside the sandbox: here is a network, and the sha256 is checked."""
    from neuco_core.fetch.fetch import fetch
    from neuco_core.fetch.pins import find_pin

    for spec in specs:
        for remote in own_sources(plugin.touched.tree, plugin.touched.name, spec):
            pin = find_pin(remote)
            if pin is not None and pin.sha256 and not remote.url.startswith("pkg://"):
                plugin.fetched[pin.sha256] = fetch(remote)


def make_labels(boxes: Boxes, plugin: PluginData) -> None:
    """Labels that the plugin's loaders make: twice, and both must be equal."""
    loaded = [place_of(task) for task in plugin.tasks if task.loader]
    if not loaded or (plugin.made / "labels").is_dir():
        return
    first, second = (
        boxes.inside(plugin, f"labels{i}", "labels", plugin.touched.tree, plugin.touched.name) for i in (1, 2)
    )
    for name in loaded:
        labels = read_table(first / f"{name}.csv")
        if labels != read_table(second / f"{name}.csv"):
            raise DataError(f"the loader of {name} gives different labels the second time")
        path = plugin.made / "labels" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(labels)


def run_tests(boxes: Boxes, plugin: PluginData) -> None:
    """The plugin's own tests."""
    if not (plugin.folder / "test.py").is_file():
        plugin.say("tests", "failed", "there is no test.py", "Write one; `neuco new` does")
        return
    files = [f"{TREE}/{plugin.touched.folder}/{name}" for name in contributed.test_files(plugin.folder)]
    ran, out = boxes.run(plugin, "tests", *contributed.arguments(files))
    plugin.say("tests", *contributed.judge(ran, out))


def make_cubes(boxes: Boxes, plugin: PluginData, dataset: Dataset) -> Path:
    """Have a dataset's plugin write its cubes; gives the folder."""
    from neuco_core.fetch.links import dataset_root

    folder = plugin.made / "cubes" / dataset.id
    if not (folder / "cubes.npy").is_file():
        fetch_sources(plugin, [dataset])
        root = dataset_root(dataset.id)
        own = (plugin.touched.tree, plugin.touched.name, dataset.id)
        step = f"cubes-{dataset.id}"
        if root is None:
            out = boxes.inside(plugin, step, "cubes", *own)
        else:
            out = boxes.inside(plugin, step, "cubes", *own, COPY, **{COPY[1:]: root})
        check_cubes(out)
        folder.mkdir(parents=True, exist_ok=True)
        named = folder / "cubes.json"  # by stored embeddings, whose rows are in that order
        if named.is_file() and read_json(named, LARGEST_IDS)["ids"] != read_json(out / named.name, LARGEST_IDS)["ids"]:
            raise DataError(f"{dataset.id} has other samples than its stored embeddings")
        for name in ("cubes.json", "cubes.npy", "plain.npy"):
            shutil.move(out / name, folder / name)
    return folder


def check_cubes(folder: Path) -> None:
    """Exported cubes must be what everybody who reads them expects; the array itself is not read for that."""
    import numpy as np

    words = read_json(folder / "cubes.json", LARGEST_IDS)
    for name in ("ids", "bands", "seasons"):
        values = words.get(name) if isinstance(words, dict) else None
        if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
            raise DataError(f"{name} of cubes must be a list of non-empty strings", where="cubes.json")
        if not 0 < len(values) <= MOST_IDS or len(set(values)) < len(values):
            expected = f"1 to {MOST_IDS} different ones"
            raise DataError(f"{name} of cubes are too many, none or not unique", where="cubes.json", expected=expected)
    shape, dtype, size = array_header(folder / "cubes.npy")
    wanted = tuple(len(words[name]) for name in ("ids", "seasons", "bands"))
    if dtype != np.float32 or len(shape) != 5 or shape[:3] != wanted:
        expected = f"float32, {len(wanted) + 2} dimensions that begin with {wanted}"
        raise DataError("not an array of cubes", where="cubes.npy", expected=expected, got=f"{dtype} {shape}")
    if math.prod(shape) * dtype.itemsize != size:
        what = "the file's size does not match its header"
        raise DataError(what, where="cubes.npy", expected=shape, got=f"{size} bytes")
    read_array(folder / "plain.npy", shape[0])


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, NeucoError) else f"{type(error).__name__}: {error}"
