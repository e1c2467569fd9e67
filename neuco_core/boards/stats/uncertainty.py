"""How sure a board is: replicates of it by bootstrap, and what they say of scores, ranks and differences.

What is resampled. The splits of a task, the same ones for every method: methods are compared on the same test
sets, so what a hard split does to all of them cancels in their differences. Tasks of one dataset share the draw as
well. The choice of tasks is taken as given; ``assess_tasks`` resamples it.

Why the deviations are stretched. Splits overlap: every sample is in most training parts. The mean over K splits
of one data set is far less variable than the mean on another data set of the same kind, so the plain bootstrap
over splits is too sure. We take Nadeau and Bengio's estimate (Machine Learning 52, 2003) of the variance of the
mean, s² (1/K + n_test/n_train), in place of s²/K, and Student's t with K - 1 degrees of freedom for the unknown s:
each replicate's deviation from the mean is stretched by the square root of the ratio, and by √(ν/χ²_ν). Of F1 more
is needed, since training moves it as well: ``f1_variance.variance_factor`` times n_test/n_train.

The standard deviation over splits, which Q is divided by, differs between data sets as well, and for the same
reason: n samples tell their own spread with a relative variance of (κ - 1)/4n, κ the kurtosis of what a sample adds
to the score. It is added to that of K splits, 1/2(K - 1). Records do not tell κ; we take that of squared normal errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuco_core.boards.stats.rank_intervals import (
    Contrasts,
    Intervals,
    Pairs,
    error_of_differences,
    percentiles,
    rank_ranges,
    share_apart,
    share_behind,
)
from neuco_core.boards.stats.ranking import DIGITS, Ranking, Rule, positions, rank
from neuco_core.scoring.quality import EPSILON

KURTOSIS = 15.0  # of the square of a normal variable
REPLICATES = 1000
# Of boards of more than 50,000 cells fewer are made: all replicates of all cells are in memory, several times over.
MOST_VALUES, FEWEST = 50_000_000, 100
LEVEL = 0.95
SEED = 2025
# Of the typical spread over splits: a resample of few splits may have none at all, and Q is divided by it. How often
# intervals hold with it is measured by `python benchmarks/intervals.py`.
FLOOR = 0.2
FEW = 10  # successes or failures: with more, a share is as good as normal


@dataclass(frozen=True)
class TaskScores:
    """Scores of all methods on one task: (methods, splits), NaN where a split has no score.

    ``samples`` is the number of labelled samples, infinite if it is not known. Tasks with the same ``dataset`` are
    resampled together: they share samples, so their errors may depend on each other. ``factors`` and ``trials`` are
    what ``trained`` says of each method. Where a metric has a ``lower`` and an ``upper`` end, intervals stay inside.
    """

    splits: np.ndarray
    test_to_train: float = 1 / 9
    greater_is_better: bool = True
    dataset: str = ""
    samples: float = np.inf
    factors: np.ndarray | float = 1.0
    trials: np.ndarray | float = 1.0
    lower: float | None = None
    upper: float | None = None

    @property
    def overlap(self) -> np.ndarray | float:
        """What is added to 1/K in the variance of a mean over K splits."""
        return self.test_to_train * self.factors

    @property
    def resamples(self) -> bool:
        """Whether there is anything to resample: at least two splits with a score for every method."""
        return bool((np.isfinite(self.splits).sum(axis=1) >= 2).all()) if self.splits.size else False


@dataclass(frozen=True)
class Assessment:
    """What the replicates say at ``LEVEL``: intervals of Q (tasks, methods), mean Q and final rank; who is best.

    ``apart`` (methods, methods) tells which pairs the board as a whole can tell apart, ``apart_share`` which share
    of all pairs each task alone can.
    """

    q: Intervals
    mean_q: Intervals
    rank: Intervals
    best: np.ndarray
    apart: np.ndarray
    apart_share: np.ndarray


def assess(
    tasks: Sequence[TaskScores],
    rule: Rule,
    baselines: np.ndarray | None = None,
    *,
    seed: int = SEED,
    replicates: int = REPLICATES,
) -> Assessment | None:
    """Rank every replicate of the board; ``None`` if there are no splits to resample."""
    if not all(task.resamples for task in tasks):
        return None
    cells = sum(len(task.splits) for task in tasks)
    replicates = min(replicates, max(FEWEST, MOST_VALUES // max(cells, 1)))
    q = replicate_board(tasks, seed=seed, replicates=replicates)
    observed = np.round(np.stack([observed_q(task) for task in tasks]), DIGITS)  # as replicates are
    shown, again, pairs = judged(tasks, observed, q, rule, baselines)
    return Assessment(
        q=percentiles(q, LEVEL),
        mean_q=percentiles(q.mean(axis=1), LEVEL),
        rank=rank_ranges(shown.final, again.final, pairs, LEVEL),
        best=chance_of_first(again.final),
        apart=pairs.apart,
        apart_share=np.array([share_apart(observed[t], q[:, t], LEVEL) for t in range(len(tasks))]),
    )


def judged(
    tasks: Sequence[TaskScores], observed: np.ndarray, q: np.ndarray, rule: Rule, baselines: np.ndarray | None = None
) -> tuple[Ranking, Ranking, Pairs]:
    """The ranking that is shown, those of the replicates, and what these and the scores say of all pairs."""
    shown, again = rank(observed, rule, baselines), rank(q, rule, baselines)
    scale = q_scale(shown, observed)
    contrasts = differences(tasks, scale)
    in_order = (contrasts.better > 0) & (shown.weighted[:, None] < shown.weighted)
    pairs = Pairs(share_behind(-(scale[:, None] * q).sum(axis=1)), contrasts.sure(LEVEL) & (in_order | in_order.T))
    return shown, again, pairs


def q_scale(shown: Ranking, observed: np.ndarray) -> np.ndarray:
    """The smooth counterpart of the weighted rank. With the paper's weights it orders methods as mean Q does."""
    spread = observed.std(axis=1)
    scale: np.ndarray = shown.weights / np.where(spread > 0, spread, 1.0)
    return scale


def surely_differ(tasks: Sequence[TaskScores], rule: Rule, baselines: np.ndarray | None = None) -> np.ndarray | None:
    """Of which pairs, (methods, methods), the mean scores surely differ, whichever of them the board ranks higher."""
    if not all(task.resamples for task in tasks):
        return None
    observed = np.round(np.stack([observed_q(task) for task in tasks]), DIGITS)
    return differences(tasks, q_scale(rank(observed, rule, baselines), observed)).sure(LEVEL)


def differences(tasks: Sequence[TaskScores], scale: np.ndarray) -> Contrasts:
    """Of mean scores over the tasks, each in units of Q times its ``scale``: one typical spread serves all methods.

    Tasks of a dataset have the same splits, on which their deviations add up; other datasets are other draws.
    """
    total = np.zeros(len(tasks[0].splits))
    deviations: dict[tuple[str | int, int], np.ndarray] = {}
    fewest = min(int(np.isfinite(task.splits).sum(axis=1).min()) for task in tasks)
    for t, task in enumerate(tasks):
        mean, count = np.nanmean(task.splits, axis=1), np.isfinite(task.splits).sum(axis=1)
        typical = float(np.median(np.nanstd(task.splits, axis=1)))
        unit = 100 * EPSILON * scale[t] / (typical + EPSILON) * (1 if task.greater_is_better else -1)
        total += unit * mean
        stretch = unit * np.sqrt((1 / count + task.overlap) / (count - 1))
        stretched = stretch[:, None] * np.nan_to_num(task.splits - mean[:, None])
        key = task.dataset or t, task.splits.shape[1]
        deviations[key] = deviations.get(key, 0.0) + stretched
    covariance = sum(deviation @ deviation.T for deviation in deviations.values())
    return Contrasts(total[:, None] - total, error_of_differences(np.asarray(covariance)), fewest - 1)


def assess_tasks(ranking: Ranking) -> Intervals:
    """The range of final ranks if other tasks of this kind had been chosen: tasks resampled, scores as they are."""
    count = len(ranking.weights)
    drawn = np.random.RandomState(SEED).multinomial(count, np.full(count, 1 / count), size=REPLICATES)
    final = positions(np.round((drawn * ranking.weights) @ ranking.ranks, DIGITS))
    low, high = percentiles(final, LEVEL, "inverted_cdf")
    return Intervals(np.minimum(low, ranking.final), np.maximum(high, ranking.final))


def chance_of_first(final: np.ndarray) -> np.ndarray:
    """How often each method is first in the replicates; those who share the place share the point."""
    first = final == 1
    chance: np.ndarray = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
    return chance


def observed_q(scores: TaskScores) -> np.ndarray:
    """Q as the records have it, (methods,)."""
    sign = 1.0 if scores.greater_is_better else -1.0
    mean, std = np.nanmean(scores.splits, axis=1), np.nanstd(scores.splits, axis=1)
    q: np.ndarray = 100 * EPSILON * sign * mean / (std + EPSILON)
    return q


def mean_interval(scores: TaskScores) -> Intervals:
    """The interval of the mean score of each method: mean ± t · s · √(1/K + f · n_test/n_train).

    Between two ends that is neither symmetric nor always inside, and no spread at all would mean no doubt at all. There
    the mean is taken as the share of successes in so many trials as would give it its variance, at most one for each
    sample that counts, and the interval is Wilson's (Journal of the American Statistical Association 22, 1927).
    """
    from scipy.special import stdtrit

    count = np.isfinite(scores.splits).sum(axis=1)
    mean, std = np.nanmean(scores.splits, axis=1), np.nanstd(scores.splits, axis=1, ddof=1)
    quantile = stdtrit(count - 1, (1 + LEVEL) / 2)
    error = std * np.sqrt(1 / count + scores.overlap)
    ends = _ends(scores)
    if ends is None:
        return Intervals(mean - quantile * error, mean + quantile * error)
    low, span = ends
    share, trials = np.clip((mean - low) / span, 0.0, 1.0), _trials(scores, mean, error)
    return Intervals(low + span * _wilson(share, trials, -quantile), low + span * _wilson(share, trials, quantile))


def _ends(scores: TaskScores) -> tuple[float, float] | None:
    """The lower end of the metric and its range, if it has one."""
    bounded = scores.lower is not None and scores.upper is not None
    return (scores.lower, scores.upper - scores.lower) if bounded else None  # type: ignore[operator,return-value]


def _trials(scores: TaskScores, mean: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Of how many trials the mean is a share of successes, by its standard error: at most those that there were."""
    low, span = _ends(scores) or (0.0, 1.0)
    share = np.clip((mean - low) / span, 0.0, 1.0)
    most = np.minimum(scores.samples * np.asarray(scores.trials), 1e12)  # a finite number if nothing is known
    trials = np.minimum(share * (1 - share) / np.maximum((error / span) ** 2, 1e-300), most)
    return np.where(error > 0, trials, most)


def _wilson(share: np.ndarray, trials: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The true share that is ``z`` of its own standard errors above what was observed: always between 0 and 1."""
    shrunk = z**2 / trials
    half = z * np.sqrt(share * (1 - share) / trials + shrunk / (4 * trials))
    true_share: np.ndarray = np.clip((share + shrunk / 2 + half) / (1 + shrunk), 0.0, 1.0)  # but for rounding it is
    return true_share


def replicate_q(scores: TaskScores, rng: np.random.RandomState, replicates: int = REPLICATES) -> np.ndarray:
    """Q of every method on replicates of a task, (replicates, methods)."""
    k = scores.splits.shape[1]
    scored = np.isfinite(scores.splits)
    mean = np.nanmean(scores.splits, axis=1)
    std = np.nanstd(scores.splits, axis=1)
    centred = np.where(scored, scores.splits - mean[:, None], 0.0)
    drawn = rng.multinomial(k, np.full(k, 1 / k), size=replicates).astype(np.float64)
    count = np.maximum(drawn @ scored.T, 1)
    shift = drawn @ centred.T / count
    spread = np.sqrt(np.maximum(drawn @ (centred**2).T / count - shift**2, 0.0))
    # Turned round, as a pivot: where a resample is high, the truth is as much below what was observed. This matters
    # for the spread, whose error is skewed.
    typical = spread.mean(axis=0)
    ratio = np.where(typical > 0, typical, 1.0) / np.maximum(np.where(typical > 0, spread, 1.0), FLOOR * typical)
    n = scored.sum(axis=1)
    stretch = np.sqrt((1 / n + scores.overlap) * n**2 / (n - 1))
    student = np.sqrt((k - 1) / rng.chisquare(k - 1, size=replicates))
    moved = mean - shift * stretch * student[:, None]
    spread = std * ratio ** _spread_stretch(k, scores.samples)
    if _ends(scores):
        moved, factor = _between_ends(scores, mean, std, moved, rng)
        spread = np.where(std > 0, spread * factor, factor)
    sign = 1.0 if scores.greater_is_better else -1.0
    q: np.ndarray = np.round(100 * EPSILON * sign * moved / (spread + EPSILON), DIGITS)
    return q


def _between_ends(
    scores: TaskScores, mean: np.ndarray, std: np.ndarray, moved: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Replicates of means that stay between the ends of the metric, and what that does to the spread over splits.

    A mean near an end may be far from it on another data set, and the spread with it: both follow from a share. So the
    second is a factor for the observed spread; where none was observed, it is the spread itself. With more than a few
    successes and failures the bootstrap knows as much of the spread by itself, and the factor is 1.
    """
    low, span = _ends(scores) or (0.0, 1.0)
    n = np.isfinite(scores.splits).sum(axis=1)
    error = std * np.sqrt(n / (n - 1)) * np.sqrt(1 / n + scores.overlap)
    trials = _trials(scores, mean, error)
    share = np.clip((mean - low) / span, 0.0, 1.0)
    # Without any spread there are no deviations to be resampled; all such methods then share theirs.
    z = np.where(error > 0, (moved - mean) / np.where(error > 0, error, 1.0), rng.standard_normal((len(moved), 1)))
    drawn = _wilson(share, trials, z)
    observed = np.where(std > 0, np.maximum(share * (1 - share), 1e-12), 1.0)
    tested = np.maximum(trials * scores.test_to_train / (1 + scores.test_to_train), 1.0)
    few = trials * np.minimum(share, 1 - share) < FEW
    factor = np.where(few, np.sqrt(drawn * (1 - drawn) / observed), 1.0)
    return low + span * drawn, np.where(std > 0, factor, span * factor / np.sqrt(tested))


def _spread_stretch(k: int, samples: float) -> float:
    """How much too narrow the bootstrap of a standard deviation of k values is, for normal ones, of other samples."""
    if k < 3:
        return 1.0
    expected = 3 * (k - 1) / (k + 1)  # the kurtosis that k normal values show
    from_splits, from_samples = 1 / (2 * (k - 1)), (KURTOSIS - 1) / (4 * samples)
    return float(np.sqrt((from_splits + from_samples) * 4 * k / (expected - 1)))


def replicate_board(tasks: Sequence[TaskScores], *, seed: int = SEED, replicates: int = REPLICATES) -> np.ndarray:
    """Q on replicates of the whole board, (replicates, tasks, methods); one random stream for each dataset."""
    streams: dict[tuple[str | int, int], int] = {}
    parts = []
    for t, task in enumerate(tasks):
        stream = streams.setdefault((task.dataset or t, task.splits.shape[1]), t)
        # RandomState is old, and for that very reason gives the same numbers with every version of numpy.
        parts.append(replicate_q(task, np.random.RandomState((seed, stream)), replicates))
    return np.stack(parts, axis=1)
