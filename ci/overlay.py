"""Plugins turned into data. What a stranger's plugin declared is checked and written down as JSON, beside its
labels, cubes and embeddings; the plugin that the scorer then imports is ours and only reads these files. So labels
and embeddings meet in a process that has imported none of the stranger's code.
"""

from __future__ import annotations

import importlib.machinery
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuco_core.errors import DataError, NeucoError
from neuco_core.specs import Baseline, Dataset, Method, Remote, Task

if TYPE_CHECKING:
    from neuco_core.cubes.cubes import CubeBatch

LARGEST = 5_000_000
DESCRIPTION = "_describe.json"
NOUNS = ("dataset", "task", "method")
STUB = '''"""Written by continuous integration: what this plugin declared, and none of its code."""

from ci.overlay import datasets, methods, tasks
from neuco_core import hookimpl


@hookimpl
def neuco_datasets():
    yield from datasets(__file__)


@hookimpl
def neuco_tasks():
    yield from tasks(__file__)


@hookimpl
def neuco_methods():
    yield from methods(__file__)
'''


class FileCubes:
    """A CubeSource over exported cubes."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.npy"
        words = read_json(folder / f"{name}.json")
        self._ids: tuple[str, ...] = tuple(words["ids"])
        self.bands: tuple[str, ...] = tuple(words["bands"])
        self.seasons: tuple[str, ...] = tuple(words["seasons"])
        self.version: str = words["version"]

    def ids(self) -> tuple[str, ...]:
        return self._ids

    def read(self, ids: Sequence[str]) -> CubeBatch:
        import numpy as np

        from neuco_core.cubes.cubes import CubeBatch

        array = np.load(self._path, mmap_mode="r", allow_pickle=False)
        place = {name: row for row, name in enumerate(self._ids)}
        values = np.stack([array[place[name]] for name in ids])
        return CubeBatch(tuple(ids), values, self.bands, self.seasons)


def read_json(path: Path) -> Any:
    """JSON that came out of a sandbox."""
    try:
        if path.stat().st_size > LARGEST:
            raise DataError("the file is too large", where=path.name, expected=f"at most {LARGEST} bytes")
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"cannot be read: {error}", where=path.name) from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def rebuild(noun: str, fields: Mapping[str, Any]) -> Dataset | Task | Method:
    """A spec from its JSON, checked as if it were new. Functions are lost, and are not needed."""
    try:
        plain = {key: value for key, value in fields.items() if key not in ("origin", "cubes", "encoder", "loader")}
        if noun == "task":
            plain["source"] = Remote(**plain["source"])
            plain["baseline"] = Baseline(**plain["baseline"]) if plain["baseline"] else None
            return Task(**plain)
        if noun == "method":
            plain["files"] = {key: Remote(**value) for key, value in plain["files"].items()}
            return Method(**plain, encoder=None if plain["files"] else _no_encoder)
        return Dataset(**plain)
    except NeucoError:
        raise
    except Exception as error:
        raise DataError(f"not a {noun}: {error}") from error


def _no_encoder(**params: object) -> None:
    raise DataError("this method has no embeddings")


def datasets(file: str) -> Iterator[Dataset]:
    folder = Path(file).parent
    for row in _rows(folder, "dataset"):
        spec = rebuild("dataset", row["spec"])
        cubes = None if row["spec"]["cubes"] is None else _opener(folder, spec.id)
        yield Dataset(**{**vars(spec), "cubes": cubes})


def _opener(folder: Path, name: str) -> Any:
    return lambda: FileCubes(folder, name)


def tasks(file: str) -> Iterator[Task]:
    for row in _rows(Path(file).parent, "task"):
        yield rebuild("task", row["spec"])  # type: ignore[misc]


def methods(file: str) -> Iterator[Method]:
    for row in _rows(Path(file).parent, "method"):
        yield rebuild("method", row["spec"])  # type: ignore[misc]


def _rows(folder: Path, noun: str) -> list[dict[str, Any]]:
    return [row for row in read_json(folder / DESCRIPTION) if row["noun"] == noun]


def own_sources(tree: str, plugin: str, row: Mapping[str, Any]) -> Iterator[Remote]:
    """The files that a plugin declares. Each must be on the network or in the plugin's own folder.

    ``pkg://`` imports the package that it names: any other, even one below the plugin, would be code that runs here.
    """
    spec = rebuild(row["noun"], row["spec"])
    remotes = [spec.source] if isinstance(spec, Task) else list(spec.files.values()) if isinstance(spec, Method) else []
    for remote in remotes:
        for url in remote.urls:
            if not url.startswith(("https://", "hf://", "s3://", f"pkg://{tree}.{plugin}/")):
                wanted = f"https://, hf://, s3:// or pkg://{tree}.{plugin}/"
                raise DataError(f"{spec.id} uses a file from elsewhere", expected=wanted, got=url)
        yield remote


def write_stub(folder: Path, plugin: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """The plugin as data: its declarations, its files other than code, and for the file checks its card and test."""
    folder.mkdir(parents=True)
    code = tuple(importlib.machinery.all_suffixes())
    for path in sorted(plugin.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.name.startswith("__init__."):
            continue
        if path.name.endswith(code) and path != plugin / "test.py":
            continue
        target = folder / path.relative_to(plugin)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    # Written last, so that nothing of the plugin's takes their place.
    (folder / "__init__.py").write_text(STUB, encoding="utf-8")
    (folder / DESCRIPTION).write_text(json.dumps(list(rows), sort_keys=True), encoding="utf-8")
