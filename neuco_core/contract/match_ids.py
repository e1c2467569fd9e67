"""Which dataset do labels belong to? Their ids say it, with or without the suffix of an image file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neuco_core.cubes.images import without_suffix
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.plugins.catalog import list_datasets, load_dataset
from neuco_core.specs import Dataset
from neuco_core.tables.csv import first_double
from neuco_core.tables.labels import Labels, content_hash

MAKE = "make one of your images first: `neuco new dataset NAME --images FOLDER`"


class IdMatcher:
    """Called with labels, it finds their ``dataset`` and gives them its ids; ``how`` and ``notes`` are for people.

    ``renames`` allows to take suffixes off: not of a file that stays where it is.
    """

    def __init__(self, dataset: str | None, *, renames: bool = True) -> None:
        self.wanted = load_dataset(dataset) if dataset else None
        self.renames = renames
        self.dataset, self.how = "", ""
        self.notes: list[str] = []

    def __call__(self, labels: Labels) -> Labels:
        if self.wanted:
            self.dataset, self.how = self.wanted.id, "given"
            known = _ids(self.wanted)
            if not known:
                self.notes.append(f"no images of {self.dataset} are on this machine: ids were not compared")
                return labels
            return self._renamed(labels, known)
        nearest, most = "", 0
        for dataset in list_datasets():
            known = _ids(dataset)
            count = max(len(known.intersection(ids)) for ids in self._spellings(labels))
            if count == len(labels):
                self.dataset, self.how = dataset.id, "guessed: it has all the ids"
                return self._renamed(labels, known)
            if count > most:
                nearest, most = dataset.id, count
        if not nearest:
            got = f"ids such as {labels.ids[0]!r}"
            raise UsageError("no dataset here has these ids", got=got, hint=f"Give --dataset ID, or {MAKE}")
        known = _ids(load_dataset(nearest))
        spelled = max(self._spellings(labels), key=lambda ids: len(known.intersection(ids)))
        stray = next(name for name, plain in zip(labels.ids, spelled, strict=True) if plain not in known)
        got = f"{most} of {len(labels)} are in {nearest}, and {stray!r} is not"
        raise UsageError("no dataset here has all these ids", got=got, hint=f"Give --dataset {nearest}, or {MAKE}")

    def _spellings(self, labels: Labels) -> list[Sequence[str]]:
        """The ids as they are and, where they may be renamed, without suffixes."""
        return [labels.ids, [without_suffix(name) for name in labels.ids]] if self.renames else [labels.ids]

    def _renamed(self, labels: Labels, known: frozenset[str]) -> Labels:
        plain, *shorter = self._spellings(labels)
        if shorter and len(known.intersection(shorter[0])) > len(known.intersection(plain)):
            ids = tuple(shorter[0])
            if double := first_double(ids):
                first, second = (labels.ids[place] for place in double)
                raise DataError(f"two labels are of {ids[double[0]]!r}", got=f"{first}, {second}")
            changed = sum(before != after for before, after in zip(plain, ids, strict=True))
            self.notes.append(f"the suffix of {changed} ids was taken off: {plain[0]!r} is {ids[0]!r}")
            digest = content_hash(ids, labels.values, labels.groups, labels.split)
            labels = replace(labels, ids=ids, sha256=digest)
        strays = [name for name in labels.ids if name not in known]
        if len(strays) == len(labels):
            expected, got = f"ids such as {min(known)!r}", f"{labels.ids[0]!r}"
            raise DataError(f"no label is of a sample of {self.dataset}", expected=expected, got=got)
        if strays:
            what = f"{len(strays)} labels have no image in {self.dataset} and are never scored"
            self.notes.append(f"{what}: {strays[0]!r}, …")
        return labels


def _ids(dataset: Dataset) -> frozenset[str]:
    try:
        return frozenset(dataset.cubes().ids()) if dataset.cubes else frozenset()
    except NeucoError:
        return frozenset()  # not on this machine
