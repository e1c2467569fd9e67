"""Curves of Q against bytes per sample: from records to points, and from points to the numbers that compare curves.

The curve of a method is a staircase: at so many bytes, the best of the points that take no more. Which points these
are is decided by the scores as they are and is the same in all replicates, so intervals do not tell what choosing among
many coders flatters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from neuco_core.boards.cells import BoardMethod, Cell, Cells, from_records
from neuco_core.boards.facts import or_none
from neuco_core.boards.kinds.neuco import task_scores
from neuco_core.boards.model import BoardTask
from neuco_core.boards.stats.uncertainty import SEED, TaskScores, replicate_board
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


class Size(NamedTuple):
    """Bytes of a sample, and bytes that all samples share, such as codebooks."""

    sample: float
    shared: float = 0.0


@dataclass(frozen=True)
class RateCells(Cells):
    """The cells of a suite and, by coder, those of the coded embeddings; ``sizes`` are by method and coder."""

    coded: Mapping[str, Cells] = field(default_factory=dict)
    sizes: Mapping[tuple[str, str], Size] = field(default_factory=dict)


def rate_cells(
    records: Iterable[Record], suite: Suite, stale: Callable[[Record], str | None] | None = None, *, more: bool = False
) -> RateCells:
    """The cells of all protocols that are the suite's with a coder; ``more``: also with fewer labels, or fit=all."""
    records, base = list(records), load_protocol(suite.protocol)
    cells = from_records(records, suite, stale)
    names = sorted({record.protocol for record in records if "probe=coded" in record.protocol})
    labels = {name: label for name in names if (label := point_label(load_protocol(name), base, more=more))}
    coded = {label: from_records(records, replace(suite, protocol=name), stale) for name, label in labels.items()}
    costs: dict[tuple[str, str], list[Size]] = {}
    milliseconds: dict[str, float] = {}
    for record in records:
        label, settings = labels.get(record.protocol, ""), record.settings
        if label and coded[label].cell(record.method, record.task).fingerprint == record.fingerprint and record.ok:
            numbers = [fmean(v for v in settings[key] if v is not None) for key in ("bytes_per_sample", "shared_bytes")]
            costs.setdefault((record.method, label), []).append(Size(*numbers))
        encoding: Any = record.provenance.get("encoding")
        if isinstance(encoding, dict) and encoding.get("samples") and encoding.get("seconds"):
            milliseconds[record.method] = 1000 * encoding["seconds"] / encoding["samples"]
    sizes = {key: Size(*map(fmean, zip(*listed, strict=True))) for key, listed in costs.items()}
    methods = []
    for method in cells.methods:
        if method.dim:
            sizes[method.id, WHOLE] = Size(4.0 * method.dim)
        spec = or_none(load_method, f"{method.id}@{method.version}")
        known = {"encode_ms": milliseconds.get(method.id), "n_parameters": spec.n_parameters if spec else None}
        methods.append(replace(method, values={key: value for key, value in known.items() if value is not None}))
    return RateCells(cells.tasks, tuple(methods), cells.cells, coded=coded, sizes=sizes)


def point_label(protocol: Protocol, base: Protocol, *, more: bool = False) -> str:
    """The coder of a protocol that is this base with a coder; "" if it is not."""
    coder, share = str(protocol.params.get("coder", "")), float(protocol.params.get("share", 1.0))
    fit = str(protocol.params.get("fit", "train"))
    if protocol.name != coded_protocol(base, coder, share=share, fit=fit).name:
        return ""
    if (share < 1 or fit != "train") and not more:
        return ""
    return coder + (ALL if fit == "all" else "") + (f", {share:.3g} of the labels" if share < 1 else "")


class Point(NamedTuple):
    """A coder of a method on all tasks; ``method`` is a number in the order of the curves' methods."""

    method: int
    coder: str
    size: Size


class Curves:
    """The points of some methods on some tasks; ``q`` is (tasks, points), ``again`` (replicates, tasks, points)."""

    def __init__(
        self, cells: RateCells, methods: Sequence[BoardMethod], tasks: Sequence[BoardTask], replicates: int = 1000
    ) -> None:
        self.methods, self.tasks, self.replicates = tuple(methods), tuple(tasks), replicates
        self.points: list[Point] = []
        flat: dict[tuple[str, str], Cell] = {}
        for number, method in enumerate(methods):
            for coder, table in {WHOLE: cells, **cells.coded}.items():
                size = cells.sizes.get((method.id, coder))
                same = any(other.id == method.id and other.version == method.version for other in table.methods)
                if size and same and all(table.scored(method, task) for task in tasks):
                    flat |= {(f"p{len(self.points)}", task.id): table.cell(method.id, task.id) for task in tasks}
                    self.points.append(Point(number, coder, size))
        entries = tuple(BoardMethod(f"p{place}") for place in range(len(self.points)))
        self.flat = Cells(self.tasks, entries, flat)
        self.q = self.flat.numbers("q")

    @cached_property
    def scores(self) -> list[TaskScores]:
        return [task_scores(self.flat, task) for task in self.tasks]

    @cached_property
    def again(self) -> np.ndarray | None:
        """Q of all points in replicates; None if there are no splits to resample."""
        if not self.points or not all(scores.resamples for scores in self.scores):
            return None
        return replicate_board(self.scores, seed=SEED, replicates=self.replicates)

    def whole(self, method: int) -> int:
        """The point of a method without a coder."""
        return next(at for at, point in enumerate(self.points) if point.method == method and point.coder == WHOLE)

    def stairs(self, method: int) -> list[int]:
        """The points of a method that nothing smaller is as good as, by bytes."""
        mean = self.q.mean(axis=0)
        own = sorted((p.size.sample, -mean[at], at) for at, p in enumerate(self.points) if p.method == method)
        kept: list[int] = []
        for _, _, at in own:
            if not kept or mean[at] > mean[kept[-1]]:
                kept.append(at)
        return kept

    def within(self, method: int, budget: float) -> int | None:
        """The best point of a method that takes at most so many bytes."""
        return next((at for at in reversed(self.stairs(method)) if self.points[at].size.sample <= budget), None)

    def shares(self, method: int) -> np.ndarray:
        """The share of each point in the area under the staircase; below its smallest point a method has Q = 0."""
        stairs, share = self.stairs(method), np.zeros(len(self.points))
        starts = [np.log2(max(self.points[at].size.sample, FIRST)) for at in stairs]
        ends = [*starts[1:], np.log2(LAST)] if stairs else []
        for at, start, end in zip(stairs, starts, ends, strict=True):
            share[at] = max(0.0, min(end, np.log2(LAST)) - start) / np.log2(LAST / FIRST)
        return share

    def difference(self, method: int, other: int, q: np.ndarray) -> np.ndarray | None:
        """Bjøntegaard's difference of two staircases' points; ``q`` is (…, points), means over the tasks."""
        first, second = (
            (np.array([self.points[at].size.sample for at in stairs]), q[..., stairs])
            for stairs in (self.stairs(method), self.stairs(other))
        )
        return bjontegaard(*first, *second)


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
    what: Any,
    on: Any,
    protocol: str | Protocol | None = None,
    *,
    coders: Sequence[str] = CODERS,
    shares: Sequence[float] = (),
    **options: Any,
) -> dict[str, Results]:
    """Scores of embeddings, or of what makes them, as they come back from coders: by coder, float32 first.

    ``what``, ``on``, ``protocol`` and the options are those of ``neuco.evaluate``; ``shares`` of the labels add points
    of the whole embedding that are learned from fewer. The bytes are in ``score.settings["bytes_per_sample"]``.
    """
    whole = evaluate(what, on, protocol, **options)
    results = {WHOLE: whole}
    base = next(iter(whole.scores.values())).protocol
    for coder, share in (*((coder, 1.0) for coder in coders), *((WHOLE, share) for share in shares)):
        used = coded_protocol(base, coder, share=share)
        results[point_label(used, base, more=True)] = evaluate(what, on, used, **options)
    return results
