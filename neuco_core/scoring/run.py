"""The splits of one task, trained side by side."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import numpy as np

from neuco_core.env import available_cores
from neuco_core.errors import DataError, ScoreError, UsageError
from neuco_core.plugins import catalog
from neuco_core.protocol import Protocol
from neuco_core.scoring.evaluate_split import Outcome, Truth, judge
from neuco_core.scoring.join import Samples, lined_up
from neuco_core.scoring.probes import Split
from neuco_core.scoring.stream import WordStream
from neuco_core.specs import Metric

FEWEST = 10  # labels to learn from, where only a share of them is used


def run_splits(
    samples: Samples,
    protocol: Protocol,
    metric: Metric,
    further: Sequence[Metric],
    *,
    stream: WordStream | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    keep: bool = False,
    train_share: float = 1.0,
) -> tuple[list[Outcome], int]:
    """All outcomes in the order of the splits, and the number of random words that they used."""
    count = available_cores() if threads is None else threads
    if count < 1:
        raise UsageError("bad number of threads", expected="at least 1", got=count)
    outcomes: list[Outcome] = []
    pending: deque[Future[Outcome]] = deque()

    def collect(most: int) -> None:
        while len(pending) > most:
            outcomes.append(pending.popleft().result())
            if progress:
                progress(len(outcomes), len(jobs))

    with linear_algebra_on_one_thread():
        runner = _Runner(samples, protocol, metric, further, keep)
        jobs = list(runner.jobs(train_share))
        used = sum(words for _, _, words in jobs)
        stream = stream or (WordStream(protocol.seed) if used else None)
        with _torch_on_one_thread(), _pool(count, runner.stop) as pool:
            for index, (train, test, words) in enumerate(jobs):
                given = stream.take(words) if stream and words else None
                pending.append(pool.submit(runner.one, index, train, test, given))
                # A short queue keeps the words of few splits in memory, and an interrupt quick.
                collect(2 * count)
            collect(0)
    return outcomes, used


@contextmanager
def _pool(count: int, stop: Event) -> Iterator[ThreadPoolExecutor]:
    """Threads that forget what they have not begun, and stop what they can, when something goes wrong."""
    pool = ThreadPoolExecutor(count, thread_name_prefix="neuco-split")
    try:
        yield pool
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def linear_algebra_on_one_thread() -> Iterator[None]:
    """The splits themselves use all cores; more threads below them would only wait for each other."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        yield


@contextmanager
def _torch_on_one_thread() -> Iterator[None]:
    """The same for torch, if a probe has loaded it. Set here because it holds for the whole process."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 1
    if torch:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if torch:
            torch.set_num_threads(before)


class _Runner:
    """What all splits share."""

    def __init__(
        self, samples: Samples, protocol: Protocol, metric: Metric, further: Sequence[Metric], keep: bool
    ) -> None:
        self.samples, self.protocol, self.metric, self.further, self.keep = samples, protocol, metric, further, keep
        self.stop = Event()
        spec = catalog.load_probe(protocol.probe)
        if samples.kind not in spec.kinds:
            hint = "Choose a protocol whose probe is, such as --protocol ridge"
            expected = " or ".join(spec.kinds)
            raise ScoreError(
                f"probe {spec.id!r} is not for {samples.kind}", where=samples.task, expected=expected, hint=hint
            )
        self.probe = spec.factory(protocol)
        moments = (samples.center, samples.spread) if protocol.scale_on == "all" else (0.0, 1.0)
        self.x = self._standardized(*moments)
        if hasattr(self.probe, "prepare"):
            self.probe.prepare(self.x)

    def jobs(self, share: float) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        """Training part, test part and number of random words, split by split."""
        name, n = self.protocol.splitter_for(self.samples.splitter), len(self.samples.y)
        splitter = catalog.load_splitter(name)
        given = self.samples.split if splitter.needs_split else self.samples.groups
        if given is None and (splitter.needs_groups or splitter.needs_split):
            noun, column = ("a split", "split_column") if splitter.needs_split else ("groups", "group_column")
            hint = f"Use a protocol with another splitter, or name the task's {column}"
            raise ScoreError(f"splitter {splitter.id!r} needs {noun}", where=self.samples.task, hint=hint)
        for train, test in splitter.function(n, self.protocol, given):
            if not len(train) or not len(test):
                raise ScoreError(
                    "a split with an empty part", where=self.samples.task, got=f"{len(train)} + {len(test)}"
                )
            if share < 1:  # they come in random order, and a smaller share lies in a larger one
                count, train = len(train), train[: math.ceil(share * len(train))]
                if len(train) < FEWEST:
                    got = f"{len(train)} of {count}"
                    raise ScoreError("too few labels to learn from", where=self.samples.task, expected=FEWEST, got=got)
            shape = (self.samples.x.shape[1], self.samples.outputs, len(train), len(test))
            yield train, test, self.probe.words(*shape) if hasattr(self.probe, "words") else 0

    def one(self, index: int, train: np.ndarray, test: np.ndarray, words: np.ndarray | None) -> Outcome:
        """Scale, train and judge one split."""
        y, low, span = self._scaled_labels(train)
        x, kind = self.x, self.samples.kind
        if self.protocol.scale_on == "train" and self.protocol.standardize:
            seen = self.samples.x[train]
            x = self._standardized(float(seen.mean(dtype=np.float64)), float(seen.std(dtype=np.float64)) or 1.0)
        split = Split(x, y, train, test, kind, len(self.samples.classes), index, words, self.stop)
        regression = kind == "regression"
        own = self.samples.y[test] if kind != "classification" else self.samples.y[test, 0].astype(np.int64)
        truth = Truth(y[test], own, low, span, regression, strict=self.protocol.flat == "leave-out")
        return judge(split, self.probe.fit(split), truth, self.protocol, self.metric, self.further, self.keep)

    def _standardized(self, center: float = 0.0, spread: float = 1.0) -> np.ndarray:
        x = self.samples.x
        with np.errstate(all="ignore"):
            if self.protocol.standardize and (center, spread) != (0.0, 1.0):
                x = np.subtract(x, np.float32(center), out=lined_up(x.shape))
                x /= np.float32(spread)
        if not np.isfinite(x).all():
            raise DataError("embeddings with values that are not finite, or too large", where=self.samples.task)
        return x

    def _scaled_labels(self, train: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels for the probe, and the offset and factor that lead back to their own units."""
        y = self.samples.y
        low, span = np.zeros(y.shape[1]), np.ones(y.shape[1])
        if self.protocol.normalize_labels and self.samples.kind == "regression":
            seen = y if self.protocol.scale_on == "all" else y[train]
            low, span = seen.min(axis=0), np.ptp(seen, axis=0)
            span = np.where(span > 0, span, 1.0)
        return ((y - low) / span).astype(np.float32), low, span
