"""NeuCo-Bench's own numbers: the whole run with one random stream, and each task alone."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

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
