"""From a method to embeddings: read the verified file, or run the encoder on the dataset's cubes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.cubes.cubes import CubeSource, Selection
from neuco_core.encode.cache import EncodeCache, open_cache
from neuco_core.encode.encoder import check_bands, chosen, full_params, open_cubes
from neuco_core.encode.encoding import BATCH, Clock, Encoding
from neuco_core.env import available_cores
from neuco_core.errors import DataError, UsageError
from neuco_core.fetch.fetch import fetch
from neuco_core.plugins.catalog import load_dataset
from neuco_core.progress import SampleProgress, sample_progress
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings
from neuco_core.versions import versioned

if TYPE_CHECKING:
    from neuco_core.specs import Dataset, Method

CHUNK = 256  # samples between two saves; not the batch size, so that a resumed run may use another one
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EncodeOptions:
    """How embeddings are made. Of an exact method none of it changes a number.

    ``threads`` is how many batches are encoded side by side on the processor (None: one per core); ``device`` is for
    networks (see ``choose_device``). ``cached=False`` makes them anew; a ``run`` makes them once in its own folder, and
    ``spare`` is a folder of a run that is used where the cache cannot be written. ``known`` are content hashes on
    record: what a cache holds is believed only if it has one of them. ``progress=None`` shows a bar on a terminal and a
    line a minute elsewhere; a function is called with the numbers of samples done and to do. ``clock`` counts the
    samples that were encoded, and the seconds. Samples that cannot be read are an error, unless there is a mapping
    ``left_out`` to put them into, each with the reason.
    """

    batch_size: int = BATCH
    threads: int | None = None
    device: str = ""
    cached: bool = True
    run: Path | None = None
    spare: Path | None = None
    known: Collection[str] = ()
    progress: SampleProgress = None
    clock: Clock | None = None
    left_out: dict[str, str] | None = None


AS_USUAL = EncodeOptions()


def method_embeddings(
    method: Method, dataset_id: str, params: Mapping[str, Any], options: EncodeOptions = AS_USUAL
) -> Embeddings:
    """The embeddings of a dataset."""
    if not method.files:
        return encode_dataset(method, load_dataset(dataset_id), params, options)
    if params:
        raise UsageError(f"method {method.id!r} reads a file and takes no parameters", got=", ".join(sorted(params)))
    if dataset_id not in method.files:
        raise DataError(
            f"method {method.id!r} has no embeddings of dataset {dataset_id!r}",
            expected="one of " + ", ".join(sorted(method.files)),
            got=dataset_id,
        )
    return read_embeddings(fetch(method.files[dataset_id]))


def why_not(method: Method, dataset_id: str) -> str:
    """Why a method has nothing for a dataset, known without fetching or computing anything; "" if it has."""
    if method.files:
        return "" if dataset_id in method.files else f"{method.label} has no file for dataset {dataset_id}"
    dataset = load_dataset(dataset_id)
    if dataset.cubes is None:
        return f"dataset {dataset.id} has no cubes to encode"
    try:
        if dataset.bands:
            check_bands(method, dataset.id, dataset.bands)
    except DataError as error:
        return str(error)
    return ""


@versioned(1)
def encode_dataset(
    method: Method,
    dataset: Dataset,
    params: Mapping[str, Any],
    options: EncodeOptions = AS_USUAL,
    *,
    learn: CubeSource | None = None,
    only: Collection[str] = (),
) -> Embeddings:
    """Run a method's encoder on all samples of a dataset, or take what an earlier run has left.

    ``learn`` is what it learns from, if that is not the dataset itself. With ``only`` the dataset is these samples and
    no others, also for what is learned; nothing of that is kept.
    """
    if options.batch_size < 1:
        raise UsageError("bad batch size", expected="at least 1", got=options.batch_size)
    params = full_params(method, params)
    source = open_cubes(method, dataset)
    source = Selection(source, ids=only) if only else source
    ids = tuple(source.ids())
    encoding = Encoding(
        method,
        source,
        params,
        batch_size=options.batch_size,
        threads=options.threads or available_cores(),
        device=options.device,
        learn=learn and chosen(method, learn),
        left_out=options.left_out,
    )
    cache = None
    if options.cached and not only:
        cache = open_cache(method, dataset, source, params, options.run, encoding.device, options.spare)
    values = cache.load(ids) if cache else None
    if values is None:
        values = _encode(encoding, ids, cache, options)
        if options.left_out:
            ids, cache = tuple(name for name in ids if name not in options.left_out), None
        if cache:
            cache.finish(ids, values)
    elif options.clock is not None:
        options.clock.made_with = encoding.made_with()  # all of that is in the cache's key
    embeddings = make_embeddings(ids, values)
    if cache and cache.was_read and options.known and embeddings.sha256 not in options.known:
        log.warning("cached embeddings of %s on %s are not those on record: made again", method.id, dataset.id)
        values = _encode(encoding, ids, None, options)
        cache.finish(ids, values)
        embeddings = make_embeddings(ids, values)
    return embeddings


def _encode(encoding: Encoding, ids: tuple[str, ...], cache: EncodeCache | None, options: EncodeOptions) -> np.ndarray:
    """The rows of all samples; what an earlier run kept before it was interrupted is not made again."""
    method = encoding.method
    if not ids:
        raise DataError(f"the cubes for method {method.id!r} hold no sample")
    done: list[np.ndarray] = []
    with encoding.running(), sample_progress(method.id, len(ids), options.progress) as advance:
        for start, part in chunks_of(ids):
            values = cache.load_chunk(start, part) if cache else None
            if values is None:
                values = encoding.encode(part, advance, options.clock)
                if cache and len(values) == len(part):
                    cache.save_chunk(start, part, values)
            else:
                advance(len(part), made=False)
            if len(values):
                done.append(values)
    if not done:
        raise DataError(f"no sample for method {method.id!r} can be read", got=f"{len(ids)} damaged ones")
    return np.concatenate(done)


def chunks_of(ids: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """What is saved together: the place of the first sample, and the ids."""
    return ((start, ids[start : start + CHUNK]) for start in range(0, len(ids), CHUNK))
