"""From a method to embeddings: read the verified file, or run the encoder on the dataset's cubes.

What an encoder made is kept under a name that says from what: data, method, parameters and code.
"""

from __future__ import annotations

import io
import logging
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.cubes.cubes import CubeSource, Selection, select
from neuco_core.encode.encoding import BATCH, Clock, Encoding
from neuco_core.encode.requirements import check_bands, full_params, open_cubes
from neuco_core.env import available_cores, installed_version, requirement_name
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.fetch.cache import cache_dir
from neuco_core.fetch.fetch import fetch, require_pin
from neuco_core.files import hashed, write_atomic
from neuco_core.plugins.catalog import load_dataset
from neuco_core.plugins.code_key import StandIn, code_key, home_of
from neuco_core.progress import SampleProgress, sample_progress
from neuco_core.tables.embeddings import Embeddings, content_hash, make_embeddings, read_embeddings
from neuco_core.tables.positions import dataset_positions, positions_key
from neuco_core.versions import versioned

if TYPE_CHECKING:
    from neuco_core.specs import Dataset, Method

LAYOUT = 5  # of the cache
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
    ``left_out`` to put them into, each with the reason. ``doubts`` takes warnings about the numbers; without it they
    are logged.
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
    doubts: list[str] | None = None


AS_USUAL = EncodeOptions()


def method_embeddings(
    method: Method, dataset_id: str, params: Mapping[str, Any], options: EncodeOptions = AS_USUAL
) -> Embeddings:
    """The embeddings of a dataset."""
    if method.uses_positions and method.encoder and dataset_id not in method.files:
        ids, positions = dataset_positions(load_dataset(dataset_id))
        return make_embeddings(ids, method.encoder(**full_params(method, params)).encode(positions))
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
    # Where the encoder is only a stand-in, nothing has run it on positions.
    if method.uses_positions and not isinstance(method.encoder, StandIn) and positions_key(dataset_id):
        return ""
    if method.files:
        return "" if dataset_id in method.files else f"{method.label} has no file for dataset {dataset_id}"
    try:
        dataset = load_dataset(dataset_id)
    except NeucoError:
        return ""  # e.g. an unknown one: whoever wants the embeddings meets the error
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
        learn=learn and select(learn, method.bands, method.seasons),
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
            cache.save(ids, values)
        if options.clock is not None and (flops := encoding.flops(ids[0])):
            options.clock.made_with["flops"] = flops
        if doubt := encoding.changed(ids, values):
            if options.doubts is None:
                log.warning("%s on %s: %s", method.label, dataset.id, doubt)
            else:
                options.doubts.append(doubt)
    elif options.clock is not None:
        options.clock.made_with = encoding.made_with()  # all of that is in the cache's key
    embeddings = make_embeddings(ids, values)
    if cache and cache.was_read and options.known and embeddings.sha256 not in options.known:
        log.warning("cached embeddings of %s on %s are not those on record: made again", method.id, dataset.id)
        values = _encode(encoding, ids, None, options)
        cache.save(ids, values)
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
            values = cache.load(part, start) if cache else None
            if values is None:
                values = encoding.encode(part, advance, options.clock)
                if cache and len(values) == len(part):
                    cache.save(part, values, start)
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


class EncodeCache:
    """The finished embeddings ``<key>.npz`` of one run, and beside it a folder with the chunks done so far.

    Each file carries a seal: a hash of its key, its ids and its values. So a file that was damaged, cut off, or put in
    another one's place is noticed and made again. A seal is no signature: who replaces a file on purpose can make the
    seal, too. Therefore a run also compares with the hashes in records (``known``), and ``neuco verify`` reads no
    cache. If files cannot be written, a ``spare`` folder takes them: the workers of a run share it, so that what one of
    them made is not made again by the others.
    """

    def __init__(self, folder: Path, key: str, spare: Path | None = None) -> None:
        self.key = key
        self.path = folder / f"{key}.npz"
        self.was_read = False
        self._spare = spare
        self._folders = [folder, *([spare / "encoded" / folder.parent.name / folder.name] if spare else [])]
        self._targets = list(self._folders)

    def load(self, ids: tuple[str, ...], start: int | None = None) -> np.ndarray | None:
        """The finished values, or those of the chunk that starts at a sample; a damaged file counts as none."""
        name = self.path.name if start is None else f"{self.key}/{start:07d}.npz"
        for folder in self._folders:
            path = folder / name
            try:
                # Opened here: numpy leaves a file open that it cannot read.
                with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                    seal, values = str(archive["seal"]), archive["values"]
                intact = values.dtype == np.float32 and values.ndim == 2
                intact = intact and seal == f"{self.key} {content_hash(ids, values)}"
            except (FileNotFoundError, NotADirectoryError):
                continue
            except Exception:  # a broken zip shows itself in many ways; all of them mean: make it again
                intact = False
            if intact:
                self.was_read = True
                return np.asarray(values)
            log.warning("damaged embeddings in the cache are made again: %s", path)
        return None

    def save(self, ids: tuple[str, ...], values: np.ndarray, start: int | None = None) -> None:
        """Keep finished values, in the place of all chunks, or those of the chunk that starts at a sample.

        A full or read-only disk is no fault of the method: the run goes on without a cache.
        """
        name = self.path.name if start is None else f"{self.key}/{start:07d}.npz"
        values = np.ascontiguousarray(values, dtype=np.float32)
        buffer = io.BytesIO()
        np.savez(buffer, seal=np.array(f"{self.key} {content_hash(ids, values)}"), values=values)
        for folder in list(self._targets):
            try:
                write_atomic(folder / name, buffer.getvalue())
            except OSError as error:
                self._targets.remove(folder)
                if self._first_to_tell():
                    reason = error.strerror or str(error)
                    log.warning("embeddings cannot be kept in %s: %s. Going on without", cache_dir(), reason)
            else:
                break
        if start is None:
            for folder in self._folders:
                shutil.rmtree(folder / self.key, ignore_errors=True)

    def _first_to_tell(self) -> bool:
        """Whether no other worker has told of this yet."""
        try:
            if self._spare:
                (self._spare / "cache-told").touch(exist_ok=False)
        except OSError as error:
            return not isinstance(error, FileExistsError)
        return True


def open_cache(
    method: Method,
    dataset: Dataset,
    source: CubeSource,
    params: Mapping[str, Any],
    run: Path | None = None,
    device: str = "cpu",
    spare: Path | None = None,
) -> EncodeCache | None:
    """The place for these embeddings, or None if code that makes them cannot be found, e.g. typed into a session.

    ``run`` is a folder of one run that starts empty: its workers share what one of them made, and nobody else does.
    ``spare`` is such a folder for the case that the cache cannot be written.
    """
    folder = Path("encoded", method.id, dataset.id)
    if run is not None:
        return EncodeCache(run / folder, "run")
    code = code_key(method.encoder, home_of(method))
    cubes = code_key(dataset.cubes, home_of(dataset))
    if code is None or cubes is None:
        return None
    identity: dict[str, Any] = {
        "layout": LAYOUT,
        "dataset": [dataset.id, dataset.version, source.version, list(source.bands), list(source.seasons), cubes],
        "method": [method.id, method.version],
        "params": dict(params),
        "code": code,
        "packages": {name: installed_version(name) for name in {"numpy", *map(requirement_name, method.requires)}},
    }
    if method.weights:
        identity["weights"] = {name: require_pin(remote).sha256 for name, remote in method.weights.items()}
    if device != "cpu":
        identity["device"] = device
    return EncodeCache(cache_dir() / folder, hashed(identity)[:32], spare)
