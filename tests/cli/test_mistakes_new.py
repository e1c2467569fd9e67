"""The likeliest mistakes with tables of labels and folders of images, each with the words that lead out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from neuco_core import load_task
from tests.command import Said, neuco_here

WORDS = ("--title", "T", "--description", "D", "--license", "CC0-1.0", "--caveats", "For a test")
METRES = ("--unit", "m")
COUNT = 120
Cells = Sequence[object]


@pytest.fixture(scope="module")
def known() -> tuple[list[str], list[str]]:
    """Ids of the embedded scene, and labels that are true."""
    labels = load_task("olinda_elevation_mean").labels()
    return list(labels.ids[:COUNT]), [f"{value:.3f}" for value in labels.values[:COUNT]]


def new_task(folder: Path, columns: dict[str, Cells], *options: str, text: str = "") -> Said:
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (folder / "table.csv").write_text(text or "\n".join([",".join(columns), *rows, ""]))
    args = ("--labels", folder / "table.csv", "--citation", "arXiv:2510.17914", "--into", folder, *WORDS, *options)
    return neuco_here("new", "task", "mistaken", *args)


def every(step: int, special: object, usual: Cells) -> list[object]:
    return [special if place % step == 0 else value for place, value in enumerate(usual)]


TABLES: dict[str, tuple[Callable[[list[str], list[str]], dict[str, Cells]], tuple[str, ...], str]] = {
    "not a number": (
        lambda i, v: {"id": i, "label": every(7, "nan", v)},
        METRES,
        "not finite; got 'nan'. Leave the cell",
    ),
    "a word": (
        lambda i, v: {"id": i, "label": every(7, "NA", v)},
        METRES,
        "not a number; got 'NA'. Leave the cell empty",
    ),
    "decimal commas": (
        lambda i, v: {"id": i, "label": [f'"{x.replace(".", ",")}"' for x in v]},
        METRES,
        "numbers are written as 12.5, got",
    ),
    "percent": (lambda i, v: {"id": i, "label": [f"{x}%" for x in v]}, METRES, "numbers are written as 12.5"),
    "all different": (lambda i, v: {"id": i, "label": [f"c{x}" for x in v]}, (), "--kind classification if these are"),
    "an id twice": (lambda i, v: {"id": [*i[:-1], i[0]], "label": v}, METRES, "rows 2 and 121: duplicate id"),
    "numbered ids": (
        lambda i, v: {"id": range(COUNT), "label": v},
        METRES,
        "no dataset here has these ids; got ids such as '0'",
    ),
    "one group": (
        lambda i, v: {"id": i, "label": v, "g": ["a"] * COUNT},
        (*METRES, "--group-column", "g"),
        "too few groups; expected enough for a test part",
    ),
    "no group": (
        lambda i, v: {"id": i, "label": v, "g": every(3, "", i)},
        (*METRES, "--group-column", "g"),
        "column 'g': no group",
    ),
    "no test part": (
        lambda i, v: {"id": i, "label": v, "s": ["train"] * COUNT},
        (*METRES, "--split-column", "s"),
        "no row is in the part 'test'",
    ),
    "validation": (
        lambda i, v: {"id": i, "label": v, "s": ["train", "val", "test"] * (COUNT // 3)},
        (*METRES, "--split-column", "s"),
        "expected train or test, got 'val'. A validation part is given to train",
    ),
    "one test sample": (
        lambda i, v: {"id": i, "label": v, "s": ["test"] + ["train"] * (COUNT - 1)},
        (*METRES, "--split-column", "s"),
        "1 in the test part. A test part of one sample has no score",
    ),
    "one class": (lambda i, v: {"id": i, "label": ["a"] * COUNT}, (), "constant labels: there is nothing to predict"),
    "a label of all": (
        lambda i, v: {"id": i, "label": every(2, "forest;water", ["forest"] * COUNT)},
        ("--kind", "multilabel"),
        "column 'forest': constant labels",
    ),
    "grades that are none": (
        lambda i, v: {"id": i, "label": v},
        (*METRES, "--metric", "kappa"),
        "kappa is for grades; expected labels that are whole numbers",
    ),
}


@pytest.mark.parametrize("mistake", TABLES)
def test_a_table_that_is_nearly_right_is_refused(
    mistake: str, known: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    columns, options, words = TABLES[mistake]
    said = new_task(tmp_path, columns(*known), *options)
    assert said.code in (1, 2, 4), said.out
    assert words in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "neuco_tasks").exists()


@pytest.mark.parametrize(
    ("extra", "options", "words"),
    [
        (
            {"label": ["rare", *["a", "b"] * COUNT][:COUNT]},
            (),
            "classes of one sample, which cannot be learned and judged: rare",
        ),
        ({"g": [f"g{n}" for n in range(COUNT)]}, (*METRES, "--group-column", "g"), "each group has one sample"),
        (
            {"g": [f"g{n // 4}" for n in range(COUNT)], "s": ["test", "train"] * (COUNT // 2)},
            (*METRES, "--group-column", "g", "--split-column", "s"),
            "30 of 30 groups are on both sides of the fixed split",
        ),
        ({"label": ["low land", "high land"] * (COUNT // 2)}, (), "classification (from the labels)"),
        (
            {"label": ["\"['a', 'b']\"", "['b']", "['c']"] * (COUNT // 3)},
            ("--kind", "multilabel"),
            "columns   a, b, c",
        ),
    ],
)
def test_what_is_allowed_and_odd_is_told(
    extra: dict[str, Cells], options: tuple[str, ...], words: str, known: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    said = new_task(tmp_path, {"id": known[0], "label": known[1], **extra}, *options)
    assert said.code == 0, said.err
    assert words in said.out.replace(" and c", ", c")
    assert f"export PYTHONPATH={tmp_path}" in said.out, "else neuco does not find it"


def picture(path: Path, values: np.ndarray, mode: str | None = None) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(values)
    (image.convert(mode) if mode else image).save(path)


GREY = np.arange(64, dtype=np.uint8).reshape(8, 8)
COLOUR = np.stack([GREY] * 3, axis=2)
FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda d: None, "no image in the folder; expected files .tif .tiff .png .jpg .jpeg .npy, got nothing"),
    "no image": (lambda d: (d / "a.txt").write_text("x"), "got 1 of .txt"),
    "one name twice": (
        lambda d: [picture(d / name / "x.png", GREY) for name in ("a", "b")],
        "two images have the id 'x'",
    ),
    "a link to nothing": (lambda d: (d / "b.png").symlink_to(d / "gone.png"), "not a regular file, or a link to none"),
    "text": (lambda d: (d / "b.png").write_text("hello"), "1 of 2: b: damaged image: cannot identify image file"),
    "cut off": (
        lambda d: (d / "b.png").write_bytes((d / "ok.png").read_bytes()[:50]),
        "1 of 2: b: damaged image",
    ),
    "colours for print": (lambda d: picture(d / "b.jpg", COLOUR, "CMYK"), "got CMYK"),
    "colour among grey": (lambda d: picture(d / "b.png", COLOUR), "not like the other images"),
    "8 bits among 16": (lambda d: picture(d / "b.png", GREY.astype(np.uint16)), "uint16"),
    "another size": (lambda d: picture(d / "b.png", GREY[:4]), "of 4 × 8 pixels"),
    "an endless number": (
        lambda d: np.save(d / "b.npy", np.full((8, 8), np.inf)),
        "values that are not finite as float32",
    ),
    "too large a number": (lambda d: np.save(d / "b.npy", np.full((8, 8), 1e300)), "not finite as float32"),
    "a pickle": (lambda d: np.save(d / "b.npy", np.array([{}]), allow_pickle=True), "Object arrays cannot be loaded"),
    "a name of two lines": (lambda d: picture(d / "a\nb.png", GREY), "not a name for a sample; got 'a\\nb.png'"),
}


def new_dataset(folder: Path, images: Path) -> Said:
    return neuco_here("new", "dataset", "mistaken", "--images", images, "--into", folder, *WORDS)


@pytest.mark.parametrize("mistake", FOLDERS)
def test_a_folder_that_is_nearly_right_is_refused(mistake: str, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    make, words = FOLDERS[mistake]
    images = tmp_path / "images"
    images.mkdir()
    if mistake not in ("nothing", "no image"):
        picture(images / "ok.png", GREY)
    make(images)
    said = new_dataset(tmp_path, images)
    assert said.code == 4, said.out
    assert words in said.err
    assert not (tmp_path / "neuco_tasks").exists()


def test_odd_names_and_links_that_lead_in_circles_are_no_mistake(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    images = tmp_path / "images"
    for name in ("é 日本", "-dash", "a.b", "a,b"):
        picture(images / "deep" / f"{name}.png", GREY)
    (images / "deep" / "again").symlink_to(images)
    picture(images / "b.png", GREY)
    (images / "c.png").symlink_to(images / "b.png")
    said = new_dataset(tmp_path, images)
    assert said.code == 0, said.err
    assert "6 images of 8 × 8 pixels" in said.out
