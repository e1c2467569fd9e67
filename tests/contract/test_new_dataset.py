"""``neuco new dataset`` and ``neuco data package FOLDER``: what they write, say and refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.command import Said, neuco_here, python
from tests.contract.helpers import quick_neuco

WORDS = ("--title", "Own", "--description", "Of images", "--license", "CC0-1.0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four arrays, and a file that is no image."""
    images = tmp_path / "images"
    images.mkdir()
    for number in range(4):
        np.save(images / f"s{number}.npy", np.full((2, 3, 4, 5), number, "int16"))
    (images / "notes.txt").touch()
    return images


def new(folder: Path, *options: object, images: object = None) -> Said:
    args = ("--images", images or folder, *WORDS, "--into", folder.parent)
    return neuco_here("new", "dataset", "own", *args, *options)


def test_names_can_be_given_and_other_files_are_counted(folder: Path) -> None:
    made = new(folder, "--bands", "s2l2a/B02,s2l2a/B03,B04", "--seasons", "spring,fall")
    assert made.code == 0, made.err
    assert "bands     s2l2a/B02, s2l2a/B03, image/B04" in made.out
    assert "no images 1 .txt: not looked at" in made.out
    assert "edit" in made.out, "caveats are asked for if they were not given"
    assert f"export PYTHONPATH={folder.parent}" in made.out, "else neuco does not find it"
    source = (folder.parent / "neuco_tasks/own/__init__.py").read_text()
    assert 'SEASONS = ("spring", "fall")' in source
    assert python("-m", "ruff", "format", "--check", "--isolated", folder.parent / "neuco_tasks").code == 0
    done = quick_neuco(folder.parent, "check", "own")
    assert re.search("dataset-images +ok +4 images of 3 bands, 4 × 5 pixels", done.out), done.text


def test_a_damaged_image_is_named_and_left_out_only_if_asked_for(folder: Path) -> None:
    (folder / "s2.npy").write_bytes((folder / "s2.npy").read_bytes()[:150])
    refused = new(folder)
    assert refused.code == 4
    assert "images that cannot be used; got 1 of 4: s2: " in refused.err
    assert not (folder.parent / "neuco_tasks").exists()
    made = new(folder, "--leave-out-damaged")
    assert "left out  s2: " in made.out
    assert "Left out, because damaged: s2: " in (folder.parent / "neuco_tasks/own/README.md").read_text()


def test_what_is_too_large_for_the_tree_is_published_first(folder: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 2**16, (2, 3, 200, 200), "uint16")
    for number in range(4):
        np.save(folder / f"s{number}.npy", noise)
    assert new(folder, "--into", folder.parent / "elsewhere").code == 0, "no tree, no limit"
    (folder.parent / "registry").mkdir()
    (folder.parent / "pyproject.toml").touch()
    refused = new(folder)
    assert refused.code == 2
    assert "too large for the tree; expected at most 1 MB, got 1.9 MB" in refused.err
    out = folder.parent / "own.zip"
    assert f"`neuco data package {folder} --out own.zip`" in refused.err
    packed = neuco_here("data", "package", folder, "--out", out)
    assert f"wrote {out}: 4 images of 200 × 200 pixels" in packed.out, packed.err
    assert neuco_here("data", "package", folder, "--out", out).code == 2, "nothing is overwritten"
    assert "packed already" in neuco_here("data", "package", out, "--out", folder.parent / "other.zip").err
    made = new(folder, images=out.as_uri())
    assert made.code == 0, made.err
    assert not (folder.parent / "neuco_tasks/own/images.zip").exists()
    assert f'"{out.as_uri()}"' in (folder.parent / "neuco_tasks/own/__init__.py").read_text()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--bands", "a,b"), 2, "bad names of bands; expected 3 different ones"),
        (("--protocol", "rigde"), 3, "Did you mean 'ridge'"),
        (("--license", "mine"), 2, "bad licence"),
    ],
)
def test_a_wrong_use_is_refused_and_nothing_is_written(
    options: tuple[str, ...], code: int, words: str, folder: Path
) -> None:
    done = new(folder, *options)
    assert (done.code, words in done.err) == (code, True), done.err
    assert not (folder.parent / "neuco_tasks").exists()


GREY = np.arange(64, dtype=np.uint8).reshape(8, 8)
# What lies beside one grey picture of 8 bits; the rest is refused by the readers (tests/cubes/test_images.py).
FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link to nothing": (lambda f: (f / "b.png").symlink_to(f / "gone.png"), "not a regular file, or a link to none"),
    "colour": (lambda f: picture(f / "b.png", np.stack([GREY] * 3, axis=2)), "not like the other images"),
    "16 bits": (lambda f: picture(f / "b.png", GREY.astype(np.uint16)), "uint16"),
    "another size": (lambda f: picture(f / "b.png", GREY[:4]), "of 4 × 8 pixels"),
    "a name of two lines": (lambda f: picture(f / "a\nb.png", GREY), "not a name for a sample; got 'a\\nb.png'"),
}


def picture(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


@pytest.mark.parametrize("mistake", FOLDERS)
def test_a_folder_that_is_nearly_right_is_refused(mistake: str, tmp_path: Path) -> None:
    make, words = FOLDERS[mistake]
    picture(tmp_path / "images" / "ok.png", GREY)
    make(tmp_path / "images")
    done = new(tmp_path / "images")
    assert (done.code, words in done.err) == (4, True), done.text
    assert not (tmp_path / "neuco_tasks").exists()


def test_odd_names_and_links_that_lead_in_circles_are_no_mistake(tmp_path: Path) -> None:
    images = tmp_path / "images"
    for name in ("é 日本", "-dash", "a.b", "a,b"):
        picture(images / "deep" / f"{name}.png", GREY)
    (images / "deep" / "again").symlink_to(images)
    picture(images / "b.png", GREY)
    (images / "c.png").symlink_to(images / "b.png")
    made = new(images)
    assert (made.code, "6 images of 8 × 8 pixels" in made.out) == (0, True), made.text


def test_images_over_http_are_refused_before_they_are_fetched(folder: Path) -> None:
    done = new(folder, images="http://127.0.0.1:9/plots.zip")
    assert (done.code, "give the address with https://" in done.err) == (2, True), done.err
    assert not (folder.parent / "neuco_tasks").exists()


def test_no_such_folder(tmp_path: Path) -> None:
    done = new(tmp_path / "none", images=tmp_path / "none")
    assert (done.code, "no such file; expected a file, or an address" in done.err) == (2, True), done.err
