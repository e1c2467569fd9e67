"""Encoders in their sandboxes: what they see of a dataset, and what comes out.

An encoder learns from the dataset in its order, under names that keep that order, because what it learns may depend on
it. It then encodes the same samples shuffled, under names that say nothing: what it knows of names and places is of no
use. Names, shuffling and noise are made outside, where no contributed code can look.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci.boxes import CUBES, SAMPLES, Boxes, PluginData
from ci.collect import read_array
from ci.extract import fetch_sources
from ci.inside import write_json
from ci.stub import LARGEST_IDS, place_of, read_json
from neuco_core.contract.perturb import some_rows, with_noise
from neuco_core.encode.encoder import check_bands
from neuco_core.errors import DataError, UnpinnedError
from neuco_core.fetch.pins import find_pin
from neuco_core.specs import Dataset, Method

if TYPE_CHECKING:
    import numpy as np

BATCHES = (64, 5)  # a contributed encoder must give the same for both


@dataclass(frozen=True)
class Encoding:
    """An encoder and the cubes that it is run on."""

    owner: PluginData
    method: Method
    dataset: Dataset
    cubes: Path


def make_embeddings(boxes: Boxes, job: Encoding) -> None:
    """Run an encoder on one dataset; a contributed one twice, in batches of two sizes, and both must agree."""
    import numpy as np

    from neuco_core.contract.repeatability import agree, allowed, in_words

    check_bands(job.method, job.dataset.id, job.dataset.bands)
    fetch_weights(job.owner, job.method)
    words = read_json(job.cubes / "cubes.json", LARGEST_IDS)
    first, _ = _encode(boxes, job, words, BATCHES[0])
    _keep(job, "embeddings", first)
    if job.owner.kept:
        return
    again, noisy = _encode(boxes, job, words, BATCHES[1])
    if not agree(first, again, job.method.tolerance):
        what = f"different numbers for {job.dataset.id} with another batch size, order and sample names"
        raise DataError(what, expected=allowed(job.method.tolerance), got=in_words(first, again))
    calm = first[some_rows(len(first))]
    _keep(job, "disturbed", np.stack([calm, noisy if len(noisy) else calm]))


def fetch_weights(owner: PluginData, method: Method) -> None:
    """Fetch a method's weights outside the sandbox: here is a network, and the sha256 is checked."""
    for name, remote in method.weights.items():
        if find_pin(remote) is None:
            what = f"the weights {name!r} of {method.id} are not pinned"
            hint = f"A maintainer must fetch and verify them once: `neuco data pin --method {method.id}`"
            raise UnpinnedError(what, where=remote.url, hint=hint)
    fetch_sources(owner, [method])


def _keep(job: Encoding, what: str, values: np.ndarray) -> None:
    import numpy as np

    path = job.owner.made / what / place_of(job.method) / f"{job.dataset.id}.npy"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, values, allow_pickle=False)


def _encode(boxes: Boxes, job: Encoding, words: Mapping[str, Any], batch: int) -> tuple[np.ndarray, np.ndarray]:
    """One run: embeddings of all samples in their order, and of some with a little noise."""
    import numpy as np

    step = f"encode-{place_of(job.method)}-{job.dataset.id}-{batch}"
    folder = boxes.scratch / "renamed" / job.owner.touched.folder / step
    count = len(words["ids"])
    named = job.method.uses_ids
    noisy = np.array([], dtype=int) if named or job.owner.kept else some_rows(count)
    rows = np.concatenate([np.arange(count), noisy])
    order = np.arange(count) if named else np.random.default_rng(secrets.randbits(128)).permutation(len(rows))
    learn, samples = folder / "learn", folder / "samples"
    _write(learn, words, words["ids"] if named else sorted_names(words["ids"]))
    os.link(job.cubes / "cubes.npy", learn / "cubes.npy")
    _write(samples, words, words["ids"] if named else new_names(len(rows)))
    _shuffle(job.cubes / "cubes.npy", samples / "cubes.npy", rows[order], order >= count)
    arguments = (job.owner.touched.name, job.method.label, job.dataset.id, str(batch), CUBES, SAMPLES)
    try:
        out = boxes.inside(job.owner, step, "encode", *arguments, **{CUBES[1:]: learn, SAMPLES[1:]: samples})
    finally:
        shutil.rmtree(folder)
    if not (out / "embeddings.npy").is_file():
        raise DataError("the encoder wrote no embeddings", where=job.dataset.id)
    values = read_array(out / "embeddings.npy", len(rows))[np.argsort(order)]
    return values[:count], values[count:]


def _write(folder: Path, words: Mapping[str, Any], ids: Sequence[str]) -> None:
    folder.mkdir(parents=True)
    write_json(folder / "cubes.json", {**words, "ids": ids})


def _shuffle(source: Path, target: Path, rows: np.ndarray, noisy: np.ndarray) -> None:
    """Write the cubes in another order, with noise in some of them."""
    import numpy as np

    cubes = np.load(source, mmap_mode="r", allow_pickle=False)
    shape = (len(rows), *cubes.shape[1:])
    shuffled = np.lib.format.open_memmap(target, mode="w+", dtype=np.float32, shape=shape)
    for place, (row, noise) in enumerate(zip(rows, noisy, strict=True)):
        shuffled[place] = with_noise(cubes[row]) if noise else cubes[row]
    shuffled.flush()


def new_names(count: int) -> list[str]:
    """Names that say nothing."""
    names: set[str] = set()
    while len(names) < count:
        names.add(secrets.token_hex(8))
    return list(names)


def sorted_names(ids: Sequence[str]) -> list[str]:
    """Names that say nothing but their order when sorted, by which an encoder may learn."""
    renamed = dict(zip(sorted(ids), sorted(new_names(len(ids))), strict=True))
    return [renamed[name] for name in ids]
