"""A fitted model as a JSON file: what was learnt, by name, and the hash of the table that it was learnt from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from neuco_core import __version__
from neuco_core.errors import DataError
from neuco_core.files import read_limited, replacing
from neuco_core.jsonio import dump, hashed, jsonable
from neuco_extensions.predict.predictor import Mix, Predictor
from neuco_extensions.predict.process import Process
from neuco_extensions.predict.table import Table

LARGEST = 10_000_000


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``kernels`` and ``tasks`` name what the arrays of ``mix`` are about; ``least`` is that of the command."""

    source: str
    least: int
    table: str
    methods: list[str]
    tasks: list[str]
    known: int
    kernels: list[str]
    seed: int
    mix: Mix
    neuco: str = __version__
    format: Literal[1] = 1


def table_hash(table: Table) -> str:
    """The sha256 of all that a model learns from: names, scores and facts."""
    facts = [{name: dict(own) for name, own in side.items()} for side in (table.method_facts, table.task_facts)]
    return hashed([table.methods, table.tasks, jsonable(table.values.tolist()), *facts])


def keep(predictor: Predictor, source: str, least: int) -> Kept:
    table, process = predictor.table, predictor.process
    kernels = [kernel.name for kernel in process.kernels] if isinstance(process, Process) else []
    names = list(table.methods), list(table.tasks)
    known = int(table.known.sum())
    return Kept(source, least, table_hash(table), *names, known, kernels, predictor.seed, predictor.mix)


def write(path: Path, kept: Kept) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(dump(to_json(kept)))


def read(path: Path) -> Kept:
    try:
        return msgspec.json.decode(read_limited(path, LARGEST), type=Kept, dec_hook=_array)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        said = str(error).replace(" - at `$", ", at `")
        raise DataError(f"not a fitted model: {said}", where=path, hint="`neuco predict fit` makes one") from error


def restore(path: Path, table: Table) -> Predictor:
    """The predictor of a file, for the very table that it was fitted on: of another one it would know nothing."""
    kept = read(path)
    hint = f"Fit again: neuco predict fit {kept.source} --least {kept.least} --out {path}"
    if kept.table != table_hash(table):
        got = f"{table.known.sum()} scores of {len(table.methods)} methods on {len(table.tasks)} tasks"
        expected = f"the {kept.known} scores of {len(kept.methods)} methods on {len(kept.tasks)} tasks it was fitted on"
        raise DataError("fitted on another table", where=path, expected=expected, got=got, hint=hint)
    try:
        restored = Predictor(kept.seed).refit(table, kept.mix)
        restored.predict()
    except (ValueError, IndexError) as error:  # arrays of another size: the kernels or the parts were others then
        raise DataError(f"fitted by neuco {kept.neuco}, which learnt otherwise", where=path, hint=hint) from error
    return restored


def learnt(kept: Kept) -> dict[str, float]:
    """How much of the variance of scores each kernel explains, and noise; the mean of a task is not among them.

    Nothing for a table that is too large for kernels.
    """
    if kept.mix.learnt is None:
        return {}
    variances = np.exp(kept.mix.learnt.variances)[1:]
    names = [*kept.kernels[1:], "noise"]
    return dict(zip(names, (variances / variances.sum()).tolist(), strict=True))


def to_json(kept: Kept) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(kept, enc_hook=_plain)
    return found


def _plain(value: Any) -> Any:
    return value.tolist()  # an array, or one number of numpy


def _array(kind: type, value: Any) -> Any:
    if kind is not np.ndarray:  # msgspec asks so for every type that it does not know, and expects this answer
        raise NotImplementedError(kind)
    return np.asarray(value, float)
