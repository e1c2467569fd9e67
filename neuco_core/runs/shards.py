"""Encode a dataset on the workers of an engine, in shards: what is saved together is also what a worker does at a time.

A shard comes back with a hash of its ids and values. A worker encodes only if its data, code, parameters and packages
are the same as here, which the key of the cache tells. Shards that are there already are not made again, so a run that
was stopped goes on, here or elsewhere.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from neuco_core.encode.cache import EncodeCache, open_cache
from neuco_core.encode.encoder import check_output, full_params, open_cubes
from neuco_core.encode.encoding import BATCH, Clock, Encoding
from neuco_core.encode.run import chunks_of
from neuco_core.errors import DataError, PluginError, UsageError
from neuco_core.plugins.catalog import load_dataset, load_method
from neuco_core.progress import SampleProgress, sample_progress
from neuco_core.runs.steps import EngineLike, Result, Step, StepLimits
from neuco_core.specs import Method, exact
from neuco_core.tables.embeddings import Embeddings, content_hash, make_embeddings


def encode_shards(
    engine: EngineLike,
    limits: StepLimits,
    method: Method,
    dataset_id: str,
    params: Mapping[str, Any],
    *,
    batch_size: int = BATCH,
    device: str = "",
    cached: bool = True,
    progress: SampleProgress = None,
) -> Embeddings:
    """The embeddings of a dataset, encoded on an engine's workers."""
    encode = getattr(engine, "encode", None)
    if encode is None or method.files:
        what = f"the engine {engine.name!r}" if encode is None else f"method {method.id!r}, which reads a file,"
        raise UsageError(f"{what} cannot encode in shards", hint="Leave out --engine")
    dataset = load_dataset(dataset_id)
    whole = full_params(method, params)
    source = open_cubes(method, dataset)
    ids = tuple(source.ids())
    # Workers may have devices that this machine lacks; which one is used must be said, since it is part of the key.
    cache = open_cache(method, dataset, source, whole, device=device or "cpu")
    if cache is None:
        raise UsageError(f"the code of method {method.id!r} cannot be found by workers", hint="Make a plugin of it")
    values = cache.load(ids) if cached else None
    if values is None:
        plan = Step(
            method.label, dataset_id, params=tuple(params.items()), batch_size=batch_size, device=device, key=cache.key
        )
        with sample_progress(method.id, len(ids), progress) as advance:
            parts = dict(_missing(ids, cache, cached, plan))
            done = {start: part for start, part in parts.items() if isinstance(part, np.ndarray)}
            for part in done.values():
                advance(len(part), made=False)
            for step, result in encode([part for part in parts.values() if isinstance(part, Step)], limits):
                rows = _rows(method, ids[slice(*step.shard)], result)
                if cached:
                    cache.save_chunk(step.shard[0], ids[slice(*step.shard)], rows)
                done[step.shard[0]] = rows
                advance(len(rows), result["bytes"])
        values = np.concatenate([done[start] for start, _ in chunks_of(ids)])
        if cached:
            cache.finish(ids, values)
    return make_embeddings(ids, values)


def _missing(
    ids: tuple[str, ...], cache: EncodeCache, cached: bool, plan: Step
) -> Iterator[tuple[int, np.ndarray | Step]]:
    """Each shard by its start: its values if an earlier run left them, else the step that makes them."""
    for start, part in chunks_of(ids):
        values = cache.load_chunk(start, part) if cached else None
        yield start, replace(plan, shard=(start, start + len(part))) if values is None else values


def _rows(method: Method, ids: tuple[str, ...], result: Result) -> np.ndarray:
    """The values that a worker sent, verified."""
    if result["status"] != "ok":
        kind = PluginError if result.get("failure") == "method" else DataError
        raise kind(str(result["reason"]), where=f"method {method.id!r} on a worker")
    try:
        data = base64.b64decode(result["rows"], validate=True)
        rows = np.frombuffer(data, np.float32).reshape(result["shape"])
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"a worker sent a shard that cannot be read: {error}") from error
    rows = check_output(method, ids, rows)
    if content_hash(ids, rows) != result["sha256"]:
        raise DataError("a worker sent a shard that does not match its hash", got=f"{len(ids)} samples from {ids[0]}")
    return rows


class ShardWork:
    """The worker's side: an encoder that is ready stays so for the next shard."""

    def __init__(self) -> None:
        self._step: Step | None = None
        self._encoding: Encoding | None = None

    def do(self, step: Step) -> Result:
        encoding = self._ready(step)
        ids = tuple(encoding.source.ids())[slice(*step.shard)]
        clock, read = Clock(), [0]

        def advance(samples: int, size: int = 0, made: bool = True) -> None:
            read[0] += size

        with encoding.running():
            rows = np.ascontiguousarray(encoding.encode(ids, advance, clock), dtype=np.float32)
        sent = {"rows": base64.b64encode(rows.tobytes()).decode(), "shape": list(rows.shape), "bytes": read[0]}
        return {"status": "ok", **sent, "sha256": content_hash(ids, rows), "made_with": clock.made_with}

    def _ready(self, step: Step) -> Encoding:
        place = replace(step, shard=())
        if self._encoding is None or self._step != place:
            self._encoding = None
            method, dataset = load_method(exact(step.method)), load_dataset(step.dataset)
            params = full_params(method, dict(step.params))
            source = open_cubes(method, dataset)
            cache = open_cache(method, dataset, source, params, device=step.device or "cpu")
            if cache is None or cache.key != step.key:
                what = "the worker's data, code or packages are not those of the machine that gathers"
                raise DataError(what, where=step.dataset, hint="Install the same versions and link the same data")
            self._encoding = Encoding(method, source, params, step.batch_size, step.threads, step.device or "cpu")
            self._step = place
        return self._encoding
