"""Embeddings that main's encoders made before, published as files, so that a pull request need not make them again.

``registry/embeddings.json`` names for each encoder and dataset where the embeddings came from (``embeddings_from`` of
records: code, packages, weights, data), the hash of their content, and the file that holds them. Only jobs on main
write it (``python -m ci embeddings``); a pull request that touches it is refused. What does not fit is not used.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec
import numpy as np

from ci.describe import describe_all
from ci.extract import EncodingJob, applies, make_cubes, make_embeddings
from ci.git import check_out, deliver
from ci.inside import write_json
from ci.plugin_sandbox import PluginData, PluginSandbox
from ci.stub_tree import LARGEST_IDS, read_json
from neuco_core.errors import DataError, NeucoError
from neuco_core.fetch.cache import hash_file
from neuco_core.fetch.fetch import fetch
from neuco_core.fetch.upload import upload
from neuco_core.files import write_atomic
from neuco_core.jsonio import dump, read_strictly
from neuco_core.records.fingerprint import cubes_key, encoded_from
from neuco_core.specs import Dataset, Method, Origin, Remote
from neuco_core.tables.embeddings import Embeddings, read_embeddings, write_embeddings
from neuco_core.tables.embeddings import make_embeddings as make_table

INDEX = "embeddings.json"
MESSAGE = "Update the registry: stored embeddings"
LARGEST = 50_000_000  # bytes of the index: 100,000 entries
Publish = Callable[[Path, str], Remote]


class PublishedEmbeddings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: what it was made from, the hash of its content, and where it is."""

    made_from: str
    content: str
    url: str
    sha256: str
    size: int


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All files, by ``METHOD/DATASET``."""

    embeddings: dict[str, PublishedEmbeddings]
    schema: Literal[1] = 1


def read_index(registry: Path) -> dict[str, PublishedEmbeddings]:
    """The entries of a registry; none without an index."""
    path = registry / INDEX
    return read_strictly(path, Index, "an index of embeddings", most=LARGEST).embeddings if path.is_file() else {}


def write_index(registry: Path, entries: dict[str, PublishedEmbeddings]) -> None:
    write_atomic(registry / INDEX, dump(msgspec.to_builtins(Index(entries))))


def name_of(method: Method, dataset: Dataset) -> str:
    return f"{method.label}/{dataset.id}"


def made_from(owner: PluginData, method: Method, dataset: Dataset) -> str:
    """The key of what an encoder makes of a dataset, from what the two declare: no plugin is imported for it."""
    here = method.stamped(Origin(owner.touched.name, str(owner.folder)))
    return encoded_from(here, cubes_key(dataset))


@dataclass
class Store:
    """Published embeddings for a run; ``notes`` say what could not be used and why, ``used`` what was."""

    entries: dict[str, PublishedEmbeddings]
    notes: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    _tried: dict[str, bool] = field(default_factory=dict)

    def supply(self, methods: PluginData, method: Method, owner: PluginData, dataset: Dataset) -> bool:
        """Put embeddings of main's method on main's dataset where its encoder would; whether they are there."""
        name = name_of(method, dataset)
        if not (methods.kept and owner.kept) or name not in self.entries:
            return False
        if name not in self._tried:
            try:
                self._take(self.entries[name], methods, method, owner, dataset)
                self.used.append(name)
            except (NeucoError, OSError) as error:
                self.notes.append(f"stored embeddings {name} are not used: {error}")
            self._tried[name] = name in self.used
        return self._tried[name]

    def _take(
        self, entry: PublishedEmbeddings, methods: PluginData, method: Method, owner: PluginData, dataset: Dataset
    ) -> None:
        if made_from(methods, method, dataset) != entry.made_from:
            raise DataError("they were made from other code or data")
        file = fetch(Remote(entry.url, sha256=entry.sha256, size=entry.size))
        embeddings = read_embeddings(file, strict=True)
        if embeddings.sha256 != entry.content:
            raise DataError("not the content on record", expected=entry.content, got=embeddings.sha256)
        _name_samples(owner, dataset, embeddings)
        path = methods.result("embeddings", method, dataset)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, embeddings.values, allow_pickle=False)


def _name_samples(owner: PluginData, dataset: Dataset, embeddings: Embeddings) -> None:
    """Who scores needs the names of samples, not their pixels; these are exported only if an encoder has to run."""
    path = owner.made / "cubes" / dataset.id / "cubes.json"
    if path.is_file():
        if tuple(read_json(path, LARGEST_IDS)["ids"]) != embeddings.ids:
            raise DataError(f"they are of other samples than {dataset.id} has")
    elif dataset.cubes is not None:
        source = dataset.cubes()
        described = {name: getattr(source, name) for name in ("version", "bands", "seasons")}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {**described, "ids": embeddings.ids})


def fill(boxes: PluginSandbox, registry: Path, publish: Publish) -> Iterator[str]:
    """Make and publish what the index of main lacks; says what was done, line by line.

    The index is written after each file, so that a run that is ended goes on where it stopped.
    """
    plugins = describe_all(boxes)
    entries = read_index(registry)
    wanted = dict(_pairs(plugins))
    for name in sorted(entries.keys() - wanted.keys()):
        if not any(plugin.problem for plugin in plugins):  # a plugin that could not be asked may still have it
            del entries[name]
            write_index(registry, entries)
            yield f"{name}: removed, no plugin registers both"
    for name, (methods, method, owner, dataset) in wanted.items():
        try:
            key = made_from(methods, method, dataset)
            if name in entries and entries[name].made_from == key:
                yield f"{name}: there already"
                continue
            embeddings = _make(boxes, methods, method, owner, dataset)
            entries[name] = _published(boxes.scratch, name, key, embeddings, publish)
            write_index(registry, entries)
            yield f"{name}: {len(embeddings)} rows of {embeddings.dim} values, {entries[name].url}"
        except (NeucoError, OSError) as error:
            yield f"{name}: left out: {error}"


Pair = tuple[PluginData, Method, PluginData, Dataset]


def _pairs(plugins: Collection[PluginData]) -> Iterator[tuple[str, Pair]]:
    """Every encoder with every dataset that it can be run on."""
    datasets = [(owner, dataset) for owner in plugins for dataset in owner.datasets if dataset.cubes]
    for methods in plugins:
        for method in methods.methods:
            for owner, dataset in datasets if method.encoder else ():
                if applies(method, dataset):
                    yield name_of(method, dataset), (methods, method, owner, dataset)


def _make(boxes: PluginSandbox, methods: PluginData, method: Method, owner: PluginData, dataset: Dataset) -> Embeddings:
    cubes = make_cubes(boxes, owner, dataset)
    make_embeddings(boxes, EncodingJob(methods, method, dataset, cubes))
    values = np.load(methods.result("embeddings", method, dataset), allow_pickle=False)
    return make_table(read_json(cubes / "cubes.json", LARGEST_IDS)["ids"], values)


def _published(scratch: Path, name: str, key: str, embeddings: Embeddings, publish: Publish) -> PublishedEmbeddings:
    path = scratch / "publish" / f"{embeddings.sha256}.npz"
    path.parent.mkdir(exist_ok=True)
    write_embeddings(embeddings, path)
    remote = publish(path, f"{name}/{path.name}")
    path.unlink()
    return PublishedEmbeddings(key, embeddings.sha256, remote.url, str(remote.sha256), int(remote.size or 0))


def to_s3(target: str) -> Publish:
    """Upload to ``s3://BUCKET/PREFIX/``, as ``METHOD/DATASET/CONTENT.npz`` below it, proven to be public."""
    return lambda path, name: upload(path, f"{target.rstrip('/')}/{name}").remote


def to_folder(folder: Path, address: str) -> Publish:
    """Put files into a folder, to be uploaded by somebody to ``address``; a release on GitHub knows no folders."""

    def keep(path: Path, name: str) -> Remote:
        flat = name.replace("/", ".")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / flat)
        return Remote(f"{address.rstrip('/')}/{quote(flat)}", sha256=hash_file(path), size=path.stat().st_size)

    return keep


def push_index(repo: Path) -> str:
    """Commit the index of a checkout to main, joined with what another run may have pushed meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        before = read_index(check_out(repo, "HEAD", Path(folder), "registry") / "registry")
    now = read_index(repo / "registry")

    def join(registry: Path) -> None:
        others = {name: entry for name, entry in read_index(registry).items() if name in now or name not in before}
        registry.mkdir(exist_ok=True)
        write_index(registry, others | {name: entry for name, entry in now.items() if before.get(name) != entry})

    return deliver(repo, MESSAGE, join)
