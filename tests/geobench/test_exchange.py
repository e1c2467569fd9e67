"""A submission goes out as a folder and comes in again; `neuco check` and CI know it, and say where it would stand."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from ci.comment import render
from ci.judge import Judge
from ci.report import WAITING, Report
from ci.rules import check_submissions
from neuco_core.cli.check import check
from neuco_core.errors import DataError, UnknownIdError, UsageError
from neuco_extensions.geobench.facts import TABLE
from neuco_extensions.geobench.published import row_id
from neuco_extensions.geobench.submission import (
    ABOUT,
    RUNS,
    GeobenchSubmission,
    Model,
    SubmissionInfo,
    from_folder,
    read_submission,
    to_folder,
    write_submission,
)
from neuco_extensions.geobench.validate import validate
from tests.ci.going_live import copy_project
from tests.ci.helpers import git
from tests.geobench.parts import run, spoiled, write


@pytest.mark.parametrize("name", ["114be1f0", "2ce4a907"])
def test_the_real_ones_leave_and_come_back(
    committed_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(committed_registry))
    run("export", name, "--out", tmp_path / name)
    assert run("check", tmp_path / name).output == "no faults\n"
    assert run("check", tmp_path / name, "--official").output == "no faults by the official rules\n"
    before = read_submission(committed_registry / "geobench" / name)
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    run("import", tmp_path / name, "--title", before.about.title, "--source", before.about.source)
    written = tmp_path / "registry/geobench" / name
    for file in ("submission.json", RUNS):
        assert (written / file).read_bytes() == (committed_registry / "geobench" / name / file).read_bytes()


FINITE = st.floats(0, 1, allow_nan=False)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=30).filter(str.isprintable)


@settings(max_examples=40, deadline=None)
@given(
    scores=st.lists(FINITE, min_size=5, max_size=5),
    lr=st.floats(1e-12, 10, exclude_min=True),
    notes=TEXTS,
    patience=st.none() | st.integers(0, 1000),
    title=st.text("abcÄ ,\"'", min_size=1).filter(str.strip),
)
def test_any_submission_comes_back(
    tmp_path_factory: pytest.TempPathFactory, scores: list[float], lr: float, notes: str, patience: int, title: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    plain = from_folder(write(folder / "first"), "trial")
    runs = tuple(replace(line, scores=tuple(scores), lr=lr, early_stop_patience=patience) for line in plain.runs)
    runs = tuple(replace(line, backbone=line.backbone.replace("resnet50", "mine")) for line in runs)
    models = {"mine": Model(title, "3M"), "terramind_v1_base": plain.about.models["terramind_v1_base"]}
    about = SubmissionInfo(id="trial", title="trial", tuning="full_ft", trials="3", notes=notes, models=models)
    submission = GeobenchSubmission(about, runs)
    assert validate(to_folder(submission, folder / "out")) == []
    assert validate(folder / "out", official=True) == []
    assert from_folder(folder / "out", "trial") == submission
    stored = read_submission(write_submission(folder / "registry", submission))
    assert stored.about == submission.about
    assert set(stored.runs) == set(submission.runs)


def test_import_refuses_faults_and_names_that_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    bad = spoiled(tmp_path / "bad", lambda rows, info: rows.pop())
    with pytest.raises(DataError, match=r"1 fault: .*4 runs instead of 5.*neuco geobench check"):
        run("import", bad)
    good = write(tmp_path / "My Trial")
    with pytest.raises(UsageError, match="bad --title: longer than 200 characters"):
        run("import", good, "--title", "x" * 201)
    text = (good / TABLE).read_text().replace("\n", ",x\n").replace(",x\n", ",more\n", 1)
    (good / TABLE).write_text(text)
    printed = run("import", good).output
    assert "my-trial: 2 backbones, 4 datasets, 40 runs" in printed
    assert "left out, since the leaderboard does not read them: more" in printed
    with pytest.raises(DataError, match="there is a submission of that name"):
        run("import", good)
    assert "my-trial" in run("list").output
    with pytest.raises(UnknownIdError, match="Did you mean 'my-trial'"):
        run("export", "my-trail", "--out", tmp_path / "out")
    with pytest.raises(DataError, match="not empty"):
        run("export", "my-trial", "--out", good)
    assert "resnet50" in run("table", "my-trial", "--capability", "Classification").output
    with pytest.raises(UnknownIdError, match="no capability 'Colour'"):
        run("table", "my-trial", "--capability", "Colour")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("backbone,", "model,", "wrong header"),
        ("UNet", "UNet,UNet", "line 2: wrong number of fields"),
        ("0.0003", "fast", "line 2: Expected `float`"),
        ("0 1 2 3 4", "0 1 2 3", "seeds and scores differ"),
        ("forestnet", "benv2", "is there twice"),
        ("0.61 ", "nan ", "non-finite"),
        ("0.61 ", "-inf ", "non-finite"),
        ("0 1 2 3 4,", f"{' '.join(map(str, range(200)))},", "seeds and scores differ"),
        (" 0.64", f" 0.64{' 0.64' * 200}", "too many runs"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    folder = write_submission(tmp_path, from_folder(write(tmp_path / "a"), "trial"))
    text = (folder / RUNS).read_text()
    (folder / RUNS).write_text(text.replace(old, new, 1))
    with pytest.raises(DataError, match=words):
        read_submission(folder)


@pytest.fixture
def trees(committed_registry: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Main, and a pull request with a submission on top of it."""
    base, head = tmp_path / "base", tmp_path / "head"
    for tree in (base, head):
        shutil.copytree(committed_registry / "geobench", tree / "registry/geobench")
    submit(head, tmp_path / "folder")
    return base, head


def submit(tree: Path, folder: Path) -> None:
    submission = from_folder(write(folder), "new", source="a trial")
    write_submission(tree / "registry", submission)


def findings(trees: tuple[Path, Path], name: str = "new") -> dict[str, list[tuple[str, str]]]:
    by_check: dict[str, list[tuple[str, str]]] = {}
    for finding in check_submissions(*trees, [f"geobench/{name}"]):
        by_check.setdefault(finding.check, []).append((finding.status, finding.detail))
    return by_check


def test_where_it_would_stand(trees: tuple[Path, Path]) -> None:
    by_check = findings(trees)
    assert [status for details in by_check.values() for status, _ in details] == ["ok"] * 5
    first, second = by_check["submission-place"]
    assert first[1].startswith("resnet50-new: not ranked, lacks biomassters, burn_scars")
    assert second[1].startswith("terramind_v1_base-new: ")
    assert first[1].endswith("nothing here was run: the numbers are the submitter's")


def test_one_that_is_ranked_is_placed_with_its_rank(trees: tuple[Path, Path]) -> None:
    shutil.rmtree(trees[0] / "registry/geobench/2ce4a907")
    placed = [detail for _, detail in findings(trees, "2ce4a907")["submission-place"]]
    assert any(detail.startswith("clay_v1_base-2ce4a907: rank 1 of 17;") for detail in placed)


def test_faults_are_findings(trees: tuple[Path, Path]) -> None:
    folder = trees[1] / "registry/geobench/new"
    text = (folder / RUNS).read_text()
    (folder / RUNS).write_text(text.replace("0.0003", "-3.0"))
    by_check = findings(trees)
    assert by_check["geobench-rules"][0][0] == "failed"
    assert "out of range" in by_check["geobench-rules"][0][1]
    assert "submission-place" not in by_check
    (folder / RUNS).write_text(text)
    (folder / "run.py").write_text("print(1)")
    assert findings(trees)["geobench-files"][0] == ("failed", "further files; got run.py (./registry/geobench/new)")
    (folder / "run.py").unlink()
    about = json.loads((folder / ABOUT).read_text())
    for words in ({"title": "x" * 500_000}, {"title": "a \u202eb"}, {"source": "javascript:alert(1)"}):
        (folder / ABOUT).write_text(json.dumps(about | words))
        assert findings(trees)["geobench-rules"][0][0] == "failed"
    (folder / ABOUT).write_text(json.dumps(about | {"license": "", "source": ""}))
    assert findings(trees)["geobench-origin"][0][0] == "failed"
    (folder / ABOUT).write_text(json.dumps(about | {"code": "", "paper": "", "source": ""}))
    assert findings(trees)["geobench-origin"][0][0] == "warning"
    shutil.rmtree(folder)
    assert findings(trees)["submission-removed"][0][0] == "warning"


def waiting(by_check: dict[str, list[tuple[str, str]]]) -> list[str]:
    return [detail for status, detail in by_check.get(WAITING, ()) if status == "skipped"]


def test_what_is_on_main_already_is_changed_by_a_maintainer_only(trees: tuple[Path, Path]) -> None:
    """Git cannot tell whose a folder is: what changes is said aloud, and the pull request is not green."""
    assert waiting(findings(trees)) == []
    runs = trees[1] / "registry/geobench/2ce4a907" / RUNS
    head, first, *lines = runs.read_text().splitlines()
    *settings, scores = first.split(",")
    halved = " ".join(repr(float(score) / 2) for score in scores.split())
    runs.write_text("\n".join([head, ",".join([*settings, halved]), *lines]) + "\n")
    by_check = findings(trees, "2ce4a907")
    assert waiting(by_check) == ["registry/geobench/2ce4a907 is on main and changes: a maintainer asks whose it is"]
    mean, backbone, dataset = fmean(map(float, scores.split())), *settings[:2]
    ((status, detail),) = by_check["submission-changed"]
    assert status == "warning"
    row = row_id("2ce4a907", backbone)
    assert detail == f"{row}: 1 score changed, most of all {row} on {dataset}: {mean:.4f} → {mean / 2:.4f}"


def test_words_and_the_removal_of_what_is_on_main_wait_for_a_maintainer(trees: tuple[Path, Path]) -> None:
    folder = trees[1] / "registry/geobench/2ce4a907"
    about = json.loads((folder / ABOUT).read_text())
    (folder / ABOUT).write_text(json.dumps(about | {"license": "MIT"}))
    assert len(waiting(findings(trees, "2ce4a907"))) == 1
    text = (folder / ABOUT).read_text().replace("Clay-V1", "Mine")
    (folder / ABOUT).write_text(text)
    assert findings(trees, "2ce4a907")["submission-changed"][0][1].endswith(": other words, no score")
    shutil.rmtree(folder)
    by_check = findings(trees, "2ce4a907")
    assert by_check["submission-removed"][0][0] == "warning"
    assert "goes" in waiting(by_check)[0]
    assert "clay_v1_base-2ce4a907" in by_check["submission-changed"][0][1]
    assert by_check["submission-changed"][0][1].endswith(": gone from the board")


def test_neuco_check(trees: tuple[Path, Path]) -> None:
    done = CliRunner().invoke(check, ["114be1f0", str(trees[1] / "registry/geobench/new")])
    assert done.exit_code == 0
    assert "18 backbones, 1630 runs" in done.output
    assert "2 backbones, 40 runs" in done.output


@pytest.mark.slow
def test_a_pull_request_with_a_submission(tmp_path: Path) -> None:
    """The whole way: a real repository, what is changed, the report and the comment."""
    repo = tmp_path / "repo"
    copy_project(repo)
    for tree, kept in (("neuco_tasks", "olinda"), ("neuco_methods", "averaging")):  # others would take a minute
        for folder in (repo / tree).iterdir():
            if folder.is_dir() and folder.name not in (kept, "__pycache__"):
                shutil.rmtree(folder)
    for path in (repo / "registry/suites").glob("*.toml"):
        if path.stem != "olinda":
            path.unlink()
    git(repo, "init", "--quiet", "--initial-branch=main")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", "Start")
    base = tmp_path / "base"
    shutil.copytree(repo, base)
    git(repo, "switch", "--quiet", "-c", "new")
    submit(repo, tmp_path / "folder")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", "Submit")
    report: Report = Judge(base, repo, "main").run()
    places = [finding for finding in report.findings if finding.check == "submission-place"]
    assert [finding.status for finding in places] == ["ok", "ok"]
    assert report.green
    words = render(report, [], repo / "registry")
    assert "submission&#45;place" in words
    assert "not ranked&#44; lacks" in words
    assert "changes the code that judges it" not in words
