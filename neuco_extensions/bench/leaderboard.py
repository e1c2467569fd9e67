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
from typing import Any

import numpy as np

from neuco_core.boards.stats import ranking
from neuco_core.errors import DataError
from neuco_core.files import write_atomic
from neuco_extensions.bench.outputs import SUMMARY


@dataclass(frozen=True)
class BenchRun:
    """What a run's summary says: Q and mean score by task."""

    experiment: str
    q: Mapping[str, float]
    acc: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RankedRun:
    """A ranked run; ``mean_score`` is its mean Q, as in NeuCo-Bench."""

    run: BenchRun
    mean_score: float
    weighted_score: float
    aggregated_rank: int


@dataclass(frozen=True)
class Leaderboard:
    """Ranked runs, best first, the tasks' weights, and the runs that lack a task, with the tasks they lack."""

    tasks: tuple[str, ...]
    weights: Mapping[str, float]
    rows: tuple[RankedRun, ...]
    incomplete: Mapping[str, tuple[str, ...]]


def read_runs(output_dir: Path, phase: str) -> tuple[BenchRun, ...]:
    """Every finished run of a phase; NeuCo-Bench's own folders, also of older versions, are read too."""
    folders = sorted(path for path in (output_dir / phase).glob("*") if (path / SUMMARY).is_file())
    return tuple(_read_run(folder / SUMMARY) for folder in folders)


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
        return Leaderboard(tasks, {}, (), missing)
    ranked = ranking.rank(np.array([[run.q[task] for run in pool] for task in tasks]))
    rows = [
        RankedRun(run, math.fsum(run.q.values()) / len(run.q), float(score), int(place))
        for run, score, place in zip(pool, ranked.weighted, ranked.final, strict=True)
    ]
    rows.sort(key=lambda row: (row.weighted_score, row.run.experiment))
    weights = dict(zip(tasks, map(float, ranked.weights), strict=True))
    return Leaderboard(tasks, weights, tuple(rows), missing)


def write_leaderboard(board: Leaderboard, output_dir: Path, phase: str, now: datetime) -> Path:
    """Write ``leaderboards/<phase>/leaderboard_<timestamp>.csv`` with NeuCo-Bench's columns."""
    acc = sorted({task for row in board.rows for task in row.run.acc})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = ["experiment", "mean_score", "weighted_score", "aggregated_rank"]
    head += [f"q::{task}" for task in board.tasks] + [f"acc::{task}" for task in acc]
    writer.writerow([*head, "overall_q_score", "overall_acc_score"])
    for row in board.rows:
        means = [row.run.acc.get(task, math.nan) for task in acc]
        overall = math.fsum(means) / len(means) if means else math.nan
        values = [row.mean_score, row.weighted_score, row.aggregated_rank, *(row.run.q[task] for task in board.tasks)]
        cells = [_cell(value) for value in (*values, *means, row.mean_score, overall)]
        writer.writerow([row.run.experiment, *cells])
    path = output_dir / "leaderboards" / phase / f"leaderboard_{now:%Y%m%d_%H%M%S}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.getvalue().encode())
    return path


def _read_run(path: Path) -> BenchRun:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        scores = data["task_q_scores"] if "task_q_scores" in data else data["task_results"]
        return BenchRun(str(data["experiment"]), _numbers(scores), _numbers(data.get("task_acc_scores", {})))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError("not the summary of a run", where=path, got=repr(error), hint="Move it away") from error


def _numbers(scores: Mapping[str, Any]) -> dict[str, float]:
    return {task: math.nan if value is None else float(value) for task, value in scores.items()}


def _cell(value: float) -> str:
    return "" if math.isnan(value) else repr(value)
