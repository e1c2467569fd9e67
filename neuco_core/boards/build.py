"""The board of a suite as plain data: a pure function of cells, a rule and a coverage policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.boards.canonical import RANDOM, interval, number, whole
from neuco_core.boards.stats.diagnostics import correlations, diagnose, redundant
from neuco_core.boards.stats.ranking import Ranking, Rule, aggregations, rank
from neuco_core.boards.stats.robustness import Flip, without_each_method, without_each_task
from neuco_core.boards.stats.separation import groups
from neuco_core.boards.stats.uncertainty import (
    LEVEL,
    REPLICATES,
    SEED,
    Intervals,
    TaskScores,
    Uncertainty,
    assess,
    assess_tasks,
    mean_interval,
)
from neuco_core.boards.table import COVERAGE, Cell, Entrant, Pool, Table, from_records, pool
from neuco_core.jsonio import digest

if TYPE_CHECKING:
    from neuco_core.records.model import Record
    from neuco_core.specs import Suite

SCHEMA = 1
Board = dict[str, Any]
VARIANTS = {
    "weights without baselines": Rule(weights="no-baselines"),
    "robust weights": Rule(spread="robust"),
    "equal weights": Rule(weights="equal"),
}
HOW = (
    "bootstrap over splits, the same for all methods, deviations stretched to the variance s²(1/K + test/train) of "
    "Nadeau and Bengio; an interval of ranks is made to hold the rank on 95 % of plausible boards, on average over the "
    "methods (plausible boards are replicates, pulled together by as much as noise has spread the board); groups judge "
    "all pairs at once, so methods of one group may have intervals that do not meet"
)


def build_board(
    records: Iterable[Record],
    suite: Suite,
    *,
    rule: Rule | None = None,
    coverage: str = "complete",
    stale: Callable[[Record], str | None] | None = None,
) -> Board:
    """The board of a suite from the records of all methods."""
    board = rank_table(from_records(records, suite, stale), rule or Rule(), coverage)
    board["suite"] = {
        "id": suite.id,
        "title": suite.title,
        "version": suite.version,
        "protocol": suite.protocol,
        "tasks": dict(suite.tasks),
    }
    return board


def rank_table(table: Table, rule: Rule, coverage: str = "complete", replicates: int = REPLICATES) -> Board:
    """The board of a table, without the suite's name."""
    chosen = pool(table, coverage)
    board: Board = {
        "schema": SCHEMA,
        "ranking": {**asdict(rule), "coverage": coverage, "words": f"{rule.describe()}; {COVERAGE[coverage]}"},
        "pool": [entrant.id for entrant in chosen.table.entrants],
        "cells": digest(sorted([m, t, c.fingerprint, c.status, number(c.q)] for (m, t), c in table.cells.items())),
        "incomplete": [_incomplete(table, entrant) for entrant in chosen.left_out],
        "unused_tasks": [_unused(table, event.id) for event in chosen.unused],
        "stale": [
            {"method": method, "task": task, "reason": cell.reason}
            for (method, task), cell in sorted(table.cells.items())
            if cell.status == "stale"
        ],
    }
    board |= _ranked(chosen, rule, replicates) if chosen.table.entrants else _nobody(chosen.table)
    return board


def _ranked(chosen: Pool, rule: Rule, replicates: int) -> Board:
    table = chosen.table
    names = [entrant.id for entrant in table.entrants]
    q = table.numbers("q")
    baselines = np.array([entrant.baseline for entrant in table.entrants])
    ranking = rank(q, rule, baselines)
    sure = assess([table.scores(event) for event in table.events], rule, baselines, replicates=replicates)
    order = sorted(range(len(names)), key=lambda m: (ranking.final[m], ranking.weighted[m], names[m]))
    return {
        "tasks": _tasks(table, q, ranking, sure),
        "ghost_weight": number(ranking.ghost),
        "rows": _rows(table, q, ranking, sure, order),
        "groups": [[names[m] for m in group] for group in groups(order, sure.apart)] if sure else None,
        "uncertainty": {"level": LEVEL, "replicates": replicates, "seed": SEED, "how": HOW} if sure else None,
        "variants": _variants(q, baselines, rule, table),
        "without_method": _flips(without_each_method(q, rule, baselines), names, names),
        "without_task": _flips(without_each_task(q, rule, baselines), [event.id for event in table.events], names),
        **_task_correlations(table, q),
    }


def _nobody(table: Table) -> Board:
    tasks = [{**asdict(event), "weight": None} for event in table.events]
    return {"tasks": tasks, "rows": [], "groups": None, "uncertainty": None, "variants": [], "ghost_weight": 0.0} | {
        name: [] for name in ("without_method", "without_task", "correlation", "redundant")
    }


def _tasks(table: Table, q: np.ndarray, ranking: Ranking, sure: Uncertainty | None) -> list[Board]:
    mean, std = table.numbers("mean"), table.numbers("std")
    found = []
    for t, event in enumerate(table.events):
        known = std[t] if np.isfinite(std[t]).all() else None
        diagnosis = asdict(diagnose(q[t], mean[t], known, ranking.final, event.greater_is_better))
        entry = asdict(event) | {
            name: value if name == "negative" else number(value) for name, value in diagnosis.items()
        }
        entry["weight"] = number(ranking.weights[t])
        entry["pairs_apart"] = number(sure.apart_share[t], RANDOM) if sure else None
        found.append(entry)
    return found


def _rows(table: Table, q: np.ndarray, ranking: Ranking, sure: Uncertainty | None, order: Sequence[int]) -> list[Board]:
    sign = np.array([1.0 if event.greater_is_better else -1.0 for event in table.events])
    several = aggregations(q, table.numbers("mean") * sign[:, None], ranking)
    other_tasks = assess_tasks(ranking) if len(table.events) > 1 else None
    scores = _scores(table, ranking, sure)
    rows = []
    for m in order:
        row: Board = asdict(table.entrants[m]) | {"rank": int(ranking.final[m]), "scores": scores[m]}
        row["method"] = row.pop("id")
        row |= {name: number(found.values[m]) for name, found in several.items()}
        row["ranks"] = {name: int(found.ranks[m]) for name, found in several.items()}
        row["rank_interval"] = whole(sure.rank.low[m], sure.rank.high[m]) if sure else None
        row["rank_other_tasks"] = whole(other_tasks.low[m], other_tasks.high[m]) if other_tasks else None
        row["mean_q_interval"] = interval(sure.mean_q.low[m], sure.mean_q.high[m]) if sure else None
        row["best"] = number(sure.best[m], RANDOM) if sure else None
        rows.append(row)
    return rows


def _scores(table: Table, ranking: Ranking, sure: Uncertainty | None) -> list[Board]:
    """By method, the scores by task."""
    found: list[Board] = [{} for _ in table.entrants]
    for t, event in enumerate(table.events):
        means = _mean_intervals(table.scores(event))
        for m, entrant in enumerate(table.entrants):
            score = _score(table.cell(entrant.id, event.id))
            score["rank"] = int(ranking.ranks[t, m])
            score["mean_interval"] = interval(means.low[m], means.high[m]) if means else None
            score["q_interval"] = interval(sure.q.low[t, m], sure.q.high[t, m]) if sure else None
            found[m][event.id] = score
    return found


def _mean_intervals(scores: TaskScores) -> Intervals | None:
    return mean_interval(scores.splits, scores.test_to_train) if scores.resamples else None


def _score(cell: Cell) -> Board:
    return {
        "q": number(cell.q),
        "mean": number(cell.mean),
        "std": number(cell.std),
        "splits": len(cell.splits),
        "fingerprint": cell.fingerprint[:16],
    }


def _incomplete(table: Table, entrant: Entrant) -> Board:
    cells = {event.id: table.cell(entrant.id, event.id) for event in table.events}
    row: Board = asdict(entrant)
    row["method"] = row.pop("id")
    row["scores"] = {task: _score(cell) for task, cell in cells.items() if cell.scored}
    row["lacks"] = {
        task: {"status": cell.status, "reason": cell.reason or "no split has a score"}
        for task, cell in cells.items()
        if not cell.scored
    }
    return row


def _unused(table: Table, task: str) -> Board:
    return {"task": task, "lacking": [m.id for m in table.entrants if not table.cell(m.id, task).scored]}


def _variants(q: np.ndarray, baselines: np.ndarray, rule: Rule, table: Table) -> list[Board]:
    """The ranks under other weights, each under its name; those that are the same rule are left out."""
    found = []
    for name, variant in VARIANTS.items():
        if variant == rule or (variant.weights == "no-baselines" and not baselines.any()):
            continue
        ranking = rank(q, variant, baselines)
        weights = zip((event.id for event in table.events), ranking.weights, strict=True)
        ranks = zip((entrant.id for entrant in table.entrants), ranking.final, strict=True)
        found.append(
            {
                "name": name,
                "words": variant.describe(),
                "weights": {task: number(weight) for task, weight in weights},
                "ranks": {method: int(place) for method, place in ranks},
            }
        )
    return found


def _flips(flips: Sequence[Flip], left_out: Sequence[str], names: Sequence[str]) -> list[Board]:
    return [
        {"left_out": left_out[flip.left_out], "moves": {names[m]: list(move) for m, move in flip.moves.items()}}
        for flip in flips
    ]


def _task_correlations(table: Table, q: np.ndarray) -> Mapping[str, Any]:
    found = correlations(q)
    names = [event.id for event in table.events]
    return {
        "correlation": [[number(value, RANDOM) for value in row] for row in found],
        "redundant": [
            {"tasks": [names[a], names[b]], "correlation": number(value, RANDOM)}
            for a, b, value in redundant(found, len(table.entrants))
        ],
    }
