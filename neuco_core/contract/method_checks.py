"""The contract of a method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuco_core.contract.common_checks import require_words
from neuco_core.contract.contract import Broken, Inapplicable, NoEvidence, check
from neuco_core.contract.metadata import check_citation, check_license
from neuco_core.contract.subjects import MethodSubject
from neuco_core.specs import Dataset

if TYPE_CHECKING:
    import numpy as np

MOST = 1024  # NeuCo-Bench's size of an embedding


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
    compared = set()
    for dataset, embeddings in subject.embeddings.items():
        known = set(embeddings.ids)
        for task, labels in subject.labelled(dataset):
            compared.add(dataset)
            missing = [sample for sample in labels.ids if sample not in known]
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
    asks="the encoder gives the same numbers twice, whatever the order and size of the batches and the number of "
    "threads: bit for bit, or within the tolerance that the method declares",
    reason="a number that changes by itself cannot be compared",
    cure="seed random numbers with a constant, put a network into evaluation mode, do not normalise over a batch; "
    "declare Method(tolerance=1e-4) if a library rounds differently for another batch",
)
def deterministic(subject: MethodSubject) -> str:
    from neuco_core.contract.repeatability import agree, allowed, apart, in_words

    if subject.spec.encoder is None:
        raise Inapplicable("embeddings in a file cannot change")
    dataset = min(subject.embeddings, key=lambda name: subject.embeddings[name].values.size)
    first = _encode_some(subject, dataset, 5)
    again = _encode_some(subject, dataset, 3, threads=2, backwards=True)
    tolerance = subject.spec.tolerance
    if not agree(first, again, tolerance):
        got = in_words(first, again)
        raise Broken("different numbers the second time", where=dataset, expected=allowed(tolerance), got=got)
    how = f"{apart(first, again):.2g} of the spread apart" if tolerance else "bit for bit"
    return f"{len(first)} samples of {dataset}, twice, {how}"


def _encode_some(
    subject: MethodSubject, dataset: str, batch: int, threads: int = 1, *, backwards: bool = False
) -> np.ndarray:
    """Encode a few samples with a fresh encoder, in batches of one size or another."""
    from neuco_core.encode.encoder import full_params, open_cubes
    from neuco_core.encode.encoding import Encoding

    source = open_cubes(subject.spec, subject.catalog.load(Dataset, dataset))
    ids = tuple(source.ids()[:16])
    encoding = Encoding(subject.spec, source, full_params(subject.spec, {}), batch, threads)
    with encoding.running():
        rows = encoding.encode(ids[::-1] if backwards else ids, lambda *_: None)
    return rows[::-1] if backwards else rows
