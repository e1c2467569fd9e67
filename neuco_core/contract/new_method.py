"""``neuco new method``: a plugin around a file of embeddings, or a working encoder to be made your own."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from neuco_core.contract.scaffold import Place, Words, building, choose_place, fill, write_package
from neuco_core.errors import UsageError
from neuco_core.plugins.catalog import load_dataset

FACTORY = """
def _encoder() -> Any:
    # Imported only when the method is run, so that listing methods stays quick.
    from {package}.encoder import Encoder

    return Encoder()

"""
FILE_TEST = """from neuco_core import load_method
from neuco_core.testing import contract

test_contract = contract("method", "{name}")


def test_the_embeddings_are_those_that_were_packaged() -> None:
    embeddings = load_method("{name}").embeddings("{dataset}")
    assert embeddings.values.shape == ({rows}, {dim})"""
ENCODER_TEST = """import numpy as np

from neuco_core.testing import TinyCubes, check_encoder
from {package}.encoder import Encoder


def test_keeps_the_promises_of_an_encoder() -> None:
    # Twice the same, whatever the batches and the order; finite; at most 1,024 numbers. No label is needed for that.
    values = check_encoder(Encoder, TinyCubes(bands=("grey/0",), seasons=("scene",), size=8))
    assert np.isfinite(values).all()"""


def new_method(
    words: Words,
    *,
    embeddings: Path | None = None,
    dataset: str | None = None,
    into: Path | None = None,
    as_package: bool = False,
) -> Path:
    """Write a plugin for a file of embeddings of a dataset, or without one for an encoder."""
    if embeddings is not None and dataset is None:
        raise UsageError("embeddings of which dataset?", expected="--dataset", hint="See `neuco datasets`")
    place = choose_place(words.name, "neuco_methods", into, as_package)
    with building(place) as folder:
        fields = _file(folder, place, words, embeddings, dataset) if embeddings and dataset else _encoder(place, words)
        (folder / "__init__.py").write_text(fill("method_init.py", fields), encoding="utf-8")
        (folder / "README.md").write_text(fill("method_card.md", fields), encoding="utf-8")
        (folder / "test.py").write_text(fill("method_test.py", fields), encoding="utf-8")
        if embeddings is None:
            (folder / "encoder.py").write_text(fill("method_encoder.py", fields), encoding="utf-8")
        if as_package:
            write_package(folder, words, ["method"], place.package)
    return place.target


def _common(words: Words) -> dict[str, object]:
    return {**words.fields(), "citation_words": words.citation or "None yet."}


def _file(folder: Path, place: Place, words: Words, source: Path, dataset: str) -> dict[str, object]:
    from neuco_core.tables.embeddings import read_embeddings

    embeddings = read_embeddings(source, strict=True, dim=1024)
    name = f"embeddings{source.suffix.lower()}"
    shutil.copyfile(source, folder / name)
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    size = (folder / name).stat().st_size
    arguments = (f'"{place.address(name)}"', f'sha256="{digest}"', f"size={size}")
    remote = "Remote(\n" + "".join(f"                {item},\n" for item in arguments) + "            )"
    body = FILE_TEST.format(name=words.name, dataset=load_dataset(dataset).id, rows=len(embeddings), dim=embeddings.dim)
    return {
        **_common(words),
        "what": f'files={{\n            "{dataset}": {remote},\n        }}',
        "remote_import": ", Remote",
        "typing_import": "",
        "factory": "",
        "dim": embeddings.dim,
        "dim_words": f"{embeddings.dim} numbers for each of {len(embeddings)} samples.",
        "source_words": f"`{name}`: embeddings of `{dataset}`.",
        "test_words": f": the contract of all methods (`neuco check {words.name}`)",
        "test_body": body,
    }


def _encoder(place: Place, words: Words) -> dict[str, object]:
    return {
        **_common(words),
        "what": "encoder=_encoder",
        "remote_import": "",
        "typing_import": "from typing import Any\n",
        "factory": FACTORY.format(package=place.package),
        "dim": None,
        "dim_words": "As many numbers as the dataset has seasons times bands.",
        "source_words": "`encoder.py`.",
        "test_words": "",
        "test_body": ENCODER_TEST.format(package=place.package),
    }
