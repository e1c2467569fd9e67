"""The identity of a folder of cubes: what it holds, never when it was written or where it lies."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from neuco_core.cubes import zips
from neuco_core.cubes.ssl4eo import SSL4EOCubes
from neuco_core.errors import DataError
from neuco_tasks.ssl4eo_s12_downstream import fake
from tests.command import neuco_here


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three samples, written long ago for all that the accelerator knows."""
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(zips, "GRAIN", 0)
    fake.write_folder(tmp_path / "one", count=3, files=(), side=4)
    return tmp_path / "one"


def cube(folder: Path, modality: str = "s2l1c") -> Path:
    return min((folder / "data" / modality).rglob("*.zip"))


def touch(folder: Path) -> None:
    for path in (folder / "data").rglob("*.zip"):
        os.utime(path, ns=(1, 1))


def test_copies_have_one_version(folder: Path, tmp_path: Path) -> None:
    """The same files in other parts, and their members in other archives: compressed, later, in another order."""
    copy = tmp_path / "elsewhere" / "two"
    shutil.copytree(folder, copy)
    touch(copy)
    for number, path in enumerate(sorted((copy / "data").rglob("*.zip"))):
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in reversed(archive.namelist())}
        path.unlink()
        place = path.parents[1] / f"part-{number:06d}" / path.name
        place.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
    assert SSL4EOCubes(copy).version == SSL4EOCubes(folder).version
    values = [SSL4EOCubes(place).read(fake.sample_ids(3)).values for place in (folder, copy)]
    assert (values[0] == values[1]).all()


def test_options_values_and_names_change_the_version(folder: Path) -> None:
    options: list[dict[str, Any]] = [{}, {"shift": 1000}, {"seasons": ["fall"]}, {"modalities": ["s1"]}]
    versions = {SSL4EOCubes(folder, **option).version for option in options}
    changed = fake.made_up(0, "s2l1c", 13, 4).copy()
    changed[0, 3, 12, 3, 3] += 1
    place = next((folder / "data" / "s2l1c").rglob(f"{fake.sample_ids(1)[0]}.zarr.zip"))
    fake.write_zarr_zip(place, changed)
    versions.add(SSL4EOCubes(folder).version)
    cube(folder, "s1").rename(cube(folder, "s1").with_name(f"{fake.sample_ids(4)[3]}.zarr.zip"))
    versions.add(SSL4EOCubes(folder, modalities=["s1"]).version)
    assert len(versions) == 6


def flip(path: Path, inside: bytes) -> None:
    """Change one byte of the payload behind a member's name; size, times and the directory stay as they were."""
    status, data = path.stat(), bytearray(path.read_bytes())
    start = data.index(inside) + len(inside)
    data[start + 5] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_changed_byte_below_an_unchanged_directory_is_found_by_reading(folder: Path) -> None:
    flip(cube(folder), b"bands/0.2.0.0.0")
    source = SSL4EOCubes(folder)
    bad = {path: reason for path, reason in source.damaged() if reason}
    assert list(bad) == [cube(folder)]
    assert len(list(source.damaged())) == 9
    with pytest.raises(DataError, match=r"damaged cube: .*Download it again"):
        source.read(source.ids())


@pytest.mark.parametrize("data", [b"", b"PNG", None])
def test_a_damaged_archive_is_not_what_it_was(folder: Path, data: bytes | None) -> None:
    version = SSL4EOCubes(folder).version
    path = cube(folder)
    path.write_bytes(path.read_bytes()[:300] if data is None else data)
    assert SSL4EOCubes(folder).version != version
    assert [str(place) for place, reason in SSL4EOCubes(folder).damaged() if reason] == [str(path)]


def test_directories_are_read_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = SSL4EOCubes(folder).version
    opened: list[Path] = []
    read = zips._content
    monkeypatch.setattr(zips, "_content", lambda path: opened.append(path) or read(path))
    assert SSL4EOCubes(folder).version == version
    assert opened == []
    touch(folder)
    assert SSL4EOCubes(folder).version == version
    assert len(opened) == 9
    for kept in (tmp_path / "cache" / "cubes").iterdir():
        kept.write_text('{"layout": 1, "files": {"x": 3}}')
    assert SSL4EOCubes(folder).version == version


def test_what_was_just_written_is_not_relied_on(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zips, "GRAIN", 3600 * 10**9)
    assert SSL4EOCubes(folder).version == SSL4EOCubes(folder).version
    assert not (tmp_path / "cache").exists()
    version = SSL4EOCubes(folder).version
    monkeypatch.setenv("NEUCO_CACHE", "/proc/nowhere")
    assert SSL4EOCubes(folder).version == version, "a read-only cache changes nothing"


def test_data_verify_reads_everything_and_names_what_is_damaged(folder: Path) -> None:
    env = {"NEUCO_DATASET_SSL4EO_S12_DOWNSTREAM": str(folder)}
    whole = neuco_here("data", "check", "ssl4eo_s12_downstream", env=env)
    assert (whole.code, "ok" in whole.out, SSL4EOCubes(folder).version in whole.out) == (0, True, True), whole.text
    flip(cube(folder), b"bands/0.2.0.0.0")
    damaged = neuco_here("data", "check", "ssl4eo_s12_downstream", env=env)
    assert (damaged.code, str(cube(folder)) in damaged.err) == (4, True)
    assert "1 cube damaged" in damaged.err
    (row,) = neuco_here("data", "check", "ssl4eo_s12_downstream", "--json", env=env).json
    assert list(row["damaged"]) == [str(cube(folder))]
