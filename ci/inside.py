"""What runs inside the sandbox: only here is a plugin imported, and only data comes out.

    python -m ci.inside OUT describe PACKAGE NAME
    python -m ci.inside OUT labels PACKAGE NAME
    python -m ci.inside OUT cubes PACKAGE NAME DATASET [ROOT]
    python -m ci.inside OUT encode NAME METHOD DATASET BATCH CUBES SAMPLES
    python -m ci.inside OUT warm

Results are files in the folder OUT; what is printed is ignored.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import resource
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from neuco_core.errors import NeucoError, PluginError
from neuco_core.plugins.discovery import BrokenPlugin
from neuco_core.plugins.loading import Plugin, Plugins
from neuco_core.specs import Dataset, Method, Task, to_json
from neuco_core.text import one_line

BATCHES = (64, 5)  # an encoder must give the same for both


def plugin(package: str, name: str) -> Plugin:
    """Import one plugin of a tree; a broken one is an error that says where and why."""
    plugins = Plugins((package,), (), importlib.metadata.EntryPoints(()))
    candidate = next((item for item in plugins.candidates if item.name == name), None)
    if candidate is None:
        raise PluginError(f"no plugin {name!r} in {package}")
    loaded = plugins.load(candidate)
    if isinstance(loaded, BrokenPlugin):
        _, tree, inside = (loaded.file or loaded.source).rpartition(f"{package}/")
        raise PluginError(loaded.error, where=tree + inside)
    return loaded


def describe(out: Path, package: str, name: str) -> None:
    """Write what the plugin registers, as JSON; of its functions the key of their code, of its cubes what they are.

    And which modules its import loads.
    """
    before = set(sys.modules)
    specs = plugin(package, name).specs
    write_json(out / "imports.json", sorted(set(sys.modules) - before))

    from neuco_core.records.fingerprint import own_code  # only now: it loads what the plugin may not

    rows = []
    for noun, spec in specs:
        row: dict[str, Any] = {"noun": noun, "spec": to_json(spec)}
        if isinstance(spec, Method | Task):
            row["code"] = own_code(spec)
        elif isinstance(spec, Dataset) and spec.cubes is not None:
            row["code"] = own_code(spec)
            try:
                source = spec.cubes()
                row["cubes"] = {key: getattr(source, key) for key in ("version", "bands", "seasons")}
            except NeucoError as error:  # they cannot be opened here, which is no fault of the plugin
                row["cubes"] = {"error": str(error)}
        rows.append(row)
    write_json(out / "describe.json", rows)


def labels(out: Path, package: str, name: str) -> None:
    """Write the labels of tasks that have a loader of their own, in the loader's order."""
    for _, spec in plugin(package, name).specs:
        if isinstance(spec, Task) and spec.loader is not None:
            extra = [column for column in (spec.group_column, spec.split_column) if column]
            table = spec.labels().frame().set_axis([*spec.columns, *extra], axis=1)
            table.to_csv(out / f"{spec.label}.csv", index_label="id", lineterminator="\n")


def cubes(out: Path, package: str, name: str, dataset: str, root: str = "") -> None:
    """Write the cubes of one dataset as one array and a description, part by part; ``root`` is its local copy."""
    import numpy as np

    from neuco_core.contract.repeatability import plain_statistics
    from neuco_core.fetch.links import variable

    if root:
        os.environ[variable(dataset)] = root
    (spec,) = [s for _, s in plugin(package, name).specs if isinstance(s, Dataset) and s.id == dataset]
    if spec.cubes is None:
        raise PluginError(f"dataset {dataset!r} has no cubes")
    source = spec.cubes()
    ids = tuple(source.ids())
    shape = (len(ids), *source.read(ids[:1]).values.shape[1:])
    # One that is too large for the sandbox is no fault of anybody's: say so before half of it is written.
    size = math.prod(shape) * np.dtype(np.float32).itemsize
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    room = min(shutil.disk_usage(out).free, limit if limit != resource.RLIM_INFINITY else size)
    if size > room:
        got = f"{size / 1e9:.1f} GB"
        raise PluginError("its cubes do not fit into the sandbox", expected=f"at most {room / 1e9:.1f} GB", got=got)
    array = np.lib.format.open_memmap(out / "cubes.npy", mode="w+", dtype=np.float32, shape=shape)
    for start in range(0, len(ids), 64):
        array[start : start + 64] = source.read(ids[start : start + 64]).values
    array.flush()
    np.save(out / "plain.npy", plain_statistics(source), allow_pickle=False)
    described = {"ids": ids, "bands": source.bands, "seasons": source.seasons, "version": source.version}
    write_json(out / "cubes.json", described)


def encode(out: Path, name: str, method_id: str, dataset: str, batch: str, cubes: str, samples: str) -> None:
    """Run one encoder: it learns from ``cubes`` and encodes ``samples``, which are the same under other names.

    No labels are in this process, nor anywhere that it can reach.
    """
    import msgspec
    import numpy as np

    from ci.stub_tree import FileCubes
    from neuco_core.contract.probing import probe
    from neuco_core.cubes.cubes import select
    from neuco_core.encode.run import EncodeOptions, encode_dataset

    (method,) = [s for _, s in plugin("neuco_methods", name).specs if isinstance(s, Method) and s.label == method_id]
    source = FileCubes(Path(samples))
    spec = Dataset(id=dataset, bands=source.bands, seasons=source.seasons, cubes=lambda: source)
    options = EncodeOptions(batch_size=int(batch), threads=1, cached=False, progress=False)
    embeddings = encode_dataset(method, spec, {}, options, learn=FileCubes(Path(cubes)))
    np.save(out / "embeddings.npy", embeddings.values, allow_pickle=False)
    if int(batch) == BATCHES[0]:  # once is enough for what only warns
        with suppress(Exception):
            learned = select(FileCubes(Path(cubes)), method.bands, method.seasons)
            write_json(out / "probes.json", msgspec.to_builtins(probe(method, learned, dataset)))


def warm(out: Path) -> None:
    """Compile the kernels, and keep what was compiled. No plugin is here."""
    from neuco_core.scoring.warm import compile_all

    compile_all()
    compiled = Path(os.environ["NUMBA_CACHE_DIR"])
    if compiled.is_dir():
        shutil.copytree(compiled, out, dirs_exist_ok=True)


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, allow_nan=False, sort_keys=True) + "\n", encoding="utf-8")


COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__: command for command in (describe, labels, cubes, encode, warm)
}


def main(arguments: list[str]) -> int:
    """Run a command; an error ends up in ``error.json``, for the report."""
    out, command, *rest = arguments
    try:
        COMMANDS[command](Path(out), *rest)
    except BaseException as error:
        text = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
        write_json(Path(out) / "error.json", {"error": one_line(text)})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
