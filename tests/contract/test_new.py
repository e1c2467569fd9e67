"""``neuco new``: a plugin that keeps the contract at once, in this tree's manner or as a package of its own."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core import Baseline, Remote, Task, load_dataset, load_task
from neuco_core.contract.builtin import CAVEATS as PLACEHOLDERS
from neuco_core.contract.new_dataset import DatasetRequest
from neuco_core.contract.new_task import _odd
from neuco_core.contract.scaffold import building, declare, fill
from neuco_core.tables.labels import read_labels
from tests.command import Said
from tests.contract.helpers import COUNT, NOT_HERE, labels, neuco, quick_neuco, run_pytest, write_good

CAVEATS = ("--caveats", "Made up")
WORDS = (
    *CAVEATS,
    "--title",
    'Sum of "pixels" in C:\\users"""',
    "--description",
    "The sum, of course",
    "--license",
    "CC-BY-4.0",
)
CITED = (*WORDS, "--citation", "arXiv:2510.17914")
TASK = (*CITED, "--unit", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder on the Python path with the dataset ``good``, and a file of labels for it."""
    write_good(tmp_path)
    rows = labels().splitlines()
    (tmp_path / "new.csv").write_text("\n".join([rows[0], *(f"{row}5" for row in reversed(rows[1:]))]) + "\n")
    return tmp_path


def new_task(folder: Path, name: str, labels: object, *options: object) -> Said:
    return quick_neuco(folder, "new", "task", name, "--labels", labels, *options, "--into", folder)


def green(folder: Path, name: str, *checks: str) -> dict[str, str]:
    """What ``neuco check`` says, of all checks or of some, which must be green."""
    only = [word for item in checks for word in ("--only", item)]
    done = quick_neuco(folder, "check", name, *only, "--json")
    assert done.code == 0, done.text
    return {row["check"]: row["status"] for row in json.loads(done.out) if row["check"] not in NOT_HERE}


def test_a_task_from_a_file_keeps_the_contract_at_once(folder: Path) -> None:
    made = new_task(folder, "summed", folder / "new.csv", *TASK)
    assert made.code == 0, made.err
    assert "kind      regression (from the labels)" in made.out
    assert "dataset   good (guessed: it has all the ids)" in made.out
    assert "baseline  averaging reaches" in made.out
    files = sorted(path.name for path in (folder / "neuco_tasks/summed").iterdir() if path.is_file())
    assert files == ["README.md", "__init__.py", "labels.csv", "test.py"]
    # The labels are those of "good" with one digit more: somebody should look at that.
    assert green(folder, "summed", "task-files", "task-novelty") == {"task-files": "ok", "task-novelty": "warning"}
    done = run_pytest(folder, folder / "neuco_tasks" / "summed" / "test.py")
    assert " failed" not in done.out
    assert "17 passed" in done.out


def test_labels_of_no_known_dataset_are_refused_and_nothing_is_written(folder: Path) -> None:
    (folder / "plots.csv").write_text((folder / "new.csv").read_text().replace("\ns", "\nplot-"))
    made = new_task(folder, "plots", folder / "plots.csv", *TASK)
    assert made.code == 2
    assert "no dataset here has these ids; got ids such as 'plot-149'" in made.err
    assert "neuco new dataset NAME --images FOLDER" in made.err
    named = new_task(folder, "plots", folder / "plots.csv", *TASK, "--dataset", "good")
    assert named.code == 4
    assert "no label is of a sample of good; expected ids such as 's000', got 'plot-149'" in named.err
    assert not (folder / "neuco_tasks" / "plots").exists()


def test_ids_with_the_suffix_of_an_image_are_matched_and_strays_are_told(folder: Path) -> None:
    rows = (folder / "new.csv").read_text().splitlines()
    text = "\n".join([rows[0], *(row.replace(",", ".tif,") for row in rows[1:])])
    (folder / "tifs.csv").write_text(text + "\nelsewhere.tif,3\ns999.tif,\n")
    refused = new_task(folder, "summed", folder / "tifs.csv", *TASK)
    assert "got 150 of 151 are in good, and 'elsewhere.tif' is not" in refused.err
    assert "Give --dataset good" in refused.err
    made = new_task(folder, "summed", folder / "tifs.csv", *TASK, "--dataset", "good")
    assert "the suffix of 151 ids was taken off: 's149.tif' is 's149'" in made.out, made.err
    assert "\n            150 of 151 labels have an image in good; the others are never scored" in made.out
    assert "dropped   1 row: empty label" in made.out
    assert "\ns000," in (folder / "neuco_tasks/summed/labels.csv").read_text()


def test_few_labels_and_many_strays_are_warned_of(folder: Path) -> None:
    rows = (folder / "new.csv").read_text().splitlines()
    strays = [row.replace("s", "x", 1) for row in rows[41:61]]
    (folder / "few.csv").write_text("\n".join([*rows[:41], *strays, ""]))
    made = new_task(folder, "summed", folder / "few.csv", *TASK, "--dataset", "good")
    assert "\n  warning:  40 of 60 labels have an image in good; the others are never scored: 'x" in made.out, made.text
    assert "\n  warning:  60 labels are too few: `neuco check` asks for at least 100" in made.out
    assert re.search(r"baseline  averaging reaches \S+ \(tolerance [\d.]+\) under", made.out), made.out


def test_a_task_from_an_address_is_pinned_to_what_was_there(folder: Path) -> None:
    path = folder / "new.csv"
    made = new_task(folder, "summed", path.as_uri(), *TASK)
    assert made.code == 0, made.err
    source = (folder / "neuco_tasks/summed/__init__.py").read_text()
    assert path.as_uri() in source
    assert hashlib.sha256(path.read_bytes()).hexdigest() in source
    assert len((folder / "neuco_tasks/summed/sample.csv").read_text().splitlines()) == 21
    assert "`sample.csv` shows the first rows" in (folder / "neuco_tasks/summed/README.md").read_text()
    green(folder, "summed", "task-source", "task-labels", "task-baseline")


@pytest.mark.parametrize(("metric", "unit"), [("mae", 1.0), ("mse", 1e-4)])
def test_an_error_of_real_labels_keeps_the_contract(tmp_path: Path, metric: str, unit: float) -> None:
    """Relief of the real scene: mean times deviation of the elevation, in square metres and in a much larger unit."""
    mean, deviation = (load_task(f"olinda_elevation_{name}").labels() for name in ("mean", "std"))
    assert mean.ids == deviation.ids
    rows = zip(mean.ids, unit * mean.values * deviation.values, strict=True)
    (tmp_path / "relief.csv").write_text("id,label\n" + "".join(f"{name},{value:.6g}\n" for name, value in rows))
    made = new_task(tmp_path, "relief", tmp_path / "relief.csv", *CITED, "--unit", "m2", "--metric", metric)
    assert made.code == 0, made.err
    source = (tmp_path / "neuco_tasks" / "relief" / "__init__.py").read_text()
    assert f'metric="{metric}"' in source
    score, tolerance = (float(re.search(rf"{name}=(.*),", source)[1]) for name in ("score", "tolerance"))  # type: ignore[index]
    assert 0 < tolerance < score / 2
    assert set(green(tmp_path, "relief").values()) == {"ok"}


def test_a_method_from_a_file_keeps_the_contract(folder: Path) -> None:
    ids = np.array([f"s{i:03d}" for i in range(150)])
    np.savez(folder / "mine.npz", ids=ids, values=np.random.default_rng(1).standard_normal((150, 8)).astype("float32"))
    args = ("--embeddings", str(folder / "mine.npz"), "--dataset", "good", *WORDS, "--into", str(folder))
    made = quick_neuco(folder, "new", "method", "mine", *args)
    assert made.code == 0, made.err
    statuses = green(folder, "mine")
    assert statuses.pop("method-sane") == "warning", "these are random numbers"
    skipped = {name for name, status in statuses.items() if status == "skipped"}
    assert skipped == {"method-deterministic", "method-network", "models-library"} & statuses.keys()
    assert {statuses[name] for name in statuses.keys() - skipped} == {"ok"}


@pytest.mark.parametrize("url", ['https://x.org/a"b\\c.csv', "https://x.org/a\nb{{ name }}.csv", "hf://{% x %}/é'.csv"])
def test_an_address_of_any_characters_is_written_as_python(url: str) -> None:
    remote = Remote(url, sha256="0" * 64, size=3)
    assert eval(declare(remote), {"Remote": Remote}) == remote
    baseline = Baseline(method="m", score=1.0, tolerance=0.1, protocol="ridge", source=url)
    task = Task(id="t", dataset="d", kind="regression", source=remote, baseline=baseline)
    words = dict.fromkeys(("title", "description", "license", "citation"), url)
    source = fill("task_init.py", {**words, "name": "t", "task": task})
    module: dict[str, Any] = {}
    exec(compile(source, "t", "exec"), module)
    (made,) = module["neuco_tasks"]()
    assert (made.source, made.baseline, made.title) == (remote, task.baseline, url)


def test_an_encoder_declares_the_bands_of_a_dataset_and_is_tried_on_them(folder: Path) -> None:
    args = ("--encoder", "--dataset", "mini", *WORDS, "--into", str(folder))
    made = quick_neuco(folder, "new", "method", "mini_means", *args)
    bands = load_dataset("mini").bands
    assert (made.code, f"bands     {bands[0]}, " in made.out) == (0, True), made.text
    encoder = folder / "neuco_methods/mini_means/encoder.py"
    picked = f"batch.pick({', '.join(map(repr, bands[:3]))}).mean("
    encoder.write_text(encoder.read_text().replace("batch.values.mean(", picked))
    assert "1 passed" in run_pytest(folder, encoder.with_name("test.py")).out
    assert "bands=(\n" in encoder.with_name("__init__.py").read_text()


def test_a_new_encoder_works_before_it_is_filled_in(folder: Path) -> None:
    made = quick_neuco(folder, "new", "method", "means", "--encoder", *WORDS, "--into", str(folder))
    assert (made.code, "bands     none declared" in made.out) == (0, True), made.err
    done = neuco(folder, "score", "--method", "means", "--task", "good", "--json")
    assert done.code == 0, done.err
    test = folder / "neuco_methods" / "means" / "test.py"
    assert "1 passed" in run_pytest(folder, test).out


@pytest.mark.parametrize("noun", ["task", "method"])
def test_a_package_of_its_own_is_found_by_its_entry_point(folder: Path, noun: str, tmp_path: Path) -> None:
    kind = ("--labels", str(folder / "new.csv"), *TASK) if noun == "task" else ("--encoder", *WORDS)
    made = quick_neuco(folder, "new", noun, "outside_x", *kind, "--package", "--into", str(tmp_path / "out"))
    assert made.code == 0, made.err
    root = tmp_path / "out" / "neuco-outside-x"
    assert {path.name for path in root.iterdir()} == {"pyproject.toml", "README.md", "test.py", "src"}
    target = tmp_path / "site"
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--target", str(target))
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(root)], check=True, capture_output=True)
    listed = neuco(Path(f"{target}{os.pathsep}{folder}"), "plugins", "--json")
    row = next(row for row in json.loads(listed.out) if row["name"] == "outside_x")
    assert row["source"] == "neuco-outside-x 0.1.0 (neuco_outside_x)"
    assert row["status"] == "ok"
    both = Path(f"{target}{os.pathsep}{folder}")
    if noun == "task":
        done = neuco(both, "check", "outside_x", "--only", "task-baseline", "--json")
        assert done.json[0]["status"] == "ok", done.text
    done = neuco(both, "check", "outside_x", "--only", f"{noun}-files", "--json")
    assert (done.code, done.json[0]["detail"]) == (0, "the card of neuco-outside-x"), done.text
    (about,) = target.glob("*.dist-info/METADATA")
    about.write_text(about.read_text().replace(CAVEATS[1], PLACEHOLDERS[noun]))
    done = neuco(both, "check", "outside_x", "--only", f"{noun}-files", "--json")
    assert (done.code, "the card still asks: Say here " in done.json[0]["detail"]) == (1, True), done.text
    # Of an editable one the card is read where somebody edits it.
    editable = {"url": root.as_uri(), "dir_info": {"editable": True}}
    about.with_name("direct_url.json").write_text(json.dumps(editable))
    done = neuco(both, "check", "outside_x", "--only", f"{noun}-files", "--json")
    assert (done.code, done.json[0]["detail"]) == (0, "the card of neuco-outside-x"), done.text


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("task", "good", "--labels", "new.csv", *TASK), 2, "there is a plugin 'good' already"),
        (("task", "Soil", "--labels", "new.csv", *TASK), 2, "not an id"),
        (("task", "soil-ph", "--labels", "new.csv", *TASK), 2, "not a Python module name"),
        (("method", "import", "--encoder", *WORDS), 2, "not a Python module name"),
        (("task", "digits_class", "--labels", "new.csv", *TASK), 2, "there is a task 'digits_class' already"),
        (("task", "taken", "--labels", "new.csv", *TASK), 2, "this already exists, and is never overwritten"),
        (("task", "soil", "--labels", "gone.csv", *TASK), 4, "gone.csv"),
        (("task", "soil", "--labels", "new.csv", *CITED), 2, "Give --unit"),
        (("task", "soil", "--labels", "new.csv", *TASK, "--metric", "f1"), 1, "metric 'f1' is not for regression"),
        (("task", "soil", "--labels", "new.csv", *TASK, "--metric", "maee"), 3, "Did you mean 'mae'"),
        (("task", "soil", "--labels", "new.csv", *TASK, "--dataset", "goode"), 3, "Did you mean 'good'"),
        (("task", "soil", "--labels", "new.csv", *WORDS, "--citation", "my page"), 2, "bad citation"),
        (("task", "soil", "--labels", "new.csv"), 2, "--title, --description, --license, --citation"),
        (("task", "soil", "--labels", "new.csv", *TASK, "--column", "y"), 4, ". Give --column label"),
        (("task", "soil", "--labels", "new.csv", *TASK, "--id-column", "x"), 4, "or give --id-column NAME"),
        (("method", "soil", *WORDS), 2, "Give either --embeddings FILE|URL or --encoder"),
        (("method", "soil", "--embeddings", "new.csv", *WORDS), 2, "embeddings of which dataset"),
    ],
)
def test_a_wrong_use_leaves_nothing_behind(folder: Path, args: tuple[str, ...], code: int, text: str) -> None:
    (folder / "elsewhere" / "neuco_tasks" / "taken").mkdir(parents=True)
    before = sorted(folder.rglob("*"))
    args = tuple(str(folder / arg) if arg.endswith("new.csv") else arg for arg in args)
    done = quick_neuco(folder, "new", *args, "--into", str(folder / "elsewhere"))
    assert (done.code, text in done.err) == (code, True), done.err
    assert [path for path in sorted(folder.rglob("*")) if "cache" not in path.parts and path not in before] == []


def write_table(folder: Path, columns: dict[str, Sequence[str]]) -> Path:
    """The labels of ``good`` with one digit more, and these columns in their place or beside them."""
    ids, values = zip(*(f"{row}5".split(",") for row in labels().splitlines()[1:]), strict=True)
    cells = {"id": ids, "label": values, **columns}
    rows = [",".join(row) for row in zip(*cells.values(), strict=True)]
    (folder / "table.csv").write_text("\n".join([",".join(cells), *rows, ""]))
    return folder / "table.csv"


@pytest.mark.parametrize(
    ("columns", "options", "code", "text"),
    [
        (
            {"label": [f'"{row},5"' for row in range(COUNT)]},
            (),
            2,
            "--kind classification if these are classes; numbers are written as 12.5, got",
        ),
        ({"label": ["a"] * COUNT}, (), 4, "constant labels: there is nothing to predict"),
        (
            {"part": ["test"] + ["train"] * (COUNT - 1)},
            ("--split-column", "part"),
            1,
            "1 in the test part. A test part of one sample has no score",
        ),
    ],
)
def test_a_table_that_is_nearly_right_is_refused(
    folder: Path, columns: dict[str, Sequence[str]], options: tuple[str, ...], code: int, text: str
) -> None:
    """What the readers refuse is in ``tests/tables/test_bad_files.py`` and ``test_package.py``."""
    path = write_table(folder, columns)
    done = quick_neuco(folder, "new", "task", "soil", "--labels", path, *TASK, *options, "--into", folder / "elsewhere")
    assert (done.code, text in done.err, done.err.count("\n")) == (code, True, 1), done.err
    assert not (folder / "elsewhere").exists()


@pytest.mark.parametrize(
    ("kind", "columns", "note"),
    [
        ("classification", {"label": ["rare", *["a", "b"] * COUNT][:COUNT]}, "cannot be learned and judged: rare"),
        ("regression", {"group": [f"g{n}" for n in range(COUNT)]}, "each group has one sample"),
        (
            "regression",
            {"group": [f"g{n // 5}" for n in range(COUNT)], "split": ["test", "train"] * (COUNT // 2)},
            "30 of 30 groups are on both sides of the fixed split",
        ),
    ],
)
def test_what_is_allowed_and_odd_is_told(
    tmp_path: Path, kind: str, columns: dict[str, Sequence[str]], note: str
) -> None:
    options: dict[str, Any] = {f"{name}_column": name for name in columns if name != "label"}
    assert note in " ".join(_odd(read_labels(write_table(tmp_path, columns), kind, **options)))


def test_what_others_made_meanwhile_is_not_removed_on_failure(tmp_path: Path) -> None:
    request = DatasetRequest(name="soil", title="", description="", license="MIT", images="", into=tmp_path / "new")

    def interrupted() -> None:
        with building(request):
            (tmp_path / "new" / "theirs.txt").write_text("work")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["theirs.txt"]


def test_a_plugin_that_is_not_on_the_path_says_what_to_export(folder: Path, tmp_path: Path) -> None:
    away = tmp_path / "away" / "neuco_tasks" / "ink"
    away.mkdir(parents=True)
    (away / "__init__.py").touch()
    checked = quick_neuco(folder, "check", str(away))
    assert checked.code != 0
    assert f"It is not on the Python path: export PYTHONPATH={tmp_path / 'away'}" in checked.err
