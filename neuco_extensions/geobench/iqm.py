"""GEO-Bench's numbers: normalisers, interquartile means of seeds, and a bootstrap over seeds of what is pooled.

A capability's score pools the normalised scores of its datasets, five seeds each, and takes their interquartile mean
(IQM), on resamples of the seeds of every dataset; the score is the mean over the resamples. The spread of the resamples
*is* the standard error of the score. The leaderboard divides it by √100 once more, which tells how well 100 resamples
give their own mean, and nothing of the score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated
from zlib import crc32

import msgspec
import numpy as np
from scipy.special import stdtrit

from neuco_core.env import layers, registry_dir
from neuco_core.errors import DataError, UnknownIdError
from neuco_core.files import read_strictly
from neuco_extensions.geobench.facts import CAPABILITIES
from neuco_extensions.geobench.submission import GeobenchSubmission

CUT = 0.25
LEVEL = 0.95
REPLICATES = 100  # theirs
OURS = 2000
FIRST_SEED = 100
GEOBENCH = "geobench-2-v1"
SHIPPED = Path(__file__).with_name("normalisers")
LARGEST = 1_000_000
Ends = Annotated[tuple[float, float], msgspec.Meta(description="what becomes 0 and what becomes 1")]
Values = Mapping[tuple[str, str], Sequence[float]]  # by (row of the board, dataset): the scores of the seeds


class Normaliser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``ends`` by dataset; ``base`` are the submissions whose least and largest single scores they are.

    Values outside are not clipped: a better model than any before has more than 1. A file is never changed, so that a
    new submission moves nobody; new base submissions make a new version.
    """

    id: str
    ends: dict[str, Ends]
    base: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        for dataset, (low, high) in self.ends.items():
            if not high > low:
                raise ValueError(f"{dataset}: {high} is not above {low}")

    def __call__(self, dataset: str, scores: Sequence[float] | np.ndarray) -> np.ndarray:
        if dataset not in self.ends:
            raise DataError(f"the normaliser {self.id} has no dataset {dataset!r}", expected=", ".join(self.ends))
        low, high = self.ends[dataset]
        return np.asarray((np.asarray(scores, dtype=np.float64) - low) / (high - low))


def folders() -> list[Path]:
    """Where normalisers are: in the registry, and those that came with neuco."""
    return [*(layer / "normalisers" for layer in layers(registry_dir())), SHIPPED]


def load_normaliser(name: str) -> Normaliser:
    files = {path.stem: path for folder in reversed(folders()) for path in folder.glob("*.json")}
    if name not in files:
        raise UnknownIdError("normaliser", name, files)
    normaliser = read_strictly(files[name], Normaliser, "a normaliser", most=LARGEST)
    if normaliser.id != name:
        raise DataError("bad id", where=files[name], expected="the name of the file", got=repr(normaliser.id))
    return normaliser


def kept(values: np.ndarray) -> np.ndarray:
    """The middle of the values along the last axis: a quarter, rounded down, is cut off at each end."""
    cut = int(CUT * values.shape[-1])
    ordered = np.sort(values, axis=-1)
    return ordered[..., cut : values.shape[-1] - cut]


def iqm(values: np.ndarray) -> np.ndarray:
    return np.asarray(kept(np.asarray(values, dtype=np.float64)).mean(axis=-1))


def official_replicates(values: Values) -> dict[str, np.ndarray]:
    """By row, the pooled IQM of each resample, with the very draws of the leaderboard.

    Replicate i draws from one stream with seed 100 + i through all (row, dataset) in their order, as pandas'
    ``groupby(…).sample(frac=1, replace=True, random_state=100 + i)`` does. So a score depends on which rows were
    submitted together: hand over a whole submission.
    """
    order = sorted(values)
    cells = [np.asarray(values[key], dtype=np.float64) for key in order]
    replicates: dict[str, list[float]] = {row: [] for row, _ in order}
    for i in range(REPLICATES):
        stream = np.random.RandomState(FIRST_SEED + i)
        drawn: dict[str, list[np.ndarray]] = {row: [] for row in replicates}
        for (row, _), seeds in zip(order, cells, strict=True):
            drawn[row].append(seeds[stream.choice(len(seeds), size=len(seeds), replace=True)])
        for row, parts in drawn.items():
            replicates[row].append(float(iqm(np.concatenate(parts))))
    return {row: np.array(means) for row, means in replicates.items()}


@dataclass(frozen=True)
class PooledScore:
    """A score with its standard error, and an interval; ``replicates`` have the spread that the interval allows for."""

    value: float
    error: float
    low: float
    high: float
    freedom: float
    replicates: np.ndarray


def score(
    cells: Sequence[Sequence[float]],
    *,
    names: Sequence[str] = (),
    overlaps: Sequence[float] = (),
    replicates: int = OURS,
    pooled: bool = True,
) -> PooledScore:
    """The score of pooled datasets, each a list of scores of its seeds; or the mean of the datasets' own IQMs.

    Draws depend on the ``names`` of the datasets and on the scores, never on who else is on a board; runs that are
    submitted twice get the same draws, so that they cancel in a difference. Draws are balanced: every seed is drawn
    equally often, and the mean of 2000 resamples is that of any other 2000 to 0.001.

    The error is the spread of these resamples. The interval is Student's, around the same score, with the spread of
    *smoothed* resamples, for two reasons: resamples of 5 values show 4/5 of their variance, and they only hold values
    that occurred, so that they cannot see a dataset whose next seed may fall into the middle half of the pool. The
    degrees of freedom are Satterthwaite's for the datasets' variances, of values moved to the ends of what the IQM
    keeps: a dataset that is cut off tells nothing of the error.

    ``overlaps`` are what is added to 1/K in the variance of a mean of K where the replicates share their data, as
    splits do (Nadeau and Bengio, see ``boards.stats.uncertainty``).
    """
    values = [tuple(map(float, seeds)) for seeds in cells]
    names, overlaps = names or [""] * len(values), overlaps or [0.0] * len(values)
    drawn = [_draws(*cell, replicates) for cell in zip(names, values, overlaps, strict=True)]
    resampled, smoothed = (_together(samples, pooled) for samples in zip(*drawn, strict=True))
    value, error = float(resampled.mean()), _spread(resampled)
    freedom = _freedom([np.array(seeds) for seeds in values], np.array(overlaps), pooled)
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * _spread(smoothed)
    chi = _stream("χ²", *map(_named, names, values)).chisquare(freedom, size=replicates)
    wide = value + (smoothed - smoothed.mean()) * np.sqrt(freedom / chi)
    return PooledScore(value, error, value - half, value + half, freedom, wide)


def _spread(values: np.ndarray) -> float:
    """The standard deviation; of equal values it is 0, to the last bit."""
    return float(values.std(ddof=1)) if np.ptp(values) > 0 else 0.0


def _together(drawn: Sequence[np.ndarray], pooled: bool) -> np.ndarray:
    if pooled:
        return iqm(np.concatenate(drawn, axis=1))
    return np.asarray(np.mean([iqm(samples) for samples in drawn], axis=0))


def _named(name: str, values: Sequence[float]) -> str:
    return f"{name} {list(values)}"


def _stream(*names: str) -> np.random.RandomState:
    return np.random.RandomState(crc32("\n".join(names).encode()))


@lru_cache(maxsize=32)  # a dataset is in several capabilities
def _draws(name: str, values: tuple[float, ...], overlap: float, replicates: int) -> tuple[np.ndarray, np.ndarray]:
    """Resamples (replicates, K) in which every value occurs equally often; and the same smoothed.

    Normal noise of s/√K at each value gives a resample the variance s² of the values, instead of s² (K - 1)/K; one
    deviation of s √overlap for all of them is what they share.
    """
    stream, count = _stream(_named(name, values)), len(values)
    index = stream.permutation(np.tile(np.arange(count), replicates)).reshape(replicates, count)
    drawn = np.array(values)[index]
    spread = float(np.std(values, ddof=1)) if count > 1 else 0.0
    noise = stream.standard_normal(drawn.shape) / np.sqrt(count)
    shared = stream.standard_normal((replicates, 1)) * np.sqrt(overlap)
    return drawn, drawn + spread * (noise + shared)


def _freedom(values: Sequence[np.ndarray], overlaps: np.ndarray, pooled: bool) -> float:
    """Satterthwaite's degrees of freedom: few if one dataset makes up most of the variance."""
    middle = kept(np.concatenate(values)) if pooled else None
    ends = [kept(seeds) if middle is None else middle for seeds in values]
    variances = [
        np.clip(seeds, end.min(), end.max()).var(ddof=1) if len(seeds) > 1 else 0.0
        for seeds, end in zip(values, ends, strict=True)
    ]
    counts = np.array([len(seeds) for seeds in values])
    shares = np.array(variances) * (1 / counts + overlaps) * (counts**2 if pooled else 1)
    free = np.maximum(counts - 1, 1)
    return float(shares.sum() ** 2 / (shares**2 / free).sum()) if shares.sum() > 0 else float(free.min())


@dataclass(frozen=True)
class ComparedScore:
    official: float
    official_error: float
    ours: PooledScore


def capability_table(
    submission: GeobenchSubmission,
    normaliser: Normaliser,
    capabilities: Mapping[str, tuple[str, ...]] = CAPABILITIES,
) -> dict[str, dict[str, ComparedScore]]:
    """By backbone and capability; a backbone that lacks a dataset of a capability has no score for it."""
    values = {key: normaliser(key[1], scores) for key, scores in submission.scores().items()}
    table: dict[str, dict[str, ComparedScore]] = {backbone: {} for backbone in submission.backbones}
    for capability, datasets in capabilities.items():
        inside = {key: seeds for key, seeds in values.items() if key[1] in datasets}
        theirs = official_replicates({key: seeds.tolist() for key, seeds in inside.items()})
        for backbone in submission.backbones:
            keys = [(backbone, dataset) for dataset in datasets]
            if all(key in inside for key in keys):
                ours = score([inside[key].tolist() for key in keys], names=datasets)
                drawn = theirs[backbone]
                error = float(drawn.std(ddof=1) / np.sqrt(len(drawn)))
                table[backbone][capability] = ComparedScore(float(drawn.mean()), error, ours)
    return table
