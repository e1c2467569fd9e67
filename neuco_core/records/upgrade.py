"""Older records, read as today's: each step turns the values of one schema into those of the next, in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from neuco_core.errors import DataError
from neuco_core.jsonio import hashed
from neuco_core.records.model import SCHEMA, Scalar
from neuco_core.text import shorten


def upgraded(values: dict[str, Any], where: object) -> dict[str, Any]:
    """The values of a record of any known schema, as the present one has them."""
    schema = values.get("schema")
    if type(schema) is int and schema == 1 and isinstance(values.get("inputs"), dict):
        if "splits" in values or values.get("fingerprint") != hashed(values["inputs"]):
            raise DataError("a record of schema 1 whose fields or fingerprint are not those of schema 1", where=where)
        splits, inputs = values.pop("folds", {}), inputs_of(1, values["inputs"])
        return {**values, "schema": 2, "splits": splits, "inputs": inputs, "fingerprint": hashed(inputs)}
    if type(schema) is not int or schema not in (1, SCHEMA):
        newer = isinstance(schema, int) and schema > SCHEMA
        raise DataError(
            "this record was made by a newer version of neuco" if newer else "not a record of a known schema",
            where=where,
            expected=f"schema 1 to {SCHEMA}",
            got=f"schema {shorten(schema)}",
            hint="Update neuco, or delete the file" if newer else "Delete the file, and score its cell again",
        )
    return values


def inputs_of(schema: int, inputs: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The inputs of a record as today's: names and hashes are those of the present schema."""
    if schema != 1:
        return dict(inputs)
    # Schema 1 had no version for what comes with neuco; that was the first version of everything.
    shipped = {name: "v1" for name in ("metric_code", "probe_code", "splitter_code") if inputs.get(name) == ""}
    embeddings = inputs.get("embeddings_from")
    return {
        **inputs,
        **shipped,
        "scorer": "v1" if inputs.get("scorer") == 1 else inputs.get("scorer"),
        "embeddings_from": _encoders_of_schema_1().get(str(embeddings), embeddings),
    }


@cache
def _encoders_of_schema_1() -> Mapping[str, str]:
    """What schema 1 called the embeddings of the shipped encoders → the same today.

    Schema 1 named an encoder by the bytes of its files, which no longer exist as they were. The table was made by
    computing both names of each (method, dataset) with the code of the last commit that wrote schema 1.
    """
    table: dict[str, str] = json.loads((files("neuco_core.records") / "schema-1.json").read_text(encoding="utf-8"))
    return table
