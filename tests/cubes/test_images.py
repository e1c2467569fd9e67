"""Folders of images: what is read of each format, what is refused, and what the archive keeps."""

from __future__ import annotations

import gc
import hashlib
import io
import shutil
import time
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from neuco_core.cubes.archive import ImageArchive, open_archive, pack_images
from neuco_core.cubes.cubes import CubeSource, damaged
from neuco_core.cubes.folder import ImageFolder
from neuco_core.cubes.images import Place, read_image, without_suffix
from neuco_core.errors import DataError, UsageError
from neuco_core.specs import Dataset, Remote
from neuco_core.tables.limits import load_array
from tests.cubes.pictures import BANDS, write_pngs, write_tiffs


@pytest.fixture(scope="module")
def tiffs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiffs(tmp_path_factory.mktemp("images") / "tif", count=6)


def archive_of(folder: Path, out: Path, **options: object) -> ImageArchive:
    source = ImageFolder(folder)
    pack_images(source, out, **options)  # type: ignore[arg-type]
    return remote_archive(out, source)


def remote_archive(path: Path, source: CubeSource) -> ImageArchive:
    remote = Remote(path.as_uri(), sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    return ImageArchive(remote, bands=source.bands, seasons=source.seasons)


def test_a_geotiff_gives_its_values_band_names_and_place(tiffs: Path) -> None:
    import rasterio

    image = read_image(tiffs / "plot-003.tif")
    assert image.bands == tuple(f"image/{band}" for band in BANDS)
    assert image.place == Place("EPSG:32631", (500_240.0, 10.0, 0.0, 4_600_000.0, 0.0, -10.0))
    with rasterio.open(tiffs / "plot-003.tif") as file:
        assert np.array_equal(image.values[0], file.read())
    assert image.values.dtype == np.uint16


def test_a_tiff_without_place_or_names_is_an_ordinary_image(tmp_path: Path) -> None:
    import rasterio

    values = np.arange(12, dtype="float32").reshape(2, 2, 3)
    form = {"driver": "GTiff", "height": 2, "width": 3, "count": 2, "dtype": "float32"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rasterio.open(tmp_path / "x.tiff", "w", **form) as file:
            file.write(values)
    image = read_image(tmp_path / "x.tiff")
    assert (image.bands, image.place) == (("image/1", "image/2"), None)
    assert np.array_equal(image.values[0], values)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1", "I;16"])
def test_every_kind_of_png_becomes_its_colours(mode: str, tmp_path: Path) -> None:
    rgb = ["red", "green", "blue"]
    bands = {"RGB": rgb, "P": rgb, "RGBA": [*rgb, "alpha"]}.get(mode, ["grey"])
    colours = Image.fromarray(np.arange(0, 240, 5, dtype="uint8").reshape(4, 4, 3))
    picture = Image.fromarray(np.arange(16, dtype="uint16").reshape(4, 4)) if mode == "I;16" else colours.convert(mode)
    picture.save(tmp_path / "x.png")
    image = read_image(tmp_path / "x.png")
    assert image.bands == tuple(f"image/{band}" for band in bands)
    assert image.values.shape == (1, len(bands), 4, 4)
    shown = picture if mode == "I;16" else picture.convert("L" if bands == ["grey"] else "RGB" if mode == "P" else mode)
    assert np.array_equal(np.moveaxis(image.values[0], 0, -1).squeeze(), np.asarray(shown))


def test_a_jpeg_is_read_and_colours_for_print_are_refused(tmp_path: Path) -> None:
    picture = Image.new("RGB", (4, 2), (200, 100, 50))
    picture.save(tmp_path / "x.jpg")
    assert read_image(tmp_path / "x.jpg").values.shape == (1, 3, 2, 4)
    picture.convert("CMYK").save(tmp_path / "y.jpeg")
    with pytest.raises(DataError, match=r"colours of a kind that is not read; .* got CMYK \(.*y\.jpeg\)"):
        read_image(tmp_path / "y.jpeg")


@pytest.mark.parametrize(("outer", "read"), [((), (1, 1)), ((3,), (1, 3)), ((2, 3), (2, 3))])
def test_an_array_has_its_axes_in_the_order_of_cubes(
    outer: tuple[int, ...], read: tuple[int, int], tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((*outer, 4, 5), "int16"))
    assert read_image(tmp_path / "x.npy").values.shape == (*read, 4, 5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((8, 9, 3)), "bands seem to come last; expected (band, y, x), got (8, 9, 3)"),
        (np.zeros(3), "an array of the wrong shape"),
        (np.full((2, 2), np.nan), "values that are not finite"),
        (np.full((2, 2), 1e300), "values that are not finite as float32"),
        (np.array([["a", "b"]]), "not an image of numbers"),
        (np.array([[print]], dtype=object), "damaged image: Object arrays cannot be loaded"),
    ],
)
def test_an_array_that_is_no_image_is_refused(values: np.ndarray, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(DataError) as error:
        read_image(tmp_path / "x.npy")
    assert message in str(error.value)
    assert "x.npy" in str(error.value)


def test_a_folder_is_read_when_asked_and_takes_names(tiffs: Path) -> None:
    names = [f"s2l2a/{band}" for band in BANDS]
    source = ImageFolder(tiffs, bands=names)
    assert source.ids() == tuple(f"plot-{place:03d}" for place in range(6))
    assert (source.bands, source.seasons, source.size) == (tuple(names), ("scene",), (8, 8))
    assert source.read(["plot-001"]).values.dtype == np.float32
    with pytest.raises(UsageError, match="bad names of bands; expected 4 different ones"):
        ImageFolder(tiffs, bands=names[:3]).bands  # noqa: B018
    with pytest.raises(DataError, match="no image 'plot-9'"):
        source.read(["plot-9"])


def test_the_version_of_a_folder_is_that_of_its_content(tiffs: Path, tmp_path: Path) -> None:
    shutil.copytree(tiffs, tmp_path, dirs_exist_ok=True)
    version = ImageFolder(tiffs).version
    assert ImageFolder(tmp_path).version == version
    (tmp_path / "plot-000.tif").write_bytes((tiffs / "plot-001.tif").read_bytes())
    assert ImageFolder(tmp_path).version != version


def test_two_images_of_one_name_and_a_folder_without_images_are_refused(tmp_path: Path) -> None:
    for name in ("a/1.npy", "b/1.npy"):
        (tmp_path / name).parent.mkdir()
        np.save(tmp_path / name, np.zeros((2, 2)))
    with pytest.raises(DataError, match="two images have the id '1'"):
        ImageFolder(tmp_path).ids()
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "x.jp2").touch()
    with pytest.raises(DataError, match=r"no image in the folder; expected files \.tif .*, got 1 of \.jp2"):
        ImageFolder(tmp_path / "c").ids()
    (tmp_path / "c" / "x.jp2").rename(tmp_path / "c" / "x.png")
    with pytest.raises(DataError, match="damaged image: cannot identify image file"):
        _ = ImageFolder(tmp_path / "c").bands


def test_an_archive_gives_the_same_cubes_and_places_without_any_library(
    tiffs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, archive = ImageFolder(tiffs), archive_of(tiffs, tmp_path / "x.zip")
    assert archive_of(tiffs, tmp_path / "y.zip").version == archive.version, "packed twice, the same bytes"
    expected = source.read(source.ids()).values
    monkeypatch.setitem(__import__("sys").modules, "rasterio", None)
    assert archive.ids() == source.ids()
    assert np.array_equal(archive.read(archive.ids()).values, expected)
    dataset = Dataset(id="x", cubes=lambda: archive)
    cube = dataset.open("plot-002")
    assert cube.attrs["crs"] == "EPSG:32631"
    assert cube.x.values[:2].tolist() == [500_165.0, 500_175.0]
    assert cube.y.values[:2].tolist() == [4_599_995.0, 4_599_985.0]
    assert next(iter(dataset)).attrs["transform"][0] == 500_000


def test_pictures_are_not_upside_down(tmp_path: Path) -> None:
    """A plot puts the larger y higher, so the first row must have the largest."""
    archive = archive_of(write_pngs(tmp_path / "png", count=4), tmp_path / "x.zip")
    cube = Dataset(id="x", cubes=lambda: archive).open("scene_000")
    assert "crs" not in cube.attrs
    assert cube.y.values.tolist() == [7.5, 6.5, 5.5, 4.5, 3.5, 2.5, 1.5, 0.5]
    top = cube.isel(season=0, band=0).sel(y=slice(8, 4)).mean()
    assert top > cube.isel(season=0, band=0).sel(y=slice(4, 0)).mean()  # as they were made: brighter at the top


def test_every_damaged_image_is_named_and_the_rest_is_packed_only_if_asked_for(tiffs: Path, tmp_path: Path) -> None:
    shutil.copytree(tiffs, tmp_path, dirs_exist_ok=True)
    whole = (tmp_path / "plot-000.tif").read_bytes()
    (tmp_path / "plot-000.tif").write_bytes(whole[: len(whole) // 2])
    np.save(tmp_path / "odd.npy", np.zeros((4, 9, 9), "uint16"))
    source = ImageFolder(tmp_path)
    assert {name for name, reason in damaged(source) if reason} == {"plot-000", "odd"}
    with pytest.raises(DataError, match=r"2 of 7: odd: .*; plot-000: ") as error:
        pack_images(source, tmp_path / "x.zip")
    assert "--leave-out-damaged" in str(error.value)
    assert not (tmp_path / "x.zip").exists()
    left_out = pack_images(ImageFolder(tmp_path), tmp_path / "x.zip", leave_out_damaged=True)
    assert set(left_out) == {"plot-000", "odd"}
    assert len(open_archive(tmp_path / "x.zip")[1].samples) == 5


def test_an_archive_that_is_not_what_it_says_is_refused_and_never_unpickled(tiffs: Path, tmp_path: Path) -> None:
    archive = archive_of(tiffs, tmp_path / "x.zip")
    assert [reason for _, reason in damaged(archive)] == [""] * 6
    with pytest.raises(DataError, match="not the bands, seasons or size declared"):
        ImageArchive(*archive._remotes, bands=("a", "b", "c", "d"), seasons=("scene",)).ids()
    with pytest.raises(UsageError, match="must be pinned"):
        ImageArchive(Remote("https://example.org/x.zip"), bands=("a",), seasons=("scene",))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("index.json", "{}")
    with pytest.raises(DataError, match="not an archive of images"):
        open_archive(tmp_path / "other.zip")
    pickled = io.BytesIO()
    np.save(pickled, np.array([print], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "x.zip") as whole, zipfile.ZipFile(tmp_path / "y.zip", "w") as forged:
        for name in whole.namelist():
            forged.writestr(name, pickled.getvalue() if name == "plot-000.npy" else whole.read(name))
    source = remote_archive(tmp_path / "y.zip", archive)
    with pytest.raises(DataError, match="damaged image 'plot-000'"):
        source.read(["plot-000"])
    assert [bool(reason) for _, reason in damaged(source)] == [True] + [False] * 5


@pytest.mark.parametrize(
    ("name", "plain"), [("x.tif", "x"), ("a.b.JPG", "a.b"), ("x.csv", "x.csv"), (".tif", ".tif"), ("x", "x")]
)
def test_the_suffix_of_an_image_is_taken_off_an_id_and_no_other(name: str, plain: str) -> None:
    assert without_suffix(name) == plain


def give_way(*_: object) -> None:
    time.sleep(0)


def test_arrays_are_read_by_many_threads() -> None:
    """Python 3.11 fails if another thread parses a header while this one does; here they change places at will."""
    buffer, thresholds = io.BytesIO(), gc.get_threshold()
    np.save(buffer, np.arange(6).reshape(2, 3))
    gc.callbacks.append(give_way)
    gc.set_threshold(5)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert sum(array.sum() for array in pool.map(load_array, [buffer.getvalue()] * 200, "x" * 200)) == 15 * 200
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(give_way)
