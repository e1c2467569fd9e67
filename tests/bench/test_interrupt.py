"""Ctrl-C: the run ends, and every file that it leaves is whole. For ``neuco score`` see ``test_matrix.py``."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATIENCE = 120  # seconds until the test gives up; the run itself would take far longer


@pytest.mark.extensions
def test_bench_leaves_whole_files(case: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels"
    labels.mkdir()
    for path in (case / "labels").glob("*.csv"):
        (labels / path.name).write_bytes(path.read_bytes())
    few = (labels / "alpha__regr.csv").read_text().splitlines()[:31]
    (labels / "aaa__regr.csv").write_text("\n".join(few) + "\n")
    (tmp_path / "c.yaml").write_text("k_folds: 100\nepochs: 1500\nenable_plots: false\n")
    words = ["bench", "--annotation_path", labels, "--submission_file", case / "embeddings.csv"]
    words += ["--config", tmp_path / "c.yaml", "--output_dir", tmp_path / "out"]
    command = [sys.executable, "-m", "neuco_core.cli", *map(str, words)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + PATIENCE
    first: list[Path] = []
    while not first and time.monotonic() < end and child.poll() is None:
        first = list((tmp_path / "out").glob("results/*/aaa/aaa_result.json"))
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, err
    assert err.strip() == "neuco: interrupted"
    left = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {path.name for path in left} == {"aaa_result.json", "aaa_score.json"}
    assert all(json.loads(path.read_text()) for path in left)
    assert first[0] in left
