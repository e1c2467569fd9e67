"""Plugins as data. What a stranger's plugin declared is checked and written down as JSON, beside what its code made:
labels, ids of samples, embeddings. The plugin that is imported in its place is ours and only reads these files. So
labels and embeddings meet in a process that has imported no contributed code.
"""

from __future__ import annotations

import importlib.machinery
import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from neuco_core.errors import DataError, NeucoError
from neuco_core.plugins.code_key import StandIn
from neuco_core.specs import Baseline, Dataset, Method, Remote, Task, versioned_id

if TYPE_CHECKING:
    import numpy as np

    from neuco_core.cubes.cubes import CubeBatch

LARGEST = 5_000_000
LARGEST_IDS = 20_000_000
DESCRIPTION = "_describe.json"
MADE = "_made"  # labels/TASK.csv, cubes/DATASET/cubes.json, embeddings/METHOD/DATASET.npy
SPECS: dict[str, type[Dataset | Task | Method]] = {"dataset": Dataset, "task": Task, "method": Method}
FUNCTIONS = ("cubes", "encoder", "loader")
STUB = '''"""Written by continuous integration: what this plugin declared, and none of its code."""

from ci.stub_tree import specs
from neuco_core import hookimpl


@hookimpl
def neuco_datasets():
    yield from specs(__file__, "dataset")


@hookimpl
def neuco_tasks():
    yield from specs(__file__, "task")


@hookimpl
def neuco_methods():
    yield from specs(__file__, "method")
'''


class CubeDescription(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a dataset's cubes are, or the ``error`` why they cannot be opened."""

    error: str = ""
    version: str = ""
    bands: tuple[str, ...] = ()
    seasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.error) == bool(self.version):
            raise ValueError("cubes have either a version or an error")


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One spec of a description; ``rebuild`` checks the fields of the spec itself."""

    noun: str
    spec: dict[str, Any]
    code: str = ""
    cubes: CubeDescription | None = None

    def __post_init__(self) -> None:
        if self.noun == "dataset" and bool(self.spec.get("cubes")) != (self.cubes is not None):
            raise ValueError("a dataset that has cubes says what they are, and no other")


class FileCubes:
    """A CubeSource over exported cubes: ``cubes.json`` and, where pixels are needed, ``cubes.npy``.

    One that is only ``described`` has no samples; that is enough to name its cubes in a record.
    """

    def __init__(self, folder: Path, described: Mapping[str, Any] | None = None) -> None:
        facts = described or read_json(folder / "cubes.json", LARGEST_IDS)
        self.dataset = folder.name
        self._path = folder / "cubes.npy"
        self._rows = {name: row for row, name in enumerate(facts.get("ids", ()))}
        self.bands: tuple[str, ...] = tuple(facts["bands"])
        self.seasons: tuple[str, ...] = tuple(facts["seasons"])
        self.version: str = facts["version"]

    def ids(self) -> tuple[str, ...]:
        if not self._rows:
            raise DataError("the cubes are described here, and not there")
        return tuple(self._rows)

    def read(self, ids: Sequence[str]) -> CubeBatch:
        import numpy as np

        from neuco_core.cubes.cubes import CubeBatch

        if not self._path.is_file():
            raise DataError("the cubes are described here, and not there")
        array = np.load(self._path, mmap_mode="r", allow_pickle=False)
        values = np.stack([array[self._rows[name]] for name in ids])
        return CubeBatch(tuple(ids), values, self.bands, self.seasons)


class StoredEmbeddings:
    """An encoder that gives what the true one made in its sandbox: a row for each id of the dataset, in their order."""

    needs_cubes = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rows: dict[str, np.ndarray] = {}

    def fit(self, source: FileCubes) -> None:
        """Takes no pixels, only the dataset's name and ids."""
        import numpy as np

        path = self.folder / f"{source.dataset}.npy"
        if not path.is_file():
            raise DataError(f"{self.folder.name} was not run on {source.dataset}")
        self._rows = dict(zip(source.ids(), np.load(path, allow_pickle=False), strict=True))

    def encode(self, batch: CubeBatch) -> np.ndarray:
        import numpy as np

        return np.stack([self._rows[name] for name in batch.ids])


def read_json(path: Path, largest: int = LARGEST) -> Any:
    """JSON that came out of a sandbox."""
    try:
        if path.stat().st_size > largest:
            raise DataError("the file is too large", where=path.name, expected=f"at most {largest} bytes")
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_finite, parse_float=_finite)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"cannot be read: {error}", where=path.name) from error


def _finite(text: str) -> float:
    """Of what JSON takes for numbers, ``NaN``, ``Infinity`` and what is too large for a float are refused."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a description that came out of a sandbox, with no other fields than are checked."""
    try:
        rows = msgspec.convert(read_json(path), list[Row])
        # Also tells text that nobody could write down again: a lone surrogate.
        plain: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(rows))
    except (msgspec.ValidationError, ValueError) as error:
        raise DataError(f"not a description: {error}", where=path.name) from error
    for row in plain:
        fields = row["spec"]
        row["spec"] = {key: bool(fields[key]) if key in FUNCTIONS else fields[key] for key in fields if key != "origin"}
    return plain


def rebuild(noun: str, fields: Mapping[str, Any], **functions: Any) -> Dataset | Task | Method:
    """A spec from its JSON, checked as if it were new; in the place of its functions stand those given."""
    try:
        plain = {key: value for key, value in fields.items() if key != "origin" and key not in FUNCTIONS} | functions
        if noun == "task":
            plain["source"] = Remote(**plain["source"])
            plain["baseline"] = Baseline(**plain["baseline"]) if plain["baseline"] else None
        return SPECS[noun](**plain)
    except NeucoError:
        raise
    except Exception as error:
        raise DataError(f"not a {noun}: {error}") from error


def spec_of(row: Mapping[str, Any], folder: Path = Path()) -> Dataset | Task | Method:
    """The spec of one row of a description; what its functions would make is in the plugin's ``folder``."""
    noun, fields, made = row["noun"], row["spec"], folder / MADE
    label = versioned_id(str(fields["id"]), fields["version"])
    functions: dict[str, Callable[..., Any]] = {}
    if noun == "dataset" and fields["cubes"]:
        cubes = made / "cubes" / str(fields["id"])
        functions["cubes"] = lambda: _open_cubes(cubes, row["cubes"])
    elif noun == "task" and fields["loader"]:
        functions["loader"] = lambda _: _read_labels(made / "labels" / f"{label}.csv")
    elif noun == "method" and fields["encoder"]:
        functions["encoder"] = lambda **_: StoredEmbeddings(made / "embeddings" / label)
    stand_ins = {name: StandIn(row["code"], function) for name, function in functions.items()}
    return rebuild(noun, fields, **stand_ins)


def _open_cubes(folder: Path, described: Mapping[str, Any]) -> FileCubes:
    if (folder / "cubes.json").is_file():
        return FileCubes(folder)
    if described["error"]:
        raise DataError(described["error"])
    return FileCubes(folder, described)


def _read_labels(path: Path) -> Any:
    """The labels that a loader made. As text: the reader of labels then treats them as those of any file."""
    import pandas as pd

    if not path.is_file():
        raise DataError("the loader was not run")
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def specs(file: str, noun: str) -> Iterator[Any]:
    """What a stub registers: ``file`` is its ``__init__.py``."""
    folder = Path(file).parent
    for row in read_json(folder / DESCRIPTION):
        if row["noun"] == noun:
            yield spec_of(row, folder)


def write_stub(target: Path, plugin: Path, rows: Sequence[Mapping[str, Any]], made: Path) -> None:
    """The plugin as data: its declarations, its files other than code, its card and test, and what its code made."""
    target.mkdir(parents=True)
    code = tuple(importlib.machinery.all_suffixes())
    for path in sorted(plugin.rglob("*")):
        inside = path.relative_to(plugin)
        if path.is_symlink() or not path.is_file() or path.name.startswith("__init__."):
            continue
        if inside.parts[0] in (MADE, DESCRIPTION) or (path.name.endswith(code) and path != plugin / "test.py"):
            continue
        (target / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / inside)
    # Written last, so that nothing of the plugin's takes their place.
    (target / "__init__.py").write_text(STUB, encoding="utf-8")
    (target / DESCRIPTION).write_text(json.dumps(list(rows), allow_nan=False, sort_keys=True), encoding="utf-8")
    if made.is_dir():
        # Pixels stay behind: nobody needs them any more.
        shutil.copytree(made, target / MADE, ignore=shutil.ignore_patterns("cubes.npy"))
