"""``neuco new method``: a plugin around embeddings in a file or at an address, or a working encoder to start from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import ClassVar

from packaging.requirements import Requirement

from neuco_core.contract import scaffold
from neuco_core.contract.scaffold import ADDRESSES, NewPlugin, PluginRequest
from neuco_core.encode.coverage import dataset_ids
from neuco_core.encode.requirements import FILE as LOCK
from neuco_core.encoders import MAX_DIM
from neuco_core.env import requirement_name
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.plugins.catalog import load_dataset
from neuco_core.specs import Dataset, Remote
from neuco_core.tables.embeddings import read_embeddings
from neuco_core.text import join_names

PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:==[A-Za-z0-9][A-Za-z0-9.!+_-]*)?")


@dataclass(frozen=True, kw_only=True)
class MethodRequest(PluginRequest):
    """Embeddings of a dataset, in a file or at an address; or an encoder with its packages and weights.

    An encoder declares the bands of ``dataset``; without one, none, so it is run on the cubes of any dataset.
    """

    embeddings: str | None = None
    dataset: str | None = None
    requires: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    noun: ClassVar[str] = "method"
    tree: ClassVar[str] = "neuco_methods"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.embeddings is not None and self.dataset is None:
            raise UsageError("embeddings of which dataset?", expected="--dataset", hint="See `neuco datasets`")
        if self.embeddings is not None and (self.requires or self.weights):
            raise UsageError("packages and weights are for an encoder", expected="--encoder", got="--embeddings")
        needs = [Requirement(line) for line in metadata.requires("neuco") or ()]
        core = {requirement_name(need.name) for need in needs if not need.marker or need.marker.evaluate({"extra": ""})}
        for item in self.requires:
            if not PACKAGE.fullmatch(item):
                raise UsageError("not a package", expected="NAME or NAME==VERSION", got=repr(item))
            if requirement_name(item.partition("==")[0]) in core:
                raise UsageError(f"{item} is one of neuco's own packages: every method has it", hint="Leave it out")


def new_method(request: MethodRequest) -> tuple[Path, list[str]]:
    """Write a plugin for embeddings of a dataset, or without them for an encoder: where it is, and a few words."""
    with scaffold.building(request) as plugin:
        lines = [str(plugin.target)]
        if request.embeddings is None:
            inputs = load_dataset(request.dataset) if request.dataset else Dataset(id="any")
            _write_encoder(plugin, request.requires, request.weights, inputs)
            every = "none declared: it is run on every dataset; --dataset declares those of one"
            lines.append(f"  bands     {join_names(inputs.bands) or every}")
        else:
            note = _write_embeddings(plugin, request.embeddings, load_dataset(str(request.dataset)))
            lines.append(f"  {note}")
    return plugin.target, lines


def _write_embeddings(plugin: NewPlugin, address: str, dataset: Dataset) -> str:
    path = scaffold.bring(address, plugin.scratch)
    embeddings = read_embeddings(path, strict=True, dim=MAX_DIM)
    # Rows must be of samples of the dataset; whether all labelled ones are there is for the contract to say.
    try:
        wanted = dataset_ids(dataset)
    except NeucoError as error:
        note = f"ids not compared: {error.what}"
    else:
        matched = set(wanted) & set(embeddings.ids)
        if not matched:
            expected, got = f"ids such as {wanted[0]!r}", f"{embeddings.ids[0]!r}"
            raise DataError(f"no row is of a sample of {dataset.id}", expected=expected, got=got)
        stray = len(embeddings) - len(matched)
        note = f"{len(matched)} of {len(wanted)} samples of {dataset.id}"
        note += f", and {stray} rows of no sample of it" if stray else ""
    where = f", at {address}." if address.startswith(ADDRESSES) else "."
    if not address.startswith(ADDRESSES):
        hint = (
            f"Publish it and declare it by its address: `neuco data upload {path} s3://BUCKET/PREFIX/` prints one; or "
            "upload it elsewhere (Hugging Face, a release on GitHub); then `neuco new method --embeddings ADDRESS`"
        )
        address = plugin.keep(path, f"embeddings{path.suffix.lower()}", hint)
    plugin.write(
        dataset=dataset.id,
        remote=scaffold.remote_of(address, path),
        weights={},
        packages=(),
        rows=len(embeddings),
        dim=embeddings.dim,
        dim_text=f"{embeddings.dim} numbers for each of {len(embeddings)} samples.",
        source_text=f"`{address.rpartition('/')[2]}`: embeddings of `{dataset.id}`{where}",
    )
    return note


def _write_encoder(plugin: NewPlugin, requires: Sequence[str], declarations: Sequence[str], inputs: Dataset) -> None:
    weights: dict[str, Remote] = {}
    for text in declarations:
        name, equals, url = text.partition("=")
        if not equals or not name.isidentifier() or not url.startswith(ADDRESSES):
            expected = "NAME=ADDRESS, e.g. backbone=https://…/model.safetensors"
            raise UsageError("bad weights", expected=expected, got=text)
        weights[name] = scaffold.remote_of(url, scaffold.bring(url, plugin.scratch))
    encoder = scaffold.fill("method_encoder.py", {"name": plugin.request.name, "weights": weights})
    (plugin.folder / "encoder.py").write_text(encoder, encoding="utf-8")
    plugin.write(
        remote=None,
        weights=weights,
        packages=sorted({item.partition("==")[0] for item in requires}),
        bands=inputs.bands,
        seasons=inputs.seasons,
        dim=None,
        dim_text="As many numbers as the dataset has seasons times bands.",
        source_text="`encoder.py`." + "".join(f" Weights: {file.url}." for file in weights.values()),
    )


def lock_command(requires: Sequence[str], folder: Path) -> str:
    """What locks the packages of an encoder, with all that they need, in versions that go with neuco's own."""
    options = "--generate-hashes --only-binary :all: --python-version 3.11 --constraint constraints.txt"
    return f"echo {' '.join(requires)} | tr ' ' '\\n' | uv pip compile - {options} --output-file {folder / LOCK}"
