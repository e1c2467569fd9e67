"""Real data that lies beside the project on some machines. Collected only where it is (see conftest.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.bench.helpers import SHARED, neuco
from tests.scoring.parity import EXPECTED


@pytest.mark.parametrize("name", ["alphaearth64", "alphaearth_pca16"])
def test_real_alphaearth_embeddings(tmp_path: Path, name: str) -> None:
    """NeuCo-Bench's own results on 2880 AlphaEarth embeddings and nine tasks, one random stream."""
    expected = json.loads((SHARED / "aef" / "expected.json").read_text())[name]
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(expected["config"]))
    inputs = ("--annotation_path", SHARED / "aef" / "labels", "--config", tmp_path / "c.yaml", "--output_dir", tmp_path)
    ran = neuco("bench", *inputs, "--submission_file", SHARED / "aef" / "embeddings" / f"{name}.csv", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["task_acc_scores"] == pytest.approx(expected["task_acc_scores"], abs=5e-4)
    assert ran.json["task_q_scores"] == pytest.approx(expected["task_q_scores"], rel=0.01)
    assert ran.json["overall_q_score"] == pytest.approx(expected["overall_q_score"], rel=0.01)


def test_the_numbers_in_our_tests_are_those_of_the_case() -> None:
    assert json.loads((SHARED / "parity" / "expected.json").read_text()) == EXPECTED
