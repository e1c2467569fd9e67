"""Files drawn at random: whatever is not refused comes back as it was, and damage is refused in one line."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neuco_core.errors import DataError
from neuco_core.specs import KINDS
from neuco_core.tables import embeddings_csv
from neuco_core.tables.csv import clean_id
from neuco_core.tables.embeddings import make_embeddings, read_embeddings, write_embeddings
from neuco_core.tables.labels import labels_from_table, read_labels
from neuco_core.tables.package import canonical_bytes

# tmp_path stays the same for all draws of one test; every draw writes its file anew.
quick = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])

alphabet = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(alphabet, min_size=1, max_size=12).filter(clean_id)
id_lists = st.lists(texts, min_size=1, max_size=6, unique_by=clean_id)
numbers32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
numbers64 = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[list[str], np.ndarray]:
    ids = draw(id_lists)
    shape = (len(ids), draw(st.integers(1, 5)))
    return ids, draw(hnp.arrays(np.float32, shape, elements=numbers32))


@pytest.mark.parametrize("form", ["small csv", "large csv", "parquet", "npz"])
@quick
@given(blocks(), st.integers(1, 60))
@example((["NA", "007"], np.array([[-0.0], [1e-45]], dtype=np.float32)), 8)
@example((['a,"\r\n', "b.zarr.zip"], np.array([[3.4028235e38], [0.1]], dtype=np.float32)), 8)
def test_embeddings_come_back(form: str, tmp_path: Path, block: tuple[list[str], np.ndarray], size: int) -> None:
    made = make_embeddings(*block)
    path = tmp_path / f"x.{form.rsplit(maxsplit=1)[-1]}"
    write_embeddings(made, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embeddings_csv, "LARGE", 1 if form == "large csv" else 1 << 60)
        patch.setattr(embeddings_csv, "BLOCK", size)
        again = read_embeddings(path, strict=True)
    assert again.ids == made.ids == tuple(clean_id(name) for name in block[0])
    assert np.array_equal(again.values, made.values)
    assert again.sha256 == made.sha256
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_values_are_those_of_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upstream reads float64 with pandas and rounds to float32: numbers of all lengths, and halfway between two."""
    rng = np.random.default_rng(5)
    exact = rng.standard_normal((400, 50)) * 10.0 ** rng.integers(-30, 30, (400, 50))
    near = exact.astype(np.float32)
    middle = (near.astype(np.float64) + np.nextafter(near, np.float32(np.inf)).astype(np.float64)) / 2
    table = pd.DataFrame(np.concatenate([exact, middle]))
    table.insert(0, "id", [f"s{row}" for row in range(len(table))])
    path = tmp_path / "x.csv"
    for form in (None, "%.6f", "%.9g", "%.17g", "%.25e"):
        table.to_csv(path, index=False, float_format=form)
        upstream = pd.read_csv(path).drop(columns="id").to_numpy(dtype=np.float64).astype(np.float32)
        for size in (1, 1 << 60):  # read by compiled code, and by plain Python
            monkeypatch.setattr(embeddings_csv, "LARGE", size)
            assert read_embeddings(path, strict=True).values.tobytes() == upstream.tobytes(), form


def write(rows: list[tuple[str, str]], newline: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=newline, quoting=csv.QUOTE_ALL)
    writer.writerow(["id", "label"])
    writer.writerows(rows)
    return text.getvalue().encode()


FORMS = [repr, "{:.17g}".format, "{:+.16e}".format, " {!r} ".format]


@st.composite
def label_tables(draw: st.DrawFn) -> tuple[list[str], list[float]]:
    ids = draw(st.lists(texts, min_size=2, max_size=6, unique_by=clean_id))
    values = draw(st.lists(numbers64, min_size=len(ids), max_size=len(ids)).filter(lambda v: len(set(v)) > 1))
    return ids, values


@quick
@given(label_tables(), st.sampled_from(FORMS), st.sampled_from(["\n", "\r\n"]))
def test_labels_are_their_content_and_packaged_bytes_know_no_order(
    tmp_path: Path, table: tuple[list[str], list[float]], form: Any, newline: str
) -> None:
    path = tmp_path / "x.csv"
    rows = [(name + ".zarr.zip", form(value)) for name, value in zip(*table, strict=True)]
    path.write_bytes(write(rows, newline))
    again = read_labels(path, "regression")
    made = labels_from_table({"id": table[0], "label": table[1]}, "regression")
    assert (again.ids, again.values.tolist(), again.sha256) == (made.ids, table[1], made.sha256)
    path.write_bytes(write(rows[::-1], newline))
    turned = read_labels(path, "regression")
    assert turned.sha256 != made.sha256, "the order fixes the splits, so it belongs to the content"
    assert canonical_bytes(turned) == canonical_bytes(made)
    path.write_bytes(canonical_bytes(made))
    assert canonical_bytes(read_labels(path, "regression")) == canonical_bytes(made)


MADE = make_embeddings(["a", "b.c", "007"], np.array([[1.5, -2.25], [3.0, 1e-8], [0.0, 7.0]]))
LABELS = b'id,label,tile\na,1.5,x\n"b,c",0,y\n007,,z\nd,1,x\n'

pieces = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        [b",", b'"', b"\n", b"\r", b"\r\n", b"\0", b";", b"nan", b"1e999", b"\xef\xbb\xbf", b"\xff", b"id", b" "]
    ),
)
damages = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), pieces), min_size=1, max_size=4)


def damage(data: bytes, damages: list[tuple[float, int, bytes]]) -> bytes:
    """Replace some bytes at some places."""
    for place, length, piece in damages:
        start = int(place * len(data))
        data = data[:start] + piece + data[start + length :]
    return data


def one_line(path: Path, error: DataError) -> None:
    assert str(path) in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 600


@quick
@given(damages, st.sampled_from(KINDS), st.sampled_from([None, "tile"]))
def test_damaged_labels(tmp_path: Path, damages: list[tuple[float, int, bytes]], kind: str, group: str | None) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(damage(LABELS, damages))
    try:
        labels = read_labels(path, kind, group_column=group)
    except DataError as error:
        one_line(path, error)
    else:
        assert len(set(labels.ids)) == len(labels) > 1
        assert np.isfinite(labels.values).all()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz", "npy"])
@quick
@given(damages, st.sampled_from([True, True, False]))
def test_damaged_embeddings(tmp_path: Path, suffix: str, damages: list[tuple[float, int, bytes]], whole: bool) -> None:
    """Some bytes at some places, or nothing that was ever such a file."""
    path = tmp_path / f"x.{suffix}"
    write_embeddings(MADE, path)
    path.write_bytes(damage(path.read_bytes() if whole else b"", damages))
    try:
        embeddings = read_embeddings(path)
    except DataError as error:
        one_line(path, error)
    else:
        assert len(set(embeddings.ids)) == len(embeddings) == len(embeddings.values) > 0
        assert np.isfinite(embeddings.values).all()
