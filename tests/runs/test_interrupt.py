"""Ctrl-C: the run ends, and every file that it leaves is whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 120  # seconds until a test gives up; the run itself would take far longer


def start(*args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "neuco_core.cli", *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)


def wait_for(folder: Path, pattern: str, child: subprocess.Popen[str]) -> Path:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and child.poll() is None:
        found = next(folder.glob(pattern), None)
        if found is not None:
            return found
        time.sleep(0.05)
    child.kill()
    raise AssertionError(f"no {pattern}: {child.communicate()}")


def interrupt(child: subprocess.Popen[str]) -> tuple[str, str]:
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=PATIENCE)
    return out, err


def test_bench_leaves_whole_files(case: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels"
    labels.mkdir()
    for path in (case / "labels").glob("*.csv"):
        (labels / path.name).write_bytes(path.read_bytes())
    few = (labels / "alpha__regr.csv").read_text().splitlines()[:31]
    (labels / "aaa__regr.csv").write_text("\n".join(few) + "\n")
    (tmp_path / "c.yaml").write_text("k_folds: 100\nepochs: 1500\nenable_plots: false\n")
    child = start(
        "bench", "--annotation_path", labels, "--submission_file", case / "embeddings.csv",
        "--config", tmp_path / "c.yaml", "--output_dir", tmp_path / "out",
    )  # fmt: skip
    first = wait_for(tmp_path / "out", "results/*/aaa/aaa_result.json", child)
    _, err = interrupt(child)
    assert child.returncode == 130, err
    assert err.strip() == "neuco: interrupted"
    left = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {path.name for path in left} == {"aaa_result.json", "aaa_score.json"}
    assert all(json.loads(path.read_text()) for path in left)
    assert first in left


def test_score_prints_nothing_that_is_not_whole(case: Path, site: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "neuco_core.cli",
        "score",
        "--embeddings",
        case / "embeddings.csv",
    ]
    command += ["--task", "parity_delta", "--k", "2000", "--epochs", "300", "--json"]
    child = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert child.stderr is not None
    for line in child.stderr:  # the import of the engine shows that the work begins
        if line.rstrip().endswith("neuco_core.runs.engine"):
            break
    time.sleep(4)
    out, err = interrupt(child)
    # Python ends by the signal itself if it came within an import that runs generated code; a shell shows 130 for both.
    assert child.returncode in (130, -signal.SIGINT), err
    assert out == ""
    assert "Traceback" not in err
