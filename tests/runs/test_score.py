"""``neuco score``: what is scored, what is skipped and why, and what the exit code says."""

from __future__ import annotations

import fcntl
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import termios
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from neuco_core.cli.score_show import baseline_check, grouped
from neuco_core.errors import UsageError
from neuco_core.plugins.catalog import list_tasks, load_suite, load_task, protocols_for, task_protocol
from neuco_core.records.fingerprint import stale_records
from neuco_core.records.store import read_all
from neuco_core.runs.files import find_files, free_names
from tests.bench.helpers import neuco
from tests.terminal import read_terminal, unstyled

FAST = ("--k", 3, "--epochs", 2)


def test_every_task_without_conditions(case: Path, parity_tasks: Path) -> None:
    """A file is scored where its ids are; the rest is listed with the reason, and that is no failure."""
    ran = neuco("score", "--embeddings", case / "embeddings.csv", *FAST, "--json")
    assert ran.code == 0, ran.err
    status = {cell["task"]: cell["status"] for cell in ran.json["cells"]}
    scored = {name for name, state in status.items() if state == "ok"}
    assert scored == {"parity_alpha", "parity_beta", "parity_delta", "parity_gamma"}
    reasons = {cell["task"]: cell["reason"] for cell in ran.json["cells"] if cell["status"] != "ok"}
    assert "unpinned" in reasons["parity_unpinned"]
    assert "not downloaded yet" in reasons["biomass_mean"]
    assert reasons["olinda_sea_level"] == "no id of embeddings.csv has a label in it"
    assert "failed" not in status.values()


def test_splits_that_have_no_score_are_told_beside_the_mean() -> None:
    ran = neuco("score", "--method", "random", "--task", "mini_random_reg", "--protocol", "ridge+k=8", "--json")
    (cell,) = ran.json["cells"]
    scores = [value for value in cell["record"]["per_split"] if value is not None]
    assert 0 < len(scores) < 8
    assert cell["median"] == statistics.median(scores)
    shown = neuco("score", "--method", "random", "--task", "mini_random_reg", "--protocol", "ridge+k=8").out
    assert f"{statistics.median(scores):.4f}" in shown
    assert f"{len(scores)} of 8" in shown
    assert f"mini_random_reg: {8 - len(scores)} of 8 test parts have no score: their labels are all the same" in shown
    flat = neuco("score", "--method", "random", "--task", "mini_random_reg", "--protocol", "neuco-2025+k=8").out
    assert f"{8 - len(scores)} of 8 test parts are scored even so: their labels are all the same" in flat


def test_reasons_that_differ_in_an_address_and_a_task_are_one_line() -> None:
    """Else a file of one's own images is followed by a line for each task of a dataset that is not here."""
    reason = "the labels of {0} are not downloaded yet. Run `neuco data pin {0}`"
    cells = [("skipped", "mine", task, reason.format(task)) for task in ("clouds", "crops", "nodata")]
    cells.append(("failed", "mine", "crops", "method: it broke"))
    lines = grouped(cells)
    assert lines[0].startswith("skipped mine on clouds and 2 more: the labels of clouds are not downloaded yet")
    assert lines[1:] == ["failed mine on crops: method: it broke"]


def test_several_sources(parity_tasks: Path, case: Path, tmp_path: Path) -> None:
    (tmp_path / "again.csv").write_bytes((case / "embeddings.csv").read_bytes())
    files = ("--embeddings", case / "embeddings.csv", "--embeddings", tmp_path / "again.csv")
    ran = neuco("score", *files, "--task", "parity_beta", *FAST)
    assert ran.code == 0, ran.err
    lines = [line for line in ran.out.splitlines() if "parity_beta" in line]
    assert [line.split()[0] for line in lines] == ["embeddings", "again"]
    assert lines[0].split()[1:] == lines[1].split()[1:]


@pytest.mark.usefixtures("parity_tasks")
@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (("--task", "parity_unpinned"), "neuco data pin"),
        (("--task", "olinda_sea_level"), "1 of the tasks asked for could not be scored"),
        (("--dataset", "olinda"), "nothing could be scored"),
    ],
)
def test_nothing_scored_is_no_success(chosen: tuple[str, str], message: str, case: Path) -> None:
    ran = neuco("score", "--embeddings", case / "embeddings.csv", *chosen, *FAST)
    assert ran.code == 1
    assert message in ran.text


def test_a_cell_that_fails_is_told_and_the_others_are_scored(parity_tasks: Path, case: Path) -> None:
    """A learning rate without bounds: R² is defined for none of the splits, F1 for all."""
    rules = ("--k", 2, "--epochs", 1, "--lr", "1e38")
    ran = neuco("score", "--embeddings", case / "embeddings.csv", "--tag", "parity", *rules, "--json")
    assert ran.code == 1
    status = {cell["task"]: cell["status"] for cell in ran.json["cells"]}
    assert status["parity_alpha"] == "failed"
    assert " failed: " in ran.err
    assert "Traceback" not in ran.err


def test_files_of_one_name_can_be_told_apart() -> None:
    assert list(free_names([Path("a/e.csv"), Path("b/e.csv"), Path("a/e.csv")]).values()) == ["e", "e-2"]
    assert list(free_names([Path("pca.csv"), Path("e.csv")], taken=["e"]).values()) == ["pca-file", "e-2"]


def test_a_folder_or_a_pattern_is_a_method_for_each_file(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    with pytest.raises(UsageError, match="no file fits this pattern"):
        find_files([folder / "*.csv"])
    assert find_files([folder]) == [folder], "empty, or pictures: TerraTorch's reader says what it lacks"
    for name in ("b.csv", "A.npz", "notes.txt", "c.ids.txt", "c.npy"):
        (folder / name).touch()
    assert find_files([folder]) == [folder / "A.npz", folder / "b.csv", folder / "c.npy"]
    assert find_files([folder / "?.csv", folder / "A.npz"]) == [folder / "b.csv", folder / "A.npz"]
    (folder / "a.csv").touch()
    with pytest.raises(UsageError, match=r"two files would be the same method; got A\.npz, a\.csv"):
        find_files([folder])
    (folder / "a.csv").rename(folder / "embeddings.csv")
    with pytest.raises(UsageError, match=r"TerraTorch's embeddings and other files; got embeddings\.csv and"):
        find_files([folder])


def test_a_file_that_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("name,0\na,1\n")
    for more in ((), ("--dataset", "olinda")):
        ran = neuco("score", "--embeddings", tmp_path / "e.csv", *more, *FAST)
        assert ran.code == 4
        assert ran.out == ""
        assert "e.csv" in ran.err


def test_a_second_call_is_served_from_records_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))  # what encoding takes is measured the first time
    words = ("score", "--method", "random", "--task", "digits_class", *FAST)
    first, second = neuco(*words), neuco(*words)
    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert ": 3 splits, seed 42" in first.out
    assert "1 of 1 scored now, records in " in first.out
    assert "1 score from cache (`--fresh` to re-run)" in second.out
    assert first.out.splitlines()[2] == second.out.splitlines()[2], "the same row"
    record = tmp_path / "records" / "random.jsonl"
    before = record.read_bytes()
    fresh = neuco(*words, "--fresh")
    assert "1 of 1 scored now" in fresh.out
    assert "[1/1] ok random on digits_class" in fresh.err, "it was really run"
    assert record.read_bytes() == before, "a score that is confirmed changes no file"


def test_a_file_is_recorded_only_on_demand_and_then_ranked(
    parity_tasks: Path, case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    words = ("score", "--embeddings", case / "embeddings.csv", "--task", "parity_beta", *FAST)
    assert neuco(*words).code == 0
    assert not list(tmp_path.rglob("*.jsonl"))
    saved = neuco(*words, "--save", "--name", "mine")
    assert saved.code == 0, saved.err
    path = tmp_path / "records" / "mine.jsonl"
    assert json.loads(path.read_text())["registered"] is False
    assert "1 score from cache" in neuco(*words, "--save", "--name", "mine").out
    assert "there is a method 'pca' already" in neuco(*words, "--save", "--name", "pca").err
    assert stale_records(read_all(tmp_path)) == {}, "what no plugin registers is held to what is registered"


def test_a_suite_brings_its_protocol_and_conditions_are_and_ed() -> None:
    suite = load_suite("olinda-blocks")
    words = ("score", "--method", "random", "--suite", suite.id, "--dry-run", "--json")
    planned = neuco(*words).json
    assert planned["protocols"] == [suite.protocol]
    assert {cell["task"] for cell in planned["cells"]} == set(suite.tasks)
    one = neuco(*words, "--kind", "regression", "--task", "*_std").json
    assert [cell["task"] for cell in one["cells"]] == ["olinda_elevation_std"]


def test_ids_that_fit_two_datasets_are_not_guessed(tmp_path: Path) -> None:
    ids = [*load_task("olinda_sea_level").labels().ids[:60], *load_task("digits_class").labels().ids[:60]]
    ids = list(dict.fromkeys(ids))
    (tmp_path / "e.csv").write_text("id,0\n" + "".join(f"{name},{i % 7}\n" for i, name in enumerate(ids)))
    ran = neuco("score", "--embeddings", tmp_path / "e.csv", *FAST)
    assert ran.code == 2
    assert "--dataset" in ran.err
    assert neuco("score", "--embeddings", tmp_path / "e.csv", "--dataset", "olinda", "--dry-run").code == 0


@pytest.mark.parametrize(
    ("name", "suite", "k", "expected"),
    [
        (None, None, None, ["neuco-2025", "ridge"]),
        (None, None, 5, ["neuco-2025+k=5", "ridge+k=5"]),
        ("svm", None, None, ["svm", "svm"]),
        (None, "olinda-blocks", None, ["ridge+splitter=group", "ridge+splitter=group"]),
    ],
)
def test_each_dataset_is_scored_by_its_own_protocol_unless_another_is_named(
    name: str | None, suite: str | None, k: int | None, expected: list[str]
) -> None:
    groups = protocols_for([load_task("crops"), load_task("olinda_sea_level")], name, suite, k=k)
    protocols = {task.id: protocol.name for protocol, tasks in groups for task in tasks}
    assert [protocols["crops"], protocols["olinda_sea_level"]] == expected


def test_the_default_protocol_is_that_of_every_declared_baseline() -> None:
    """So that `neuco score --method averaging` says something about the baselines; the paper's has a K of its own."""
    baselines = [(task_protocol(task).name, task.baseline.protocol) for task in list_tasks() if task.baseline]
    assert len(baselines) > 20
    for ours, theirs in baselines:
        assert theirs.partition("+")[0] == ours


def test_the_baseline_is_judged_only_for_its_own_method_and_protocol(parity_tasks: Path, case: Path) -> None:
    words = ("score", "--embeddings", case / "embeddings.csv", "--task", "parity_alpha")
    (cell,) = neuco(*words, "--json").json["cells"]
    assert cell["baseline"]["score"] == 0.5
    assert cell["baseline"]["met"] is None
    assert "0.5000 (parity_mean)" in neuco(*words).out
    (cell,) = neuco(*words, *FAST, "--json").json["cells"]
    assert cell["baseline"]["met"] is None, "the score of another protocol is no yardstick"
    assert "(parity_mean*)" in neuco(*words, *FAST).out
    assert "baselines with * are under neuco-2025, not run here" in neuco(*words, *FAST).out


@pytest.mark.parametrize(("mean", "met"), [(0.505, True), (0.52, False), (None, None)])
def test_a_baseline_is_met_within_its_tolerance(parity_tasks: Path, mean: float | None, met: bool | None) -> None:
    record = SimpleNamespace(mean=mean, protocol="neuco-2025", method="parity_mean")
    check = baseline_check(load_task("parity_alpha"), record)  # type: ignore[arg-type]
    assert check is not None
    assert check["met"] is met


def test_dry_run_scores_nothing(parity_tasks: Path, case: Path) -> None:
    ran = neuco("score", "--embeddings", case / "embeddings.csv", "--dataset", "parity", "--dry-run", "--json")
    assert ran.code == 0, ran.err
    state = {cell["task"]: cell["state"] for cell in ran.json["cells"]}
    assert state["parity_alpha"] == "new"
    assert state["parity_unpinned"] == "skipped"
    assert not any("record" in cell for cell in ran.json["cells"])
    plan = neuco("score", "--embeddings", case / "embeddings.csv", "--task", "parity_beta", "--dry-run").out
    assert plan.splitlines()[0] == "1 cell under neuco-2025: 1 new"


def test_the_same_json_for_any_number_of_threads(parity_tasks: Path, case: Path) -> None:
    words = ("score", "--embeddings", case / "embeddings.csv", "--tag", "parity", *FAST, "--json")
    runs = [neuco(*words, "--threads", n, "--jobs", jobs).json["cells"] for n, jobs in ((1, 1), (2, 1), (2, 2))]
    for cells in runs:
        for cell in cells:
            del cell["record"]["provenance"]
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (("--method", "pca", "--lr", "-1"), 2, "lr"),
        (("--method", "pca", "--seed", str(2**32)), 2, "seed"),
        (("--method", "pca", "--protocol", "neuco-2025+k=0"), 2, "bad k"),
        (("--method", "pca", "--dataset", "olinda", "--kind", "classification", "--tag", "handwriting"), 2, "no task"),
        *((("--all", "--time-limit", text), 2, "not a number of seconds above 0") for text in ("nan", "inf", "-1")),
        (("--all", "--embed-time-limit", "0"), 2, "is not a number of seconds above 0"),
    ],
)
def test_a_number_that_cannot_be_is_refused(args: tuple[str, ...], code: int, word: str) -> None:
    """Other mistakes are in ``tests/cli/test_mistakes.py``."""
    ran = neuco("score", *args)
    assert ran.code == code
    assert word in ran.err
    assert "Traceback" not in ran.err


def test_a_bar_with_an_estimate_on_a_terminal_only(case: Path, site: Path) -> None:
    """On a real pseudo-terminal, as a user has it: the bar is on stderr, the JSON on stdout stays pure."""
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    command = [sys.executable, "-m", "neuco_core.cli", "score", "--embeddings", str(case / "embeddings.csv")]
    command += ["--task", "parity_beta", "--k", "40", "--epochs", "2", "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower, env=environment) as process:
        os.close(follower)
        shown = unstyled(read_terminal(leader).decode())  # while it runs: nobody can write to a terminal that is full
        out = process.communicate()[0]
    os.close(leader)
    assert "parity_beta" in shown
    assert re.search(r"so far, .* left", shown)
    assert json.loads(out)["cells"][0]["status"] == "ok"


def test_ids_that_are_partly_wrong_are_named_once(case: Path, parity_tasks: Path, tmp_path: Path) -> None:
    """On all tasks of a dataset the file lacks the same samples, and a count alone does not show a wrong suffix."""
    table = pd.read_csv(case / "embeddings.csv", dtype={"id": str})
    wrong = table["id"].isin(load_task("parity_alpha").labels().ids[:4])
    table.loc[wrong, "id"] = "x-" + table["id"]
    table.sort_values("id", ascending=False).to_csv(tmp_path / "partly.csv", index=False)
    ran = neuco(
        "score", "--embeddings", tmp_path / "partly.csv", *FAST, "--task", "parity_alpha", "--task", "parity_beta"
    )
    (told,) = [line for line in (ran.out + ran.err).splitlines() if "no embedding for" in line]
    labels = [load_task(name).labels() for name in ("parity_alpha", "parity_beta")]
    labelled = dict.fromkeys(name for one in labels for name in one.ids)
    unknown = [name for name in sorted(table["id"], reverse=True) if name not in labelled]
    lacking = f"4 of {len(labelled)} labelled samples ({', '.join([*labelled][:3])} and 1 more)"
    assert f"partly.csv: in parity, no embedding for {lacking}: not comparable with methods that have all" in told
    assert f"; no label for {len(unknown)} ids ({', '.join(unknown[:3])} and {len(unknown) - 3} more)" in told
