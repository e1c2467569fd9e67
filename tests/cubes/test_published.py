"""Sets of images as others publish them, from a server that behaves as Hugging Face does; samples drawn as pictures."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from neuco_core.cubes.archive import open_archive
from neuco_core.cubes.pictures import Picture, pictures
from neuco_core.cubes.published import unpack_set
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import load_task
from neuco_core.tables.labels import load_labels
from tests.command import neuco_here
from tests.fetch.hugging_face import HuggingFace

WORDS = ("--title", "A set", "--description", "Of images", "--license", "CC0-1.0", "--caveats", "For a test")
ADDRESS = "hf://datasets/somebody/set@main/data/train.parquet"


def png(level: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((4, 6, 3), level, "uint8")).save(buffer, "PNG")
    return buffer.getvalue()


def parquet(paths: list[str | None], data: list[bytes | None] | None = None) -> bytes:
    """As the library of Hugging Face writes them."""
    images = [png(10 * row) for row in range(len(paths))] if data is None else data
    table = pa.table(
        {
            "image": [{"bytes": item, "path": path} for item, path in zip(images, paths, strict=True)],
            "label": [row % 3 for row in range(len(paths))],
            "place": [f"at, {row}" for row in range(len(paths))],
            "tokens": [[1, 2]] * len(paths),
        }
    )
    return written(table)


def written(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def test_a_set_of_hugging_face_becomes_a_dataset_and_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with HuggingFace("datasets/somebody/set", {"data/train.parquet": parquet(["a.png", "b.png", "c.png"])}) as hub:
        env = {"HF_ENDPOINT": hub.base}
        made = neuco_here("new", "dataset", "own_set", "--images", ADDRESS, *WORDS, "--into", tmp_path, env=env)
        again = neuco_here("data", "package", ADDRESS, "--out", "own.zip", "--json", env=env)
    assert made.code == 0, made.err
    assert "3 images of 4 × 6 pixels" in made.out
    assert "table     own_set.csv: id,label,place" in made.out
    assert "--labels own_set.csv --dataset own_set" in made.out
    assert (tmp_path / "own_set.csv").read_text() == 'id,label,place\na,0,"at, 0"\nb,1,"at, 1"\nc,2,"at, 2"\n'
    archive, index = open_archive(tmp_path / "neuco_tasks" / "own_set" / "images.zip")
    assert (list(index.samples), index.bands) == (["a", "b", "c"], ("image/red", "image/green", "image/blue"))
    assert np.load(io.BytesIO(archive.read("b.npy"))).max() == 10
    card = (tmp_path / "neuco_tasks" / "own_set" / "README.md").read_text()
    assert f"packed from {ADDRESS} (sha256 " in card
    facts = json.loads(again.out)
    assert (facts["images"], facts["table"]) == (3, "own.csv")
    assert (tmp_path / "own.zip").read_bytes() == (tmp_path / "neuco_tasks/own_set/images.zip").read_bytes()


@pytest.mark.parametrize("paths", [["a.png", "b/a.png"], [None, "b.png"]])
def test_images_without_names_of_their_own_are_numbered(paths: list[str | None], tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(parquet(paths))
    table = unpack_set(tmp_path / "x.parquet", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["row-000000.png", "row-000001.png"]
    assert table.splitlines()[1].startswith("row-000000,0,")


def test_a_zip_of_images_is_a_set_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("images/a.png", png(1))
        archive.writestr("images/../../b.png", png(2))
        archive.writestr("notes.txt", "not an image")
    assert unpack_set(tmp_path / "x.zip", tmp_path / "out") == ""
    assert sorted(path.name for path in tmp_path.rglob("*.png")) == ["a.png", "b.png"]
    assert {path.parent for path in tmp_path.rglob("*.png")} == {tmp_path / "out"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (parquet(["a.png"], [None]), "row 0 has no image that is read here"),
        (parquet(["a.gif"], [b"GIF89a"]), "expected PNG, JPEG or TIFF"),
        (b"PAR1 and no more", "not a Parquet file"),
        (written(pa.table({"text": ["a"]})), "expected one column of images, with bytes inside, got columns text"),
    ],
)
def test_a_set_without_images_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(data)
    with pytest.raises(DataError, match=message):
        unpack_set(tmp_path / "x.parquet", tmp_path / "out")


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
