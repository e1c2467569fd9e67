"""Large CSV files are read by compiled code: the same bits and the same errors as plain Python, whatever they hold."""

from __future__ import annotations

import json
import os
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neuco_core.errors import DataError
from neuco_core.tables import csv_kernel, embeddings_csv
from neuco_core.tables.embeddings import read_embeddings
from tests.command import python
from tests.parts import missing
from tests.tables.test_random import damage, damages

HEAD, ROWS = b"id,0,1,name\n", [b"a,1.5,-2e-3,x\n", b'"b",+.25,7.,"y"\n', b"c.zarr,0,123456789.123456789,\r\n"]
quickly = settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line or two are a block."""
    monkeypatch.setattr(embeddings_csv, "BLOCK", 20)


def outcome(path: Path, large: bool, **options: Any) -> tuple[Any, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embeddings_csv, "LARGE", 1 if large else 1 << 60)
        try:
            embeddings = read_embeddings(path, **options)
        except DataError as error:
            return (str(error),)
    return embeddings.ids, embeddings.values.tobytes(), embeddings.sha256, dict(embeddings.replaced), embeddings.ignored


def bits(texts: list[str]) -> tuple[list[int], list[int]]:
    """What compiled code makes of cells that it reads itself, and what ``float`` makes of them."""
    text = np.frombuffer(bytearray("\n".join(f"x,{cell}" for cell in texts).encode() + b"\n"), np.uint8)
    values, odd = np.empty((len(texts), 1), np.float32), np.empty((len(texts) + 2, 4), np.int64)
    names, targets = np.empty((len(texts), 2), np.int64), np.array([csv_kernel.ID, 0])
    state, _, rows, count = csv_kernel.read_rows(text, 0, len(text), targets, values, 0, names, odd)
    assert (state, rows) == (csv_kernel.DONE, len(texts))
    left = set(odd[:count, 0].tolist())
    plain = [n for n in range(len(texts)) if n not in left]
    with np.errstate(over="ignore"):
        expected = np.array([float(texts[n]) for n in plain]).astype(np.float32)
    return values[plain, 0].view(np.uint32).tolist(), expected.view(np.uint32).tolist()


def near_borders(count: int) -> list[str]:
    """Decimals on, just below and just above the middle between two float32, in 17 to 19 digits."""
    dice, cells = random.Random(5), []
    for _ in range(count):
        low = np.float32(dice.uniform(0.5, 1) * 10.0 ** dice.randint(-30, 30))
        middle = (Fraction(float(low)) + Fraction(float(np.nextafter(low, np.float32(np.inf))))) / 2
        power = dice.randint(16, 18) - len(str(int(middle))) if middle >= 1 else 17 - int(np.floor(np.log10(low)))
        digits = round(middle * Fraction(10) ** power) + dice.randint(-3, 3)
        cells.append(f"{digits}e{-power}")
    return cells


def test_numbers_are_those_of_python_to_the_last_bit() -> None:
    dice = random.Random(3)
    cells = [repr(dice.gauss(0, 1) * 10.0 ** dice.randint(-40, 39)) for _ in range(20_000)]
    cells += [repr(np.float32(dice.gauss(0, 1)).item()) for _ in range(5_000)]
    cells += [f"{dice.gauss(0, 1):.18e}" for _ in range(5_000)]
    cells += [f"{dice.randint(0, 10**19)}e{dice.randint(-60, 25)}" for _ in range(20_000)]
    cells += ["0", "-0", "0.0e99", "000000000000000000000001", "9007199254740993", "18446744073709551615", " 1 ", "+1"]
    got, expected = bits(cells)
    assert got == expected
    assert len(got) > 0.9 * len(cells), "all but those that are no normal float32"
    got, expected = bits(near_borders(20_000))
    assert got == expected
    assert len(got) < 10_000, "those that cannot be told apart are left to Python"


@quickly
@given(damages, st.integers(0, 3), st.booleans())
@pytest.mark.usefixtures("tiny_blocks")
def test_damaged_files_give_the_same_either_way(
    tmp_path: Path, damages: list[tuple[float, int, bytes]], copies: int, strict: bool
) -> None:
    path = tmp_path / "x.csv"
    more = [row.replace(b",", b"%d," % n, 1) for n in range(copies) for row in (ROWS[0], ROWS[2])]
    path.write_bytes(damage(HEAD + b"".join(ROWS + more), damages))
    assert outcome(path, True, strict=strict) == outcome(path, False, strict=strict)


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize("end", ["\n", "", "\r\n", "\n\n\n", "\r\n\r\n"])
def test_compiled_code_reads_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """Also with cells that are missing, and more odd ones than there is room for at a time; and not the other way."""
    monkeypatch.setattr(embeddings_csv, "_read_carefully", None)
    monkeypatch.setattr(embeddings_csv, "ODD", 1)
    lines = [f'"s{n}",{"" if n % 3 else n / 7},{"word" if n % 5 else -n},1e-42,{n}' for n in range(97)]
    (tmp_path / "x.csv").write_text("\n".join(["id,0,1,2,note", *lines]) + end, newline="")
    ids, values, _, replaced, ignored = outcome(tmp_path / "x.csv", True)
    assert ids == tuple(f"s{n}" for n in range(97))
    expected = [(0 if n % 3 else n / 7, 0 if n % 5 else -n, 1e-42) for n in range(97)]
    assert values == np.array(expected).astype(np.float32).tobytes()
    assert replaced == {"missing": 64, "not_a_number": 77}
    assert ignored == ("note",)


def test_a_file_that_is_really_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    values = np.random.default_rng(0).standard_normal((900, 600))
    rows = [f"{n}," + ",".join(map(repr, row)) for n, row in enumerate(values.tolist())]
    path.write_text("\n".join(["id," + ",".join(map(str, range(600))), *rows]) + "\n")
    assert path.stat().st_size > 2 * embeddings_csv.LARGE
    slowly = outcome(path, False)
    monkeypatch.setattr(embeddings_csv, "_read_carefully", None)
    assert read_embeddings(path).values.tobytes() == values.astype(np.float32).tobytes() == slowly[1]
    blocks = embeddings_csv.cut(path)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(DataError, match="shorter while it was read"):
        list(blocks.each(lambda block, text, size: size))


@pytest.mark.slow
def test_benchmark_of_reading(root: Path) -> None:
    if not Path("/proc/self/status").exists():
        missing("/proc", "peak memory is read from there")
    done = python("benchmarks/read.py", "--rows", "2000", "--dim", "30", "--rounds", "1", "--json", cwd=root)
    assert done.code in (0, 1), done.err
    table = json.loads(done.out)
    ours = {"neuco csv", "neuco parquet", "neuco npz", "neuco npy"}
    assert set(table) - {"polars csv"} == {"pandas csv", "pyarrow csv", *ours}
    assert min(row["time_ratio"] for name, row in table.items() if name not in ours) == 1
    for row in table.values():
        assert set(row) == {"seconds", "cpu_seconds", "time_ratio", "cpu_ratio", "megabytes", "memory_ratio"}
        assert row["seconds"] > 0
