"""Encode a dataset on the workers of an engine, in shards: what is saved together is also what a worker does at a time.

A shard comes back with a hash of its ids and values. A worker encodes only if its data, code, parameters and packages
are the same as here, which the key of the cache tells. Shards that are there already are not made again, so a run that
was stopped goes on, here or elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuco_core.encode.encoding import check_output
from neuco_core.encode.requirements import full_params, open_cubes
from neuco_core.encode.run import AS_USUAL, EncodeOptions, chunks_of, open_cache
from neuco_core.errors import DataError, PluginError, UsageError
from neuco_core.plugins.catalog import load_dataset
from neuco_core.progress import sample_progress
from neuco_core.runs.engine import EngineLike, StepLimits
from neuco_core.runs.messages import Encoded, EncodeShard, Failed, Group, Result
from neuco_core.specs import Method
from neuco_core.tables.embeddings import Embeddings, content_hash, make_embeddings


def encode_shards(
    engine: EngineLike,
    limits: StepLimits,
    method: Method,
    dataset_id: str,
    params: Mapping[str, Any],
    options: EncodeOptions = AS_USUAL,
) -> Embeddings:
    """The embeddings of a dataset, encoded on an engine's workers."""
    if method.files:
        what = f"method {method.id!r} reads a file: there is nothing to encode in shards"
        raise UsageError(what, hint="Leave out --engine")
    dataset = load_dataset(dataset_id)
    source = open_cubes(method, dataset)
    ids = tuple(source.ids())
    # Workers may have devices that this machine lacks; which one is used must be said, since it is part of the key.
    device, cached = options.device or "cpu", options.cached
    cache = open_cache(method, dataset, source, full_params(method, params), device=device)
    if cache is None:
        raise UsageError(f"the code of method {method.id!r} cannot be found by workers", hint="Make a plugin of it")
    values = cache.load(ids) if cached else None
    if values is not None:
        return make_embeddings(ids, values)
    done: dict[int, np.ndarray] = {}
    steps = []
    with sample_progress(method.id, len(ids), options.progress) as advance:
        for start, part in chunks_of(ids):
            rows = cache.load(part, start) if cached else None
            if rows is None:
                stop = start + len(part)
                shard = EncodeShard(
                    method.label, dataset_id, dict(params), cache.key, start, stop, options.batch_size, device
                )
                steps.append(shard)
            else:
                done[start] = rows
                advance(len(rows), made=False)
        for step, result in engine.run([Group(tuple(steps))], limits):
            if isinstance(step, EncodeShard):
                part = ids[step.start : step.stop]
                rows, read = _rows(method, part, result)
                if cached:
                    cache.save(part, rows, step.start)
                done[step.start] = rows
                advance(len(rows), read)
    values = np.concatenate([done[start] for start, _ in chunks_of(ids)])
    if cached:
        cache.save(ids, values)
    return make_embeddings(ids, values)


def _rows(method: Method, ids: tuple[str, ...], result: Result) -> tuple[np.ndarray, int]:
    """The values that a worker sent, verified, and how many bytes it read."""
    if not isinstance(result, Encoded):
        kind = PluginError if isinstance(result, Failed) and result.kind == "method" else DataError
        raise kind(getattr(result, "reason", "no shard came back"), where=f"method {method.id!r} on a worker")
    try:
        rows = np.frombuffer(result.rows, np.float32).reshape(-1, result.dim)
    except ValueError as error:
        raise DataError(f"a worker sent a shard that cannot be read: {error}") from error
    rows = check_output(method, ids, rows)
    if content_hash(ids, rows) != result.sha256:
        raise DataError("a worker sent a shard that does not match its hash", got=f"{len(ids)} samples from {ids[0]}")
    return rows, result.read
