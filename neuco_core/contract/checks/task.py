"""The contract of a task: its metadata and labels, and that its scores mean something."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import numpy as np

from neuco_core.contract.builtin import CORRELATED, GROUPS, RARE, SAMPLES
from neuco_core.contract.checks import check_citation, check_license, require_description
from neuco_core.contract.contract import Broken, Inapplicable, NoEvidence, Warn
from neuco_core.contract.metric_scale import NO_HEADROOM, shuffled, standard_error
from neuco_core.contract.subjects import ORDER, QUICK, TaskSubject, read_labels
from neuco_core.errors import NeucoError
from neuco_core.fetch.fetch import fetch
from neuco_core.plugins.catalog import Catalog, catalog, load_dataset, load_method
from neuco_core.protocol import load_protocol
from neuco_core.scoring.scorer import Score, score
from neuco_core.specs import ONE_LABEL, PARTS, Suite
from neuco_core.tables.embeddings import make_embeddings
from neuco_core.tables.labels import Labels
from neuco_core.text import counted, join_names

SAME = 1 - 1e-12  # a correlation; labels are compared as float32
SHARED = 10  # samples that two tasks must share
FEW = 10  # splits: enough to tell labels from shuffled ones
# What anybody can see in images: mean and deviation of each band and season. One pass over the dataset, then cached.
# On each shipped task but the controls it beats a guess by at least three standard errors, which averaging does not.
PLAIN = "band_statistics"


def metadata(subject: TaskSubject) -> str:
    require_description(subject)
    if subject.spec.kind == "regression" and not subject.spec.unit:
        raise Broken("no unit", expected="the label's unit, or '1' for a share")
    return f"{check_license(subject.spec.license)}, {check_citation(subject.spec.citation)}"


def dataset(subject: TaskSubject) -> str:
    return load_dataset(subject.spec.dataset).id


def source(subject: TaskSubject) -> str:
    return f"verified {fetch(subject.spec.source).name}"


def suites(subject: TaskSubject) -> str:
    versions = [int(label.partition("@")[2]) for label in catalog().plugins.versions("task", subject.id)]
    frozen = [suite for suite in catalog().survey_suites(living=False)[0].values() if subject.id in suite.tasks]
    for suite in frozen:
        if lacks := lacking_version(suite, subject.id, versions):
            raise Broken(lacks, where=f"suite {suite.id!r}")
    return counted(len(frozen), "suite")


def lacking_version(suite: Suite, task: str, versions: Collection[int]) -> str:
    """That a suite compares another version of a task than are registered, in words; "" if it is registered."""
    if suite.tasks[task] in versions:
        return ""
    registered = f"version {join_names(sorted(map(str, versions)))}" if versions else "no such task"
    return f"it compares version {suite.tasks[task]} of task {task!r}; there is {registered}"


def labels(subject: TaskSubject) -> str:
    dropped = sum(subject.labels.dropped.values())
    return f"{len(subject.labels)} labels" + (f", {dropped} rows without one" if dropped else "")


def samples(subject: TaskSubject) -> str:
    count = len(subject.labels.ids)
    if count < SAMPLES:
        raise Broken("too few samples", expected=f"at least {SAMPLES}", got=count)
    if subject.spec.kind == "classification":
        rarest = int(np.unique(subject.labels.values, return_counts=True)[1].min())
        if rarest < RARE:
            raise Broken("a class has too few samples", expected=f"at least {RARE}", got=rarest)
    if subject.spec.kind == "multilabel":
        ones = subject.labels.values.sum(axis=0)
        column = int(np.minimum(ones, count - ones).argmin())
        if min(ones[column], count - ones[column]) < RARE:
            expected, got = f"at least {RARE} with it and without", f"{ones[column]:.0f} of {count}"
            raise Broken(f"label {subject.labels.columns[column]!r} is too rare", expected=expected, got=got)
    if subject.labels.split is not None:
        parts = {part: int((subject.labels.split == part).sum()) for part in PARTS}
        if min(parts.values()) < RARE:
            raise Broken("a part of the split has too few samples", expected=f"at least {RARE}", got=parts)
    if subject.labels.groups is not None:
        groups = len({str(name).partition("|")[0] for name in subject.labels.groups})
        if groups < GROUPS:
            raise Warn(
                f"only {groups} groups: few splits differ, so spread and intervals say little",
                expected=f"at least {GROUPS}",
            )
    return f"{count} samples"


def novelty(subject: TaskSubject) -> str:
    pool = label_pool(catalog(), subject.spec.dataset)
    alike = pool.nearest(subject.labels, but=subject.id)
    unread = {name: reason for name, reason in pool.unread.items() if name != subject.id}
    if not alike and not unread:
        raise Inapplicable("this is the only task of its dataset")
    if not alike:
        name, reason = next(iter(unread.items()))
        raise NoEvidence(f"none of the {len(unread)} other tasks can be read", got=f"{name}: {reason}")
    value, name = alike[0]
    if value > SAME:
        raise Broken(f"the same labels as task {name!r}")
    if value > CORRELATED:
        raise Warn(f"correlates with task {name!r}", expected=f"at most {CORRELATED}", got=f"{value:.3f}")
    more = f"; {counted(len(unread), 'task')} could not be read" if unread else ""
    return f"nearest of {len(alike)} is {name}, |r| = {value:.2f}{more}"


def solvable(subject: TaskSubject) -> str:
    scale, reached = subject.scale, subject.score(subject.oracle()).mean
    if not scale.better(reached, scale.solved):
        expected, got = scale.beyond(scale.solved), scale.show(reached)
        raise Broken("the labels themselves do not solve the task", expected=expected, got=got)
    return f"{subject.spec.metric} {scale.show(reached)}"


def chance(subject: TaskSubject) -> str:
    scale, noise = subject.scale, subject.score(subject.noise())
    luck = standard_error(noise)
    if scale.better(noise.mean, scale.limit(luck)):
        expected, got = f"not {scale.beyond(scale.limit(luck))}", scale.show(noise.mean)
        raise Broken("random embeddings solve the task", expected=expected, got=got)
    if not scale.better(scale.perfect, scale.guess):
        expected = f"{scale.beyond(scale.guess)}, the score of a guess"
        raise Broken("a perfect answer is no better than a guess", expected=expected, got=scale.show(scale.perfect))
    return f"{subject.spec.metric} {scale.show(noise.mean)}, and {scale.show(scale.guess)} for a guess"


def baseline(subject: TaskSubject) -> str:
    expected = subject.spec.baseline
    if expected is None and subject.spec.control:
        raise Inapplicable("a control task is expected to stay at chance level")
    if expected is None:
        count = len(subject.labels)  # if they cannot be loaded, that is what the finding says
        raise Broken(f"no baseline for its {count} labels", expected="baseline=Baseline(method=…, score=…, …)")
    method = load_method(expected.method)
    try:
        embeddings = method.embeddings(subject.spec.dataset)
    except NeucoError as error:
        raise NoEvidence(f"{method.id} cannot be run here: {error}") from error
    reached = subject.score(embeddings, expected.protocol).mean
    if not abs(reached - expected.score) <= expected.tolerance:
        wanted = f"{expected.score:g} by {method.id} under {expected.protocol}, tolerance {expected.tolerance:g}"
        raise Broken("the baseline is not met", expected=wanted, got=f"{reached:.4g}")
    if not subject.spec.control and not expected.source.endswith(NO_HEADROOM):
        protocol = load_protocol(expected.protocol)
        few = protocol.with_(k=min(protocol.k, FEW))
        blind = score(embeddings, shuffled(subject.labels), few, metric=subject.spec.metric).mean
        if abs(blind - expected.score) <= expected.tolerance:
            wanted = f"a score further than {expected.tolerance:g} from {expected.score:g}"
            raise Warn("shuffled labels meet the baseline as well", expected=wanted, got=f"{blind:.4g}")
    return f"{method.id} reaches {reached:.4g}, declared {expected.score:g}, tolerance {expected.tolerance:g}"


def repeatable(subject: TaskSubject) -> str:
    oracle = subject.oracle()
    turned = make_embeddings(oracle.ids[::-1], oracle.values[::-1])
    # Its order of training counts, so NeuCo-Bench's own probe is the one to try, where it is for such labels.
    rules = ORDER if subject.spec.kind in ONE_LABEL else QUICK
    first = subject.score(oracle, rules).per_split
    for what, other in (("a second time", oracle), ("with the rows in another order", turned)):
        again = score(other, subject.spec, rules).per_split  # the task itself: its labels are loaded again
        if repr(again) != repr(first):
            raise Broken(f"different scores {what}", expected=first, got=again)
    return f"{len(first)} splits, bit for bit"


def headroom(subject: TaskSubject) -> str:
    if subject.spec.control:
        raise Inapplicable("a control task is expected to stay at chance level")
    scale, declared = subject.scale, subject.spec.baseline
    scores: dict[str, Score] = {}
    left_out: list[str] = []
    for name in dict.fromkeys([declared.method, PLAIN] if declared else [PLAIN]):
        try:
            scores[name] = subject.score(load_method(name).embeddings(subject.spec.dataset))
        except NeucoError as error:
            left_out.append(f"{name}: {error}")
    if not scores:
        raise NoEvidence("nothing could be tried", got=" | ".join(left_out))
    shown = ", ".join(
        f"{name} {scale.show(reached.mean)} (standard error {scale.show(standard_error(reached))})"
        for name, reached in scores.items()
    )
    for name, reached in scores.items():
        if scale.better(reached.mean, scale.ceiling):
            got = f"{scale.show(reached.mean)} by {name}"
            raise Warn("no room for better methods", expected=f"not {scale.beyond(scale.ceiling)}", got=got)
    if any(scale.better(s.mean, scale.guess + 2 * scale.sign * standard_error(s)) for s in scores.values()):
        return f"{shown}, and {scale.show(scale.guess)} for a guess"
    expected = f"{scale.beyond(scale.guess)}, the score of a guess, by two standard errors"
    if PLAIN not in scores:  # a weak baseline alone does not prove that there is nothing to be found
        raise Warn("the only method that could be tried does not beat a guess", expected=expected, got=shown)
    raise Broken("nothing beats a guess", expected=expected, got=shown)


class LabelPool:
    """The labels of all tasks of a dataset that can be read; ``unread`` are the others, with the reasons.

    Four bytes a label, and no ids beside those of the dataset: a thousand tasks of 13,260 labels are 53 MB. So checking
    all tasks reads each file once more, and not once for every other task.
    """

    def __init__(self, catalog: Catalog, dataset: str) -> None:
        self.unread: dict[str, str] = {}
        self._numbers: dict[str, int] = {}  # of the samples
        self._tasks = {task.id: self._columns(labels) for task, labels in read_labels(catalog, dataset, self.unread)}

    def nearest(self, labels: Labels, but: str) -> list[tuple[float, str]]:
        """All tasks but one, by the largest absolute correlation of any two columns, the nearest first."""
        rows, values = self._columns(labels)
        alike = []
        for name, (others, their_values) in self._tasks.items():
            if name == but:  # versions of a task may share labels
                continue
            ours = theirs = np.arange(len(rows))
            if not np.array_equal(rows, others):
                _, ours, theirs = np.intersect1d(rows, others, assume_unique=True, return_indices=True)
            correlation = 0.0
            if len(values[ours]) >= SHARED:
                correlation = float(np.abs(_standard(values[ours]).T @ _standard(their_values[theirs])).max())
            alike.append((correlation, name))
        return sorted(alike, reverse=True)

    def _columns(self, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the samples, ascending, and their labels as columns."""
        numbers = self._numbers
        rows = np.array([numbers.setdefault(sample, len(numbers)) for sample in labels.ids], dtype=np.int64)
        order = np.argsort(rows)
        return rows[order], _standard(labels.values.reshape(len(rows), -1))[order].astype(np.float32)


def _standard(values: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and length 1; a constant one correlates with nothing, so it becomes 0."""
    values = values.astype(np.float64)
    centred = values - values.mean(axis=0)
    constant = np.ptp(values, axis=0) == 0
    return np.asarray(centred / np.where(constant, np.inf, np.linalg.norm(centred, axis=0)))


label_pool = lru_cache(maxsize=8)(LabelPool)  # made once for all subjects that look at a dataset
