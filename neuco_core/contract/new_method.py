"""``neuco new method``: a plugin around embeddings in a file or at an address, or a working encoder to start from."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from neuco_core.contract import scaffold
from neuco_core.contract.scaffold import Place, Words
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.plugins.catalog import load_dataset

if TYPE_CHECKING:
    from neuco_core.tables.embeddings import Embeddings

FACTORY = """
def _encoder({arguments}) -> Any:
    # Imported only when the method is run, so that listing methods stays quick.
    from {package}.encoder import Encoder

    return Encoder({given})

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


@dataclass
class NewMethod:
    """What was made, and what there is to know about it."""

    path: Path
    notes: list[str] = field(default_factory=list)


def new_method(
    words: Words,
    *,
    embeddings: str | None = None,
    dataset: str | None = None,
    requires: Sequence[str] = (),
    weights: Sequence[str] = (),
    into: Path | None = None,
    as_package: bool = False,
) -> NewMethod:
    """Write a plugin for embeddings of a dataset, or without them for an encoder, its packages and its weights."""
    if embeddings is not None and dataset is None:
        raise UsageError("embeddings of which dataset?", expected="--dataset", hint="See `neuco datasets`")
    if embeddings is not None and (requires or weights):
        raise UsageError("packages and weights are for an encoder", expected="--encoder", got="--embeddings")
    place = scaffold.choose_place(words.name, "neuco_methods", into, as_package)
    made = NewMethod(place.target)
    with tempfile.TemporaryDirectory() as scratch, scaffold.building(place) as folder:
        if embeddings and dataset:
            fields = _file(folder, place, words, embeddings, dataset, Path(scratch), made)
        else:
            fields = _encoder(folder, place, words, requires, weights, Path(scratch))
        (folder / "__init__.py").write_text(scaffold.fill("method_init.py", fields), encoding="utf-8")
        (folder / "README.md").write_text(scaffold.fill("method_card.md", fields), encoding="utf-8")
        (folder / "test.py").write_text(scaffold.fill("method_test.py", fields), encoding="utf-8")
        if embeddings is None:
            template = "method_encoder_weights.py" if weights else "method_encoder.py"
            (folder / "encoder.py").write_text(scaffold.fill(template, fields), encoding="utf-8")
        if as_package:
            scaffold.write_package(folder, words, ["method"], place.package)
    return made


def _common(words: Words) -> dict[str, object]:
    caveats = words.caveats or scaffold.CAVEATS["method"]
    return {**words.fields(), "citation_words": words.citation or "None yet.", "caveats": caveats}


def _file(
    folder: Path, place: Place, words: Words, source: str, dataset: str, scratch: Path, made: NewMethod
) -> dict[str, object]:
    from neuco_core.tables.embeddings import read_embeddings

    path = scaffold.bring(source, scratch)
    embeddings = read_embeddings(path, strict=True, dim=1024)
    made.notes += _compare(embeddings, dataset)
    address = source
    if not source.startswith(scaffold.ENDINGS):
        scaffold.refuse_large(path, place, _published(path))
        name = f"embeddings{path.suffix.lower()}"
        shutil.copyfile(path, folder / name)
        address = place.address(name)
    remote = scaffold.declare(scaffold.remote_of(address, path), 12)
    body = FILE_TEST.format(name=words.name, dataset=load_dataset(dataset).id, rows=len(embeddings), dim=embeddings.dim)
    return {
        **_common(words),
        "what": f'files={{\n            "{dataset}": {remote},\n        }}',
        "remote_import": ", Remote",
        "typing_import": "",
        "factory": "",
        "dim": embeddings.dim,
        "dim_words": f"{embeddings.dim} numbers for each of {len(embeddings)} samples.",
        "source_words": f"`{address.rpartition('/')[2]}`: embeddings of `{dataset}`"
        + (f", at {address}." if address == source else "."),
        "test_words": f": the contract of all methods (`neuco check {words.name}`)",
        "test_body": body,
    }


def _published(path: Path) -> str:
    return (
        f"Publish it and declare it by its address: `neuco data upload {path} s3://BUCKET/PREFIX/` prints one; or "
        "upload it elsewhere (Hugging Face, a release on GitHub); then `neuco new method --embeddings ADDRESS`"
    )


def _compare(embeddings: Embeddings, name: str) -> list[str]:
    """Rows must be of samples of the dataset; whether all labelled ones are there is for the contract to say."""
    from neuco_core.encode.validate import dataset_ids

    dataset = load_dataset(name)
    try:
        wanted = dataset_ids(dataset)
    except NeucoError as error:
        return [f"ids not compared: {error.what}"]
    known = set(wanted) & set(embeddings.ids)
    if not known:
        first = f"{embeddings.ids[0]!r}"
        raise DataError(f"no row is of a sample of {dataset.id}", expected=f"ids such as {wanted[0]!r}", got=first)
    rows = f"{len(known)} of {len(wanted)} samples of {dataset.id}"
    stray = len(embeddings) - len(known)
    return [rows + (f", and {stray} rows of no sample of it" if stray else "")]


def _encoder(
    folder: Path, place: Place, words: Words, requires: Sequence[str], weights: Sequence[str], scratch: Path
) -> dict[str, object]:
    named = [_named(item) for item in weights]
    lines = ["encoder=_encoder"]
    if requires:
        from neuco_core.contract.scaffold_lock import make_lock

        locked = make_lock(requires)
        text = "".join(f"{item}\n".replace(" --hash", " \\\n    --hash") for item in locked)
        (folder / "requirements.txt").write_text(text, encoding="utf-8")
        names = sorted({item.partition("==")[0] for item in requires})
        lines.append("requires=(" + " ".join(f'"{name}",' for name in names) + ")")
    if named:
        remotes = [
            (name, scaffold.declare(scaffold.remote_of(url, scaffold.bring(url, scratch)), 12)) for name, url in named
        ]
        lines.append(
            "weights={\n" + "".join(f'            "{name}": {text},\n' for name, text in remotes) + "        }"
        )
    arguments = ", ".join(f"{name}: Path" for name, _ in named)
    return {
        **_common(words),
        "what": ",\n        ".join(lines),
        "remote_import": ", Remote" if named else "",
        "typing_import": ("from pathlib import Path\n" if named else "") + "from typing import Any\n",
        "factory": FACTORY.format(
            package=place.package, arguments=arguments, given=", ".join(name for name, _ in named)
        ),
        "arguments": arguments,
        "weight": named[0][0] if named else "",
        "dim": None,
        "dim_words": "As many numbers as the dataset has seasons times bands.",
        "source_words": "`encoder.py`." + "".join(f" Weights: {url}." for _, url in named),
        "test_words": "",
        "test_body": _encoder_test(words.name, place, [item.partition("==")[0] for item in requires], bool(named)),
    }


def _named(text: str) -> tuple[str, str]:
    name, equals, url = text.partition("=")
    if not equals or not name.isidentifier() or not url.startswith(scaffold.ENDINGS):
        expected = "NAME=ADDRESS, e.g. backbone=https://…/model.safetensors"
        raise UsageError("bad weights", expected=expected, got=text)
    return name, url


def _encoder_test(name: str, place: Place, packages: Sequence[str], weights: bool) -> str:
    """Weights are fetched and packages imported where the method is run; a machine without them skips the test."""
    names = ", ".join(f'"{item}"' for item in packages)
    if weights:
        later = (
            "    from neuco_core import load_method\n"
            "    from neuco_core.encode.encoder import full_params, make_encoder\n\n"
            f'    method = load_method("{name}")\n'
        )
        encoder = "lambda: make_encoder(method, full_params(method, {}))"
    else:
        later, encoder = f"    from {place.package}.encoder import Encoder\n\n", "Encoder"
    skip = f"\npytestmark = needs({names})\n" if packages else ""
    return ENCODER_TEST.format(needs=", needs" if packages else "", skip=skip, later=later, encoder=encoder)
