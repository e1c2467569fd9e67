"""NeuCo-Bench's own numbers: a whole run and each task alone; and the part of the benchmark that runs NeuCo-Bench."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from types import ModuleType

import pytest

from neuco_core.protocol import load_protocol
from neuco_core.scoring.scorer import score
from tests.bench.helpers import bench, neuco, only, results
from tests.scoring.parity import ALONE, EXPECTED, WHOLE, agree, make_case


def test_a_whole_run_in_folders_and_with_keys_of_neuco_bench(case: Path, tmp_path: Path) -> None:
    ran = bench(case, tmp_path / "out", "--method_name", "mine", "--phase", "dev")
    assert ran.code == 0, ran.err
    folder = only(tmp_path / "out" / "dev")
    assert datetime.strptime(folder.name, "mine_%Y%m%d_%H%M%S")
    names = {f"{task}/{task}_{kind}.json" for task in WHOLE for kind in ("result", "score")}
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.*")} == {*names, "results_summary.json"}
    for task, expected in WHOLE.items():
        result = json.loads((folder / task / f"{task}_result.json").read_text())
        agree(result["q_t"], result["q_stat"], expected)
        assert set(result) == {"q_stat", "mean_score", "std_dev", "hyperparamaters", "q_t"}
        assert result["hyperparamaters"] == {"epochs": 12, "learning_rate": 0.01, "batch_size": 64}
    summary = json.loads((folder / "results_summary.json").read_text())
    keys = {"experiment", "overall_q_score", "overall_acc_score", "task_q_scores", "task_acc_scores", "config"}
    assert set(summary) == keys
    assert (summary["experiment"], summary["config"]["k_folds"]) == (folder.name, 8)
    overall = EXPECTED["whole_run_summary"]
    assert summary["overall_q_score"] == pytest.approx(overall["overall_q_score"], abs=1e-2)
    assert summary["overall_acc_score"] == pytest.approx(overall["overall_acc_score"], abs=1e-4)


@pytest.mark.parametrize("task", ALONE)
def test_each_task_alone(case: Path, parity_tasks: Path, tmp_path: Path, task: str) -> None:
    protocol = ("--k", 8, "--epochs", 12, "--lr", 0.01)
    ran = neuco("score", "--embeddings", case / "embeddings.csv", "--task", f"parity_{task}", *protocol, "--json")
    assert ran.code == 0, ran.err
    (cell,) = ran.json["cells"]
    agree(cell["record"]["per_split"], cell["record"]["q"], ALONE[task])
    assert [item["name"] for item in ran.json["protocols"]] == ["neuco-2025+epochs=12,k=8,lr=0.01"]

    folder = results(case, tmp_path / "out", task_filter=f"[{task}]")  # and so is a run with a filter
    assert sorted(path.name for path in folder.iterdir()) == sorted([task, "results_summary.json"])
    result = json.loads((folder / task / f"{task}_result.json").read_text())
    agree(result["q_t"], result["q_stat"], ALONE[task])


def test_neuco_score_is_a_run_of_one_task_only_if_every_id_has_a_label() -> None:
    """NeuCo-Bench standardises over labelled ids, `neuco score` over all that have an embedding."""
    embeddings, labels = make_case()
    protocol = load_protocol("neuco-2025+epochs=12,k=8,lr=0.01")
    labelled = score(embeddings, labels["beta"], protocol, standardize_ids=labels["beta"].ids)
    assert list(labelled.per_split) != pytest.approx(ALONE["beta"]["per_split"], abs=2e-4)


@pytest.fixture
def upstream(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Imported as a script imports it, and forgotten afterwards."""
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    for name in ("upstream", "workload"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import upstream

    monkeypatch.delitem(sys.modules, "upstream")
    monkeypatch.delitem(sys.modules, "workload")
    return upstream


def write(out: Path, scores: dict[str, list[float]], q: float = 10.0) -> Path:
    for task, values in scores.items():
        folder = out / "results" / "run_1" / task
        folder.mkdir(parents=True)
        (folder / f"{task}_result.json").write_text(json.dumps({"q_stat": q, "q_t": values}))
    return out


def test_only_what_grows_with_the_splits_is_scaled(upstream: ModuleType) -> None:
    small, large = upstream.Usage(12.0, 10.0, 500.0), upstream.Usage(20.0, 16.0, 600.0)
    whole = upstream.scaled(small, large, (1, 5), 40)  # 10 + 2 K by wall, 8.5 + 1.5 K by CPU
    assert (whole.wall, whole.cpu, whole.peak_mb) == (90.0, 68.5, 600.0)
    assert upstream.scaled(small, large, (1, 5), 5) == large
    with pytest.raises(SystemExit, match="5 splits took no longer than 1"):
        upstream.scaled(large, small, (1, 5), 40)


def test_scores_that_differ_are_told(upstream: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = write(tmp_path / "ours", {"a": [0.5, 0.25], "b": [0.75, 0.5]})
    assert upstream.compare(ours, write(tmp_path / "same", {"a": [0.5, 0.25], "b": [0.75, 0.5001]}))
    assert "2 tasks, 4 scores of splits: at most 1.0e-04 apart" in capsys.readouterr().out
    assert not upstream.compare(ours, write(tmp_path / "split", {"a": [0.5, 0.25], "b": [0.75, 0.5003]}))
    assert "NOT as docs/why/differences-from-neuco-bench.md says" in capsys.readouterr().out
    assert not upstream.compare(ours, write(tmp_path / "q", {"a": [0.5, 0.25], "b": [0.75, 0.5]}, q=10.02))
    with pytest.raises(SystemExit, match="other tasks"):
        upstream.compare(ours, write(tmp_path / "tasks", {"a": [0.5, 0.25]}))
    with pytest.raises(SystemExit, match="no results"):
        upstream.compare(ours, tmp_path / "empty")


def test_a_folder_without_the_command_is_refused(upstream: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no benchmark/main\.py there"):
        upstream.find_command(tmp_path)
    (tmp_path / "benchmark" / "evaluation").mkdir(parents=True)
    (tmp_path / "benchmark" / "main.py").write_text("")
    assert upstream.find_command(tmp_path) == (tmp_path / "benchmark").resolve()
