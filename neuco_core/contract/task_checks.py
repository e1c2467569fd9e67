"""The contract of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuco_core.contract.baselines import NO_HEADROOM, shuffled
from neuco_core.contract.common_checks import require_words
from neuco_core.contract.contract import Broken, Inapplicable, NoEvidence, Warn, check
from neuco_core.contract.metadata import check_citation, check_license
from neuco_core.contract.subjects import ORDER, QUICK, TaskSubject
from neuco_core.contract.yardstick import standard_error
from neuco_core.errors import NeucoError
from neuco_core.protocol import load_protocol
from neuco_core.specs import ONE_LABEL, PARTS, Baseline, Dataset, Method, Task
from neuco_core.text import counted

if TYPE_CHECKING:
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

SAMPLES = 100  # ten test samples a split; below that a score says little
CORRELATED = 0.98
FEW = 10  # splits


@check(
    "task-metadata",
    "task",
    asks="title, description, SPDX licence, citation (DOI, arXiv number or BibTeX), and for a regression the unit",
    reason="people who did not make the task compare and quote its scores",
    cure="fill in the fields of Task(…)",
)
def metadata(subject: TaskSubject) -> str:
    require_words(subject)
    if subject.spec.kind == "regression" and not subject.spec.unit:
        raise Broken("no unit", expected="the label's unit, or '1' for a share")
    return f"{check_license(subject.spec.license)}, {check_citation(subject.spec.citation)}"


@check(
    "task-dataset",
    "task",
    asks="the dataset is registered",
    reason="an encoder cannot use labels without inputs",
    cure="register the dataset in the same plugin, or name one of `neuco datasets`",
)
def dataset(subject: TaskSubject) -> str:
    return subject.catalog.load(Dataset, subject.spec.dataset).id


@check(
    "task-source",
    "task",
    asks="the labels are inside the plugin, or pinned by a sha256 and can be fetched",
    reason="a score means nothing unless it is certain what was scored",
    cure="`neuco data package FILE` prints the declaration with its sha256",
)
def source(subject: TaskSubject) -> str:
    from neuco_core.fetch.fetch import fetch

    return f"verified {fetch(subject.spec.source).name}"


@check(
    "task-labels",
    "task",
    asks="the labels are valid: unique ids, finite, of the task's kind, not constant",
    reason="every later check relies on them",
    cure="`neuco data package FILE` names the first bad row",
)
def labels(subject: TaskSubject) -> str:
    dropped = sum(subject.labels.dropped.values())
    return f"{len(subject.labels)} labels" + (f", {dropped} rows without one" if dropped else "")


@check(
    "task-samples",
    "task",
    asks=f"at least {SAMPLES} labelled samples, and {SAMPLES // 10} of each class",
    reason="a tenth of the samples is tested: with too few, the score is noise",
    cure="add samples, or merge rare classes",
)
def samples(subject: TaskSubject) -> str:
    import numpy as np

    count = len(subject.labels.ids)
    if count < SAMPLES:
        raise Broken("too few samples", expected=f"at least {SAMPLES}", got=count)
    if subject.spec.kind == "classification":
        rarest = int(np.unique(subject.labels.values, return_counts=True)[1].min())
        if rarest < SAMPLES // 10:
            raise Broken("a class has too few samples", expected=f"at least {SAMPLES // 10}", got=rarest)
    if subject.spec.kind == "multilabel":
        ones = subject.labels.values.sum(axis=0)
        place = int(np.minimum(ones, count - ones).argmin())
        if min(ones[place], count - ones[place]) < SAMPLES // 10:
            expected, got = f"at least {SAMPLES // 10} with it and without", f"{ones[place]:.0f} of {count}"
            raise Broken(f"label {subject.labels.columns[place]!r} is too rare", expected=expected, got=got)
    if subject.labels.split is not None:
        parts = {part: int((subject.labels.split == part).sum()) for part in PARTS}
        if min(parts.values()) < SAMPLES // 10:
            raise Broken("a part of the split has too few samples", expected=f"at least {SAMPLES // 10}", got=parts)
    return f"{count} samples"


@check(
    "task-novelty",
    "task",
    asks=f"the labels are not those of another task, and correlate with none by more than {CORRELATED} (not essential: "
    "skipped if no other labels of the dataset can be read here)",
    reason="a task that counts twice tilts the ranking",
    cure="say in the card why both are needed, or drop one",
    essential=False,
)
def novelty(subject: TaskSubject) -> str:
    from neuco_core.contract.pool import pool_of

    labels, pool = subject.labels, pool_of(subject.catalog, subject.spec.dataset)
    unread = {name: reason for name, reason in pool.unread.items() if name != subject.id}
    nearest = pool.nearest(labels, but=subject.id)  # a few: what is near is computed once more, from all labels
    if not nearest and not unread:
        raise Inapplicable("this is the only task of its dataset")
    if not nearest:
        name, reason = next(iter(unread.items()))
        raise NoEvidence(f"none of the {len(unread)} other tasks can be read", got=f"{name}: {reason}")
    close = [name for value, name in nearest if value > CORRELATED - 0.02]
    exact = [(_correlation(labels, subject.catalog.load(Task, name).labels()), name) for name in close]
    value, name = max(exact, default=nearest[0])
    if value > 1 - 1e-12:
        raise Broken(f"the same labels as task {name!r}")
    if value > CORRELATED:
        raise Warn(f"correlates with task {name!r}", expected=f"at most {CORRELATED}", got=f"{value:.3f}")
    more = f"; {counted(len(unread), 'task')} could not be read" if unread else ""
    return f"nearest of {len(pool.tasks - {subject.id})} is {name}, |r| = {value:.2f}{more}"


def _correlation(labels: Labels, other: Labels) -> float:
    """The largest absolute correlation between the labels of two tasks, over the samples that both have."""
    import numpy as np

    own, theirs = (item.frame().drop(columns=["group", "split"], errors="ignore") for item in (labels, other))
    both = own.add_suffix("_own").join(theirs.add_suffix("_other"), how="inner")
    varying = both.loc[:, both.nunique() > 1]
    if len(both) < 10 or varying.shape[1] < both.shape[1]:
        return 0.0
    split = len(labels.columns)
    return float(np.abs(np.corrcoef(varying.to_numpy().T)[:split, split:]).max())


@check(
    "task-solvable",
    "task",
    asks="embeddings that contain the labels score above 0.9, or remove 90 % of the error that a guess makes",
    reason="a task that even its own labels do not solve measures luck",
    cure="look at the labels: a few extreme values, or almost all of them equal, are the usual reasons",
)
def solvable(subject: TaskSubject) -> str:
    yard, reached = subject.yardstick, subject.score(subject.oracle()).mean
    if not yard.better(reached, yard.solved):
        expected, got = yard.beyond(yard.solved), yard.show(reached)
        raise Broken("the labels themselves do not solve the task", expected=expected, got=got)
    return f"{subject.spec.metric} {yard.show(reached)}"


@check(
    "task-chance",
    "task",
    asks="random embeddings score no better than guessing, and a perfect answer does",
    reason="a task that random numbers solve measures nothing",
    cure="choose another metric, or balance the classes; greater_is_better must say the metric's true direction",
)
def chance(subject: TaskSubject) -> str:
    yard, noise = subject.yardstick, subject.score(subject.noise())
    luck = standard_error(noise)
    if yard.better(noise.mean, yard.limit(luck)):
        expected, got = f"not {yard.beyond(yard.limit(luck))}", yard.show(noise.mean)
        raise Broken("random embeddings solve the task", expected=expected, got=got)
    if not yard.better(yard.perfect, yard.guess):
        expected = f"{yard.beyond(yard.guess)}, the score of a guess"
        raise Broken("a perfect answer is no better than a guess", expected=expected, got=yard.show(yard.perfect))
    return f"{subject.spec.metric} {yard.show(noise.mean)}, and {yard.show(yard.guess)} for a guess"


@check(
    "task-baseline",
    "task",
    asks="the declared baseline is reached by its method under its protocol, within the tolerance, and is not with "
    "shuffled labels (a warning; control tasks are exempt)",
    reason="it proves that task, data and scorer are the author's",
    cure="measure it with `neuco score` and declare the result, or find out what changed; the seed is fixed, so a "
    "tolerance of 0.01 is ample",
)
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
    _require_labels_matter(subject, embeddings, expected)
    return f"{method.id} reaches {reached:.4g}, declared {expected.score:g} ± {expected.tolerance:g}"


def _require_labels_matter(subject: TaskSubject, embeddings: Embeddings, expected: Baseline) -> None:
    """A few splits are enough to tell labels from shuffled ones."""
    from neuco_core.scoring.scorer import score

    if subject.spec.control or expected.source.endswith(NO_HEADROOM):
        return
    protocol = load_protocol(expected.protocol)
    few = protocol.with_(k=min(protocol.k, FEW))
    reached = score(embeddings, shuffled(subject.labels), few, metric=subject.spec.metric).mean
    if abs(reached - expected.score) <= expected.tolerance:
        wanted = f"a score outside {expected.score:g} ± {expected.tolerance:g}"
        raise Warn("shuffled labels meet the baseline as well", expected=wanted, got=f"{reached:.4g}")


@check(
    "task-repeatable",
    "task",
    asks="scoring twice gives the same score, whatever the order of the embeddings' rows",
    reason="a number that changes by itself cannot be compared",
    cure="the usual reason is a loader that depends on time, chance or the order of a set",
)
def repeatable(subject: TaskSubject) -> str:
    from neuco_core.scoring.scorer import score
    from neuco_core.tables.embeddings import make_embeddings

    given = subject.oracle()
    turned = make_embeddings(given.ids[::-1], given.values[::-1])
    # Its order of training counts, so NeuCo-Bench's own probe is the one to try, where it is for such labels.
    rules = ORDER if subject.spec.kind in ONE_LABEL else QUICK
    first = subject.score(given, rules).per_split
    for what, other in (("a second time", given), ("with the rows in another order", turned)):
        again = score(other, subject.spec, rules).per_split  # the task itself: its labels are loaded again
        if repr(again) != repr(first):
            raise Broken(f"different scores {what}", expected=first, got=again)
    return f"{len(first)} splits, bit for bit"
