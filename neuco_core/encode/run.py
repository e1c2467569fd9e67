"""From a method to embeddings: read the verified file, or run the encoder on the dataset's cubes."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.cubes.cubes import CubeSource
from neuco_core.cubes.stored import Selection, select
from neuco_core.encode.cache import EncodeCache, open_cache
from neuco_core.encode.damage import readable
from neuco_core.encode.device import choose_device, move, steady, uses_torch
from neuco_core.encode.lock import check_lock
from neuco_core.encode.pipeline import Pipeline
from neuco_core.encode.progress import Advance, Progress, shown
from neuco_core.encode.weights import weight_files
from neuco_core.encoders import MAX_DIM
from neuco_core.env import available_cores, installed_version, requirement_name
from neuco_core.errors import DataError, DependencyError, NeucoError, PluginError, UsageError
from neuco_core.plugins.code import StandIn
from neuco_core.plugins.source import compiled_apart
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings
from neuco_core.text import join_names
from neuco_core.versions import versioned

if TYPE_CHECKING:
    from neuco_core.specs import Dataset, Method

BATCH = 64
CHUNK = 256  # samples between two saves; not the batch size, so that a resumed run may use another one
log = logging.getLogger(__name__)


@dataclass
class Clock:
    """How many samples were encoded, and in how many seconds: reading counts, what an encoder learns first does not.

    ``learning`` are the seconds of that; ``made_with`` says on what and with what the numbers were made.
    """

    samples: int = 0
    seconds: float = 0.0
    learning: float = 0.0
    made_with: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def measure(self, samples: int) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.samples, self.seconds = self.samples + samples, self.seconds + time.perf_counter() - start


def method_embeddings(
    method: Method,
    dataset_id: str,
    params: Mapping[str, Any],
    *,
    batch_size: int = BATCH,
    progress: Progress = None,
    cached: bool = True,
    run: Path | None = None,
    spare: Path | None = None,
    known: Collection[str] = (),
    clock: Clock | None = None,
    threads: int | None = None,
    device: str = "",
    left_out: dict[str, str] | None = None,
) -> Embeddings:
    """The embeddings of a dataset. ``cached=False`` makes them anew; a ``run`` makes them once in its own folder.

    ``spare`` is a folder of a run that is used where the cache cannot be written. ``progress=None`` shows a bar on a
    terminal and a line a minute elsewhere; a function is called with the numbers of samples done and to do. ``known``
    are content hashes on record: what a cache holds is believed only if it has one of them. ``clock`` counts the
    samples that were encoded, and the seconds. ``threads`` is how many batches are encoded side by side on the
    processor (None: one per core); ``device`` is for networks (see ``choose_device``). Samples that cannot be read are
    an error, unless there is a mapping ``left_out`` to put them into, each with the reason.
    """
    if method.files:
        return _from_file(method, dataset_id, params, keep=cached and run is None)
    from neuco_core.plugins.catalog import load_dataset

    dataset = load_dataset(dataset_id)
    choice: dict[str, Any] = {"progress": progress, "cached": cached, "run": run, "known": known, "clock": clock}
    choice |= {"threads": threads, "device": device, "left_out": left_out, "spare": spare}
    return encode_dataset(method, dataset, params, batch_size=batch_size, **choice)


def _from_file(method: Method, dataset_id: str, params: Mapping[str, Any], *, keep: bool) -> Embeddings:
    from neuco_core.fetch.fetch import fetch

    if params:
        raise UsageError(f"method {method.id!r} reads a file and takes no parameters", got=", ".join(sorted(params)))
    if dataset_id not in method.files:
        raise DataError(
            f"method {method.id!r} has no embeddings of dataset {dataset_id!r}",
            expected="one of " + ", ".join(sorted(method.files)),
            got=dataset_id,
        )
    return read_embeddings(fetch(method.files[dataset_id]), keep=keep)


@versioned(1)
def encode_dataset(
    method: Method,
    dataset: Dataset,
    params: Mapping[str, Any],
    *,
    batch_size: int = BATCH,
    progress: Progress = None,
    cached: bool = True,
    run: Path | None = None,
    spare: Path | None = None,
    known: Collection[str] = (),
    learn: CubeSource | None = None,
    only: Collection[str] = (),
    clock: Clock | None = None,
    threads: int | None = None,
    device: str = "",
    left_out: dict[str, str] | None = None,
) -> Embeddings:
    """Run a method's encoder on all samples of a dataset, or take what an earlier run has left.

    ``learn`` is what it learns from, if that is not the dataset itself. With ``only`` the dataset is these samples and
    no others, also for what is learned; nothing of that is kept.
    """
    if batch_size < 1:
        raise UsageError("bad batch size", expected="at least 1", got=batch_size)
    params = full_params(method, params)
    source = open_cubes(method, dataset)
    source = Selection(source, ids=only) if only else source
    ids = tuple(source.ids())
    own = learn and chosen(method, learn)
    task = Encoding(method, source, params, batch_size, threads or available_cores(), device, own, left_out)
    cache = open_cache(method, dataset, source, params, run, task.device, spare) if cached and not only else None
    values = cache.load(ids) if cache else None
    if values is None:
        values = _run(task, ids, cache, progress, clock)
        if left_out:
            ids, cache = tuple(name for name in ids if name not in left_out), None
        if cache:
            cache.finish(ids, values)
    elif clock is not None:
        clock.made_with = task.made_with()  # all of that is in the cache's key
    embeddings = make_embeddings(ids, values)
    if cache and cache.was_read and known and embeddings.sha256 not in known:
        log.warning("cached embeddings of %s on %s are not those on record: made again", method.id, dataset.id)
        values = _run(task, ids, None, progress)
        cache.finish(ids, values)
        embeddings = make_embeddings(ids, values)
    return embeddings


class Encoding:
    """A method's encoder on a source: made, and taught what it learns, when it is first needed."""

    def __init__(
        self,
        method: Method,
        source: CubeSource,
        params: Mapping[str, Any],
        batch_size: int = BATCH,
        threads: int = 1,
        device: str = "",
        learn: CubeSource | None = None,
        left_out: dict[str, str] | None = None,
    ) -> None:
        self.method, self.source, self.params, self.learn = method, source, params, learn or source
        self.left_out = left_out
        self.batch_size, self.threads, self._asked = batch_size, threads, device
        self.device = choose_device(method, device)
        self._pipeline: Pipeline | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        with one_thread(uses_torch(self.method)), compiled_apart(), steady(self.device):
            yield

    def pipeline(self, clock: Clock | None = None) -> Pipeline:
        if self._pipeline is None:
            start = time.perf_counter()
            encoder = self._learned()
            self.device = move(self.method, encoder, self.device, asked=bool(self._asked))
            place = self.batch_size, self.threads, self.device
            self._pipeline = Pipeline(self.method, encoder, self.source, *place)
            if clock is not None:
                clock.learning = time.perf_counter() - start
                clock.made_with = self.made_with()
        return self._pipeline

    def _learned(self) -> Any:
        """The encoder; if it cannot learn because of damaged samples, and these are left out, from the others."""
        try:
            return _ready(self.method, self.learn, self.params)
        except DataError as error:
            good = self._readable(self.learn.ids(), self.learn, error)
            self.learn = Selection(self.learn, ids=frozenset(good))
            return _ready(self.method, self.learn, self.params)

    def _readable(self, ids: tuple[str, ...], source: CubeSource, error: DataError) -> tuple[str, ...]:
        if isinstance(self.method.encoder, StandIn):
            raise error  # it ran elsewhere, where the samples are
        return readable(ids, source, error, self.left_out)

    def encode(self, ids: tuple[str, ...], advance: Advance, clock: Clock | None = None) -> np.ndarray:
        """The rows of some samples, but for those that are left out."""
        ids = tuple(name for name in ids if name not in (self.left_out or ()))
        done = 0

        def step(samples: int, size: int = 0) -> None:
            nonlocal done
            done += samples
            advance(samples, size)

        try:
            return self._rows(ids, step, clock)
        except DataError as error:
            good = self._readable(ids, self.source, error)
            rows = self._rows(good, lambda *again: None, clock)
            advance(len(ids) - done)
            return rows

    def _rows(self, ids: tuple[str, ...], advance: Advance, clock: Clock | None) -> np.ndarray:
        if not ids:
            return np.empty((0, 0), np.float32)
        pipeline, rows = self.pipeline(clock), []
        with clock.measure(len(ids)) if clock else nullcontext(), _blame(self.method):
            for part, values, size in pipeline.rows(ids):
                rows.append(check_output(self.method, part, values))
                advance(len(part), size)
        return np.concatenate(rows)

    def made_with(self) -> dict[str, Any]:
        """What the numbers depend on besides the method: device, precision, versions of the packages."""
        names = sorted({"numpy", *map(requirement_name, self.method.requires)})
        packages = {name: version for name in names if (version := installed_version(name))}
        return {"device": self.device, "precision": str(self.params.get("precision", "float32")), "packages": packages}


def check_packages(method: Method) -> None:
    """Raise an error with the pip command if a package that the method requires is not installed."""
    if isinstance(method.encoder, StandIn):
        return  # it ran elsewhere, where they are
    check_lock(method)
    for requirement in method.requires:
        name = requirement_name(requirement)
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            hint = f"Install it with: pip install '{requirement}'"
            raise DependencyError(f"method {method.id!r} needs the package {name}", hint=hint) from None


def factory(method: Method) -> Callable[..., Any]:
    """What makes the method's encoder."""
    if method.encoder is None:
        raise UsageError(f"method {method.id!r} reads a file and has no encoder")
    return method.encoder


def full_params(method: Method, params: Mapping[str, Any]) -> dict[str, Any]:
    """The method's parameters with the given ones in their place; a name that the encoder does not know is an error."""
    merged = {**method.params, **params}
    signature = inspect.signature(factory(method))
    try:
        signature.bind(**merged, **method.weights)
    except TypeError:
        known = ", ".join(name for name in signature.parameters if name not in method.weights) or "none"
        unknown = [name for name in merged if name not in signature.parameters or name in method.weights]
        unknown += [name for name in method.weights if name not in signature.parameters]
        raise UsageError(f"method {method.id!r} has no parameter {join_names(unknown)}; it has: {known}") from None
    for name, value in params.items():
        _check_type(method, name, value)
    return merged


def make_encoder(method: Method, params: Mapping[str, Any]) -> Any:
    """The method's encoder, with all its parameters (see ``full_params``) and its weights."""
    weights = {} if isinstance(method.encoder, StandIn) else weight_files(method)
    return factory(method)(**params, **weights)


def _check_type(method: Method, name: str, value: object) -> None:
    """A value must be of the same type as the method's own; a whole number will do for any number."""
    default = method.params.get(name)
    if default is None or type(value) is type(default) or (type(value) is int and type(default) is float):
        return
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[type(default)]
    raise UsageError(f"bad parameter {name} of method {method.id!r}", expected=words, got=repr(value))


def open_cubes(method: Method, dataset: Dataset) -> CubeSource:
    """The dataset's cubes, if it has any, they have the bands that the method needs, and its packages are there."""
    if dataset.cubes is None:
        raise DataError(
            f"dataset {dataset.id!r} has no cubes, so the encoder {method.id!r} cannot be run on it",
            hint="Give a file of embeddings instead, or choose a method that brings one",
        )
    if dataset.bands:  # known without opening anything
        check_bands(method, dataset.id, dataset.bands)
    check_packages(method)  # after the bands: no package helps against a dataset that will not do
    source = dataset.cubes()
    check_bands(method, dataset.id, source.bands)
    absent = [season for season in method.seasons if season not in source.seasons]
    if absent:
        got = ", ".join(source.seasons)
        raise DataError(f"method {method.id!r} needs the seasons {join_names(absent)}", where=dataset.id, got=got)
    return chosen(method, source)


def chosen(method: Method, source: CubeSource) -> CubeSource:
    """The bands and seasons that the method names; others are not read, and the encoder does not see them."""
    if isinstance(method.encoder, StandIn):
        return source  # it reads what was made elsewhere
    return select(source, method.bands, method.seasons)


def check_bands(method: Method, dataset_id: str, bands: tuple[str, ...]) -> None:
    """A method names whole modalities or single bands; all of them must be there."""
    modalities = {band.partition("/")[0] for band in bands}
    missing = [name for name in method.bands if name not in bands and name not in modalities]
    if missing:
        raise DataError(
            f"method {method.id!r} needs {len(method.bands)} bands and dataset {dataset_id!r} has {len(bands)}: "
            f"{len(missing)} are missing ({join_names(missing)})",
            hint="`neuco methods` lists what each method needs",
        )


def _run(
    task: Encoding, ids: tuple[str, ...], cache: EncodeCache | None, progress: Progress, clock: Clock | None = None
) -> np.ndarray:
    if not ids:
        raise DataError(f"the cubes for method {task.method.id!r} hold no sample")
    done: list[np.ndarray] = []
    with task.running(), shown(task.method.id, len(ids), progress) as advance:
        for start, part in chunks_of(ids):
            values = cache.load_chunk(start, part) if cache else None
            if values is None:
                values = task.encode(part, advance, clock)
                if cache and len(values) == len(part):
                    cache.save_chunk(start, part, values)
            else:
                advance(len(part), made=False)  # an earlier run was interrupted after this chunk
            done += [values] if len(values) else []
    if not done:
        raise DataError(f"no sample for method {task.method.id!r} can be read", got=f"{len(ids)} damaged ones")
    return np.concatenate(done)


def chunks_of(ids: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """What is saved together: the place of the first sample, and the ids."""
    return ((start, ids[start : start + CHUNK]) for start in range(0, len(ids), CHUNK))


def _ready(method: Method, source: CubeSource, params: Mapping[str, Any]) -> Any:
    with _blame(method):
        encoder = make_encoder(method, params)
        if hasattr(encoder, "fit"):
            encoder.fit(source)
        return encoder


@contextmanager
def _blame(method: Method) -> Iterator[None]:
    """An encoder belongs to a plugin: an unexpected exception becomes an error that names the method."""
    try:
        yield
    except (NeucoError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        text = f"its encoder failed with {type(error).__name__}: {error}"
        raise PluginError(text, where=f"method {method.id!r}", hint="Run with --debug for the traceback") from error


def check_output(method: Method, ids: tuple[str, ...], values: object) -> np.ndarray:
    """What an encoder gave for some samples, as float32, if it is one finite row for each of them."""
    rows = np.asarray(values)
    where = f"method {method.id!r}"
    if rows.ndim != 2 or len(rows) != len(ids) or rows.dtype.kind not in "fiu":
        shape = f"{rows.dtype} {rows.shape}"
        raise PluginError("bad encoder output", where=where, expected=f"numbers ({len(ids)}, dim)", got=shape)
    if not 1 <= rows.shape[1] <= MAX_DIM:
        expected = f"1 to {MAX_DIM} values"
        raise PluginError("bad encoder output", where=where, expected=expected, got=rows.shape[1])
    rows = rows.astype(np.float32)
    bad = [sample for sample, row in zip(ids, rows, strict=True) if not np.isfinite(row).all()]
    if bad:
        raise DataError(f"non-finite values for {len(bad)} samples ({join_names(bad)})", where=where)
    return rows


@contextmanager
def one_thread(torch_too: bool = True) -> Iterator[None]:
    """One thread for BLAS and torch: the sums round alike everywhere, and a busy machine does not stall them.

    On two busy cores a small convolution took 16 ms with two threads and 0.1 ms with one.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        if not torch_too:
            yield
            return
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
