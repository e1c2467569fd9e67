"""``neuco new method``: a plugin around embeddings in a file or at an address, or a working encoder to start from."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import ClassVar

from packaging.requirements import Requirement

from neuco_core.contract import scaffold
from neuco_core.contract.scaffold import ENDINGS, Destination, PluginRequest
from neuco_core.encode.lock import FILE as LOCK
from neuco_core.encode.validate import dataset_ids
from neuco_core.env import requirement_name
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.plugins.catalog import load_dataset
from neuco_core.tables.embeddings import Embeddings, read_embeddings

PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:==[A-Za-z0-9][A-Za-z0-9.!+_-]*)?")
FACTORY = """
def _encoder({arguments}) -> Any:
    # Imported only when the method is run, so that listing methods stays quick.
    from {package}.encoder import Encoder

    return Encoder({names})

"""
FILE_TEST = """from neuco_core import load_method
from neuco_core.testing import contract

test_contract = contract("method", "{name}")


def test_the_embeddings_are_those_that_were_packaged() -> None:
    embeddings = load_method("{name}").embeddings("{dataset}")
    assert embeddings.values.shape == ({rows}, {dim})"""
ENCODER_TEST = """import numpy as np

from neuco_core.testing import TinyCubes, check_encoder{needs}
{skip}

def test_keeps_the_promises_of_an_encoder() -> None:
{later}    # Twice the same, whatever the batches and the order; finite; at most 1,024 numbers. No label is needed.
    cubes = TinyCubes(bands=("grey/0",), seasons=("scene",), size=8)
    values = check_encoder({encoder}, cubes)
    assert np.isfinite(values).all()"""


@dataclass(frozen=True, kw_only=True)
class MethodRequest(PluginRequest):
    """Embeddings of a dataset, in a file or at an address; or an encoder with its packages and weights."""

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
        core = {requirement_name(Requirement(line).name) for line in metadata.requires("neuco") or ()}
        for item in self.requires:
            if not PACKAGE.fullmatch(item):
                raise UsageError("not a package", expected="NAME or NAME==VERSION", got=repr(item))
            if requirement_name(item.partition("==")[0]) in core:
                raise UsageError(f"{item} is one of neuco's own packages: every method has it", hint="Leave it out")

    @property
    def packages(self) -> list[str]:
        return sorted({item.partition("==")[0] for item in self.requires})


@dataclass(frozen=True)
class NewMethod:
    """What was made, and what there is to know about it."""

    path: Path
    notes: tuple[str, ...] = ()


def new_method(request: MethodRequest) -> NewMethod:
    """Write a plugin for embeddings of a dataset, or without them for an encoder."""
    destination = scaffold.choose_destination(request)
    notes: tuple[str, ...] = ()
    with tempfile.TemporaryDirectory() as scratch, scaffold.building(destination) as folder:
        if request.embeddings and request.dataset:
            path = scaffold.bring(request.embeddings, Path(scratch))
            embeddings = read_embeddings(path, strict=True, dim=1024)
            notes = (_compare(embeddings, request.dataset),)
            fields = _file_fields(request, destination, folder, path, embeddings)
        else:
            fields = _encoder_fields(request, destination, Path(scratch))
            template = "method_encoder_weights.py" if request.weights else "method_encoder.py"
            (folder / "encoder.py").write_text(scaffold.fill(template, fields), encoding="utf-8")
        scaffold.write_plugin(folder, request, destination, fields)
    return NewMethod(destination.target, notes)


def lock_command(requires: Sequence[str], folder: Path) -> str:
    """What locks the packages of an encoder, with all that they need, in versions that go with neuco's own."""
    options = "--generate-hashes --only-binary :all: --python-version 3.11 --constraint constraints.txt"
    return f"echo {' '.join(requires)} | tr ' ' '\\n' | uv pip compile - {options} --output-file {folder / LOCK}"


def _compare(embeddings: Embeddings, name: str) -> str:
    """Rows must be of samples of the dataset; whether all labelled ones are there is for the contract to say."""
    dataset = load_dataset(name)
    try:
        wanted = dataset_ids(dataset)
    except NeucoError as error:
        return f"ids not compared: {error.what}"
    matched = set(wanted) & set(embeddings.ids)
    if not matched:
        expected, got = f"ids such as {wanted[0]!r}", f"{embeddings.ids[0]!r}"
        raise DataError(f"no row is of a sample of {dataset.id}", expected=expected, got=got)
    stray = len(embeddings) - len(matched)
    more = f", and {stray} rows of no sample of it" if stray else ""
    return f"{len(matched)} of {len(wanted)} samples of {dataset.id}{more}"


def _file_fields(
    request: MethodRequest, destination: Destination, folder: Path, path: Path, embeddings: Embeddings
) -> dict[str, object]:
    address = str(request.embeddings)
    published = address.startswith(ENDINGS)
    if not published:
        hint = (
            f"Publish it and declare it by its address: `neuco data upload {path} s3://BUCKET/PREFIX/` prints one; or "
            "upload it elsewhere (Hugging Face, a release on GitHub); then `neuco new method --embeddings ADDRESS`"
        )
        scaffold.refuse_large(path, destination, hint)
        file = f"embeddings{path.suffix.lower()}"
        shutil.copyfile(path, folder / file)
        address = destination.address(file)
    remote = scaffold.declare(scaffold.remote_of(address, path), 12)
    dataset = load_dataset(str(request.dataset)).id
    test = FILE_TEST.format(name=request.name, dataset=dataset, rows=len(embeddings), dim=embeddings.dim)
    where = f", at {address}." if published else "."
    return {
        **request.fields(),
        "what": f'files={{\n            "{request.dataset}": {remote},\n        }}',
        "remote_import": ", Remote",
        "typing_import": "",
        "factory": "",
        "dim": embeddings.dim,
        "dim_words": f"{embeddings.dim} numbers for each of {len(embeddings)} samples.",
        "source_words": f"`{address.rpartition('/')[2]}`: embeddings of `{request.dataset}`{where}",
        "test_words": f": the contract of all methods (`neuco check {request.name}`)",
        "test_body": test,
    }


def _encoder_fields(request: MethodRequest, destination: Destination, scratch: Path) -> dict[str, object]:
    weights: dict[str, str] = {}
    for text in request.weights:
        name, equals, url = text.partition("=")
        if not equals or not name.isidentifier() or not url.startswith(ENDINGS):
            expected = "NAME=ADDRESS, e.g. backbone=https://…/model.safetensors"
            raise UsageError("bad weights", expected=expected, got=text)
        weights[name] = url
    arguments, names = ", ".join(f"{name}: Path" for name in weights), ", ".join(weights)
    lines = ["encoder=_encoder"]
    if request.packages:
        lines.append("requires=(" + " ".join(f'"{name}",' for name in request.packages) + ")")
    if weights:
        lines.append("weights={")
        for name, url in weights.items():
            remote = scaffold.declare(scaffold.remote_of(url, scaffold.bring(url, scratch)), 12)
            lines[-1] += f'\n            "{name}": {remote},'
        lines[-1] += "\n        }"
    return {
        **request.fields(),
        "what": ",\n        ".join(lines),
        "remote_import": ", Remote" if weights else "",
        "typing_import": ("from pathlib import Path\n" if weights else "") + "from typing import Any\n",
        "factory": FACTORY.format(package=destination.package, arguments=arguments, names=names),
        "arguments": arguments,
        "weight": next(iter(weights), ""),
        "dim": None,
        "dim_words": "As many numbers as the dataset has seasons times bands.",
        "source_words": "`encoder.py`." + "".join(f" Weights: {url}." for url in weights.values()),
        "test_words": "",
        "test_body": _encoder_test(request, destination),
    }


def _encoder_test(request: MethodRequest, destination: Destination) -> str:
    """Weights are fetched and packages imported where the method is run; a machine without them skips the test."""
    if request.weights:
        later = (
            "    from neuco_core import load_method\n"
            "    from neuco_core.encode.encoder import full_params, make_encoder\n\n"
            f'    method = load_method("{request.name}")\n'
        )
        encoder = "lambda: make_encoder(method, full_params(method, {}))"
    else:
        later, encoder = f"    from {destination.package}.encoder import Encoder\n\n", "Encoder"
    names = ", ".join(f'"{name}"' for name in request.packages)
    skip = f"\npytestmark = needs({names})\n" if names else ""
    return ENCODER_TEST.format(needs=", needs" if names else "", skip=skip, later=later, encoder=encoder)
