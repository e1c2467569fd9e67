"""Which dataset do labels belong to? Their ids say it, with or without the suffix of an image file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.plugins.catalog import list_datasets, load_dataset

if TYPE_CHECKING:
    from neuco_core.specs import Dataset
    from neuco_core.tables.labels import Labels

MAKE = "make one of your images first: `neuco new dataset NAME --images FOLDER`"


class Matcher:
    """Called with labels, it finds their dataset and gives them its ids; what it found out is kept in words.

    ``renames`` allows to take suffixes off: not of a file that stays where it is.
    """

    def __init__(self, given: str | None, *, renames: bool = True) -> None:
        self.given = load_dataset(given) if given else None
        self.renames = renames
        self.dataset, self.how = "", ""
        self.notes: list[str] = []

    def __call__(self, labels: Labels) -> Labels:
        if self.given:
            self.dataset, self.how = self.given.id, "given"
            known = _ids(self.given)
            if not known:
                self.notes.append(f"no images of {self.dataset} are on this machine: ids were not compared")
                return labels
            return self._renamed(labels, known, self.given.id)
        nearest = (0, "", frozenset[str]())
        for dataset in list_datasets():
            known = _ids(dataset)
            count = max(len(known.intersection(ids)) for ids in self._spellings(labels))
            if count == len(labels):
                self.dataset, self.how = dataset.id, "guessed: it has all the ids"
                return self._renamed(labels, known, dataset.id)
            nearest = max(nearest, (count, dataset.id, known), key=lambda item: item[0])
        count, nearby, known = nearest
        if not count:
            got = f"ids such as {labels.ids[0]!r}"
            raise UsageError("no dataset here has these ids", got=got, hint=f"Say --dataset ID, or {MAKE}")
        spelled = max(self._spellings(labels), key=lambda ids: len(known.intersection(ids)))
        stray = next(name for name, plain in zip(labels.ids, spelled, strict=True) if plain not in known)
        got = f"{count} of {len(labels)} are in {nearby}, and {stray!r} is not"
        raise UsageError("no dataset here has all these ids", got=got, hint=f"Say --dataset {nearby}, or {MAKE}")

    def _spellings(self, labels: Labels) -> list[Sequence[str]]:
        from neuco_core.cubes.images import without_suffix

        return [labels.ids, *([[without_suffix(name) for name in labels.ids]] if self.renames else [])]

    def _renamed(self, labels: Labels, known: frozenset[str], dataset: str) -> Labels:
        plain, *shorter = self._spellings(labels)
        if shorter and len(known.intersection(shorter[0])) > len(known.intersection(plain)):
            changed = sum(before != after for before, after in zip(plain, shorter[0], strict=True))
            self.notes.append(f"the suffix of {changed} ids was taken off: {plain[0]!r} is {shorter[0][0]!r}")
            labels = _with_ids(labels, tuple(shorter[0]))
        found = len(known.intersection(labels.ids))
        if not found:
            expected, got = f"ids such as {min(known)!r}", f"{labels.ids[0]!r}"
            raise DataError(f"no label is of a sample of {dataset}", expected=expected, got=got)
        if found < len(labels):
            stray = next(name for name in labels.ids if name not in known)
            self.notes.append(
                f"{len(labels) - found} labels have no image in {dataset} and are never scored: {stray!r}, …"
            )
        return labels


def _ids(dataset: Dataset) -> frozenset[str]:
    try:
        return frozenset(dataset.cubes().ids()) if dataset.cubes else frozenset()
    except NeucoError:
        return frozenset()  # not on this machine


def _with_ids(labels: Labels, ids: tuple[str, ...]) -> Labels:
    from neuco_core.tables.csv import first_double
    from neuco_core.tables.labels import content_hash

    double = first_double(ids)
    if double is not None:
        raise DataError(
            f"two labels are of {ids[double[0]]!r}", got=f"{labels.ids[double[0]]}, {labels.ids[double[1]]}"
        )
    digest = content_hash(ids, labels.values, labels.groups, labels.split)
    return replace(labels, ids=ids, sha256=digest)
