"""The contract of a method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuco_core.contract.common_checks import require_words
from neuco_core.contract.contract import Broken, Inapplicable, check
from neuco_core.contract.metadata import check_citation, check_license
from neuco_core.contract.subjects import MethodSubject
from neuco_core.specs import Dataset

if TYPE_CHECKING:
    import numpy as np

MOST = 1024  # NeuCo-Bench's size of an embedding
LABEL_LIKE = 0.999


@check(
    "method-metadata",
    "method",
    asks="title, description, SPDX licence; a citation, if there is one, that can be followed",
    reason="the leaderboard must say what a method is and whether it may be used",
    cure="fill in the fields of Method(…)",
)
def metadata(subject: MethodSubject) -> str:
    require_words(subject)
    license = check_license(subject.spec.license)
    return f"{license}, {check_citation(subject.spec.citation)}" if subject.spec.citation else license


@check(
    "method-covers",
    "method",
    asks="every labelled sample of a dataset that the method can be run on has an embedding",
    reason="samples that are left out are usually the hard ones",
    cure="embed all samples; `neuco validate FILE --dataset D` lists the missing ones",
)
def covers(subject: MethodSubject) -> str:
    for dataset, embeddings in subject.embeddings.items():
        known = set(embeddings.ids)
        for task, labels in subject.labelled(dataset):
            missing = [sample for sample in labels.ids if sample not in known]
            if missing:
                first = ", ".join(missing[:5])
                raise Broken(f"{len(missing)} samples of {task.id} have no embedding", got=f"first missing: {first}")
    covered = ", ".join(f"{name}: {len(embeddings)} samples" for name, embeddings in subject.embeddings.items())
    return covered + (f"; not on {', '.join(subject.left_out)}" if subject.left_out else "")


@check(
    "method-values",
    "method",
    asks=f"values are finite and not all the same, at most {MOST} per sample, or as many as declared",
    reason="the benchmark compares embeddings of a small fixed size",
    cure="reduce the dimensions, and repair samples that give NaN or infinity",
)
def values(subject: MethodSubject) -> str:
    import numpy as np

    for dataset, embeddings in subject.embeddings.items():
        if embeddings.replaced or not np.isfinite(embeddings.values).all():
            raise Broken("non-finite values", where=dataset, got=dict(embeddings.replaced) or "NaN")
        most = min(subject.spec.dim or MOST, MOST)
        if embeddings.dim > most:
            raise Broken("too many dimensions", where=dataset, expected=f"at most {most}", got=embeddings.dim)
        if np.ptp(embeddings.values) == 0:
            raise Broken("every value is the same", where=dataset, got=embeddings.values.flat[0])
    return ", ".join(f"{name}: {embeddings.dim} dimensions" for name, embeddings in subject.embeddings.items())


@check(
    "method-deterministic",
    "method",
    asks="the encoder gives the same numbers twice, whatever the order and size of the batches",
    reason="a number that changes by itself cannot be compared",
    cure="seed random numbers with a constant or the sample's id, and do not normalise over a batch",
)
def deterministic(subject: MethodSubject) -> str:
    import numpy as np

    if subject.spec.encoder is None:
        raise Inapplicable("embeddings in a file cannot change")
    dataset = min(subject.embeddings, key=lambda name: subject.embeddings[name].values.size)
    first = _encode_some(subject, dataset, 5)
    again = _encode_some(subject, dataset, 3)
    if not np.allclose(first, again, rtol=1e-4, atol=1e-5):
        apart = np.abs(first - again).max()
        raise Broken("different numbers the second time", where=dataset, got=f"off by {apart:.3g}")
    return f"16 samples of {dataset}, twice"


def _encode_some(subject: MethodSubject, dataset: str, batch: int) -> np.ndarray:
    """Encode a few samples with a fresh encoder, in batches of one size or another."""
    import numpy as np

    from neuco_core.encode.run import factory, full_params, one_thread, open_cubes

    source = open_cubes(subject.spec, subject.catalog.load(Dataset, dataset))
    ids = source.ids()[:16]
    parts = [ids[start : start + batch] for start in range(0, len(ids), batch)]
    with one_thread("torch" in subject.spec.requires):
        encoder = factory(subject.spec)(**full_params(subject.spec, {}))
        if hasattr(encoder, "fit"):
            encoder.fit(source)
        return np.concatenate([np.asarray(encoder.encode(source.read(part))) for part in parts])


@check(
    "method-honest",
    "method",
    asks=f"no dimension correlates with a task's labels by more than |r| = {LABEL_LIKE}",
    reason="labels in disguise are not an embedding",
    cure="remove the labels from what the method sees",
)
def honest(subject: MethodSubject) -> str:
    nearest, where = 0.0, "no labels available"
    for dataset, embeddings in subject.embeddings.items():
        rows = {sample: row for row, sample in enumerate(embeddings.ids)}
        for task, labels in subject.labelled(dataset):
            kept = [(rows[sample], position) for position, sample in enumerate(labels.ids) if sample in rows]
            if len(kept) < 30:
                continue
            mine, theirs = (list(part) for part in zip(*kept, strict=True))
            value = _most_alike(embeddings.values[mine], labels.values[theirs])
            if value > nearest:
                nearest, where = value, task.id
    if nearest > LABEL_LIKE:
        raise Broken(f"a dimension follows the labels of {where}", expected=f"|r| ≤ {LABEL_LIKE}", got=f"{nearest:.5f}")
    return f"nearest to {where}, |r| = {nearest:.2f}"


def _most_alike(values: np.ndarray, labels: np.ndarray) -> float:
    """The largest absolute correlation between any dimension and any label column."""
    import numpy as np

    def standard(table: np.ndarray) -> np.ndarray:
        table = table.reshape(len(table), -1).astype(float)
        table = table - table.mean(axis=0)
        size = np.linalg.norm(table, axis=0)
        return np.asarray(table[:, size > 0] / size[size > 0])

    correlations = np.abs(standard(values).T @ standard(labels))
    return float(correlations.max()) if correlations.size else 0.0
