"""Do embeddings cover a dataset? Missing ids are counted and named; nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuco_core.encoders import MAX_DIM
from neuco_core.errors import DataError, NeucoError
from neuco_core.text import join_names

if TYPE_CHECKING:
    from neuco_core.specs import Dataset
    from neuco_core.tables.embeddings import Embeddings

SHOWN = 5


def coverage(embeddings: Embeddings, dataset: Dataset) -> dict[str, Any]:
    """What embeddings hold, compared with the ids of a dataset, as `neuco check --json` gives it.

    ``problems`` has one sentence for each reason to refuse them; ids that the dataset does not know are not a reason.
    Infinite values and duplicate ids are already errors when a file is read.
    """
    wanted = dataset_ids(dataset)
    present, known = set(embeddings.ids), set(wanted)
    missing = [name for name in wanted if name not in present]
    unknown = [name for name in embeddings.ids if name not in known]
    replaced = sum(embeddings.replaced.values())
    problems = []
    if missing:
        first = "the first are " if len(missing) > SHOWN else ""
        problems.append(f"{len(missing)} of {len(wanted)} ids are missing: {first}{', '.join(missing[:SHOWN])}")
    if embeddings.dim > MAX_DIM:
        problems.append(f"{embeddings.dim} dimensions; at most {MAX_DIM} are allowed")
    if replaced:
        problems.append(f"{replaced} values are missing or not numbers")
    about = f"{len(embeddings)} rows of {embeddings.dim} values for {len(wanted)} ids of {dataset.id}"
    if unknown:
        about += f"; {len(unknown)} rows belong to no sample of it ({join_names(unknown, SHOWN)})"
    return {
        "dataset": dataset.id,
        "rows": len(embeddings),
        "dim": embeddings.dim,
        "ids": len(wanted),
        "missing": len(missing),
        "first_missing": missing[:SHOWN],
        "unknown": len(unknown),
        "first_unknown": unknown[:SHOWN],
        "replaced_values": replaced,
        "sha256": embeddings.sha256,
        "ok": not problems,
        "problems": problems,
        "about": about,
    }


def dataset_ids(dataset: Dataset) -> tuple[str, ...]:
    """The ids of the cubes or, where no cubes are available, all ids with a label in a task of the dataset."""
    if dataset.cubes is not None:
        try:
            return tuple(dataset.cubes().ids())
        except NeucoError as error:
            reason: NeucoError | None = error
    else:
        reason = None
    from neuco_core.plugins.catalog import list_tasks

    ids: dict[str, None] = {}
    for task in list_tasks(dataset=dataset.id):
        try:
            ids.update(dict.fromkeys(task.labels().ids))
        except NeucoError as error:
            reason = reason or error
    if not ids:
        raise reason or DataError(f"the ids of dataset {dataset.id!r} are unknown: it has no cubes and no tasks")
    return tuple(ids)
