"""Files with random damage: they are read, or refused with a DataError, and nothing else happens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neuco_core.errors import DataError
from neuco_core.specs import KINDS
from neuco_core.tables.embeddings import make_embeddings, read_embeddings, write_embeddings
from neuco_core.tables.labels import read_labels

fuzz = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@fuzz
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
@fuzz
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
