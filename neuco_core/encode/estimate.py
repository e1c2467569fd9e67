"""How long a method would take for a whole dataset: a short trial on a few of its samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from neuco_core.cubes.cubes import CubeBatch, CubeSource, Selection
from neuco_core.encode.encoding import Clock, Encoding
from neuco_core.encode.requirements import full_params, open_cubes
from neuco_core.encode.run import AS_USUAL, EncodeOptions, chunks_of, open_cache
from neuco_core.encoders import spread_ids
from neuco_core.env import available_cores
from neuco_core.errors import DataError
from neuco_core.progress import duration
from neuco_core.text import counted

if TYPE_CHECKING:
    from neuco_core.specs import Dataset, Method

SAMPLES = 16  # of the trial, or four for each thread if that is more


class Some(Selection):
    """A few samples of a source. ``asked`` are those that were read."""

    def __init__(self, source: CubeSource, ids: tuple[str, ...]) -> None:
        super().__init__(source, ids=ids)
        self.asked: set[str] = set()

    def read(self, ids: Sequence[str]) -> CubeBatch:
        self.asked.update(ids)
        return super().read(ids)


@dataclass(frozen=True)
class Estimate:
    """``done`` samples are in the cache; ``bytes`` are those of all samples as stored and read for this method.

    ``learning`` are the seconds before the first sample is encoded, in a trial that learned from ``learned`` samples.
    """

    dataset: str
    method: str
    samples: int
    done: int
    bytes: int
    bands: int
    seasons: int
    device: str
    threads: int
    trial: int
    samples_per_second: float
    learned: int
    learning: float

    @property
    def seconds(self) -> float:
        return (self.samples - self.done) / self.samples_per_second

    @property
    def most_learning(self) -> float:
        """If it learns from all samples, each at the cost of one in the trial."""
        return self.learning * self.samples / self.learned if self.learned else self.learning

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": self.seconds, "most_learning": self.most_learning}

    def lines(self) -> list[str]:
        of = f"{counted(self.bands, 'band')} and {counted(self.seasons, 'season')}"
        what = f"{counted(self.samples, 'sample')} of {of}"
        size = decimal(self.bytes)
        megabytes = self.bytes / self.samples / 1e6 * self.samples_per_second
        rate = f"{self.samples_per_second:.3g} samples/s, {megabytes:.3g} MB/s"
        learns = f"{duration(self.learning)} from {self.learned} samples"
        if self.learned:
            learns += f", at most {duration(self.most_learning)} if it learns from all"
        return [
            f"dataset   {self.dataset}: {what}, {size} unpacked, {self.done} in the cache",
            f"method    {self.method} on {self.device}, {self.threads} threads: {rate} (trial of {self.trial} samples)",
            f"learning  {learns}",
            f"encoding  {duration(self.seconds)} for {self.samples - self.done} samples",
        ]


def estimate(
    method: Method, dataset: Dataset, params: Mapping[str, Any], options: EncodeOptions = AS_USUAL
) -> Estimate:
    """Try a method on a few samples, spread over the dataset; nothing is kept."""
    threads = options.threads or available_cores()
    params = full_params(method, params)
    source = open_cubes(method, dataset)
    ids = tuple(source.ids())
    if not ids:
        raise DataError(f"the cubes for method {method.id!r} hold no sample")
    some = Some(source, spread_ids(source, max(SAMPLES, 4 * threads)))
    trial = Encoding(method, some, params, options.batch_size, threads, options.device)
    cache = open_cache(method, dataset, source, params, device=trial.device)
    done = 0
    if cache:
        parts = [part for start, part in chunks_of(ids) if cache.load(part, start) is not None]
        done = len(ids) if cache.load(ids) is not None else sum(map(len, parts))
    clock, warm, size = Clock(), Clock(), [0]

    def count(samples: int, read: int = 0, made: bool = True) -> None:
        size[0] += read

    with trial.running():
        trial.pipeline(clock)
        learned = len(some.asked)
        trial.encode(some.ids()[:threads], lambda *_: None, warm)  # libraries load and compile what they need
        trial.encode(some.ids(), count, clock)
    return Estimate(
        dataset=dataset.id,
        method=method.id,
        samples=len(ids),
        done=done,
        bytes=size[0] * len(ids) // clock.samples,
        bands=len(source.bands),
        seasons=len(source.seasons),
        device=trial.device,
        threads=threads,
        trial=clock.samples,
        samples_per_second=clock.samples / max(clock.seconds, 1e-9),
        learned=learned,
        learning=clock.learning,
    )
