"""Out as a folder, and in again: nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuco_core.errors import DataError, UnknownIdError, UsageError
from neuco_extensions.geobench.facts import TABLE
from neuco_extensions.geobench.submission import (
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
