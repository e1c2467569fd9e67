"""What the checks look at: a task, a method or a dataset with its data, each part loaded once, when it is needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neuco_core.contract.contract import Inapplicable, NoEvidence
from neuco_core.contract.metric_scale import MetricScale, metric_scale
from neuco_core.contract.probing import Probes, probe
from neuco_core.contract.repeatability import disturbed, plain_statistics
from neuco_core.cubes.cubes import Selection
from neuco_core.encode.requirements import open_cubes
from neuco_core.errors import DataError, DependencyError, FetchError, NeucoError
from neuco_core.plugins.catalog import Catalog, catalog, load_dataset, load_metric, load_task
from neuco_core.plugins.loading import say
from neuco_core.scoring.scorer import Score, score
from neuco_core.specs import Dataset, Method, Task
from neuco_core.tables.embeddings import Embeddings, make_embeddings
from neuco_core.tables.labels import Labels

QUICK = "ridge+k=10"  # closed form, so that an oracle cannot fail for lack of training
ORDER = "neuco-2025+epochs=2,k=3"


class Subject:
    """A spec and its folder."""

    noun: str

    def __init__(self, spec: Any) -> None:
        self.spec = spec
        self.id: str = spec.id

    @property
    def folder(self) -> Path | None:
        """The plugin's directory, if it is one of ours and not a package of its own."""
        path = Path(self.spec.origin.source) if self.spec.origin else None
        return path if path and path.is_dir() else None


def subject_of(spec: Task | Method | Dataset) -> Subject:
    """What the checks of a spec's noun look at."""
    if isinstance(spec, Task):
        return TaskSubject(spec)
    return MethodSubject(spec) if isinstance(spec, Method) else DatasetSubject(spec)


class DatasetSubject(Subject):
    """A dataset and its images."""

    noun = "dataset"
    spec: Dataset


class TaskSubject(Subject):
    """A task, its labels, and synthetic embeddings that solve it or know nothing about it."""

    noun = "task"
    spec: Task

    @property
    def labels(self) -> Labels:
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded

    @cached_property
    def _loaded(self) -> Labels | Exception:
        """The labels, or why there are none: what cannot be had is fetched once, and not again for each check."""
        try:
            return self.spec.labels()
        except Exception as error:
            return error

    def require_labels(self) -> None:
        """Raise what went wrong with the labels, if anything did."""
        _ = self.labels

    @cached_property
    def scale(self) -> MetricScale:
        """What scores of this task mean. A probe's guess from blank embeddings is on the very splits of the others."""
        blank = self._embeddings(np.zeros((len(self.labels), 1)))
        return metric_scale(self.labels, load_metric(self.spec.metric), self.score(blank).mean)

    def oracle(self) -> Embeddings:
        """The labels themselves, mixed into a few directions, with a little noise: these solve any good task."""
        random = np.random.default_rng(0)
        values = self.labels.values
        if self.spec.kind == "classification":
            targets = np.asarray(values.reshape(-1, 1) == np.unique(values), dtype=float)
        else:
            targets = ((values - values.mean(axis=0)) / values.std(axis=0)).reshape(len(values), -1)
        mixed = targets @ random.standard_normal((targets.shape[1], 8))
        return self._embeddings(mixed + 0.01 * mixed.std() * random.standard_normal(mixed.shape))

    def noise(self) -> Embeddings:
        """Numbers that have nothing to do with the labels."""
        return self._embeddings(np.random.default_rng(1).standard_normal((len(self.labels.ids), 32)))

    def score(self, embeddings: Embeddings, protocol: str = QUICK) -> Score:
        return score(embeddings, self.labels, protocol, metric=self.spec.metric)

    def _embeddings(self, values: np.ndarray) -> Embeddings:
        return make_embeddings(self.labels.ids, values.astype("float32"))


class MethodSubject(Subject):
    """A method, and its embeddings of every dataset that it can be run on here."""

    noun = "method"
    spec: Method

    def __init__(self, spec: Method) -> None:
        super().__init__(spec)
        self.unread: dict[str, str] = {}  # tasks whose labels could not be read, and why
        self.left_out: dict[str, str] = {}  # datasets that the method cannot be run on here, and why

    def labelled(self, dataset: str, only: str = "") -> Iterator[tuple[Task, Labels]]:
        """The tasks of a dataset whose labels are available, or one of them; one at a time, as there may be many."""
        if only:
            yield load_task(only), load_task(only).labels()
        else:
            yield from read_labels(catalog(), dataset, self.unread)

    @property
    def embeddings(self) -> dict[str, Embeddings]:
        if isinstance(self.outcome, NeucoError):
            raise NoEvidence("there are no embeddings: `method-runs` says why")
        return self.outcome

    @cached_property
    def outcome(self) -> dict[str, Embeddings] | NeucoError:
        """The embeddings, or why there are none."""
        by_dataset: dict[str, Embeddings] = {}
        datasets = sorted(self.spec.files)
        if not datasets:
            datasets = [name for name, dataset in catalog().all(Dataset).items() if dataset.cubes is not None]
        for name in datasets:
            try:
                by_dataset[name] = self.spec.embeddings(name)
            except (DataError, DependencyError, FetchError) as error:
                # Not the method's fault: the dataset lacks its bands, or is not here. Any other error is.
                self.left_out[name] = str(error)
            except NeucoError as error:
                error.where = f"{error.where or self.id}, on dataset {name}"
                if not self.spec.bands:
                    declare = "name those it needs, such as bands=('etm/B1', …)"
                    new = "`neuco new method … --dataset olinda` writes those of a dataset"
                    error.hint = f"It declares no bands, so it is run on every dataset: {declare}; {new}"
                return error
        if not by_dataset:
            reasons = " | ".join(f"{name}: {reason}" for name, reason in self.left_out.items())
            return NoEvidence("the method can be run on no dataset here", got=reasons or "no dataset")
        return by_dataset

    def disturbed(self, dataset: str) -> np.ndarray:
        """Embeddings of some samples under other names, and those with a little noise."""
        return disturbed(self.spec, open_cubes(self.spec, load_dataset(dataset)))

    def plain(self, dataset: str, only: Collection[str] = ()) -> Embeddings:
        """Plain statistics of the images, or of some of them, to see what anybody can."""
        cubes = load_dataset(dataset).cubes
        if cubes is None:
            raise NoEvidence(f"dataset {dataset!r} has no images")
        source = Selection(cubes(), ids=frozenset(only))
        return make_embeddings(source.ids(), plain_statistics(source))

    @cached_property
    def probes(self) -> Probes:
        """The encoder on a few dozen cubes, of the dataset with the most bands that it can be run on here."""
        if not self.spec.sees_images:
            raise Inapplicable("it encodes no images: embeddings from a file, or of positions")
        if isinstance(vars(self).get("outcome"), NeucoError):
            raise NoEvidence("there are no embeddings: `method-runs` says why")
        datasets = [dataset for dataset in catalog().all(Dataset).values() if dataset.cubes is not None]
        for dataset in sorted(datasets, key=lambda dataset: (-len(dataset.bands), dataset.id)):
            try:
                return probe(self.spec, open_cubes(self.spec, dataset), dataset.id)
            except (DataError, DependencyError, FetchError) as error:
                self.left_out[dataset.id] = str(error)
            except NeucoError as error:
                raise NoEvidence("the encoder fails: `method-runs` says why", got=str(error)) from error
        reasons = " | ".join(f"{name}: {reason}" for name, reason in self.left_out.items())
        raise NoEvidence("the method can be run on no dataset here", got=reasons or "no dataset")


def read_labels(catalog: Catalog, dataset: str, unread: dict[str, str]) -> Iterator[tuple[Task, Labels]]:
    """The tasks of a dataset with their labels, one at a time; those that cannot be read go into ``unread``."""
    for task in catalog.all(Task).values():
        if task.dataset == dataset:
            try:
                labels = task.labels()
            except NeucoError as error:
                unread[task.id] = str(error)
            except (Exception, SystemExit) as error:  # a stranger's loader; that task's own checks say what is wrong
                unread[task.id] = say(error)
            else:
                yield task, labels
