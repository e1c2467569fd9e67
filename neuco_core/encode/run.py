"""From a method to embeddings: read the verified file, or run the encoder on the dataset's cubes."""

from __future__ import annotations

import inspect
import logging
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from neuco_core.cubes.cubes import CubeBatch, CubeSource
from neuco_core.encode.cache import EncodeCache, open_cache
from neuco_core.encode.lock import check_lock
from neuco_core.encode.weights import weight_files
from neuco_core.encoders import MAX_DIM
from neuco_core.env import requirement_name
from neuco_core.errors import DataError, DependencyError, NeucoError, PluginError, UsageError
from neuco_core.plugins.code import StandIn
from neuco_core.plugins.source import compiled_apart
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings
from neuco_core.text import join_names
from neuco_core.versions import versioned

if TYPE_CHECKING:
    from neuco_core.specs import Dataset, Method

Progress: TypeAlias = bool | Callable[[int, int], None] | None
BATCH = 64
CHUNK = 256  # samples between two saves; not the batch size, so that a resumed run may use another one
log = logging.getLogger(__name__)
GATHERED = ("all", "test", "dev")  # extras that gather others; a user needs only the one for the task at hand


@dataclass
class Clock:
    """How many samples were encoded, and in how many seconds: reading counts, what an encoder learns first does not."""

    samples: int = 0
    seconds: float = 0.0

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
    known: Collection[str] = (),
    clock: Clock | None = None,
) -> Embeddings:
    """The embeddings of a dataset. ``cached=False`` makes them anew; a ``run`` makes them once in its own folder.

    ``progress=None`` shows a bar on a terminal; a function is called with the numbers of samples done and to do.
    ``known`` are content hashes on record: what a cache holds is believed only if it has one of them. ``clock`` counts
    the samples that were encoded, and the seconds.
    """
    if method.files:
        return _from_file(method, dataset_id, params, keep=cached and run is None)
    from neuco_core.plugins.catalog import load_dataset

    dataset = load_dataset(dataset_id)
    choice: dict[str, Any] = {"progress": progress, "cached": cached, "run": run, "known": known, "clock": clock}
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
    known: Collection[str] = (),
    learn: CubeSource | None = None,
    clock: Clock | None = None,
) -> Embeddings:
    """Run a method's encoder on all samples of a dataset, or take what an earlier run has left.

    ``learn`` is what it learns from, if that is not the dataset itself.
    """
    if batch_size < 1:
        raise UsageError("bad batch size", expected="at least 1", got=batch_size)
    params = full_params(method, params)
    source = open_cubes(method, dataset)
    ids = tuple(source.ids())
    cache = open_cache(method, dataset, source, params, run) if cached else None
    values = cache.load(ids) if cache else None
    if values is None:
        values = _run(method, source, ids, params, cache, batch_size, progress, learn, clock)
        if cache:
            cache.finish(ids, values)
    embeddings = make_embeddings(ids, values)
    if cache and cache.was_read and known and embeddings.sha256 not in known:
        log.warning("cached embeddings of %s on %s are not those on record: made again", method.id, dataset.id)
        values = _run(method, source, ids, params, None, batch_size, progress)
        cache.finish(ids, values)
        embeddings = make_embeddings(ids, values)
    return embeddings


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
            extra = extra_of(name)
            target = f"neuco[{extra}]" if extra else requirement
            hint = f"Install it with: pip install '{target}'"
            raise DependencyError(f"method {method.id!r} needs the package {name}", hint=hint) from None


def extra_of(package: str) -> str | None:
    """The extra of neuco that brings a package, e.g. ``torch`` for torch; its namesake, if several do."""
    extras = []
    for requirement in metadata.requires("neuco") or []:
        name, _, condition = requirement.partition(";")
        extra = re.search(r"extra == ['\"]([\w-]+)", condition)
        if extra and requirement_name(name) == requirement_name(package) and extra[1] not in GATHERED:
            extras.append(extra[1])
    return requirement_name(package) if requirement_name(package) in extras else next(iter(extras), None)


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
    return source


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
    method: Method,
    source: CubeSource,
    ids: tuple[str, ...],
    params: Mapping[str, Any],
    cache: EncodeCache | None,
    batch_size: int,
    progress: Progress,
    learn: CubeSource | None = None,
    clock: Clock | None = None,
) -> np.ndarray:
    if not ids:
        raise DataError(f"the cubes for method {method.id!r} hold no sample")
    done: list[np.ndarray] = []
    torch_too = "torch" in map(requirement_name, method.requires)
    with one_thread(torch_too), compiled_apart(), _bar(method.id, len(ids), progress) as advance:
        encoder = None
        for start in range(0, len(ids), CHUNK):
            part = ids[start : start + CHUNK]
            values = cache.load_chunk(start, part) if cache else None
            if values is None:
                encoder = encoder or _ready(method, learn or source, params)
                with clock.measure(len(part)) if clock else nullcontext():
                    values = _chunk(method, encoder, source, part, batch_size, advance)
                if cache:
                    cache.save_chunk(start, part, values)
            else:
                advance(len(part))  # an earlier run was interrupted after this chunk
            done.append(values)
    return np.concatenate(done)


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


def _chunk(
    method: Method, encoder: Any, source: CubeSource, ids: tuple[str, ...], batch_size: int, advance: Any
) -> np.ndarray:
    rows = []
    for start in range(0, len(ids), batch_size):
        part = ids[start : start + batch_size]
        batch = _batch(encoder, source, part)
        with _blame(method):
            values = encoder.encode(batch)
        rows.append(check_output(method, part, values))
        advance(len(part))
    return np.concatenate(rows)


def _batch(encoder: Any, source: CubeSource, ids: tuple[str, ...]) -> CubeBatch:
    if getattr(encoder, "needs_cubes", True):
        return source.read(ids)
    return CubeBatch(ids, np.zeros((len(ids), 0, 0, 0, 0), np.float32), source.bands, source.seasons)


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


@contextmanager
def _bar(name: str, total: int, progress: Progress) -> Iterator[Callable[[int], None]]:
    if callable(progress):
        tell, done = progress, 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            tell(done, total)

        yield advance
        return
    from tqdm import tqdm

    # tqdm takes None as "only on a terminal".
    disable = None if progress is None else not progress
    with tqdm(total=total, desc=name, unit="sample", disable=disable, leave=False) as bar:
        yield bar.update
