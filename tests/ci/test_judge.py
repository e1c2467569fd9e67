"""Pull requests on real git and with the real sandbox: each gets the verdict and the comment that it deserves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ci.comment import render
from ci.describe import CATALOG
from ci.evaluate import score
from ci.extract import make_cubes
from ci.judge import Judge
from ci.plugin_sandbox import OVER, PluginSandbox
from ci.report import Report, parse
from ci.sandbox import Limits
from ci.score import AFTER_MERGE, Scores, report_cells
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import load_dataset, load_method, load_task
from neuco_core.records.model import Record
from neuco_core.records.store import parse_record
from neuco_tasks.ssl4eo_s12_downstream import fake
from tests.ci.helpers import (
    ROOT,
    Change,
    Upstream,
    both,
    change_file,
    ci,
    git,
    method,
    need_bubblewrap,
    plugin_data,
    task,
    with_encode,
    write_file,
)
from tests.ci.test_real_case import VARIABLE
from tests.ci.test_report import record as record_text

LABELS = dict(line.split(",")[:2] for line in (ROOT / "neuco_tasks/digits/labels.csv").read_text().split("\n")[1:-1])


def judge(upstream: Upstream, change: Change, out: Path) -> tuple[Report, list[Record]]:
    """The report, which is always there, and the records in it; the judge's checkout stays as it was."""
    path = out / "report.json"
    fork = upstream.pull_request(out.name, change)
    limits = ("--seconds", "120", "--memory", "2500")
    done = ci(upstream.base, "score-pr", "--head", str(fork), "--out", str(path), *limits)
    report, records = parse(path.read_bytes())
    assert (done.returncode == 0) == report.green, done.stdout + done.stderr
    comment = render(report, records, upstream.base / "registry")
    sign = "## ⚠️" if report.core else "## ✅"
    assert comment.splitlines()[2].startswith(sign if report.green else "## ❌"), comment
    assert git(upstream.base, "status", "--porcelain") == ""
    return report, records


def details(report: Report, check: str) -> str:
    return " | ".join(f"{f.status} {f.detail}" for f in report.findings if f.check == check)


def test_a_good_task_and_a_good_method(upstream: Upstream, tmp_path: Path) -> None:
    report, records = judge(upstream, both(task, method), tmp_path)
    assert (report.green, details(report, "task-baseline").startswith("ok averaging reaches")) == (True, True)
    waits = f"skipped 1 cell not scored here: {AFTER_MERGE}"
    assert details(report, "score") == f"{waits} | ok 1 cells scored | {waits} | ok 3 cells scored"
    assert {(record.method, record.task) for record in records} == {
        ("averaging", "good"), ("averaging_notebook", "good"), ("random", "good"), ("plain", "digits_class"),
    }  # fmt: skip
    assert {record.provenance["commit"] for record in records} == {report.head}
    assert {record.provenance["made_from"] for record in records} == {"code"}
    assert details(report, "method-sane").startswith("ok digits: effective rank"), "it was looked at in its sandbox"


def test_what_neuco_check_refuses_is_red(upstream: Upstream, tmp_path: Path) -> None:
    hollow = write_file("neuco_tasks/good/test.py", "def test_it():\n    import neuco_tasks\n")
    heavy = change_file("neuco_methods/plain/__init__.py", "from neuco_core", "import pandas\nfrom neuco_core")
    report, _ = judge(upstream, both(task, method, hollow, heavy), tmp_path)
    assert "failed importing the plugin loads numpy, pandas, pyarrow, and everybody" in details(report, "import")
    assert "no test that asserts anything" in details(report, "task-files")
    assert details(report, "tests").startswith("ok 1 passed"), "which says nothing"


def test_labels_that_cannot_be_had_hide_no_other_fault(upstream: Upstream, tmp_path: Path) -> None:
    init = "neuco_tasks/good/__init__.py"
    broken = "def broken(path):\n    raise RuntimeError('no labels today')\n\n\n@hookimpl\ndef neuco_tasks"
    loader = change_file(init, "@hookimpl\ndef neuco_tasks", broken)
    loaded = change_file(init, 'kind="regression",', 'kind="regression", loader=broken,')
    unlicensed = change_file(init, "CC-BY-4.0", "Creative Commons")
    hollow = write_file("neuco_tasks/good/test.py", "def test_it():\n    import neuco_tasks\n")
    report, _ = judge(upstream, both(task, loader, loaded, unlicensed, hollow), tmp_path)
    assert report.verdict == "red"
    assert "no labels today" in details(report, "data"), report.findings
    assert "an SPDX expression" in details(report, "task-metadata"), report.findings
    assert "no test that asserts anything" in details(report, "task-files")


@pytest.fixture(scope="module")
def fork(upstream: Upstream) -> Path:
    """A task and a method that must not be asked, and a catalogue that says that this was done."""
    entries = {"plugins": {"neuco_tasks/good": {"key": "0", "rows": []}}, "schema": 1}
    return upstream.pull_request("late", both(task, method, write_file(CATALOG, json.dumps(entries))))


def test_after_the_deadline_nothing_runs_and_every_plugin_is_told(
    upstream: Upstream, fork: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ci.sandbox.run", lambda *_, **__: pytest.fail("nothing runs"))
    report = Judge(upstream.base, fork, "origin/main", minutes=0).run()
    assert (report.verdict, report.records, [plugin.name for plugin in report.plugins]) == (
        "red",
        (),
        ["plain", "good"],
    )
    for plugin in report.plugins:
        assert [f.status for f in plugin.findings] == ["failed"] * len(plugin.findings)
        assert any(OVER in f.detail for f in plugin.findings), plugin.findings
    assert {"deadline", "protected"} <= {finding.check for finding in report.general}


def sleeping(tree: Path) -> None:
    with_encode("import time\ntime.sleep(1e6)")(tree)


@pytest.mark.slow
def test_a_slow_method_of_main_is_nobodys_red(tmp_path: Path) -> None:
    need_bubblewrap()
    kept = {"neuco_tasks": ("__init__.py", "digits"), "neuco_methods": ("__init__.py", "averaging")}
    upstream = Upstream(tmp_path / "own", kept=kept, more=sleeping)
    report = Judge(upstream.base, upstream.pull_request("task", task), "origin/main", minutes=5).run()
    assert report.verdict == "green", report.findings
    assert "ok 2 cells scored" in details(report, "score")
    assert "plain on good: no time is left for neuco_methods/plain; expected at most 30 s" in details(report, "score")


def test_when_its_time_is_over_scoring_begins_no_further_cell(tmp_path: Path) -> None:
    """What was scored until then is not lost."""
    names = ("tasks", "methods", "datasets", "touched", "unpinned", "cards")
    cells = {"ridge+k=2": [(method, "digits_class") for method in ("averaging", "random")]}
    job = {**dict.fromkeys(names, ()), "cells": cells, "commit": "0" * 40, "seconds": 100, "time": 0}
    result = score(job, tmp_path)
    assert (len(result["texts"]), [cell["reason"] for cell in result["unscored"]]) == (1, ["no time was left"])


def memorise(fork: Path) -> None:
    """The public labels, by the names of their samples."""
    look_up = "[[float(TABLE.get(name, -1)), 1.0] for name in batch.ids]"
    lines = (
        "import numpy",
        "from neuco_methods.plain.table import TABLE",
        f"return numpy.array({look_up}, dtype='f4')",
    )
    with_encode("\n".join(lines))(fork)
    rows = "".join(f"    {name!r}: {value},\n" for name, value in LABELS.items())
    (fork / "neuco_methods/plain/table.py").write_text(f"TABLE = {{\n{rows}}}\n")


@pytest.mark.slow
def test_labels_memorised_by_the_names_of_samples_are_worth_nothing(upstream: Upstream, tmp_path: Path) -> None:
    _, (record,) = judge(upstream, memorise, tmp_path)
    assert record.task == "digits_class"
    assert record.mean is not None
    assert record.mean < 0.2


PLACE = """
class Flat:
    def fit(self, cubes):
        from neuco_methods.plain.table import TABLE
        self.rows = dict(zip(sorted(cubes.ids()), [TABLE[name] for name in sorted(TABLE)]))

    def encode(self, batch):
        import numpy
        known = [self.rows.get(name, 0) for name in batch.ids]
        return numpy.eye(10, dtype="f4")[known] + numpy.float32(0.1)
"""


def by_place(fork: Path) -> None:
    """The public labels in the order of their samples, learned under whatever names these have."""
    memorise(fork)
    init = fork / "neuco_methods/plain/__init__.py"
    text = init.read_text()
    init.write_text(text[: text.index("class Flat:")] + PLACE.lstrip() + "\n\n" + text[text.index("@hookimpl") :])


@pytest.mark.slow
def test_labels_memorised_by_the_place_of_samples_are_worth_nothing(upstream: Upstream, tmp_path: Path) -> None:
    _, records = judge(upstream, by_place, tmp_path)
    assert all(record.mean is None or record.mean < 0.2 for record in records)


# Reads whatever cubes the sandbox holds, and if any carries one value per sample of digits, that is the embedding.
GREEDY = """
import glob, numpy
for path in glob.glob("/cubes/**/*.npy", recursive=True):
    array = numpy.load(path, mmap_mode="r")
    if len(array) == 1797 and array[0].size == 1:
        return array[:, 0, 0, 0].astype("float32")[:len(batch.ids)]
"""
SMUGGLER = """
class Cubes:
    version, bands, seasons = "1", ("grey/0",), ("scene",)
    def ids(self):
        return tuple(f"s{i:04d}" for i in range(1797))
    def read(self, ids):
        import csv, pathlib
        import numpy as np
        from neuco_core.cubes.cubes import CubeBatch
        try:
            import neuco_tasks.digits
            rows = list(csv.DictReader((pathlib.Path(neuco_tasks.digits.__file__).parent / "labels.csv").open()))
        except OSError as error:
            raise RuntimeError(f"NO LABELS HERE: {error}") from error
        values = np.array([float(rows[int(name[1:])]["label"]) for name in ids], dtype="float32")
        return CubeBatch(tuple(ids), values.reshape(-1, 1, 1, 1, 1), self.bands, self.seasons)
"""


@pytest.mark.slow
def test_labels_do_not_travel_in_the_cubes_of_a_task_beside_the_method(upstream: Upstream, tmp_path: Path) -> None:
    change = both(task, write_file("neuco_tasks/good/cubes.py", SMUGGLER), with_encode(GREEDY))
    report, records = judge(upstream, change, tmp_path)
    assert "NO LABELS HERE" in details(report, "cubes"), details(report, "cubes")
    assert all(record.mean is None or record.mean < 0.98 for record in records if record.method == "plain")


@pytest.mark.slow
def test_a_method_does_not_see_the_cubes_of_a_task_beside_it(upstream: Upstream, tmp_path: Path) -> None:
    """Even labels that a task has of its own stay out of reach of a method in the same pull request."""
    change = both(
        task,
        with_encode("import os\nraise RuntimeError(str(sorted(os.listdir('/cubes'))))"),
        change_file("neuco_methods/plain/__init__.py", "encoder=Flat", "encoder=Flat, uses_ids=True"),
    )
    report, _ = judge(upstream, change, tmp_path)
    assert "['cubes.json', 'cubes.npy']" in details(report, "encode")
    assert "both are new" in details(report, "score")
    assert details(report, "uses-ids").startswith("warning method 'plain' declares uses_ids=True")


def test_a_folder_without_an_init_fails_before_anything_is_run(upstream: Upstream) -> None:
    fork = upstream.pull_request("bare", write_file("neuco_methods/plain/encoder.py", "x = 1\n"))
    report = Judge(upstream.base, fork, "origin/main").run()
    assert (report.verdict, details(report, "import").startswith("failed there is no __init__.py")) == ("red", True)


TASK, METHOD = load_task("clouds"), load_method("random")


def record(method: str, task: str, status: str) -> Record:
    """A record with a score, or with the reason why it has none."""
    more: dict[str, Any] = {}
    if status != "ok":
        more = {"per_split": (), "samples": {}, "mean": None, "std": None, "q": None, "reason": "no sample is in both"}
    if status == "failed":
        more["failure"] = "data"
    return parse_record(record_text(method, task, status=status, **more).encode(), "a test")


def cell(method: str, task: str, state: str) -> dict[str, str]:
    return {"method": method, "task": task, "state": state, "reason": f"reason of {state}"}


def judged(
    spec: Any, *records: Record, foreign: Any = (), unscored: Any = (), missing: Any = ()
) -> list[tuple[str, str]]:
    subject = plugin_data(spec, folder=f"neuco_{'tasks' if spec is TASK else 'methods'}/{spec.id}")
    report_cells(subject, Scores(unscored=list(unscored), foreign=list(foreign)), records, dict(missing))
    return [(finding.check, finding.status) for finding in subject.findings]


def test_a_task_that_one_method_fits_is_not_to_blame_for_another() -> None:
    good, bad = record("random", "clouds", "ok"), record("old", "clouds", "failed")
    assert judged(TASK, good, bad) == [("score", "skipped"), ("score", "ok")]
    assert judged(TASK, bad) == [("score", "failed")]
    assert judged(TASK, bad, foreign=[("old", "clouds")]) == [("score", "skipped"), ("waiting", "skipped")]


def test_a_method_is_to_blame_unless_the_task_is_broken_by_itself() -> None:
    good, bad = record("random", "crops", "ok"), record("random", "clouds", "failed")
    assert judged(METHOD, good, bad) == [("score", "failed"), ("score", "ok")]
    assert judged(METHOD, good, bad, foreign=[("random", "clouds")]) == [("score", "skipped"), ("score", "ok")]


def test_what_was_not_scored_waits_and_what_fits_nobody_fails() -> None:
    assert judged(METHOD, unscored=[cell("random", "clouds", "skipped")]) == [
        ("score", "skipped"), ("waiting", "skipped"),
    ]  # fmt: skip
    assert judged(METHOD, missing={("random", "clouds"): "elsewhere"}) == [("score", "skipped"), ("waiting", "skipped")]
    assert judged(METHOD, unscored=[cell("random", "clouds", "not-applicable")]) == [("score", "failed")]
    assert judged(METHOD, record("random", "clouds", "skipped")) == [("score", "skipped"), ("waiting", "skipped")]
    assert judged(METHOD, unscored=[cell("other", "clouds", "skipped")]) == [("score", "failed")]


def test_a_dataset_that_is_too_large_for_the_sandbox_is_said_to_be(upstream: Upstream, tmp_path: Path) -> None:
    boxes = PluginSandbox(upstream.base, tmp_path, Limits(file_size=20_000))
    digits = boxes.plugin("neuco_tasks", "digits")
    with pytest.raises(DataError, match=r"do not fit into the sandbox; expected at most 0.0 GB, got 0.0 GB"):
        make_cubes(boxes, digits, load_dataset("digits"))


@pytest.mark.slow
def test_images_of_the_true_size_leave_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_bubblewrap()
    fake.write_folder(tmp_path / "copy", count=3, files=())
    monkeypatch.setenv(VARIABLE, str(tmp_path / "copy"))
    dataset = load_dataset("ssl4eo_s12_downstream")
    boxes = PluginSandbox(ROOT, tmp_path / "scratch", Limits())
    folder = make_cubes(boxes, boxes.plugin("neuco_tasks", dataset.id), dataset)
    assert (folder / "cubes.npy").stat().st_size == 128 + 3 * 4 * 27 * 264 * 264 * 4
