"""Cubes: views of any source, and the files of SSL4EO-S12."""

from __future__ import annotations

import json
import pickle
import sys
import tracemalloc
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.cubes.cubes import Changed, CubeBatch, batches
from neuco_core.cubes.ssl4eo import L1C, MODALITIES, SSL4EOCubes
from neuco_core.errors import DataError, DependencyError, UsageError
from neuco_core.specs import Dataset
from neuco_core.tables import limits
from neuco_core.testing import TinyCubes
from neuco_tasks.ssl4eo_s12_downstream import common, fake
from tests.tables.test_embeddings import Trap


class Small:
    """Five samples whose values tell where they stand: sample, season, band."""

    version: str = "1"
    bands: tuple[str, ...] = ("s1/VV", "s2/B04", "s2/B8A")
    seasons: tuple[str, ...] = ("summer", "winter")

    def ids(self) -> tuple[str, ...]:
        return ("a", "b", "c", "d", "e")

    def read(self, ids: Sequence[str]) -> CubeBatch:
        rows = [self.ids().index(name) for name in ids]
        values = np.zeros((len(rows), 2, 3, 2, 2), dtype=np.float32)
        values += np.reshape(rows, (-1, 1, 1, 1, 1)) * 100
        values += np.arange(2).reshape(1, 2, 1, 1, 1) * 10 + np.arange(3).reshape(1, 1, 3, 1, 1)
        return CubeBatch(tuple(ids), values, self.bands, self.seasons)


DATASET = Dataset(id="small", bands=Small.bands, seasons=Small.seasons, cubes=Small)


def corner(values: np.ndarray) -> list[Any]:
    return list(values[..., 0, 0].tolist())


def test_open_and_iterate_give_names_to_everything() -> None:
    cube = DATASET.open("c")
    assert cube.dims == ("season", "band", "y", "x")
    assert cube.sel(season="winter", band="s2/B8A").values.tolist() == [[212, 212], [212, 212]]
    assert cube.band[cube.modality == "s2"].values.tolist() == ["s2/B04", "s2/B8A"]
    assert (cube.coords["id"], cube.dtype) == ("c", np.float32)
    assert all(cube.identical(DATASET.open(name)) for cube, name in zip(DATASET, "abcde", strict=True))
    with pytest.raises(DataError, match="'small' declares no cubes"):
        replace(DATASET, cubes=None).open("a")


def test_batches() -> None:
    assert [batch.ids for batch in batches(Small(), 2)] == [("a", "b"), ("c", "d"), ("e",)]
    assert [batch.ids for batch in batches(Small(), 9, ids=["d", "a"])] == [("d", "a")]
    assert list(batches(Small(), 1, ids=[])) == []
    with pytest.raises(UsageError, match="bad batch size"):
        next(batches(Small(), 0))


def test_pick_and_select_by_name_and_by_modality() -> None:
    batch = Small().read(["b"])
    assert corner(batch.pick("s2/B8A", "s1/VV")) == [[[102, 100], [112, 110]]]
    assert corner(batch.pick("s2")) == [[[101, 102], [111, 112]]]
    for name in ("s3", "B04"):
        with pytest.raises(DataError, match=f"no band or modality '{name}'; got bands 's1/VV', 's2/B04', 's2/B8A'"):
            batch.pick(name)
    assert corner(batch.select(seasons=["winter", "summer"]).values)[0][0] == [110, 111, 112]
    part = batch.select(bands=["s2"], seasons=["winter"])
    assert (part.bands, part.seasons) == (("s2/B04", "s2/B8A"), ("winter",))
    assert corner(part.values) == [[[111, 112]]]
    with pytest.raises(DataError, match="no season 'fall'; got seasons 'winter'"):
        part.select(seasons=["fall"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ssl4eo")
    fake.write_folder(root, count=3, files=(), side=12)
    return root


def test_ssl4eo_files_are_read_as_they_are(folder: Path) -> None:
    source = SSL4EOCubes(folder)
    assert source.ids() == SSL4EOCubes(folder / "data").ids() == tuple(sorted(fake.sample_ids(3)))
    assert source.bands == common.BANDS
    assert source.seasons == common.SEASONS
    batch = source.read(fake.sample_ids(3)[:2])
    assert batch.values.shape == (2, 4, 27, 12, 12)
    assert batch.values.dtype == np.float32
    for modality, bands in MODALITIES.items():
        written = fake.made_up(1, modality, len(bands), 12)[0]
        assert np.array_equal(batch.pick(modality)[1], written.astype(np.float32))
    assert batch.bands.index("s2l1c/B8A") - batch.bands.index("s2l1c/B01") == L1C.index("B8A") == 8
    assert "s2l2a/B10" not in batch.bands


def test_some_pixels_of_stored_and_of_plain_batches(folder: Path) -> None:
    batch = SSL4EOCubes(folder).read(fake.sample_ids(3))
    plain = CubeBatch(batch.ids, batch.values, batch.bands, batch.seasons)
    y, x = np.array([0, 3, 11]), np.array([5])
    for some in (batch.at(y, x), plain.at(y, x)):
        assert np.array_equal(some.values, batch.values[..., y, :][..., x])
        assert (some.size, some.ids, some.bands) == ((3, 1), batch.ids, batch.bands)
    assert batch.size == plain.size == (12, 12)
    assert batch.at(y, x).nbytes * 48 == batch.nbytes


def test_shift_seasons_and_modalities_can_be_chosen(folder: Path) -> None:
    whole, shifted = (SSL4EOCubes(folder, shift=shift).read(fake.sample_ids(1)) for shift in (0, 1000))
    assert np.array_equal(shifted.pick("s1"), whole.pick("s1"))
    assert np.array_equal(shifted.pick("s2l1c", "s2l2a"), whole.pick("s2l1c", "s2l2a") + 1000)
    part = SSL4EOCubes(folder, modalities=["s2l2a"], seasons=["winter", "summer"]).read(fake.sample_ids(1))
    assert part.seasons == ("winter", "summer")
    assert np.array_equal(part.values, whole.select(["s2l2a"], ["winter", "summer"]).values)
    bad: list[dict[str, Any]] = [{"seasons": ["autumn"]}, {"modalities": ["s3"]}, {"seasons": []}]
    for wrong in (*bad, {"modalities": ["s1", "s1"]}):
        with pytest.raises(UsageError, match=r"bad (season|modality); expected some of"):
            SSL4EOCubes(folder, **wrong)


def test_samples_that_lack_a_modality_are_left_out_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ids = fake.write_folder(tmp_path, count=3, files=(), side=4)
    (tmp_path / "data" / "s1" / "part-000000" / f"{ids[0]}.zarr.zip").unlink()
    source = SSL4EOCubes(tmp_path)
    assert source.ids() == tuple(sorted(ids[1:]))
    assert source.left_out == {"s1": 1}
    assert "1 samples are left out because they lack s1" in caplog.text
    with pytest.raises(DataError, match=f"no sample '{ids[0][:37]}…' in s1"):
        source.read(ids)
    assert len(SSL4EOCubes(tmp_path, modalities=["s2l1c"]).ids()) == 3


def test_bad_files_are_named(tmp_path: Path) -> None:
    ids = fake.write_folder(tmp_path, count=2, files=(), side=4)
    source = SSL4EOCubes(tmp_path, modalities=["s1"])
    path = tmp_path / "data" / "s1" / "part-000000" / f"{ids[0]}.zarr.zip"
    whole = path.read_bytes()
    for data in (b"", b"PNG", whole[:200], whole[: len(whole) // 2]):
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"damaged cube: .*Download it again") as error:
            source.read(ids)
        assert str(path) in str(error.value)
    fake.write_zarr_zip(path, np.zeros((1, 4, 3, 4, 4), dtype="<f4"))
    with pytest.raises(DataError, match=r"wrong shape; expected \(1, 4, 2, y, x\), got \(1, 4, 3, 4, 4\)"):
        source.read(ids)
    fake.write_zarr_zip(path, np.zeros((1, 4, 2, 5, 5), dtype="<f4"))
    with pytest.raises(DataError, match="cubes of different sizes in one batch"):
        source.read(ids)
    with pytest.raises(DataError, match="modalities of different sizes"):
        SSL4EOCubes(tmp_path).read(ids[:1])


def repacked(path: Path, array: dict[str, Any], chunk: bytes) -> None:
    """The cube with other declarations, and this as its first chunk."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["bands/.zarray"] = json.dumps({**json.loads(members["bands/.zarray"]), **array}).encode()
    members["bands/0.0.0.0.0"] = chunk
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


@pytest.fixture
def cube(tmp_path: Path) -> Path:
    (name,) = fake.write_folder(tmp_path, count=1, files=(), side=4)
    return tmp_path / "data" / "s1" / "part-000000" / f"{name}.zarr.zip"


def read_one(cube: Path) -> CubeBatch:
    return SSL4EOCubes(cube.parents[3], modalities=("s1",), seasons=("spring",)).read([cube.name])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ({"compressor": {"id": "pickle"}}, "codec 'pickle', expected one of blosc"),
        ({"filters": [{"id": "pickle"}], "compressor": None}, "codec 'pickle', expected one of bitround"),
        ({"filters": [{"id": "shuffle"}, {"id": "json2"}]}, "codec 'json2'"),
        ({"compressor": {"id": "lzma"}}, "codec 'lzma'"),
        ({"compressor": {"id": ["zlib"]}}, r"codec \['zlib'\]"),
        ({"compressor": "zlib"}, "damaged cube"),
    ],
)
def test_a_cube_runs_no_code_and_chooses_no_other_codec(
    cube: Path, array: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by its name: numcodecs is not even asked for it."""
    repacked(cube, array, pickle.dumps(Trap(cube.with_name("sprung"))))
    monkeypatch.setattr("numcodecs.get_codec", None)
    with pytest.raises(DataError, match=message):
        read_one(cube)
    assert not cube.with_name("sprung").exists()


@pytest.mark.parametrize("codec", [{"id": "blosc"}, {"id": "zlib"}, {"id": "zstd"}, {"id": "lz4"}, {"id": "gzip"}])
@pytest.mark.parametrize("part", [4, 2, 1])
def test_a_chunk_is_read_whole_or_not_at_all(cube: Path, codec: dict[str, Any], part: int) -> None:
    from numcodecs import get_codec

    values = np.arange(4, dtype="<f4").repeat(4)
    array = {"compressor": codec, "chunks": [1, 1, 1, 4, 4], "shape": [1, 4, 2, 4, 4]}
    repacked(cube, array, bytes(get_codec(codec).encode(values[: 4 * part])))
    with zipfile.ZipFile(cube, "a") as archive:
        archive.writestr("bands/0.0.1.0.0", bytes(get_codec(codec).encode(values)))
    if part == 4:
        assert np.array_equal(read_one(cube).values, np.tile(values, (2, 1)).reshape(1, 1, 2, 4, 4))
    else:
        with pytest.raises(DataError, match="damaged cube"):
            read_one(cube)


@pytest.mark.parametrize("side", [4, 3])  # unpacked to where it belongs, and beside it
def test_a_chunk_of_blosc_that_was_cut_off_shows_nothing_of_the_memory_behind_it(cube: Path, side: int) -> None:
    """Bytes that do not get smaller follow the header as they are, and blosc copies as many as it says."""
    size = 4 * side * side
    header = bytes([2, 1, 2, 4]) + b"".join(number.to_bytes(4, "little") for number in (size, size, size + 16))
    repacked(cube, {"compressor": {"id": "blosc"}, "chunks": [1, 1, 1, side, side], "shape": [1, 4, 2, 4, 4]}, header)
    with pytest.raises(DataError, match=rf"damaged cube: bands/\S+ has 16 bytes, its header says {size + 16}"):
        read_one(cube)


def zstd_without_size(size: int) -> bytes:
    """A frame of zstd's whose header leaves out the size, of one byte that repeats."""
    blocks = []
    for left in range(size, 0, -(128 << 10)):
        length = min(left, 128 << 10)
        blocks.append((int(length == left) | 2 | length << 3).to_bytes(3, "little") + b"\0")
    return bytes.fromhex("28b52ffd 00 58") + b"".join(blocks)


@pytest.mark.parametrize("codec", ["blosc", "bz2", "gzip", "lz4", "zlib", "zstd", "zstd without size"])
@pytest.mark.parametrize("filters", [[], [{"id": "delta", "dtype": "<f4", "astype": "<f8"}]])
def test_a_chunk_that_unpacks_to_more_than_declared_takes_no_memory(cube: Path, codec: str, filters: list[Any]) -> None:
    from numcodecs import get_codec

    compressor, unpacked = {"id": codec.removesuffix(" without size")}, 128 if filters else 64

    def chunk(size: int) -> bytes:
        known = codec == compressor["id"]
        return bytes(get_codec(compressor).encode(bytes(size))) if known else zstd_without_size(size)

    array = {"compressor": compressor, "filters": filters, "chunks": [1, 1, 1, 4, 4], "shape": [1, 4, 2, 4, 4]}
    repacked(cube, array, chunk(unpacked))
    assert not read_one(cube).values[0, 0, 0].any()
    message = rf"damaged cube: (bands/\S+ does not unpack to {unpacked} bytes|Zstd decompression error)"
    for size in (unpacked - 1, 64 << 20):
        repacked(cube, array, chunk(size))
        tracemalloc.start()
        with pytest.raises(DataError, match=message):
            read_one(cube)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
        tracemalloc.stop()


@pytest.mark.parametrize("key", ["dtype", "astype"])
def test_a_filter_makes_numbers_only(cube: Path, key: str) -> None:
    """Strings of 10,000 characters for each value, for instance, would fill the memory."""
    declared = {"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<f4", "astype": "<f4", key: "<U10000"}
    repacked(cube, {"filters": [declared]}, b"")
    with pytest.raises(DataError, match=r"filter 'fixedscaleoffset' of .*<U10000.* values, expected numbers"):
        read_one(cube)


@pytest.mark.parametrize("key", ["shape", "chunks", "member"])
def test_a_cube_that_declares_too_much_is_refused(cube: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FREE", 1 << 20)
    repacked(cube, {key: [1, 4 if key == "shape" else 1, 2, 100_000, 100_000]}, b"")
    if key == "member":
        with zipfile.ZipFile(cube, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bands/9.9.9.9.9", bytes(10 << 20))
    with pytest.raises(DataError, match="too many bytes when unpacked; expected at most") as caught:
        read_one(cube)
    assert str(cube) in str(caught.value)


def test_bad_folders_and_names(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cube folder not found.*data/s1, data/s2l1c and data/s2l2a"):
        SSL4EOCubes(tmp_path)
    ids = fake.write_folder(tmp_path, count=1, files=(), side=4)
    source = SSL4EOCubes(tmp_path)
    (tmp_path / "outside.zarr.zip").write_bytes(next((tmp_path / "data" / "s1").rglob("*.zip")).read_bytes())
    away = ("../part-000000/" + ids[0], "../../../outside", str(tmp_path / "outside"), "..", "a\0b", "x" * 300)
    for name in ("nobody", "", *away):
        with pytest.raises(DataError, match="no sample"):
            source.read([name])
    dangling = tmp_path / "data" / "s1" / "part-000000" / "gone.zarr.zip"
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"not a regular file, or a link to none \(.*gone\.zarr\.zip\)"):
        _ = SSL4EOCubes(tmp_path).version
    dangling.unlink()
    with pytest.raises(UsageError, match="no samples to read"):
        source.read([])
    again = tmp_path / "data" / "s1" / "part-000001" / f"{ids[0]}.zarr.zip"
    fake.write_zarr_zip(again, np.zeros((1, 4, 2, 4, 4), dtype="<f4"))
    with pytest.raises(DataError, match="duplicate sample"):
        SSL4EOCubes(tmp_path).ids()
    for path in (tmp_path / "data" / "s2l1c").rglob("*.zip"):
        path.unlink()
    again.unlink()
    with pytest.raises(DataError, match="no sample has all modalities; got 1 of s1, 0 of s2l1c, 1 of s2l2a"):
        SSL4EOCubes(tmp_path).ids()


def test_without_zarr_the_error_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numcodecs", None)
    with pytest.raises(DependencyError, match=r"pip install 'numcodecs>="):
        SSL4EOCubes(folder).read(fake.sample_ids(1))


def test_the_registered_dataset_opens_a_linked_copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from neuco_core import load_dataset

    monkeypatch.setenv("NEUCO_DATASET_SSL4EO_S12_DOWNSTREAM", str(folder))
    cube = load_dataset("ssl4eo_s12_downstream").open(fake.sample_ids(1)[0] + ".zarr.zip")
    assert cube.sizes == {"season": 4, "band": 27, "y": 12, "x": 12}
    assert cube.sel(season="summer", band="s1/VV").values[0, 0] == fake.made_up(0, "s1", 2, 12)[0, 1, 0, 0, 0]


def test_changed_images_lie_in_memory_as_those_that_are_read() -> None:
    """An ordinary wrapper gives them to torch as they are, which takes no array that runs backwards."""
    source = TinyCubes(bands=("a", "b"), seasons=("x", "y"), size=4)
    changed = Changed(source)
    changed.change = lambda batch: batch.values[:, ::-1, ::-1]
    ids = source.ids()[:3]
    values = changed.read(ids).values
    assert (values == source.read(ids).values[:, ::-1, ::-1]).all()
    assert values.flags.c_contiguous
