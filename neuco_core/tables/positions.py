"""Where samples are: on the earth, or in a scene. With checks, distances, and where positions come from."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.fetch.cache import hash_file
from neuco_core.plugins.catalog import load_dataset
from neuco_core.plugins.code_key import POSITIONS, folder_of
from neuco_core.tables.csv import clean_ids, is_empty, number_in
from neuco_core.tables.labels import EARTH_COLUMNS, YEAR, Labels, read_columns
from neuco_core.text import Brief, shorten

if TYPE_CHECKING:
    from neuco_core.specs import Dataset

RADIUS = 6371.0088  # km, the mean of the earth
DEGREE = math.pi * RADIUS / 180  # km
SCENE_COLUMNS = ("x", "y")
LENGTH = re.compile(r"(\d+(?:\.\d+)?)(km|deg)?")


@dataclass(frozen=True)
class Positions(Brief):
    """Positions of samples, (n, 2): degrees of longitude and latitude, or else x and y in the unit of a scene.

    ``years`` has one per sample, if they are known. ``names`` are for errors.
    """

    values: np.ndarray
    on_earth: bool = True
    years: np.ndarray | None = None
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        values = np.asarray(self.values, np.float64)
        object.__setattr__(self, "values", values)
        if values.ndim != 2 or values.shape[1] != 2 or not len(values):
            raise DataError("positions need two numbers per sample", got=f"an array of shape {values.shape}")
        finite = np.isfinite(values)
        self._refuse(np.logical_not(finite[:, 0] & finite[:, 1]), "a position that is not finite")
        if self.on_earth:
            lon, lat = np.abs(values).T
            beyond = lat > 90
            if beyond.sum() > 1 and lon.max() <= 90:
                self._refuse(beyond, "longitude and latitude seem to be swapped", "longitudes first, latitudes to 90")
            self._refuse(beyond, "a latitude beyond the poles", "-90 to 90 degrees")
            around = (values[:, 0] < -180) | (values[:, 0] > 360)
            self._refuse(around, "a longitude beyond once around", "-180 to 180, or 0 to 360 degrees")
        if len(values) > 1 and not np.ptp(values, axis=0).any():
            raise DataError("all samples are at the same place", got=f"{len(values)} times {tuple(values[0])}")

    def _refuse(self, bad: np.ndarray, what: str, expected: str = "two finite numbers") -> None:
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            where = f"sample {self.names[first] if len(self.names) else first + 1}"
            raise DataError(what, where=where, expected=expected, got="{:g}, {:g}".format(*self.values[first]))

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def xyz(self) -> np.ndarray:
        """Points whose straight distance orders pairs as that along the ground does: no seam, and poles are points."""
        if not self.on_earth:
            return self.values
        lon, lat = np.radians(self.values).T
        directions = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
        return np.asarray(RADIUS * directions)

    @cached_property
    def plane(self) -> np.ndarray:
        """x and y; longitudes are counted from the middle of the samples, so that the antimeridian may run through."""
        plane = self.values.copy()
        if self.on_earth:
            turns = np.exp(1j * np.radians(plane[:, 0]))
            plane[:, 0] = np.degrees(np.angle(turns * np.conj(turns.mean())))
        return plane

    def distances(self, one: np.ndarray | int, other: np.ndarray | int) -> np.ndarray:
        """Between samples by their rows: km along the ground, or the unit of the scene."""
        straight = np.linalg.norm(self.xyz[one] - self.xyz[other], axis=-1)
        return np.asarray(2 * RADIUS * np.arcsin(np.minimum(straight / (2 * RADIUS), 1)) if self.on_earth else straight)

    def nearer(self, rows: np.ndarray, others: np.ndarray, distance: float) -> np.ndarray:
        """Which of the rows have one of the others nearer than a distance."""
        from scipy.spatial import cKDTree  # heavy, and only for splits by place

        straight = distance
        if self.on_earth:  # through the earth; beyond half of its circumference everything is nearer
            half_angle = distance / (2 * RADIUS)
            straight = 2 * RADIUS * math.sin(half_angle) if half_angle <= math.pi / 2 else math.inf
        found, _ = cKDTree(self.xyz[others]).query(self.xyz[rows], distance_upper_bound=straight)
        return np.asarray(np.isfinite(found))

    def length(self, name: str, value: object) -> float:
        """A length as protocols write it: ``50km``, ``0.5deg``, and in a scene ``5``, in its own unit."""
        number, unit = match.groups() if (match := LENGTH.fullmatch(str(value))) else ("", None)
        if not number or (float(number) and (unit is None) == self.on_earth):
            expected = "a length such as 50km or 0.5deg" if self.on_earth else "a number, in the unit of the scene"
            hint = f"Write --protocol ridge+splitter=…,{name}={'50km' if self.on_earth else '5'}"
            raise UsageError(f"bad {name} of a splitter", expected=expected, got=shorten(value), hint=hint)
        return float(number) * (DEGREE if unit == "deg" else 1.0)


def positions_from_table(table: Mapping[str, Sequence[Any]], names: Sequence[str], where: object) -> Positions:
    """From columns ``lon`` and ``lat``, or ``x`` and ``y``; and ``year``, which may be a date such as 2021-07-03."""
    on_earth = all(name in table for name in EARTH_COLUMNS)
    columns = EARTH_COLUMNS if on_earth else SCENE_COLUMNS
    numbers = {}
    for name in (*columns, YEAR):
        cells = table.get(name)
        if cells is None and name != YEAR:
            raise DataError(f"no column {name!r}", where=where, expected="lon and lat, or x and y")
        if cells is not None:
            if name == YEAR:
                cells = [re.sub(r"^(\d{4})-\d\d?-\d\d?.*", r"\1", str(cell)) for cell in cells]
            numbers[name] = [_number(cell, name, names[n], where) for n, cell in enumerate(cells)]
    try:
        values = np.array([numbers[name] for name in columns]).T
        return Positions(values, on_earth, np.array(numbers[YEAR]) if YEAR in numbers else None, names)
    except DataError as error:
        error.where = ", ".join(str(part) for part in (where, error.where) if part)
        raise


def _number(cell: Any, column: str, name: str, where: object) -> float:
    number = None if is_empty(cell) else number_in(cell)
    if number is None:
        got = "nothing" if is_empty(cell) else shorten(cell)
        raise DataError(f"{column} is not a number", where=f"{where}, sample {name}", expected="a number", got=got)
    return number


def positions_file(dataset: Dataset) -> Path | None:
    """``positions.csv`` beside the code of the plugin that registers a dataset, if there is one."""
    folder = folder_of(dataset)
    path = folder / POSITIONS if folder else None
    return path if path and path.is_file() else None


def dataset_positions(dataset: Dataset, ids: Collection[str] = ()) -> tuple[tuple[str, ...], Positions]:
    """The samples of a dataset, or those with these ids in their order, and where they are."""
    path = positions_file(dataset)
    if path is None:
        reason = dataset.no_positions or "its plugin brings no positions.csv, and the labels have no lon and lat"
        hint = "Choose splits at random or by group"
        raise DataError(f"dataset {dataset.id!r} has no positions: {reason}", hint=hint)
    table, _ = read_columns(path, ["id"], further=(*EARTH_COLUMNS, *SCENE_COLUMNS, YEAR))
    rows = {name: row for row, name in enumerate(clean_ids(table["id"], path))}
    missing = [name for name in ids if name not in rows]
    if missing:
        raise DataError(f"no position of sample {missing[0]!r}", where=path, got=f"{len(missing)} samples without one")
    names = tuple(ids) or tuple(rows)
    chosen = {column: [cells[rows[name]] for name in names] for column, cells in table.items() if column != "id"}
    return names, positions_from_table(chosen, names, path)


def positions_of(labels: Labels) -> Positions:
    """Where the samples of labels are: by the columns of their file, or else as their dataset says."""
    if labels.places:
        return positions_from_table(labels.places, labels.ids, f"labels of {labels.task}")
    if not labels.dataset:
        hint = "Give the labels columns lon and lat"
        raise DataError("labels without positions, and of no dataset", where=labels.task, hint=hint)
    return dataset_positions(load_dataset(labels.dataset), labels.ids)[1]


def positions_key(dataset_id: str) -> str | None:
    """The hash of what a dataset says of positions; ``None`` if it says nothing: then the label file does."""
    try:
        path = positions_file(load_dataset(dataset_id))
    except NeucoError:
        return None  # an unknown dataset: the cell will fail with the reason
    return hash_file(path) if path else None
