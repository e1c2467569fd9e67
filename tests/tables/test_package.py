"""Labels, packaged for a plugin."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import pytest

from neuco_core.errors import DataError, UsageError
from neuco_core.specs import Remote, Task
from neuco_core.tables.labels import read_labels
from neuco_core.tables.package import guess_kind, package_labels
from tests.command import neuco_here
from tests.tables.test_labels import make_task

DATA = b"id,label,note\nb.zarr.zip,2.50,x\nc,,y\na,1e0,z\n"


@pytest.fixture
def labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CACHE", "CONFIG", "PINS"):
        monkeypatch.setenv(f"NEUCO_{name}", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ph.csv"
    path.write_bytes(DATA)
    return path


def evaluate(declaration: str) -> Task:
    task = eval(declaration, {"Task": Task, "Remote": Remote})
    assert isinstance(task, Task)
    return task


def test_what_is_written_and_declared(labels: Path) -> None:
    made = package_labels(labels)
    assert made.path == Path("ph__regr.csv")
    data = made.path.read_bytes()
    assert data == b"id,label\na,1.0\nb,2.5\n"
    assert (made.sha256, made.size) == (hashlib.sha256(data).hexdigest(), len(data))
    assert (made.kind, made.rows, made.dropped) == ("regression", 2, {"empty_label": 1})
    task = evaluate(made.declaration)
    assert (task.id, task.kind, task.dataset) == ("ph", "regression", "your_dataset")
    assert task.source == Remote("pkg://neuco_tasks.ph/ph__regr.csv", sha256=made.sha256, size=made.size)
    source = Remote(made.path.absolute().as_uri(), sha256=made.sha256, size=made.size)
    again = Task(id="ph", dataset="soil", kind=made.kind, source=source).labels()
    assert dict(zip(again.ids, again.values, strict=True)) == {"a": 1.0, "b": 2.5}


def test_columns_groups_and_classes(labels: Path) -> None:
    labels.write_bytes(b'id,u,v,tile\nb,sea,1,"x, y"\na,land,0,z\n')
    made = package_labels(labels, kind="classification", columns=("u",), group_column="tile", task="coast_kind")
    assert made.path.read_bytes() == b'id,u,group\na,land,z\nb,sea,"x, y"\n'
    task = evaluate(made.declaration)
    assert (task.id, task.columns, task.group_column) == ("coast_kind", ("u",), "group")
    again = read_labels(made.path, "classification", columns=("u",), group_column="group")
    assert again.classes == made.classes == ("land", "sea")
    assert task.splitter == "group"
    labels.write_bytes(b"name,u,v,part\nb,1,0,test\na,0,1,Train\n")
    several = package_labels(labels, columns=("v", "u"), task="two", id_column="name", split_column="part")
    assert several.kind == "multilabel"
    assert several.path.read_bytes() == b"id,v,u,split\na,1,0,train\nb,0,1,test\n"
    task = evaluate(several.declaration)
    assert (task.columns, task.split_column, task.splitter) == (("v", "u"), "split", "fixed")


def test_lists_of_labels_become_columns(labels: Path) -> None:
    labels.write_bytes(b"id,label\nb,sea; forest\na,forest |town\nc,\nd,sea\n")
    made = package_labels(labels, kind="multilabel", task="cover")
    assert made.path.read_bytes() == b"id,forest,sea,town\na,1,0,1\nb,1,1,0\nd,0,1,0\n"
    assert made.dropped == {"empty_label": 1}
    with pytest.raises(UsageError, match=r"what kind of labels are these.*--kind multilabel .* got 'sea; forest'"):
        package_labels(labels, task="cover")
    labels.write_bytes(b"id,label\na,\"['sea', 'town']\"\nb,['sea']\nc,['town']\n")
    assert package_labels(labels, kind="multilabel", task="listed").columns == ("sea", "town")


def test_an_empty_list_is_a_row_of_zeros_and_an_empty_cell_a_missing_label(labels: Path) -> None:
    labels.write_bytes(b"id,label\na,['sea']\nb,[]\nc,\nd,['town']\n")
    with pytest.raises(UsageError, match=r"what kind of labels are these"):
        package_labels(labels, task="listed")
    made = package_labels(labels, kind="multilabel", task="listed")
    assert made.path.read_bytes() == b"id,sea,town\na,1,0\nb,0,0\nd,0,1\n"
    assert (made.rows, made.dropped) == (3, {"empty_label": 1})


def test_a_label_is_no_column_of_the_table(labels: Path) -> None:
    labels.write_bytes(b"id,label\na,sea;id\nb,land\n")
    with pytest.raises(DataError, match="a label has the name of a column: 'id'"):
        package_labels(labels, kind="multilabel", task="cover")


def test_classes_from_1_keep_their_names_and_are_asked_for(labels: Path) -> None:
    labels.write_text("id,label\n" + "".join(f"s{i},{1 + i % 5}\n" for i in range(25)))
    with pytest.raises(UsageError, match=r"--kind classification .* got 5 different whole numbers from 1 to 5"):
        package_labels(labels, task="stars")
    made = package_labels(labels, kind="classification", task="stars")
    assert made.classes == ("1", "2", "3", "4", "5")
    again = read_labels(made.path, "classification")
    assert (again.classes, again.values[:2].tolist()) == (made.classes, [0.0, 1.0])
    assert package_labels(labels, kind="regression", task="stars").highest == 5


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("x__regr.csv", b"id,label\na,0\nb,1\n", "regression"),
        ("x__cls.csv", b"id,label\na,0\nb,2\n", "classification"),
        ("x__classification.csv", b"id,label\na,0\n", "classification"),
        ("x.csv", b"id,label\na,0\nb,1\n", "classification"),
        ("x.csv", b"id,label\na,sea\nb,land\n", "classification"),
        ("x.csv", b"id,label\na,0\nb,1\nc,2\n", "regression"),
        ("x.csv", b"id,label\na,0.5\nb,\n", "regression"),
        ("x__final.csv", b"id,label\na,0.5\nb,\n", "regression"),
        ("x.csv", b"id,other\na,0.5\n", "regression"),
    ],
)
def test_the_kind_is_guessed(tmp_path: Path, name: str, data: bytes, kind: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert guess_kind(tmp_path / name, ("label",))[0] == kind


other = partial(make_task, id="other", dataset="soil")


def test_labels_of_another_task_are_refused_and_those_of_its_samples_tell_the_dataset(
    labels: Path, tmp_path: Path
) -> None:
    same = other(tmp_path / "other.csv", b"id,y\na,1.00\nb,2.5\n", columns=("y",))
    with pytest.raises(DataError, match="task 'other': another task has the same labels; got the same 2 rows"):
        package_labels(labels, tasks=[same])
    assert not Path("ph__regr.csv").exists()
    assert package_labels(labels, tasks=[same], task="other").compared == (), "a task may be packaged anew"
    near = other(tmp_path / "near.csv", b"id,label\na,1\nb,2\nc,3\n")
    far = make_task(tmp_path / "far.csv", b"id,label\nx,1\ny,2\n", id="far", dataset="sea")
    away = Task(id="away", dataset="air", kind="regression", source=Remote("https://example.org/x.csv"))
    made = package_labels(labels, tasks=[near, far, away])
    assert evaluate(made.declaration).dataset == "soil"
    assert (made.compared, made.not_compared) == (("other", "far"), ("away",))


def test_another_file_is_not_overwritten(labels: Path) -> None:
    with pytest.raises(UsageError, match="this is the source file itself"):
        package_labels(labels, out=labels)
    out = Path("taken.csv")
    out.write_text("mine")
    with pytest.raises(UsageError, match=r"another file exists there.*--force"):
        package_labels(labels, out=out)
    assert out.read_text() == "mine"
    made = package_labels(labels, out=out, replace=True)
    assert package_labels(labels, out=out) == made, "the same bytes again hurt nobody"
    with pytest.raises(UsageError, match="not a file"):
        package_labels(labels, out=labels.parent)


def test_odd_names_still_give_a_declaration_that_runs(labels: Path) -> None:
    made = package_labels(labels, task="soil-ph", out=Path('my "best" file.csv'))
    assert evaluate(made.declaration).source.url == 'pkg://neuco_tasks.soil_ph/my "best" file.csv'
    odd = labels.rename("Böden.csv")
    with pytest.raises(UsageError, match=r"not a task id.*--task"):
        package_labels(odd)
    assert package_labels(odd, task="soil").task == "soil"


def test_the_command(labels: Path) -> None:
    shown = neuco_here("data", "package", "ph.csv", "--task", "soil_ph")
    lines = shown.out.splitlines()
    assert shown.code == 0, shown.err
    assert lines[0] == "wrote soil_ph__regr.csv: 2 rows, 1 dropped: empty_label, labels from 1 to 2.5, 21 bytes"
    assert lines[1] == "kind regression (from the labels)"
    task = evaluate(shown.out[shown.out.index("Task(") :])
    assert task.source.sha256 == hashlib.sha256(Path("soil_ph__regr.csv").read_bytes()).hexdigest()
    as_json = neuco_here("data", "package", "ph.csv", "--task", "soil_ph", "--json").json
    assert as_json["sha256"] == task.source.sha256
    assert as_json["dropped"] == {"empty_label": 1}
    assert "olinda_sea_level" in as_json["compared"]
    labels.write_bytes(b"id,label\na,1\nb,x\n")
    failed = neuco_here("data", "package", "ph.csv", "--kind", "regression", "--task", "other")
    assert (failed.code, failed.out) == (4, "")
    (line,) = failed.err.splitlines()
    assert line.startswith("neuco: error: ph.csv, row 3, column 'label': label is not a number; got 'x'. Leave")
    assert not list(labels.parent.glob("other*")), "nothing is written"
    assert neuco_here("data", "package", "ph.csv", "--kind", "guess").code == 2
    assert neuco_here("data", "package", "nowhere.csv").code == 4
