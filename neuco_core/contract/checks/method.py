"""The contract of a method: what its embeddings cover and hold, and whether its numbers come from the images.

Public labels can be memorised. Three traces of that are looked for: a linear fit reads the labels off the embeddings
almost without error, and not off plain statistics of the images; the embeddings change when samples get other names and
another order; what they predict of the labels changes when the images change by a thousandth. None is proof of honesty:
a reviewer reads the code, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from neuco_core.contract.builtin import DIMENSIONS, LABELS_R2
from neuco_core.contract.checks import check_citation, check_license, require_description
from neuco_core.contract.contract import Broken, Inapplicable, NoEvidence, Warn
from neuco_core.contract.repeatability import NOISE, apart, disagreement, some_rows
from neuco_core.contract.subjects import MethodSubject
from neuco_core.encode.encoding import Encoding
from neuco_core.encode.requirements import full_params, open_cubes
from neuco_core.errors import NeucoError
from neuco_core.plugins.catalog import load_dataset, load_metric
from neuco_core.scoring.scorer import score
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels
from neuco_core.text import join_names

# Held-out R² of a linear fit of the labels, or of an indicator of each class. mosaiks, the best shipped method, reaches
# 0.990 on a synthetic task and 0.957 on a real one. F1 would not do: honest methods may solve a
# classification, but no margin is that even.
CEILING = 0.995  # and LABELS_R2 for what cannot be an accident
CONTROL = 0.1  # what chance may reach on labels that the images cannot explain; averaging and mosaiks stay below 0
PERFECT = 0.002  # below the best value of the task's own metric
EASY = 0.01  # R² by which an embedding may be better than plain statistics of the images
FIT = "ridge+k=3"  # the probe that boards use, so what it cannot read is of no use to anybody either
FEWEST = 30  # labelled samples; fewer prove nothing
MOVED = 0.1


@dataclass(frozen=True)
class Reading:
    """How well the labels of a task can be read off embeddings: R², and whether its own metric is at the ceiling."""

    dataset: str
    task: str
    r2: float
    control: bool
    perfect: bool


def metadata(subject: MethodSubject) -> str:
    require_description(subject)
    license = check_license(subject.spec.license)
    return f"{license}, {check_citation(subject.spec.citation)}" if subject.spec.citation else license


def runs(subject: MethodSubject) -> str:
    if isinstance(subject.outcome, NeucoError):
        raise subject.outcome
    return f"on {join_names(list(subject.outcome))}"


def covers(subject: MethodSubject) -> str:
    compared = set()
    for dataset, embeddings in subject.embeddings.items():
        embedded = set(embeddings.ids)
        for task, labels in subject.labelled(dataset):
            compared.add(dataset)
            missing = [sample for sample in labels.ids if sample not in embedded]
            if missing:
                first = ", ".join(missing[:5])
                raise Broken(f"{len(missing)} samples of {task.id} have no embedding", got=f"first missing: {first}")
    if not compared:
        raise NoEvidence(f"no labels to compare with on {', '.join(subject.embeddings)}", got=first_unread(subject))
    covered = ", ".join(f"{name}: {len(subject.embeddings[name])} samples" for name in sorted(compared))
    return covered + (f"; not on {', '.join(subject.left_out)}" if subject.left_out else "")


def first_unread(subject: MethodSubject) -> str | None:
    """Why there are no labels: the first reason stands for all."""
    return next((f"{name}: {reason}" for name, reason in subject.unread.items()), None)


def values(subject: MethodSubject) -> str:
    for dataset, embeddings in subject.embeddings.items():
        if embeddings.replaced or not np.isfinite(embeddings.values).all():
            raise Broken("non-finite values", where=dataset, got=dict(embeddings.replaced) or "NaN")
        most = min(subject.spec.dim or DIMENSIONS, DIMENSIONS)
        if embeddings.dim > most:
            raise Broken("too many dimensions", where=dataset, expected=f"at most {most}", got=embeddings.dim)
        if np.ptp(embeddings.values) == 0:
            raise Broken("every value is the same", where=dataset, got=embeddings.values.flat[0])
    return ", ".join(f"{name}: {embeddings.dim} dimensions" for name, embeddings in subject.embeddings.items())


def deterministic(subject: MethodSubject) -> str:
    if not subject.spec.sees_images:
        raise Inapplicable("embeddings in a file, or of positions, do not depend on images")
    dataset = min(subject.embeddings, key=lambda name: subject.embeddings[name].values.size)
    first = _encode_some(subject, dataset, 5)
    again = _encode_some(subject, dataset, 3, threads=2, backwards=True)
    tolerance = subject.spec.tolerance
    if problem := disagreement(first, again, tolerance):
        raise Broken("different numbers the second time", where=dataset, **problem)
    how = f"{apart(first, again):.2g} of the spread apart" if tolerance else "bit for bit"
    return f"{len(first)} samples of {dataset}, twice, {how}"


def _encode_some(
    subject: MethodSubject, dataset: str, batch: int, threads: int = 1, *, backwards: bool = False
) -> np.ndarray:
    """Encode a few samples with a fresh encoder, in batches of one size or another."""
    source = open_cubes(subject.spec, load_dataset(dataset))
    ids = tuple(source.ids()[:16])
    encoding = Encoding(subject.spec, source, full_params(subject.spec, {}), batch, threads)
    with encoding.running():
        rows = encoding.encode(ids[::-1] if backwards else ids, lambda *_: None)
    return rows[::-1] if backwards else rows


def honest(subject: MethodSubject) -> str:
    encoded = subject.embeddings if subject.spec.sees_images else ()
    doubts = [doubt for dataset in encoded for doubt in _follows_images(subject, dataset)]
    readings = [
        reading for name, embeddings in subject.embeddings.items() for reading in _read(subject, name, embeddings)
    ]
    if not readings:
        what = f"no dataset here has labels of {FEWEST} samples or more to compare with"
        raise NoEvidence(what, got=first_unread(subject))
    best = max(readings, key=lambda reading: reading.r2)
    nearest = f"nearest to {best.task}, R² = {best.r2:.2f}"
    for reading in readings:
        if reading.control and reading.r2 > CONTROL:
            raise Broken(f"the labels of {reading.task} are in it", expected=f"R² ≤ {CONTROL}", got=f"{reading.r2:.4f}")
        doubts += _too_good(subject, reading)
    if subject.spec.uses_ids and best.r2 > CONTROL:
        doubts.append("it uses the names of samples, and they tell something about the labels")
    if doubts:
        raise Warn(f"{'; '.join(doubts)}: {nearest}", hint="Somebody should look at the code")
    return nearest


def _too_good(subject: MethodSubject, reading: Reading) -> list[str]:
    """What is suspicious about a score near the ceiling; of labels that plain statistics tell as well, nothing is."""
    if reading.r2 < CEILING and not reading.perfect:
        return []
    try:
        plain = subject.plain(reading.dataset)
    except NeucoError as error:
        return [f"almost a perfect score on {reading.task}, and no images to compare it with ({error})"]
    (same,) = _read(subject, reading.dataset, plain, reading.task)
    if same.r2 >= reading.r2 - EASY and (same.perfect or not reading.perfect):
        return []
    if reading.r2 >= LABELS_R2:
        got = f"{reading.r2:.4f}, and {same.r2:.4f} by plain statistics of the images"
        raise Broken(f"the labels of {reading.task} are in it", expected=f"R² < {LABELS_R2}", got=got)
    return [f"almost a perfect score on {reading.task}, where plain statistics of the images reach R² = {same.r2:.2f}"]


def _read(subject: MethodSubject, dataset: str, embeddings: Embeddings, only: str = "") -> Iterator[Reading]:
    for task, labels in subject.labelled(dataset, only):
        if len(set(labels.ids) & set(embeddings.ids)) >= FEWEST:
            r2 = score(embeddings, _as_numbers(labels), FIT, metric="r2").mean
            upper = load_metric(task.metric).upper
            same = upper is None or (task.kind, task.metric) == ("regression", "r2")
            judged = r2 if same else score(embeddings, labels, FIT, metric=task.metric).mean
            yield Reading(dataset, task.id, r2, task.control, upper is not None and upper - judged <= PERFECT)


def _as_numbers(labels: Labels) -> Labels:
    """Labels as a regression: of a classification, an indicator of each class."""
    if labels.kind != "classification":
        return replace(labels, kind="regression")
    classes = np.unique(labels.values)
    indicators = np.asarray(labels.values.reshape(-1, 1) == classes, dtype=float)
    columns = tuple(f"class{number}" for number in range(len(classes)))
    return replace(labels, kind="regression", values=indicators, columns=columns, classes=())


def _follows_images(subject: MethodSubject, dataset: str) -> list[str]:
    """Doubts: a thousandth of noise must not change what the embeddings say of any labels."""
    embeddings = subject.embeddings[dataset]
    before = embeddings.values[some_rows(len(embeddings))]
    calm, noisy = subject.disturbed(dataset)
    near = np.allclose(calm, before, rtol=1e-4, atol=1e-5) or apart(before, calm) <= subject.spec.tolerance
    if not near:
        what = "other numbers" if subject.spec.uses_ids else "other numbers when samples have other names"
        raise Broken(what, where=dataset, got=f"off by {np.abs(calm - before).max():.3g}")
    for task, labels in subject.labelled(dataset):
        moved = _moved(embeddings, _as_numbers(labels), calm, noisy)
        if moved > MOVED:
            # Not a failure: an honest encoder of a band of codes, such as a cloud mask, depends on exact values.
            what = f"a change of the images by {NOISE:g} moves what it says of {task.id}"
            return [f"{what} by {moved:.2f} of the variance"]
    return []


def _moved(embeddings: Embeddings, labels: Labels, clean: np.ndarray, noisy: np.ndarray) -> float:
    """How far predictions of the labels move from clean to noisy embeddings, as a share of the labels' variance."""
    rows = {sample: row for row, sample in enumerate(embeddings.ids)}
    kept = [(rows[sample], row) for row, sample in enumerate(labels.ids) if sample in rows]
    if len(kept) < FEWEST:
        return 0.0
    mine, theirs = (list(part) for part in zip(*kept, strict=True))
    truth = labels.values[theirs].astype(np.float64).reshape(len(theirs), -1)
    # A ridge regression on scaled features. Not scikit-learn's: its import takes longer than the check.
    x = embeddings.values[mine].astype(np.float64)
    center, spread = x.mean(axis=0), x.std(axis=0)
    steady = spread <= len(x) * np.finfo(float).eps * np.abs(center)  # constant but for the rounding of the mean
    factor = np.where(steady, 0.0, 1 / np.where(steady, 1.0, spread))
    scaled = (x - center) * factor
    # A penalty that grows with the dimension, as a fit of 1,024 columns to a few hundred samples would follow noise.
    penalty = 0.1 * embeddings.dim * np.eye(embeddings.dim)
    weights = np.linalg.solve(scaled.T @ scaled + penalty, scaled.T @ (truth - truth.mean(axis=0)))
    moved = ((clean.astype(np.float64) - noisy) * factor) @ weights
    return float(np.mean(np.square(moved)) / np.var(truth, axis=0).mean())
