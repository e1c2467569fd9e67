"""A search that never sees a test row, can be killed, and ends as it would have."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.errors import DataError, ScoreError, UsageError
from neuco_core.plugins.catalog import load_method, load_protocol, load_task
from neuco_core.runs.engine import StepLimits
from neuco_core.runs.messages import Failed, Group, Result, Step
from neuco_core.runs.worker import WorkerSteps
from neuco_core.studies.sources import MethodSource
from neuco_core.tables.embeddings import Embeddings, make_embeddings
from neuco_core.tables.labels import Labels
from neuco_extensions.geobench import tune as module
from neuco_extensions.geobench.facts import CAPABILITIES
from neuco_extensions.geobench.search import Divided, TuningPlan, divide
from neuco_extensions.geobench.tune import TuningRun, read_all_tuned, read_tuned, tune, tune_on
from neuco_extensions.geobench.validate import validate
from tests.geobench.parts import run

pytest.importorskip("optuna")
METHODS = ("averaging", "pca")
TASKS = ("olinda_elevation_mean", "olinda_sea_level")
TRIALS = 8  # the first five are drawn at random, the others depend on what was found


PLAN = TuningPlan(load_protocol("neuco-strict"), trials=3, repeats=2)


def arguments(out: Path) -> list[str]:
    return ["--method", ",".join(METHODS), "--task", ",".join(TASKS), "--trials", str(TRIALS), "--out", str(out)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods on two tasks, without an interruption."""
    out = tmp_path_factory.mktemp("whole")
    printed = run("tune", *arguments(out)).output
    assert f"{TRIALS} trials inside the training part, 5 seeds on the test part" in printed
    return out


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.json"))}


def test_a_killed_search_goes_on_and_ends_the_same(whole: Path, tmp_path: Path) -> None:
    def trials() -> int:
        begun = read_tuned(out / f"pca/{TASKS[0]}.json")
        return len(begun.trials) if begun else 0

    out = tmp_path / "out"
    code = f"import sys; from neuco_core.cli import main; main(['geobench', 'tune', *{arguments(out)!r}])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while process.poll() is None and trials() < 3:
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()[0]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    left = files(out)
    assert 0 < len(left) < len(files(whole))  # and the last one is not complete
    assert trials() < TRIALS
    run("tune", *arguments(out))
    assert files(out) == files(whole)
    assert left[f"averaging/{TASKS[0]}.json"] == files(whole)[f"averaging/{TASKS[0]}.json"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "dask"])
def test_an_engine_gives_the_same_numbers(whole: Path, tmp_path: Path, engine: str) -> None:
    """Half of it is there already, as after a kill."""
    (tmp_path / "averaging").mkdir()
    names = {f"averaging/{TASKS[0]}.json": 3, f"averaging/{TASKS[1]}.json": TRIALS}
    for name, trials in names.items():
        values = json.loads((whole / name).read_text())
        kept = {"trials": values["trials"][:trials], "repeats": values["repeats"][: trials // 3]}
        (tmp_path / name).write_text(json.dumps({**values, **kept, **({"repeats": []} if trials < TRIALS else {})}))
    words = ["--method", "averaging", "--task", ",".join(TASKS), "--trials", TRIALS, "--out", tmp_path]
    run("tune", *words, "--engine", engine)
    assert files(tmp_path) == {name: data for name, data in files(whole).items() if name in names}


def test_one_that_fails_on_an_engine_does_not_stop_the_others(tmp_path: Path) -> None:
    class Engine:
        name, progress = "made", None

        def run(self, groups: Sequence[Group], limits: StepLimits) -> Iterator[tuple[Step, Result]]:
            first, second = (step for group in groups for step in group.steps)
            yield first, Failed("memory", "too large")
            yield second, WorkerSteps().do(second)

    pairs = [(load_method("averaging"), load_task(task)) for task in TASKS]
    tuned = tune_on(Engine(), pairs, replace(PLAN, trials=1), tmp_path)
    assert next(tuned).task == TASKS[1]
    with pytest.raises(ScoreError, match=r"1 pair could not be tuned: averaging on olinda_elevation_mean.*too large"):
        next(tuned)
    assert list(files(tmp_path)) == [f"averaging/{TASKS[1]}.json"]


def test_an_engine_takes_registered_methods_only(tmp_path: Path, parts: tuple[Embeddings, Labels]) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, ids=np.array(parts[0].ids), values=parts[0].values)
    options = ["--method", path, "--task", TASKS[0], "--trials", 2, "--repeats", 2, "--out", tmp_path / "out"]
    with pytest.raises(UsageError, match="registered methods only"):
        run("tune", *options, "--engine", "local")
    assert "mine" in run("tune", *options).output


@pytest.fixture(scope="module")
def parts() -> tuple[Embeddings, Labels]:
    task = load_task(TASKS[0])
    return MethodSource(load_method("averaging")).embeddings(task), task.labels()


def tuned(parts: tuple[Embeddings, Labels], begun: TuningRun | None = None, **changes: Any) -> TuningRun:
    return tune("averaging", load_task(TASKS[0]), *parts, replace(PLAN, **changes), begun)


def test_test_rows_have_no_say_in_the_search(parts: tuple[Embeddings, Labels]) -> None:
    """Labels and embeddings of the test part are replaced by nonsense: every trial is the same, to the last bit."""
    embeddings, labels = parts
    test = divide(embeddings, labels, PLAN).test
    assert 0.15 < len(test) / len(labels.ids) < 0.25
    inside = np.array([name in test for name in labels.ids])
    wrong = replace(labels, values=np.where(inside, -1000 * labels.values, labels.values), sha256="other")
    rows = np.array([name in test for name in embeddings.ids])
    values = np.where(rows[:, None], np.float32(1e4), embeddings.values)
    before, after = tuned(parts), tuned((make_embeddings(embeddings.ids, values), wrong))
    assert before.trials == after.trials
    assert before.repeats != after.repeats


def test_a_planted_test_row_is_found_out(parts: tuple[Embeddings, Labels], monkeypatch: pytest.MonkeyPatch) -> None:
    def leaky(embeddings: Embeddings, labels: Labels, plan: TuningPlan) -> Divided:
        clean = divide(embeddings, labels, plan)
        ids = (*clean.train, min(clean.test))
        return replace(clean, searched=(embeddings.only(ids), labels.only(ids)))

    monkeypatch.setattr(module, "divide", leaky)
    with pytest.raises(ScoreError, match="the search was given rows of the test part"):
        tuned(parts)


def test_parts_share_no_sample_and_no_group(parts: tuple[Embeddings, Labels]) -> None:
    embeddings, labels = parts
    names = np.array([str(i % 30) for i in range(len(labels.ids))])
    grouped = replace(labels, groups=names, splitter="group")
    divided = divide(embeddings, grouped, PLAN)
    assert not set(divided.train) & divided.test
    group = dict(zip(labels.ids, names, strict=True))
    assert not {group[name] for name in divided.train} & {group[name] for name in divided.test}
    assert divided.searched[1].splitter == "group"
    named = np.where(np.arange(len(labels.ids)) % 4 == 0, "test", "train")
    fixed = divide(embeddings, replace(labels, split=named, splitter="fixed"), PLAN)
    assert fixed.test == {name for name, part in zip(labels.ids, named, strict=True) if part == "test"}
    assert (fixed.searched[1].split, fixed.searched[1].splitter) == (None, "")


def test_more_trials_go_on_and_repeat_anew(parts: tuple[Embeddings, Labels], tmp_path: Path) -> None:
    few = tuned(parts)
    more = tuned(parts, few, trials=5, repeats=3)
    assert more.trials[:3] == few.trials
    assert (len(more.trials), len(more.repeats)) == (5, 3)
    assert tuned(parts, more, trials=5, repeats=3) == more
    with pytest.raises(DataError, match="of other data, another protocol, seed"):
        tuned(parts, more, seed=1)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(DataError, match="not a file of `neuco geobench tune`"):
        read_tuned(tmp_path / "x.json")


def test_what_cannot_be_tuned_and_an_error_is_made_small(parts: tuple[Embeddings, Labels]) -> None:
    with pytest.raises(UsageError, match="'ridge' has nothing to search"):
        TuningPlan(load_protocol("ridge"))
    with pytest.raises(UsageError, match="at least 1 trial and 2 repeats"):
        TuningPlan(load_protocol("neuco-strict"), repeats=1)
    rules = TuningPlan(load_protocol("neuco-2025")).strict
    assert (rules.select, rules.scale_on) == ("last", "train")
    tuned = tune("averaging", replace(load_task(TASKS[0]), metric="mae"), *parts, PLAN)
    assert tuned.best.value == min(trial.value for trial in tuned.trials)


def test_it_leaves_as_a_folder_when_it_is_complete(whole: Path, tmp_path: Path) -> None:
    assert "2 backbones, 2 datasets, 20 runs" in run("export", "--tuned", whole, "--out", tmp_path / "own").output
    # Our tasks are not GEO-Bench's; that is all that its own validator has to say.
    assert [fault.rule for fault in validate(tmp_path / "own", official=True)] == ["coverage"]
    with pytest.raises(UsageError, match="not tuned"):
        run("export", "--tuned", whole, "--out", tmp_path / "other", "--as", "digits=so2sat")
    info = json.loads((tmp_path / "own/additional_info.json").read_text())
    assert info["Number of HPO trials"] == str(TRIALS)
    assert {entry["unique_backbone_key"] for entry in info["New model info"]} == set(METHODS)
    # As if one task were those of a capability: it passes there.
    for method in METHODS:
        (tmp_path / "tuned" / method).mkdir(parents=True)
        values = json.loads((whole / method / f"{TASKS[1]}.json").read_text())
        for name in CAPABILITIES["Classification"]:
            (tmp_path / f"tuned/{method}/{name}.json").write_text(json.dumps({**values, "task": name}))
    run("export", "--tuned", tmp_path / "tuned", "--out", tmp_path / "out")
    assert validate(tmp_path / "out") == []
    (tmp_path / "tuned/pca/so2sat.json").write_text(json.dumps({**values, "repeats": []}))
    with pytest.raises(DataError, match="is not complete"):
        read_all_tuned(tmp_path / "tuned")
    with pytest.raises(DataError, match="nothing is tuned here"):
        read_all_tuned(tmp_path / "out")
