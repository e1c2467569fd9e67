"""Curves of Q against bytes per sample: from records to points, and from points to the numbers that compare curves.

The curve of a method is a staircase: at so many bytes, the best of the points that take no more. Which points these
are is decided by the scores as they are and is the same in all replicates, so intervals do not tell what choosing among
many coders flatters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np

from neuco_core.boards.cells import BoardMethod, Cell, Cells, from_records
from neuco_core.boards.facts import or_none
from neuco_core.boards.kinds.neuco import task_scores
from neuco_core.boards.stats.uncertainty import SEED, replicate_board
from neuco_core.plugins.catalog import load_method, load_protocol
from neuco_core.protocol import Protocol
from neuco_core.records.model import Record
from neuco_core.specs import Suite
from neuco_core.studies.evaluate import Results, evaluate
from neuco_extensions.coded.probe import coded_protocol

WHOLE = "float32"
FIRST, LAST = 16, 1024  # bytes, the ends of the area
ALL = ", learned from all samples"
# A ladder from float32 to a few bytes that needs no package.
CODERS = (
    *("float16", "int8", "int4", "binary"),
    *("pca=64+int8", "pca=32+int8", "pca=16+int8", "pca=16+int4"),
    *("prefix=64+int8", "prefix=16+int8", "pq=8", "pq=16", "pq=32"),
)


@dataclass(frozen=True)
class Point:
    """A method with a coder: bytes of a sample, bytes that all samples share, such as codebooks, and cells by task."""

    method: str
    coder: str
    size: float
    shared: float
    cells: Mapping[str, Cell]

    @property
    def on_curve(self) -> bool:
        return not self.coder.endswith(ALL)


@dataclass(frozen=True)
class RateCells(Cells):
    """The cells of a suite, and all points of its methods."""

    points: tuple[Point, ...] = ()


def rate_cells(
    records: Iterable[Record], suite: Suite, stale: Callable[[Record], str | None] | None = None
) -> RateCells:
    """The cells of the suite's protocol, and points from those of all protocols that are this one with a coder."""
    records, base = list(records), load_protocol(suite.protocol)
    tables = {WHOLE: from_records(records, suite, stale)}
    for name in sorted({record.protocol for record in records if "probe=coded" in record.protocol}):
        if label := point_label(load_protocol(name), base):
            tables[label] = from_records(records, replace(suite, protocol=name), stale)
    sizes = {
        record.fingerprint: [
            fmean(size for size in record.settings[key] if size is not None)
            for key in ("bytes_per_sample", "shared_bytes")
        ]
        for record in records
        if "bytes_per_sample" in record.settings
    }
    whole = tables[WHOLE]
    versions, points = {method.id: method.version for method in whole.methods}, []
    for coder, table in tables.items():
        for method in table.methods:
            cells = {task.id: table.cell(method.id, task.id) for task in table.tasks}
            costs = [sizes.get(cell.fingerprint, [4.0 * (method.dim or 0), 0.0]) for cell in cells.values()]
            if versions.get(method.id) == method.version:
                size, shared = map(fmean, zip(*costs, strict=True))
                points.append(Point(method.id, coder, size, shared, cells))
    of_suite = [record for record in records if record.task in suite.tasks]
    methods = tuple(replace(method, values=measured(method, of_suite)) for method in whole.methods)
    return RateCells(whole.tasks, methods, whole.cells, points=tuple(points))


def measured(method: BoardMethod, records: Iterable[Record]) -> dict[str, float | int | None]:
    """What the method declares, and the most that it took to encode a sample, where these are known."""
    spec = or_none(load_method, f"{method.id}@{method.version}")
    values: dict[str, float | int] = {}
    if spec and spec.n_parameters is not None:
        values["n_parameters"] = spec.n_parameters
    for record in records:
        made: Any = record.provenance.get("encoding") if record.method == method.id else None
        if isinstance(made, dict) and made.get("samples") and made.get("seconds"):
            cost = {"encode_ms": 1000 * made["seconds"] / made["samples"], "flops": made.get("flops") or 0}
            values |= {key: max(value, values.get(key, 0)) for key, value in cost.items() if value}
    return {**values}


def point_label(protocol: Protocol, base: Protocol) -> str:
    """The coder of a protocol that is this base with a coder; "" if it is not."""
    coder, fit = str(protocol.params.get("coder", "")), str(protocol.params.get("fit", "train"))
    same = protocol.name == coded_protocol(base, coder, fit=fit).name
    return coder + ALL * (fit == "all") if same else ""


class Curves:
    """The points that have all scores; ``q`` is mean Q over the tasks (points), ``again`` (replicates, points)."""

    def __init__(self, cells: Cells, replicates: int = 1000) -> None:
        points: Sequence[Point] = getattr(cells, "points", ())
        ids, tasks = {method.id for method in cells.methods}, [task.id for task in cells.tasks]
        self.points = [p for p in points if p.method in ids and all(p.cells[task].scored for task in tasks)]
        flat = {(str(at), task): point.cells[task] for at, point in enumerate(self.points) for task in tasks}
        entries = tuple(BoardMethod(str(at)) for at in range(len(self.points)))
        self.cells, self.replicates = Cells(cells.tasks, entries, flat), replicates
        self.sizes = np.array([point.size for point in self.points])
        self.q = self.cells.numbers("q").mean(axis=0)
        self.scores = [task_scores(self.cells, task) for task in cells.tasks]

    @cached_property
    def again(self) -> np.ndarray | None:
        """Mean Q of all points in replicates; None if there are no splits to resample."""
        if not self.points or not all(scores.resamples for scores in self.scores):
            return None
        return np.asarray(replicate_board(self.scores, seed=SEED, replicates=self.replicates).mean(axis=1))

    def stairs(self, method: str) -> list[int]:
        """The points of a method that nothing smaller is as good as, by bytes."""
        own = [at for at, point in enumerate(self.points) if point.method == method and point.on_curve]
        return [own[k] for k in front(self.sizes[own], self.q[own])]

    def at_budget(self, method: str, budget: float) -> int | None:
        """The best point of a method that takes at most so many bytes."""
        return next((at for at in reversed(self.stairs(method)) if self.sizes[at] <= budget), None)

    def shares(self, method: str) -> np.ndarray:
        """The share of each point in the area under the staircase; below its smallest point a method has Q = 0."""
        stairs, shares = self.stairs(method), np.zeros(len(self.points))
        starts = np.log2(np.clip(self.sizes[stairs], FIRST, LAST))
        shares[stairs] = np.diff(starts, append=np.log2(LAST)) / np.log2(LAST / FIRST)
        return shares

    def difference(self, method: str, other: str, q: np.ndarray) -> np.ndarray | None:
        """Bjøntegaard's difference of two staircases' points; ``q`` is (…, points)."""
        first, second = self.stairs(method), self.stairs(other)
        return bjontegaard(self.sizes[first], q[..., first], self.sizes[second], q[..., second])


def front(costs: Sequence[float] | np.ndarray, q: Sequence[float] | np.ndarray) -> list[int]:
    """The places that nothing cheaper is as good as, by cost."""
    kept: list[int] = []
    for at in sorted(range(len(costs)), key=lambda at: (costs[at], -q[at])):
        if not kept or q[at] > q[kept[-1]]:
            kept.append(at)
    return kept


def bjontegaard(bytes_a: np.ndarray, q_a: np.ndarray, bytes_b: np.ndarray, q_b: np.ndarray) -> np.ndarray | None:
    """How much higher the first curve is on average over the logarithm of the bytes that both cover.

    Bjøntegaard (VCEG-M33, 2001) with monotone cubic interpolation instead of one cubic, which swings between points
    that lie far apart. Points are by rising bytes, Q is (…, points); None where the curves do not overlap.
    """
    from scipy.interpolate import PchipInterpolator  # heavy: boards are listed without it

    if min(len(bytes_a), len(bytes_b)) < 2:
        return None
    low, high = np.log2(max(bytes_a[0], bytes_b[0])), np.log2(min(bytes_a[-1], bytes_b[-1]))
    if low >= high:
        return None
    first, second = PchipInterpolator(np.log2(bytes_a), q_a, axis=-1), PchipInterpolator(np.log2(bytes_b), q_b, axis=-1)
    return np.asarray((first.integrate(low, high) - second.integrate(low, high)) / (high - low))


def curve(
    what: Any, on: Any, protocol: str | Protocol | None = None, *, coders: Sequence[str] = CODERS, **options: Any
) -> dict[str, Results]:
    """Scores of embeddings, or of what makes them, as they come back from coders: by coder, float32 first.

    ``what``, ``on``, ``protocol`` and the options are those of ``neuco.evaluate``. The bytes of a score are in
    ``score.settings["bytes_per_sample"]``.
    """
    whole = evaluate(what, on, protocol, **options)
    base = next(iter(whole.scores.values())).protocol
    return {WHOLE: whole} | {coder: evaluate(what, on, coded_protocol(base, coder), **options) for coder in coders}
