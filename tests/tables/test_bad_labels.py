"""Label files as they should not be: each is read right, or refused in one line that names file, row or column.

What is true of any CSV is tested with files of embeddings.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from neuco_core.errors import DataError, UsageError
from neuco_core.tables.labels import read_labels
from tests.tables.helpers import Case, refusal

CLS, MULTI = {"kind": "classification"}, {"kind": "multilabel"}
TWO, SPLIT = {"columns": ("u", "v")}, {"split_column": "s"}
BOMB = gzip.compress(b"id,label\n" + b"a" * 10_000_000, 9)
LONG = "x" * 100_000

CASES = [
    # Read right.
    Case("plain", b"id,label\na,1\nb,2\n"),
    Case("byte order mark", b"\xef\xbb\xbfid,label\na,1\nb,2\n"),
    Case("ids like numbers", b"id,label\n1e3,1\n1000,2\n", ids=("1e3", "1000")),
    Case("ids like missing values", b"id,label\nNA,1\nnull,2\n", ids=("NA", "null")),
    Case("other alphabets", "id,label\nоль,1\n東京,2\n".encode(), ids=("оль", "東京")),
    Case("extra columns", b"x,id,phase_dev,label\n,a,True,1\n?,b,False,2\n"),
    Case("columns in another order", b"label,id\n1,a\n2,b\n"),
    Case("empty labels", b"id,label\na,1\nc,\nb,2\nd,  \n", counts={"empty_label": 2}),
    Case("exponents and signs", b"id,label\na,+1e0\nb,20E-1\n"),
    Case("classes as 1.0", b"id,label\na,1.0\nb,0\n", values=(1.0, 0.0), options=CLS),
    Case("names of classes", b"id,label\na,water\nb,forest\n", values=(1.0, 0.0), options=CLS),
    Case("several outputs", b"id,u,v\na,1,3\nb,2,4\n", values=((1, 3), (2, 4)), options=TWO),
    # Refused.
    Case("empty", b"", "the file is empty; expected a header row"),
    Case("header only", b"id,label\n", "no row has a label; got 0 rows"),
    Case("no label column", b"id,y\na,1\nb,2\n", "no column 'label'; got columns 'id', 'y'"),
    Case("decimal commas", b"id,label\na,1,5\nb,2,5\n", "row 2: row has the wrong length; expected 2 fields, got 3"),
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
    Case("classes from 2", b"id,label\na,2\nb,3\n", "a gap.*1 to 3, got none of class 1", options=CLS),
    Case("huge class", b"id,label\na,0\nb,1e15\n", "class numbers have a gap", options=CLS),
    Case("names and numbers", b"id,label\na,0\nb,sea\n", "row 3.* label is not a number; got 'sea'", options=CLS),
    Case("one constant output", b"id,u,v\na,1,3\nb,2,3\n", "column 'v': constant", options=TWO),
    Case("no group column", b"id,label\na,1\nb,2\n", "no column 'tile'", options={"group_column": "tile"}),
    Case("no split", b"id,label,s\na,1,train\nb,2,\n", "row 3, column 's': not a part of a split", options=SPLIT),
    Case("a third part", b"id,label,s\na,1,train\nb,2,val\n", "train or test, got 'val'. A validation", options=SPLIT),
    Case("no test part", b"id,label,s\na,1,train\nb,2,Train\n", "no row is in the part 'test'", options=SPLIT),
    Case("classes in two columns", b"id,u,v\na,1,0\nb,0,1\n", "got 2. .*are several tasks", options={**CLS, **TWO}),
    Case("one label of many", b"id,label\na,1\nb,0\n", "wrong number of columns for multilabel", options=MULTI),
    Case("half a label", b"id,u,v\na,1,0\nb,0.5,1\n", "'u': a label is there or not;.*0.5", options={**MULTI, **TWO}),
    Case("a label nobody has", b"id,u,v\na,1,0\nb,0,0\n", "column 'v': constant labels", options={**MULTI, **TWO}),
    Case("no group", b"id,label,g\na,1,\nb,2,x\n", "row 2, column 'g': no group", options={"group_column": "g"}),
    Case("Latin-1", "id,label\na,1\nÖ,2\n".encode("latin-1"), "not UTF-8 text; got byte 0xd6"),
    Case("gzip bomb", BOMB, "not a CSV file but gzip-compressed: unpack it first"),
    Case("NUL bytes", b"id,label\na,1\nb\0,2\n", "it has NUL bytes"),
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


def test_what_is_no_file_and_what_is_no_kind(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(DataError, match="cannot be read") as error:
            read_labels(path, "regression")
        refusal(path, error)
    (tmp_path / "x.csv").write_bytes(b"id,label\na,1\nb,2\n")
    with pytest.raises(UsageError, match=r"bad kind; expected one of regression, class.*, multilabel, got 'regr'"):
        read_labels(tmp_path / "x.csv", "regr")
