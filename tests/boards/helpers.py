"""Boards with known truth, and records for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import structs

from neuco_core.boards.build import rank_cells
from neuco_core.boards.cells import BoardMethod, Cell, Cells
from neuco_core.boards.model import Board, BoardSuite, BoardTask
from neuco_core.boards.stats.uncertainty import TaskScores
from neuco_core.files import digest, hashed
from neuco_core.records.model import COMPONENTS, HASHES, Record
from neuco_core.scoring.quality import summarize
from neuco_core.specs import Suite

RHO = 0.1  # the correlation of splits that share nine tenths of their samples, as Nadeau and Bengio model it


def simulate(
    rng: np.random.Generator, methods: int, tasks: int, splits: int = 40, gap: float = 0.05, noise: float = 0.05
) -> tuple[np.ndarray, list[TaskScores]]:
    """True mean scores (tasks, methods), and what a board of one data set shows of them.

    The error of a split has a part that all splits of the data set share (RHO of its variance), and a part of its
    own; half of each is common to all methods, since they are tested on the same samples.
    """
    truth = 0.4 + gap * (rng.standard_normal((tasks, methods)) + rng.standard_normal(methods))

    def error(size: int) -> np.ndarray:
        return np.sqrt(0.5) * (rng.standard_normal((1, size)) + rng.standard_normal((methods, size)))

    scores = [mean[:, None] + noise * (np.sqrt(RHO) * error(1) + np.sqrt(1 - RHO) * error(splits)) for mean in truth]
    return truth, [TaskScores(splits_of_task, RHO / (1 - RHO)) for splits_of_task in scores]


def cells_of(scores: Sequence[TaskScores], baselines: Sequence[int] = ()) -> Cells:
    """The cells of simulated scores; methods are m000, m001, …, tasks t00, t01, …"""
    count = len(scores[0].splits)
    methods = tuple(BoardMethod(f"m{m:03}", baseline=m in baselines, dim=2 ** (4 + m % 7)) for m in range(count))
    cells = {}
    for t, task in enumerate(scores):
        for m, splits in enumerate(task.splits):
            mean, std, q = summarize(splits.tolist(), True) or (None, None, None)
            key = hashed({"m": m, "t": t})
            cells[f"m{m:03}", f"t{t:02}"] = Cell(
                q, mean, std, tuple(splits.tolist()), task.test_to_train, fingerprint=key
            )
    tasks = tuple(BoardTask(f"t{t:02}", dataset="made", metric="r2") for t in range(len(scores)))
    return Cells(tasks, methods, cells)


def board_of(cells: Cells, name: str = "made", **options: Any) -> Board:
    """The board of these cells, as that of a suite."""
    return rank_cells(cells, "neuco", options, suite=BoardSuite(name, "", 1, "neuco-2025", {}))


def make_record(method: str, task: str, per_split: Sequence[float | None] = (), **changes: Any) -> Record:
    """A record that the strict reader accepts."""
    shared: dict[str, Any] = {
        "method": method,
        "method_version": changes.pop("method_version", 1),
        "task": task,
        "task_version": changes.pop("task_version", 1),
        "dataset": changes.pop("dataset", "made"),
        "kind": "regression",
        "metric": "r2",
        "protocol": changes.pop("protocol", "neuco-2025"),
    }
    inputs = shared | dict.fromkeys(HASHES, "0" * 64) | dict.fromkeys(COMPONENTS, "v1")
    inputs["embeddings"] = digest(method)  # methods with the same embeddings would be one
    mean, std, q = summarize(per_split, True) or (None, None, None)
    samples = {"train": 90, "test": 10, "used": 100} if per_split else {}
    record = Record(
        **shared,
        status="ok",
        fingerprint=hashed(inputs),
        inputs=inputs,
        greater_is_better=True,
        per_split=tuple(per_split),
        mean=mean,
        std=std,
        q=q,
        samples=samples,
    )
    return structs.replace(record, **changes)


def make_records(scores: Mapping[str, Mapping[str, float]], splits: int = 8, noise: float = 0.01) -> list[Record]:
    """Records of methods × tasks around these means; the same splits are hard for everybody."""
    rng = np.random.default_rng(7)
    hard = {task: rng.standard_normal(splits) for task in sorted({t for row in scores.values() for t in row})}
    return [
        make_record(method, task, tuple((mean + noise * hard[task]).tolist()))
        for method, row in scores.items()
        for task, mean in row.items()
    ]


def make_suite(*tasks: str, **changes: Any) -> Suite:
    return Suite(id=changes.pop("id", "made"), title="Made up", tasks=dict.fromkeys(tasks, 1), **changes)


def real_record(method: str, task: str, per_split: Sequence[float], **changes: Any) -> Record:
    """A record of a registered method and task that is not stale: its inputs are those of this moment.

    The scores are repeated until there are as many as the protocol has splits.
    """
    from neuco_core.plugins.catalog import load_method, load_protocol, load_task
    from neuco_core.records.fingerprint import CellInputs, claims

    spec, subject = load_method(method), load_task(task)
    decides = CellInputs(load_protocol("neuco-2025"))
    inputs = dict(decides.of(spec, subject))
    inputs |= {name: inputs.get(name) or digest(method) for name in HASHES}
    names_and_versions = {"dataset": subject.dataset, "method_version": spec.version, "task_version": subject.version}
    splits = [per_split[i % len(per_split)] for i in range(decides.protocol.k)]
    record = make_record(method, task, splits, **names_and_versions)
    whole = {"inputs": inputs, "fingerprint": hashed(inputs), "kind": subject.kind, "metric": subject.metric}
    return structs.replace(record, **whole | claims(spec, subject.metric) | {"dim": 64} | changes)


# Three methods on two tasks, and their suite.
SCORES = {
    "alpha": {"first": 0.9, "second": 0.7},
    "beta": {"first": 0.8, "second": 0.8},
    "gamma": {"first": 0.2, "second": 0.1},
}
SUITE = make_suite("first", "second")
