"""Files as they should not be: each is read right, or refused in one line that names file, row or column.

What is true of any CSV is tested with files of embeddings, and not again with files of labels.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.errors import DataError, UsageError
from neuco_core.tables import embeddings_csv
from neuco_core.tables.embeddings import read_embeddings
from neuco_core.tables.labels import read_labels


@dataclass(frozen=True)
class Case:
    """Bytes that somebody hands in as a CSV, and either what is read from them or what the error says."""

    name: str
    data: bytes
    error: str = ""
    ids: tuple[str, ...] = ("a", "b")
    values: Any = (1.0, 2.0)
    options: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def refusal(path: Path, error: pytest.ExceptionInfo[DataError]) -> str:
    """The message, which must be one line of a bearable length, and name the file."""
    text = str(error.value)
    assert "\n" not in text
    assert len(text.replace(str(path), "")) < 300
    assert str(path) in text
    return text


STRICT = {"strict": True}
BOMB = gzip.compress(b"id,0\n" + b"0" * 10_000_000, 9)
LONG = "x" * 100_000
ROWS = ((1, 2), (3, 4))
TO_TEN = (tuple(range(1, 11)),)
WIDE = ("id," + ",".join(map(str, range(1025))) + "\na," + ",".join(["1"] * 1025) + "\n").encode()

EMBEDDINGS = [
    # Read right.
    Case("plain", b"id,0,1\na,1,2\nb,3,4\n", values=ROWS),
    Case("no final newline", b"id,0,1\na,1,2\nb,3,4", values=ROWS),
    Case("CRLF", b"id,0,1\r\na,1,2\r\nb,3,4\r\n", values=ROWS),
    Case("CR", b"id,0,1\ra,1,2\rb,3,4\r", values=ROWS),
    Case("byte order mark", b"\xef\xbb\xbfid,0,1\na,1,2\nb,3,4\n", values=ROWS),
    Case("byte order mark and quotes", b'\xef\xbb\xbf"id","0","1"\n"a","1","2"\n"b",3,4\n', values=ROWS),
    Case("spaces", b" id , 0,1 \n a , 1 ,2\nb,3,\t4\n", values=ROWS),
    Case("blank lines", b"\nid,0,1\n\na,1,2\n \n\nb,3,4\n\n", values=ROWS),
    Case("columns from 1", b"id,1,2\na,1,2\nb,3,4\n", values=ROWS),
    Case("columns out of order", b"id,1,0\na,2,1\nb,4,3\n", values=ROWS),
    Case("many columns out of order", b"2,id,0,1,x\n3,a,1,2,\n6,b,4,5,\n", values=((1, 2, 3), (4, 5, 6))),
    Case("columns as text would sort", b"id,10,2,1,3,4,5,6,7,8,9\na,10,2,1,3,4,5,6,7,8,9\n", ids=("a",), values=TO_TEN),
    Case("columns with leading zeros", b"id,00,01\na,1,2\nb,3,4\n", values=ROWS),
    Case("columns with names", b"id,feat_b,feat_a\na,1,2\nb,3,4\n", values=ROWS),
    Case("numbered columns among others", b"lat,id,0,1,name\n5,a,1,2,x\n,b,3,4,\n", values=ROWS),
    Case("row index of pandas", b",id,0,1\n0,a,1,2\n1,b,3,4\n", values=ROWS),
    Case("id in the middle", b"0,id,1\n1,a,2\n3,b,4\n", values=ROWS),
    Case("leading zeros", b"id,0\n007,1\n7,2\n", ids=("007", "7"), values=((1,), (2,))),
    Case("ids like missing values", b"id,0\nNA,1\nnan,2\n", ids=("NA", "nan"), values=((1,), (2,))),
    Case("comma and line break in an id", b'id,0\n"a,\nx",1\n"b""",2\n', ids=("a,\nx", 'b"'), values=((1,), (2,))),
    Case("huge id", f"id,0\n{LONG},1\nb,2\n".encode(), ids=(LONG, "b"), values=((1,), (2,))),
    Case("cube file names", b"id,0\na.zarr.zip,1\nb.zarr,2\n", values=((1,), (2,))),
    Case("as wide as allowed", b"id,0,1\na,1,2\nb,3,4\n", values=ROWS, options={"dim": 2}),
    Case("narrower than allowed", b"id,0,1\na,1,2\nb,3,4\n", values=ROWS, options={"dim": 1024}),
    Case("NaN", b"id,0,1\na,1,NaN\nb,nan,4\n", values=((1, 0), (0, 4)), counts={"missing": 2}),
    Case("empty cells", b"id,0,1\na,,2\nb,3,\n", values=((0, 2), (3, 0)), counts={"missing": 2}),
    Case("text", b"id,0,1\na,1,two\nb,3,4\n", values=((1, 0), (3, 4)), counts={"not_a_number": 1}),
    Case("mixed", b"id,0,1\na,1.5,NA\nb,x,0x10\n", values=((1.5, 0), (0, 0)), counts={"missing": 1, "not_a_number": 2}),
    Case("underscores", b"id,0\na,1_0\nb,2\n", values=((0,), (2,)), counts={"not_a_number": 1}),
    Case("Arabic digits", "id,0\na,٣\nb,2\n".encode(), values=((0,), (2,)), counts={"not_a_number": 1}),
    Case("decimal commas in quotes", b'id,0\na,"1,5"\nb,2\n', values=((0,), (2,)), counts={"not_a_number": 1}),
    Case("booleans", b"id,0\na,True\nb,False\n", values=((1,), (0,))),
    Case("booleans among numbers", b"id,0\na,True\nb,2\n", values=((1,), (2,))),
    Case("tiny", b"id,0\na,1e-400\nb,2\n", values=((0,), (2,))),
    # Refused.
    Case("empty", b"", "the file is empty"),
    Case("header only", b"id,0,1\n", "no rows below the header"),
    Case("no header", b"a,1,2\nb,3,4\n", "no column named 'id'; got 'a', '1', '2'"),
    Case("no id column", b"name,0,1\na,1,2\n", "no column named 'id'"),
    Case("only ids", b"id\na\nb\n", "no value columns"),
    Case("two columns 0", b"id,0,0\na,1,2\n", "columns 2 and 3: duplicate column '0'"),
    Case("columns 0 and 00", b"id,0,00\na,1,2\n", "column numbers have a gap"),
    Case("a gap", b"id,0,1,3\na,1,2,3\n", "expected columns numbered from 0 on, got no column 2"),
    Case("a gap, from 1", b"id,1,3\na,1,2\n", "expected columns numbered from 1 on, got no column 2"),
    Case("columns from 5", b"id,5,6\na,1,2\n", "expected columns numbered from 1 on, got no column 1"),
    Case("1,025 columns", WIDE, "too many value columns; expected at most 1024, got 1025", options={"dim": 1024}),
    Case("named columns and no name", b",id,u\n0,a,1\n1,b,2\n", "column 1: a column has no name"),
    Case("no number at all", b"id,u,v\na,x,\nb,NA,y\n", "no value is numeric; got 2 rows, 2 columns"),
    Case("semicolons", b"id;0;1\na;1;2\n", "Separate columns with commas, not semicolons"),
    Case("double id", b"id,0\na,1\nb,2\na,3\n", "rows 2 and 4: duplicate id 'a'"),
    Case("double id by suffix", b"id,0\na,1\n\na.zarr.zip,2\n", "rows 2 and 4: duplicate id 'a'"),
    Case("no id in a row", b"id,0\na,1\n,2\n", "row 3: no id"),
    Case("inf", b"id,0,1\na,1,2\nb,inf,4\n", "row 3, column '0': value is not finite as float32; got 'inf'"),
    Case("-Infinity", b"id,0,1\na,1,-Infinity\nb,3,4\n", "row 2, column '1': value is not finite"),
    Case("too large for float32", b"id,0\na,1e39\nb,2\n", "row 2, column '0': value is not finite as float32"),
    Case("strict NaN", b"id,0\na,1\nb,NaN\n", "row 3, column '0': value is not a number", options=STRICT),
    Case("strict text", b"id,0,u\na,1,x\nb,two,y\n", "row 3, column '0': .* got 'two'", options=STRICT),
    Case("short row", b"id,0,1\na,1,2\nb,3\n", "row 3: row has the wrong length; expected 3 fields, got 2"),
    Case("short first row", b"id,0,1\na,1\nb,3,4\n", "row 2: row has the wrong length"),
    Case("short row before an ignored column", b"id,0,x\na,1,\nb,3\n", "row 3: row has the wrong length"),
    Case("long row", b"id,0,1\na,1,2\nb,3,4,5\n", "row 3: row has the wrong length; expected 3 fields, got 4"),
    Case("long first row", b"id,0,1\na,1,2,9\nb,3,4,9\n", "row 2: row has the wrong length"),
    Case("commas at the ends", b"id,0\na,1,\nb,2,\n", "row 2: row has the wrong length"),
    Case("comma at the end of the header", b"id,0,\na,1,\nb,2,\n", "", values=((1,), (2,))),
    Case("named columns, comma at the end of the header", b"id,u,\na,1,\n", "column 3: a column has no name"),
    Case("comment", b"# made by hand\nid,0\na,1\n", "no column named 'id'"),
    Case("open quote", b'id,0\na,1\n"b,2\n', "malformed CSV: unexpected end of data"),
    Case("only white space", b" \n\n  \n", "the file is empty"),
    Case("id in capitals", b"ID,0\na,1\n", "no column named 'id'; got 'ID', '0'"),
    Case("tabs", b"id\t0\na\t1\n", "Separate columns with commas, not tabs"),
    Case("text behind a quote", b'id,0\n"a"x,1\nb,2\n', "row 2: ?malformed CSV|malformed CSV"),
    Case("id too huge", b"id,0\n" + b"x" * 200_000 + b",1\n", "row 2: malformed CSV: field larger"),
    Case("zip", b"PK\x03\x04" + b"x" * 30, "not a CSV file but a zip archive"),
    Case("Git LFS pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS pointer"),
    Case("web page", b"<!DOCTYPE html>\n<html>", "not a CSV file but a web page"),
    Case("UTF-16", "id,0\na,1\n".encode("utf-16"), "not a CSV file but UTF-16 text"),
    Case("Latin-1", "id,0\na,1\nÖ,2\n".encode("latin-1"), "not UTF-8 text; got byte 0xd6"),
    Case("PNG", b"\x89PNG\r\n\x1a\n\x00\x00", "not a CSV file but a PNG image"),
    Case("gzip bomb", BOMB, "not a CSV file but gzip-compressed"),
    Case("NUL bytes", b"id,0\na,1\nb\0,2\n", "row 3: not CSV: it has NUL bytes"),
    Case("Parquet", b"PAR1xxxxPAR1", "a Parquet file: give it the suffix .parquet"),
]

CLS, MULTI = {"kind": "classification"}, {"kind": "multilabel"}
TWO, SPLIT = {"columns": ("u", "v")}, {"split_column": "s"}
LABELS = [
    # Read right.
    Case("plain", b"id,label\na,1\nb,2\n"),
    Case("other alphabets", "id,label\nоль,1\n東京,2\n".encode(), ids=("оль", "東京")),
    Case("extra columns", b"x,id,phase_dev,label\n,a,True,1\n?,b,False,2\n"),
    Case("empty labels", b"id,label\na,1\nc,\nb,2\nd,  \n", counts={"empty_label": 2}),
    Case("exponents and signs", b"id,label\na,+1e0\nb,20E-1\n"),
    Case("classes as 1.0", b"id,label\na,1.0\nb,0\n", values=(1.0, 0.0), options=CLS),
    Case("names of classes", b"id,label\na,water\nb,forest\n", values=(1.0, 0.0), options=CLS),
    Case("several outputs", b"id,u,v\na,1,3\nb,2,4\n", values=((1, 3), (2, 4)), options=TWO),
    # Refused.
    Case("no label column", b"id,y\na,1\nb,2\n", "no column 'label'; got columns 'id', 'y'"),
    Case("double id, one without label", b"id,label\na,1\nb,2\na,\n", "rows 2 and 4: duplicate id 'a'"),
    Case("all labels empty", b"id,label\na,\nb,\n", "no row has a label; got 2 rows"),
    Case("NaN", b"id,label\na,1\nb,nan\n", "row 3, column 'label': label is not finite; got 'nan'"),
    Case("inf", b"id,label\na,-inf\nb,2\n", "row 2, column 'label': label is not finite; got '-inf'"),
    Case("too large", b"id,label\na,1e999\nb,2\n", "row 2, column 'label': label is not finite; got '1e999'"),
    Case("NA", b"id,label\na,1\nb,NA\n", "row 3, column 'label': label is not a number; got 'NA'"),
    Case("underscores", b"id,label\na,1\nb,1_0\n", "row 3, column 'label': label is not a number"),
    Case("id that is only a suffix", b"id,label\na,1\n.zarr,2\n", "row 3: no id"),
    Case("long text", f"id,label\na,1\nb,{LONG}\n".encode(), "row 3, column 'label': .* got 'xxx.*…'"),
    Case("constant", b"id,label\na,2\nb,2.0\n", "column 'label': constant labels.*got '2' in all 2 rows"),
    Case("half a class", b"id,label\na,0\nb,0.5\n", "row 3, column 'label': not a class;.*got 0.5", options=CLS),
    Case("negative class", b"id,label\na,-1\nb,1\n", "row 2, column 'label': not a class;.*got -1", options=CLS),
    Case("classes from 2", b"id,label\na,2\nb,3\n", "a gap.*1 to 3, got none of class 1", options=CLS),
    Case("huge class", b"id,label\na,0\nb,1e15\n", "class numbers have a gap", options=CLS),
    Case("names and numbers", b"id,label\na,0\nb,sea\n", "row 3.* label is not a number; got 'sea'", options=CLS),
    Case("one constant output", b"id,u,v\na,1,3\nb,2,3\n", "column 'v': constant", options=TWO),
    Case("no group column", b"id,label\na,1\nb,2\n", "no column 'tile'", options={"group_column": "tile"}),
    Case("no split", b"id,label,s\na,1,train\nb,2,\n", "row 3, column 's': not a part of a split", options=SPLIT),
    Case(
        "a third part", b"id,label,s\na,1,train\nb,2,val\n", "train or test, got 'val' .* A validation", options=SPLIT
    ),
    Case("no test part", b"id,label,s\na,1,train\nb,2,Train\n", "no row is in the part 'test'", options=SPLIT),
    Case("classes in two columns", b"id,u,v\na,1,0\nb,0,1\n", "got 2 .*are several tasks", options={**CLS, **TWO}),
    Case("one label of many", b"id,label\na,1\nb,0\n", "wrong number of columns for multilabel", options=MULTI),
    Case("half a label", b"id,u,v\na,1,0\nb,0.5,1\n", "'u': a label is there or not;.*0.5", options={**MULTI, **TWO}),
    Case("a label nobody has", b"id,u,v\na,1,0\nb,0,0\n", "column 'v': constant labels", options={**MULTI, **TWO}),
    Case("no group", b"id,label,g\na,1,\nb,2,x\n", "row 2, column 'g': no group", options={"group_column": "g"}),
]


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("case", EMBEDDINGS, ids=str)
def test_embedding_file(case: Case, large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files over some size are read by other code, which must give the same."""
    if large:
        monkeypatch.setattr(embeddings_csv, "LARGE", 1)
        monkeypatch.setattr(embeddings_csv, "BLOCK", 8)
    path = tmp_path / "embeddings.csv"
    path.write_bytes(case.data)
    if case.error:
        with pytest.raises(DataError, match=case.error) as error:
            read_embeddings(path, **case.options)
        refusal(path, error)
        return
    embeddings = read_embeddings(path, **case.options)
    assert embeddings.ids == case.ids
    assert embeddings.values.tolist() == [list(row) for row in case.values]
    assert embeddings.replaced == case.counts
    assert embeddings.values.dtype == "float32"
    assert embeddings.values.flags.c_contiguous
    if not case.counts:
        assert read_embeddings(path, strict=True).sha256 == embeddings.sha256


def test_what_suffixes_and_columns_are_for(tmp_path: Path) -> None:
    path = tmp_path / "0123abcd"
    path.write_bytes(b"lat,id,0,lon\n1,a,2,3\n")
    embeddings = read_embeddings(path)
    assert (embeddings.ids, embeddings.ignored) == (("a",), ("lat", "lon")), "told by the first bytes"
    with pytest.raises(DataError, match=r"no such file \(.*nowhere\.csv\)"):
        read_embeddings(tmp_path / "nowhere.csv")


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", Path("/dev/zero")):
        with pytest.raises(DataError, match="not a regular file"):
            read_embeddings(path)


def test_an_array_of_a_negative_size_is_refused_in_our_words(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    (tmp_path / "x.ids.txt").write_text("a\nb\n")
    data = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(data.replace(b"(2, 3), ", b"(-2, 3),"))
    with pytest.raises(DataError, match=r"an array of a negative size; got shape \(-2, 3\)"):
        read_embeddings(tmp_path / "x.npy")


@pytest.mark.parametrize("case", LABELS, ids=str)
def test_label_file(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(case.data)
    options = {"kind": "regression", **case.options}
    if case.error:
        with pytest.raises(DataError, match=case.error) as error:
            read_labels(path, **options)
        refusal(path, error)
        return
    labels = read_labels(path, **options)
    assert labels.ids == case.ids
    assert labels.values.tolist() == [list(v) if isinstance(v, tuple) else v for v in case.values]
    assert labels.dropped == case.counts


def test_what_is_no_file_and_what_is_no_kind(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(DataError, match="cannot be read") as error:
            read_labels(path, "regression")
        refusal(path, error)
    (tmp_path / "x.csv").write_bytes(b"id,label\na,1\nb,2\n")
    with pytest.raises(UsageError, match=r"bad kind; expected one of regression, class.*, multilabel, got 'regr'"):
        read_labels(tmp_path / "x.csv", "regr")
