"""The part of the benchmark that runs NeuCo-Bench: what it scales up, and that it sees scores that differ."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest


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
