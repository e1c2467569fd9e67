"""The contract of tasks, methods and datasets: all checks that come with neuco, registered like anybody's.

The list feeds `neuco check` and its help, ``neuco_core.testing.contract``, `pytest --neuco` and continuous integration.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Check

# The limits that the contract names.
SAMPLES = 100  # ten test samples a split; below that a score says little
RARE = SAMPLES // 10
CORRELATED = 0.98
DIMENSIONS = 1024  # NeuCo-Bench's size of an embedding
LABELS_R2 = 0.999

CODE = "neuco_core.contract.checks"


def _check(check_id: str, asks: str, reason: str, cure: str, *, essential: bool = True) -> Check:
    """The check ``task-labels`` looks at a task, and is the function ``labels`` of ``checks/task.py``."""
    noun, _, name = check_id.partition("-")
    run = f"{CODE}.{noun}:{name}"
    return Check(id=check_id, noun=noun, asks=asks, reason=reason, cure=cure, run=run, essential=essential)


def _files(noun: str) -> Check:
    return Check(
        id=f"{noun}-files",
        noun=noun,
        asks=f"the plugin's directory has a card (README.md) that names the {noun}, and a test.py that holds a test",
        reason=f"a {noun} that nobody can look up or run is not maintained for long",
        cure=f"write README.md and test.py beside __init__.py; `neuco new {noun}` makes both",
        run=f"{CODE}:files",
    )


CHECKS = (
    _files("task"),
    _check(
        "task-metadata",
        asks="title, description, SPDX licence, citation (DOI, arXiv number or BibTeX), and for a regression the unit",
        reason="people who did not make the task compare and quote its scores",
        cure="fill in the fields of Task(…)",
    ),
    _check(
        "task-dataset",
        asks="the dataset is registered",
        reason="an encoder cannot use labels without inputs",
        cure="register the dataset in the same plugin, or name one of `neuco datasets`",
    ),
    _check(
        "task-source",
        asks="the labels are inside the plugin, or pinned by a sha256 and can be fetched",
        reason="a score means nothing unless it is certain what was scored",
        cure="`neuco data package FILE` prints the declaration with its sha256",
    ),
    _check(
        "task-labels",
        asks="the labels are valid: unique ids, finite, of the task's kind, not constant",
        reason="every later check relies on them",
        cure="`neuco data package FILE` names the first bad row",
    ),
    _check(
        "task-samples",
        asks=f"at least {SAMPLES} labelled samples, and {RARE} of each class",
        reason="a tenth of the samples is tested: with too few, the score is noise",
        cure="add samples, or merge rare classes",
    ),
    _check(
        "task-novelty",
        asks=f"the labels are not those of another task, and correlate with none by more than {CORRELATED} "
        "(not essential: skipped if no other labels of the dataset can be read here)",
        reason="a task that counts twice tilts the ranking",
        cure="explain in the card why both are needed, or drop one",
        essential=False,
    ),
    _check(
        "task-solvable",
        asks="embeddings that contain the labels score above 0.9, or remove 90 % of the error that a guess makes",
        reason="a task that even its own labels do not solve measures luck",
        cure="look at the labels: a few extreme values, or almost all of them equal, are the usual reasons",
    ),
    _check(
        "task-chance",
        asks="random embeddings score no better than guessing, and a perfect answer does",
        reason="a task that random numbers solve measures nothing",
        cure="choose another metric, or balance the classes; greater_is_better must state the metric's true direction",
    ),
    _check(
        "task-baseline",
        asks="the declared baseline is reached by its method under its protocol, within the tolerance, and is not with "
        "shuffled labels (a warning; control tasks are exempt)",
        reason="it proves that task, data and scorer are the author's",
        cure="measure it with `neuco score` and declare the result, or find out what changed; the seed is fixed, so a "
        "tolerance of 0.01 is ample",
    ),
    _check(
        "task-repeatable",
        asks="scoring twice gives the same score, whatever the order of the embeddings' rows",
        reason="a number that changes by itself cannot be compared",
        cure="the usual reason is a loader that depends on time, chance or the order of a set",
    ),
    _check(
        "task-headroom",
        asks="the declared baseline or plain statistics of the images beat a guess by two standard errors, and neither "
        "scores above 0.99, or removes 99 % of the error that a guess makes; control tasks are exempt",
        reason="labels that the images do not explain rank methods by luck; labels that anything cheap explains rank "
        "nobody",
        cure="check that ids, labels and images belong together; if the task is just hard, declare a baseline that "
        "beats a guess; if it is too easy, explain in the card what it is for",
    ),
    _files("method"),
    _check(
        "method-metadata",
        asks="title, description, SPDX licence; a citation, if there is one, that can be followed",
        reason="the leaderboard must show what a method is and whether it may be used",
        cure="fill in the fields of Method(…)",
    ),
    _check(
        "method-covers",
        asks="every labelled sample of a dataset that the method can be run on has an embedding",
        reason="samples that are left out are usually the hard ones",
        cure="embed all samples; `neuco validate FILE --dataset D` lists the missing ones",
    ),
    _check(
        "method-values",
        asks=f"values are finite and not all the same, at most {DIMENSIONS} per sample, or as many as declared",
        reason="the benchmark compares embeddings of a small fixed size",
        cure="reduce the dimensions, and repair samples that give NaN or infinity",
    ),
    _check(
        "method-deterministic",
        asks="the encoder gives the same numbers twice, whatever the order and size of the batches and the number of "
        "threads: bit for bit, or within the tolerance that the method declares",
        reason="a number that changes by itself cannot be compared",
        cure="seed random numbers with a constant, put a network into evaluation mode, do not normalise over a batch; "
        "declare Method(tolerance=1e-4) if a library rounds differently for another batch",
    ),
    _check(
        "method-honest",
        asks=f"labels cannot be read off with R² ≥ {LABELS_R2}, unless plain statistics of the images explain them as "
        "well; control labels not at all; and embeddings follow the images alone",
        reason="labels in disguise are not an embedding",
        cure="remove the labels from what the method sees; if it needs the names of samples, declare "
        "Method(uses_ids=True)",
    ),
    _files("dataset"),
    _check(
        "dataset-metadata",
        asks="title, description, SPDX licence, bands, and a protocol that exists, if one is named",
        reason="people who did not make the dataset score methods on it",
        cure="fill in the fields of Dataset(…)",
    ),
    _check(
        "dataset-images",
        asks="every image can be read, and bands and seasons are those declared",
        reason="a damaged image stops every encoder, and one that is left out in silence changes every score",
        cure="`neuco data verify DATASET` names each damaged image; pack them again without these",
    ),
)


@hookimpl
def neuco_checks() -> Iterator[Check]:
    yield from CHECKS
