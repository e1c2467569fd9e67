"""What runs inside the sandbox: only here is a plugin imported, and only data comes out.

    python -m ci.inside OUT describe PACKAGE NAME
    python -m ci.inside OUT labels PACKAGE NAME
    python -m ci.inside OUT cubes PACKAGE NAME
    python -m ci.inside OUT encode NAME METHOD DATASET BATCH

Results are files in the folder OUT; what is printed is ignored.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neuco_core.errors import PluginError
from neuco_core.plugins.discovery import BrokenPlugin
from neuco_core.plugins.loading import Plugin, Plugins
from neuco_core.specs import Dataset, Method, Task, to_json


def plugin(package: str, name: str) -> Plugin:
    """Import one plugin of a tree; a broken one is an error that says where and why."""
    plugins = Plugins((package,), (), importlib.metadata.EntryPoints(()))
    candidate = next((item for item in plugins.candidates if item.name == name), None)
    if candidate is None:
        raise PluginError(f"no plugin {name!r} in {package}")
    loaded = plugins.load(candidate)
    if isinstance(loaded, BrokenPlugin):
        raise PluginError(loaded.error, where=_inside_tree(loaded.file or loaded.source))
    return loaded


def _inside_tree(place: str) -> str:
    for part in ("neuco_tasks/", "neuco_methods/"):
        if part in place:
            return place[place.rindex(part) :]
    return place


def describe(out: Path, package: str, name: str) -> None:
    """Write what the plugin registers, as JSON; of functions only that they are there, and a hash of their code."""
    from neuco_core.records.fingerprint import method_part, task_code

    rows = []
    for noun, spec in plugin(package, name).specs:
        row: dict[str, Any] = {"noun": noun, "spec": to_json(spec)}
        if isinstance(spec, Method):
            row["part"] = method_part(spec)
        if isinstance(spec, Task):
            row["loader_code"] = task_code(spec)
        rows.append(row)
    write_json(out / "describe.json", rows)


def labels(out: Path, package: str, name: str) -> None:
    """Write the labels of tasks that have a loader of their own, in the loader's order."""
    for _, spec in plugin(package, name).specs:
        if isinstance(spec, Task) and spec.loader is not None:
            made = spec.labels()
            columns = [f"column{i}" for i in range(len(made.columns))]
            table = made.frame().set_axis([*columns, *(["group"] if made.groups is not None else [])], axis=1)
            table.to_csv(out / f"{spec.id}.csv", lineterminator="\n")


def cubes(out: Path, package: str, name: str) -> None:
    """Write the cubes of the plugin's datasets."""
    for _, spec in plugin(package, name).specs:
        if isinstance(spec, Dataset) and spec.cubes is not None:
            export_cubes(spec.cubes(), out, spec.id)


def export_cubes(source: Any, out: Path, name: str) -> None:
    """Cubes as one array and a description, written part by part."""
    import numpy as np

    ids = tuple(source.ids())
    shape = source.read(ids[:1]).values.shape[1:]
    array = np.lib.format.open_memmap(out / f"{name}.npy", mode="w+", dtype=np.float32, shape=(len(ids), *shape))
    for start in range(0, len(ids), 64):
        array[start : start + 64] = source.read(ids[start : start + 64]).values
    array.flush()
    words = {"ids": ids, "bands": source.bands, "seasons": source.seasons, "version": source.version}
    write_json(out / f"{name}.json", words)


def encode(out: Path, name: str, method_id: str, dataset: str, batch: str) -> None:
    """Run one encoder on exported cubes: no labels are in this process, nor anywhere that it can reach."""
    import numpy as np

    from ci.overlay import FileCubes
    from neuco_core.encode.run import encode_dataset

    (method,) = [s for _, s in plugin("neuco_methods", name).specs if isinstance(s, Method) and s.id == method_id]
    source = FileCubes(Path("/cubes") if Path("/cubes").is_dir() else out.parent / "cubes", dataset)
    spec = Dataset(id=dataset, bands=source.bands, seasons=source.seasons, cubes=lambda: source)
    embeddings = encode_dataset(method, spec, {}, batch_size=int(batch), progress=False, cached=False)
    np.save(out / f"{dataset}.npy", embeddings.values, allow_pickle=False)
    write_json(out / f"{dataset}.json", {"ids": embeddings.ids})


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, allow_nan=False, sort_keys=True) + "\n", encoding="utf-8")


COMMANDS: dict[str, Callable[..., None]] = {"describe": describe, "labels": labels, "cubes": cubes, "encode": encode}


def main(arguments: list[str]) -> int:
    """Run a command; an error ends up in ``error.json``, for the report."""
    out, command, *rest = arguments
    try:
        COMMANDS[command](Path(out), *rest)
    except BaseException as error:
        text = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
        write_json(Path(out) / "error.json", {"error": " ".join(text.split())[:2000]})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
