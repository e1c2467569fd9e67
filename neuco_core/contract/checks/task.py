"""The contract of a task: its metadata and labels, and that its scores mean something."""

from __future__ import annotations

import numpy as np

from neuco_core.contract.builtin import CORRELATED, RARE, SAMPLES
from neuco_core.contract.checks import check_citation, check_license, require_description
from neuco_core.contract.contract import Broken, Inapplicable, NoEvidence, Warn
from neuco_core.contract.label_similarity import label_pool
from neuco_core.contract.metric_scale import NO_HEADROOM, shuffled, standard_error
from neuco_core.contract.subjects import ORDER, QUICK, TaskSubject
from neuco_core.errors import NeucoError
from neuco_core.fetch.fetch import fetch
from neuco_core.protocol import load_protocol
from neuco_core.scoring.scorer import Score, score
from neuco_core.specs import ONE_LABEL, PARTS, Dataset, Method
from neuco_core.tables.embeddings import make_embeddings
from neuco_core.text import counted

SAME = 1 - 1e-12  # a correlation; labels are compared as float32
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
    return subject.catalog.load(Dataset, subject.spec.dataset).id


def source(subject: TaskSubject) -> str:
    return f"verified {fetch(subject.spec.source).name}"


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
    return f"{count} samples"


def novelty(subject: TaskSubject) -> str:
    pool = label_pool(subject.catalog, subject.spec.dataset)
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
    method = subject.catalog.load(Method, expected.method)
    try:
        embeddings = method.embeddings(subject.spec.dataset)
    except NeucoError as error:
        raise NoEvidence(f"{method.id} cannot be run here: {error}") from error
    reached = subject.score(embeddings, expected.protocol).mean
    if not abs(reached - expected.score) <= expected.tolerance:
        wanted = f"{expected.score:g} ± {expected.tolerance:g} by {method.id} under {expected.protocol}"
        raise Broken("the baseline is not met", expected=wanted, got=f"{reached:.4g}")
    if not subject.spec.control and not expected.source.endswith(NO_HEADROOM):
        protocol = load_protocol(expected.protocol)
        few = protocol.with_(k=min(protocol.k, FEW))
        blind = score(embeddings, shuffled(subject.labels), few, metric=subject.spec.metric).mean
        if abs(blind - expected.score) <= expected.tolerance:
            wanted = f"a score outside {expected.score:g} ± {expected.tolerance:g}"
            raise Warn("shuffled labels meet the baseline as well", expected=wanted, got=f"{blind:.4g}")
    return f"{method.id} reaches {reached:.4g}, declared {expected.score:g} ± {expected.tolerance:g}"


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
            scores[name] = subject.score(subject.catalog.load(Method, name).embeddings(subject.spec.dataset))
        except NeucoError as error:
            left_out.append(f"{name}: {error}")
    if not scores:
        raise NoEvidence("nothing could be tried", got=" | ".join(left_out))
    shown = ", ".join(f"{n} {scale.show(s.mean)} ± {scale.show(standard_error(s))}" for n, s in scores.items())
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
