"""Whose fault is it? Cells that fail, are skipped or do not fit, and the verdict that follows for a plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ci.changed import Touched
from ci.extract import make_cubes
from ci.plugin_sandbox import PluginData, PluginSandbox
from ci.report import PluginReport, Report
from ci.sandbox import Limits
from ci.score import Evaluated, judge_cells
from neuco_core.contract.contract import Finding
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import load_dataset, load_method, load_task
from neuco_core.records.model import Record
from neuco_core.records.store import parse_record
from neuco_tasks.ssl4eo_s12_downstream import fake
from tests.ci.helpers import ROOT, Upstream
from tests.ci.real_case import VARIABLE
from tests.ci.test_report import record as record_text
from tests.ci.test_rules import plugin as described
from tests.ci.test_sandbox import need_bubblewrap

TASK, METHOD = load_task("clouds"), load_method("random")


def plugin(spec: Any) -> PluginData:
    made = described(spec)
    tree = "neuco_tasks" if spec is TASK else "neuco_methods"
    return PluginData(Touched(tree, spec.id, "added"), Path(), Path(), rows=made.rows)


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
    subject = plugin(spec)
    judge_cells(subject, Evaluated(unscored=list(unscored), foreign=list(foreign)), records, dict(missing))
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


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([], "red"),
        ([("import", "ok"), ("tests", "ok")], "red"),
        ([("import", "ok"), ("method-card", "skipped")], "red"),
        ([("import", "ok"), ("score", "ok")], "green"),
        ([("method-files", "ok")], "green"),
        ([("method-files", "ok"), ("card", "warning")], "green"),
        ([("method-files", "ok"), ("waiting", "skipped")], "waiting"),
        ([("waiting", "skipped")], "red"),
        ([("method-files", "ok"), ("waiting", "skipped"), ("score", "failed")], "red"),
        ([("method-files", "ok"), ("waiting", "ok")], "green"),
    ],
)
def test_the_verdict_needs_evidence_and_no_failure(findings: list[tuple[str, Any]], verdict: str) -> None:
    own = tuple(Finding(check, "x", status, "words") for check, status in findings)
    report = Report(
        "0" * 40, "0" * 40, "bubblewrap", (PluginReport("neuco_methods", "x", "added", (), ("x",), own),),
        (), (), (), 0.0, 1,
    )  # fmt: skip
    assert (report.verdict, report.green) == (verdict, verdict == "green")


def test_a_dataset_that_is_too_large_for_the_sandbox_is_said_to_be(upstream: Upstream, tmp_path: Path) -> None:
    need_bubblewrap()
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
