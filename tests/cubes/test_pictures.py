"""A few samples of a task as pictures, with the labels that they have."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from neuco_core.cubes.pictures import Picture, pictures
from neuco_core.plugins.catalog import load_task
from neuco_core.tables.labels import load_labels
from tests.command import neuco_here


def test_samples_span_the_labels_from_the_lowest_to_the_highest() -> None:
    task = load_task("mini_crops")
    labels = load_labels(task)
    values_by_id = dict(zip(labels.ids, labels.values.tolist(), strict=True))
    shown = pictures(task)
    values = [values_by_id[picture.id] for picture in shown]
    assert [values[0], values[-1]] == [min(values_by_id.values()), max(values_by_id.values())]
    assert values == sorted(values)
    assert [picture.label for picture in shown] == [f"{value:.4g} fraction" for value in values]
    assert shown[0].seasons == ("spring", "summer", "fall", "winter")
    assert shown[0].images.shape == (4, 32, 32, 3)


def test_forest_is_green_and_classes_differ() -> None:
    """True colour is red, green and blue in that order; what has no colours is grey."""
    forest = pictures(load_task("mini_landcover_forest"))[-1].images[2].astype(int)
    red, green, blue = np.median(forest.reshape(-1, 3), axis=0)
    assert green > red > blue
    digits = pictures(load_task("digits_class"))
    assert len({picture.label for picture in digits}) == 4
    assert (digits[0].images[..., 0] == digits[0].images[..., 2]).all()


def test_a_png_is_what_was_drawn() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    both = Picture("x", "", ("a", "b"), np.stack([pixels, pixels])).png()
    row = np.asarray(Image.open(io.BytesIO(both)))
    assert row.shape == (5, 15, 3)
    assert (row[:, :7] == pixels).all()
    assert (row[:, 8:] == pixels).all()


def test_the_command_draws_them(tmp_path: Path) -> None:
    drawn = neuco_here("show", "mini_clouds", "--images", tmp_path / "out.png")
    assert drawn.code == 0, drawn.err
    assert drawn.out.startswith("4 samples of mini_clouds: ")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert neuco_here("show", "mini_clouds", "--images", tmp_path / "out.bmp").code != 0
