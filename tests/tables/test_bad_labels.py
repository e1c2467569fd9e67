"""Label files as they should not be: each is read right, or refused in one line that names file, row or column."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from neuco_core.errors import DataError, UsageError
from neuco_core.tables.labels import read_labels
from tests.tables.helpers import Case, refusal

CLS = {"kind": "classification"}
BOMB = gzip.compress(b"id,label\n" + b"a" * 10_000_000, 9)
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
LONG = "x" * 100_000

CASES = [
    # Read right.
    Case("plain", b"id,label\na,1\nb,2\n"),
    Case("no final newline", b"id,label\na,1\nb,2"),
    Case("CRLF", b"id,label\r\na,1\r\nb,2\r\n"),
    Case("CR", b"id,label\ra,1\rb,2\r"),
    Case("byte order mark", b"\xef\xbb\xbfid,label\na,1\nb,2\n"),
    Case("spaces", b" id , label \n a , 1 \n b,\t2\n"),
    Case("blank lines", b"\nid,label\n\na,1\n\n  \nb,2\n\n"),
    Case("quotes", b'"id","label"\n"a","1"\n"b","2"\n'),
    Case("comma and line break in an id", b'id,label\n"a,\nx",1\n"b""",2\n', ids=("a,\nx", 'b"')),
    Case("leading zeros", b"id,label\n007,1\n7,2\n", ids=("007", "7")),
    Case("ids like numbers", b"id,label\n1e3,1\n1000,2\n", ids=("1e3", "1000")),
    Case("ids like missing values", b"id,label\nNA,1\nnull,2\n", ids=("NA", "null")),
    Case("cube file names", b"id,label\na.zarr.zip,1\nb.zarr,2\n"),
    Case("huge id", f"id,label\n{LONG},1\nb,2\n".encode(), ids=(LONG, "b")),
    Case("other alphabets", "id,label\nоль,1\n東京,2\n".encode(), ids=("оль", "東京")),
    Case("extra columns", b"x,id,phase_dev,label\n,a,True,1\n?,b,False,2\n"),
    Case("columns in another order", b"label,id\n1,a\n2,b\n"),
    Case("empty labels", b"id,label\na,1\nc,\nb,2\nd,  \n", counts={"empty_label": 2}),
    Case("exponents and signs", b"id,label\na,+1e0\nb,20E-1\n"),
    Case("classes as 1.0", b"id,label\na,1.0\nb,0\n", values=(1.0, 0.0), options=CLS),
    Case("names of classes", b"id,label\na,water\nb,forest\n", values=(1.0, 0.0), options=CLS),
    Case("several outputs", b"id,u,v\na,1,3\nb,2,4\n", values=((1, 3), (2, 4)), options={"columns": ("u", "v")}),
    # Refused.
    Case("empty", b"", "the file is empty; expected a header row"),
    Case("only white space", b" \n\n  \n", "the file is empty"),
    Case("header only", b"id,label\n", "no row has a label; got 0 rows"),
    Case("no header", b"a,1\nb,2\n", "no id column; expected a column named 'id', got 'a', '1'"),
    Case("id in capitals", b"ID,label\na,1\nb,2\n", "no id column; expected a column named 'id', got 'ID', 'label'"),
    Case("no label column", b"id,y\na,1\nb,2\n", "no column 'label'; got columns 'id', 'y'"),
    Case("semicolons", b"id;label\na;1\nb;2\n", "no id column.*Separate columns with commas, not semicolons"),
    Case("tabs", b"id\tlabel\na\t1\n", "Separate columns with commas, not tabs"),
    Case("decimal commas", b"id,label\na,1,5\nb,2,5\n", "row 2: row has the wrong length; expected 2 fields, got 3"),
    Case("two id columns", b"id,label,id\na,1,a\n", "columns 1 and 3: duplicate column 'id'"),
    Case("two label columns", b"id,label, label\na,1,2\n", "columns 2 and 3: duplicate column 'label'"),
    Case("double id", b"id,label\na,1\nb,2\na,3\n", "rows 2 and 4: duplicate id 'a'"),
    Case("double id by suffix", b"id,label\na,1\na.zarr.zip,2\n", "rows 2 and 3: duplicate id 'a'"),
    Case("double id, one without label", b"id,label\na,1\nb,2\na,\n", "rows 2 and 4: duplicate id 'a'"),
    Case("no id in a row", b"id,label\na,1\n ,2\n", "row 3: no id"),
    Case("id that is only a suffix", b"id,label\na,1\n.zarr,2\n", "row 3: no id"),
    Case("all labels empty", b"id,label\na,\nb,\n", "no row has a label; got 2 rows"),
    Case("NaN", b"id,label\na,1\nb,nan\n", "row 3, column 'label': label is not finite; got 'nan'"),
    Case("inf", b"id,label\na,-inf\nb,2\n", "row 2, column 'label': label is not finite; got '-inf'"),
    Case("too large", b"id,label\na,1e999\nb,2\n", "row 2, column 'label': label is not finite; got '1e999'"),
    Case("text", b"id,label\na,1\n\nb,two\n", "row 4, column 'label': label is not a number; got 'two'"),
    Case("NA", b"id,label\na,1\nb,NA\n", "row 3, column 'label': label is not a number; got 'NA'"),
    Case("underscores", b"id,label\na,1\nb,1_0\n", "row 3, column 'label': label is not a number"),
    Case("Arabic digits", "id,label\na,1\nb,٣\n".encode(), "row 3, column 'label': label is not a number"),
    Case("long text", f"id,label\na,1\nb,{LONG}\n".encode(), "row 3, column 'label': .* got 'xxx.*…'"),
    Case("constant", b"id,label\na,2\nb,2.0\n", "column 'label': constant labels.*got '2' in all 2 rows"),
    Case("one row", b"id,label\na,2\n", "constant labels"),
    Case("half a class", b"id,label\na,0\nb,0.5\n", "row 3, column 'label': not a class;.*got 0.5", options=CLS),
    Case("negative class", b"id,label\na,-1\nb,1\n", "row 2, column 'label': not a class;.*got -1", options=CLS),
    Case(
        "classes from 2", b"id,label\na,2\nb,3\n", "class numbers have a gap.*1 to 3, got none of class 1", options=CLS
    ),
    Case("huge class", b"id,label\na,0\nb,1e15\n", "class numbers have a gap", options=CLS),
    Case("names and numbers", b"id,label\na,0\nb,sea\n", "row 3.* label is not a number; got 'sea'", options=CLS),
    Case("one constant output", b"id,u,v\na,1,3\nb,2,3\n", "column 'v': constant", options={"columns": ("u", "v")}),
    Case("no group column", b"id,label\na,1\nb,2\n", "no column 'tile'", options={"group_column": "tile"}),
    Case(
        "no split",
        b"id,label,s\na,1,train\nb,2,\n",
        "row 3, column 's': not a part of a split",
        options={"split_column": "s"},
    ),
    Case(
        "a third part",
        b"id,label,s\na,1,train\nb,2,val\n",
        "expected train or test, got 'val'. A validation part is given to train",
        options={"split_column": "s"},
    ),
    Case(
        "no test part",
        b"id,label,s\na,1,train\nb,2,Train\n",
        "no row is in the part 'test'",
        options={"split_column": "s"},
    ),
    Case(
        "classes in two columns",
        b"id,u,v\na,1,0\nb,0,1\n",
        "wrong number of columns for classification.*got 2",
        options={"kind": "classification", "columns": ("u", "v")},
    ),
    Case(
        "one label of many",
        b"id,label\na,1\nb,0\n",
        "wrong number of columns for multilabel",
        options={"kind": "multilabel"},
    ),
    Case(
        "half a label",
        b"id,u,v\na,1,0\nb,0.5,1\n",
        "row 3, column 'u': a label is there or not; expected 1 or 0, got 0.5",
        options={"kind": "multilabel", "columns": ("u", "v")},
    ),
    Case(
        "a label that nobody has",
        b"id,u,v\na,1,0\nb,0,0\n",
        "column 'v': constant labels",
        options={"kind": "multilabel", "columns": ("u", "v")},
    ),
    Case("no group", b"id,label,g\na,1,\nb,2,x\n", "row 2, column 'g': no group", options={"group_column": "g"}),
    Case("short row", b"id,label\na,1\nb\n", "row 3: row has the wrong length; expected 2 fields, got 1"),
    Case("long row", b"id,label\na,1\nb,2,3\n", "row 3: row has the wrong length; expected 2 fields, got 3"),
    Case("open quote", b'id,label\na,1\n"b,2\n', "malformed CSV: unexpected end of data"),
    Case("text behind a quote", b'id,label\n"a"x,1\nb,2\n', "row 2: ?malformed CSV|malformed CSV"),
    Case("id too huge", b"id,label\n" + b"x" * 200_000 + b",1\n", "row 2: malformed CSV: field larger"),
    Case("UTF-16", "id,label\na,1\nb,2\n".encode("utf-16"), "not a CSV file but UTF-16 text: save it as UTF-8"),
    Case("UTF-16 without mark", "id,label\na,1\n".encode("utf-16-le"), "it has NUL bytes"),
    Case("Latin-1", "id,label\na,1\nÖ,2\n".encode("latin-1"), "not UTF-8 text; got byte 0xd6"),
    Case("PNG", PNG, "not a CSV file but a PNG image"),
    Case("gzip bomb", BOMB, "not a CSV file but gzip-compressed: unpack it first"),
    Case("zip", b"PK\x03\x04" + b"x" * 30, "not a CSV file but a zip archive"),
    Case("NUL bytes", b"id,label\na,1\nb\0,2\n", "it has NUL bytes"),
    Case("Git LFS pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS pointer"),
    Case("web page", b"<!DOCTYPE html>\n<html>", "not a CSV file but a web page"),
    Case("JSON", b'{"id": ["a"]}\n', "no id column|malformed CSV"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
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


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(DataError, match="cannot be read") as error:
            read_labels(path, "regression")
        refusal(path, error)


def test_kinds_are_known(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"id,label\na,1\nb,2\n")
    with pytest.raises(
        UsageError, match="bad kind; expected one of regression, classification, multilabel, got 'regr'"
    ):
        read_labels(tmp_path / "x.csv", "regr")
