"""Does a file of embeddings cover a dataset? Missing ids are counted and named; nothing is changed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuco_core.encoders import MAX_DIM
from neuco_core.errors import DataError, NeucoError
from neuco_core.tables.embeddings import read_embeddings

if TYPE_CHECKING:
    from neuco_core.specs import Dataset

SHOWN = 5


@dataclass(frozen=True)
class Validation:
    """What a file holds, compared with the ids of a dataset."""

    file: str
    dataset: str
    rows: int
    dim: int
    ids: int
    missing: int
    first_missing: tuple[str, ...]
    unknown: int
    first_unknown: tuple[str, ...]
    replaced_values: int
    sha256: str

    def problems(self) -> list[str]:
        """One sentence for each reason to refuse the file; ids that the dataset does not know are not a reason."""
        problems = []
        if self.missing:
            names = ", ".join(self.first_missing)
            which = f"the first are {names}" if self.missing > SHOWN else names
            problems.append(f"{self.missing} of {self.ids} ids are missing: {which}")
        if self.dim > MAX_DIM:
            problems.append(f"{self.dim} dimensions; at most {MAX_DIM} are allowed")
        if self.replaced_values:
            problems.append(f"{self.replaced_values} values are missing or not numbers")
        return problems

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ok": not self.problems(), "problems": self.problems()}


def validate_file(path: Path, dataset: Dataset) -> Validation:
    """Read the file and compare. Infinite values and duplicate ids are already errors when the file is read."""
    embeddings = read_embeddings(path)
    wanted = dataset_ids(dataset)
    present, known = set(embeddings.ids), set(wanted)
    missing = tuple(name for name in wanted if name not in present)
    unknown = tuple(name for name in embeddings.ids if name not in known)
    return Validation(
        file=str(path),
        dataset=dataset.id,
        rows=len(embeddings.ids),
        dim=int(embeddings.values.shape[1]),
        ids=len(wanted),
        missing=len(missing),
        first_missing=missing[:SHOWN],
        unknown=len(unknown),
        first_unknown=unknown[:SHOWN],
        replaced_values=sum(embeddings.replaced.values()),
        sha256=embeddings.sha256,
    )


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


def one_line(validation: Validation) -> str:
    """A summary for people."""
    text = f"{validation.rows} rows of {validation.dim} values for {validation.ids} ids of {validation.dataset}"
    if validation.unknown:
        more = f" and {validation.unknown - SHOWN} more" if validation.unknown > SHOWN else ""
        names = ", ".join(validation.first_unknown) + more
        text += f"; {validation.unknown} rows belong to no sample of it ({names})"
    return text
