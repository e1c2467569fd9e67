"""The leaderboard over the runs of one phase: ranks per task, weighted by how far the methods differ on it."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from neuco_core.boards.stats import ranking
from neuco_core.errors import DataError
from neuco_core.files import write_atomic
from neuco_core.text import as_cell
from neuco_extensions.bench.outputs import SUMMARY


@dataclass(frozen=True)
class BenchRun:
    experiment: str
    q: Mapping[str, float]
    acc: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Leaderboard:
    """Ranked runs, best first, the tasks' weights, and the runs that lack a task, with the tasks they lack.

    A row has NeuCo-Bench's columns; ``mean_score`` is the mean Q, as there.
    """

    weights: Mapping[str, float]
    rows: tuple[dict[str, Any], ...]
    incomplete: Mapping[str, tuple[str, ...]]


def read_runs(output_dir: Path, phase: str) -> tuple[BenchRun, ...]:
    """Every finished run of a phase; NeuCo-Bench's own folders, also of older versions, are read too."""
    runs = []
    for path in sorted((output_dir / phase).glob(f"*/{SUMMARY}")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            q = _numbers(data["task_q_scores"] if "task_q_scores" in data else data["task_results"])
            runs.append(BenchRun(str(data["experiment"]), q, _numbers(data.get("task_acc_scores", {}))))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError("not the summary of a run", where=path, got=repr(error), hint="Move it away") from error
    return tuple(runs)


def rank(runs: Sequence[BenchRun]) -> Leaderboard:
    """Rank the runs that have every task; a task weighs as much as its Q differs between them."""
    tasks = tuple(sorted({task for run in runs for task in run.q}))
    missing: dict[str, tuple[str, ...]] = {}
    for run in runs:
        lacking = tuple(task for task in tasks if not math.isfinite(run.q.get(task, math.nan)))
        if lacking:
            missing[run.experiment] = lacking
    pool = [run for run in runs if run.experiment not in missing]
    if not pool:
        return Leaderboard({}, (), missing)
    ranked = ranking.rank(np.array([[run.q[task] for run in pool] for task in tasks]))
    measured = sorted({task for run in pool for task in run.acc})
    rows = []
    for run, weighted, position in zip(pool, ranked.weighted, ranked.final, strict=True):
        mean_q, means = fmean(run.q.values()), [run.acc.get(task, math.nan) for task in measured]
        row = {"experiment": run.experiment, "mean_score": mean_q, "weighted_score": float(weighted)}
        row |= {"aggregated_rank": int(position), **{f"q::{task}": run.q[task] for task in tasks}}
        row |= {f"acc::{task}": mean for task, mean in zip(measured, means, strict=True)}
        rows.append(row | {"overall_q_score": mean_q, "overall_acc_score": fmean(means) if means else math.nan})
    rows.sort(key=lambda row: (row["weighted_score"], row["experiment"]))
    weights = dict(zip(tasks, map(float, ranked.weights), strict=True))
    return Leaderboard(weights, tuple(rows), missing)


def write_leaderboard(board: Leaderboard, output_dir: Path, phase: str, now: datetime) -> Path:
    """Write ``leaderboards/<phase>/leaderboard_<timestamp>.csv`` with NeuCo-Bench's columns; a NaN is left empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(board.rows[0]) if board.rows else ["experiment"], lineterminator="\n")
    writer.writeheader()
    for row in board.rows:
        writer.writerow({key: "" if value != value else as_cell(value) for key, value in row.items()})
    path = output_dir / "leaderboards" / phase / f"leaderboard_{now:%Y%m%d_%H%M%S}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.getvalue().encode())
    return path


def _numbers(scores: Mapping[str, Any]) -> dict[str, float]:
    return {task: math.nan if value is None else float(value) for task, value in scores.items()}
