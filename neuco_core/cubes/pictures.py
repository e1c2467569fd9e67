"""A few samples of a task as pictures: true colour, one for each season, with their labels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from neuco_core.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from neuco_core.specs import Dataset, Task
    from neuco_core.tables.labels import Labels

COUNT = 4
LARGEST = 128  # pixels of a side
# Red, green and blue: of Sentinel-2, of Landsat up to 7, and as files of images name them.
TRUE_COLOUR = (("B04", "B03", "B02"), ("B3", "B2", "B1"), ("red", "green", "blue"), ("R", "G", "B"))


@dataclass(frozen=True)
class Picture:
    """A sample: its label in words, and for each season an image, (height, width, 3) bytes."""

    id: str
    label: str
    seasons: tuple[str, ...]
    images: np.ndarray

    def png(self) -> bytes:
        """The seasons side by side, with a gap between them."""
        count, height, width, _ = self.images.shape
        gap = max(1, width // 32)
        row = np.full((height, count * width + (count - 1) * gap, 3), 255, dtype=np.uint8)
        for place, image in enumerate(self.images):
            row[:, place * (width + gap) : place * (width + gap) + width] = image
        file = io.BytesIO()
        Image.fromarray(row).save(file, "PNG", optimize=True)
        return file.getvalue()


def pictures(task: Task, count: int = COUNT) -> list[Picture]:
    """Samples from the whole range of the labels, lowest first, or of different classes."""
    from neuco_core.cubes.cubes import source_of
    from neuco_core.plugins.catalog import load_dataset
    from neuco_core.tables.labels import load_labels

    dataset = load_dataset(task.dataset)
    source, labels = source_of(dataset), load_labels(task)
    labels = labels.only(source.ids())
    if not len(labels):
        raise DataError("no labelled sample has an image here", where=task.id)
    chosen = _choose(labels, count)
    bands, colours = _bands(dataset)
    batch = source.read([labels.ids[row] for row in chosen])
    picked = [batch.bands.index(band) for band in bands]
    values = batch.values[:, :, picked].astype(np.float64)
    step = -(-max(values.shape[-2:]) // LARGEST)
    images = _stretch(np.moveaxis(values[..., ::step, ::step], 2, -1))
    images = images if colours else np.repeat(images, 3, axis=-1)
    names = [_label(task, labels, row) for row in chosen]
    return [
        Picture(labels.ids[row], label, tuple(batch.seasons), image)
        for row, label, image in zip(chosen, names, images, strict=True)
    ]


def _choose(labels: Labels, count: int) -> list[int]:
    values = labels.values.reshape(len(labels), -1)
    if labels.kind == "regression":
        order = np.argsort(values[:, 0], kind="stable")
    else:
        order = np.unique(values, axis=0, return_index=True)[1]  # the first sample of each label
    places = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)
    return [int(row) for row in order[places]]


def _bands(dataset: Dataset) -> tuple[list[str], bool]:
    """The bands of a picture, and whether they are colours. The last modality that has them is the most processed."""
    for names in TRUE_COLOUR:
        for modality in reversed(dict.fromkeys(band.partition("/")[0] for band in dataset.bands)):
            wanted = [f"{modality}/{name}" for name in names]
            if set(wanted) <= set(dataset.bands):
                return wanted, True
    return [dataset.bands[0]], False


def _stretch(values: np.ndarray) -> np.ndarray:
    """Bytes, by one scale for all pictures of a task, so that they can be compared; clouds and snow may be cut.

    Haze adds light, most of it blue: what each band has at least is taken off. ``values`` end with the bands.
    """
    finite = np.where(np.isfinite(values), values, np.nan).reshape(-1, values.shape[-1])
    low = np.nanpercentile(finite, 1, axis=0)
    high = np.nanpercentile(finite - low, 90)
    share = np.clip(np.nan_to_num((values - low) / (high or 1.0)), 0.0, 1.0)
    # Screens expect more light in the shadows than a sensor counts.
    bytes_: np.ndarray = (255 * share ** (1 / 1.8)).round().astype(np.uint8)
    return bytes_


def _label(task: Task, labels: Labels, row: int) -> str:
    value = labels.values.reshape(len(labels), -1)[row]
    if task.kind == "regression":
        return f"{value[0]:.4g} {task.unit}".strip()
    if task.kind == "classification":
        return labels.classes[int(value[0])] if labels.classes else f"class {int(value[0])}"
    return ", ".join(name for name, mark in zip(labels.columns, value, strict=True) if mark) or "none"


def sheet(task: Task, samples: Sequence[Picture]) -> Figure:
    """A row for each sample, a column for each season, and the distribution of the labels below."""
    from matplotlib.figure import Figure

    from neuco_core.tables.labels import load_labels

    labels = load_labels(task)
    seasons = samples[0].seasons
    figure = Figure(figsize=(max(4.0, 1.7 * len(seasons)), 1.7 * len(samples) + 2), layout="constrained")
    grid = figure.add_gridspec(len(samples) + 1, len(seasons))
    for y, picture in enumerate(samples):
        for x, image in enumerate(picture.images):
            axes = figure.add_subplot(grid[y, x])
            axes.imshow(image, interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
            if y == 0:
                axes.set_title(seasons[x], fontsize=8)
            if x == 0:
                axes.set_ylabel(f"{picture.label}\n{picture.id[:18]}".replace("$", r"\$"), fontsize=7)
    below = figure.add_subplot(grid[-1, :])
    values = labels.values.reshape(len(labels), -1)
    if task.kind == "regression":
        below.hist(values[:, 0], bins=24, color="#0b7285")
    else:
        counts = np.bincount(values[:, 0].astype(int)) if task.kind == "classification" else values.sum(axis=0)
        below.bar(range(len(counts)), counts, color="#0b7285")
    below.set_xlabel(f"labels of {task.id}" + (f" ({task.unit})" if task.unit else ""), fontsize=8)
    below.tick_params(labelsize=7)
    return figure
