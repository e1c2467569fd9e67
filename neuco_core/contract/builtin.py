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
GROUPS = 11  # of fewer, one is tested at a time: at most ten splits differ
CORRELATED = 0.98
DIMENSIONS = 1024  # NeuCo-Bench's size of an embedding
LABELS_R2 = 0.999
# Packages that take long to import. `neuco tasks` lists plugins without any of them.
HEAVY = ("boto3", "numba", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "torch", "xarray")
# What a card says until somebody writes down what is true of it.
CAVEATS = {
    "task": "Say here what the labels do not tell: how they were measured, what is missing, what a random split leaks.",
    "method": "Say here what it was trained on, and whether that overlaps with the tasks.",
    "dataset": "Say here how the images were chosen and made, what they do not show, and which of them overlap.",
}

CODE = "neuco_core.contract.checks"


def _check(check_id: str, asks: str, reason: str, cure: str, *, essential: bool = True) -> Check:
    """The check ``task-labels`` looks at a task, and is the function ``labels`` of ``checks/task.py``."""
    noun, _, name = check_id.partition("-")
    run = f"{CODE}.{noun}:{name}"
    return Check(id=check_id, noun=noun, asks=asks, reason=reason, cure=cure, run=run, essential=essential)


def _of_plugin(noun: str) -> Iterator[Check]:
    """What every plugin is asked: ``task-files`` is the function ``files`` of ``checks/plugin.py``."""
    for name, asks, reason, cure in (
        (
            "files",
            f"the plugin's directory has a card (README.md) that names the {noun} and has its caveats, and a test.py "
            "with a test that asserts something",
            f"a {noun} that nobody can look up or run is not maintained for long",
            f"write README.md and test.py beside __init__.py; `neuco new {noun}` makes both. A package of its own has "
            "README.md beside pyproject.toml: install it again (`pip install FOLDER`) after a change",
        ),
        (
            "review",
            "the directory's files can be read by a reviewer: no compiled code, no links, no hidden characters, no "
            "names that look like others, no data of more than 1 MB",
            "a reviewer answers for what is merged, and git keeps it for ever",
            "add the files themselves, as plain source or small data; publish what is large",
        ),
        (
            "addresses",
            "every declared file is inside the plugin, or at https://, hf:// or s3://; only tasks, methods and "
            "datasets are registered",
            "everybody must be able to fetch and verify it without running somebody's code",
            "publish the file (`neuco data upload`) and declare its address",
        ),
        (
            "imports",
            f"importing the plugin loads none of {', '.join(HEAVY)}",
            "listing plugins imports all of them",
            "import them inside the functions that need them",
        ),
        (
            "tests",
            "the plugin's own tests pass (not essential: skipped without pytest)",
            "what its author promises is true here, too",
            "run `python -m pytest` on them",
        ),
        (
            "change",
            "no id of main is lost or moved, and no core file, record or board is touched (needs git and main: always "
            "skipped here, made by `python -m ci score-pr`)",
            "records hang on ids, and only main writes them",
            "make one pull request of one directory",
        ),
    ):
        run, essential = f"{CODE}.plugin:{name}", name not in ("tests", "change")
        yield Check(id=f"{noun}-{name}", noun=noun, asks=asks, reason=reason, cure=cure, run=run, essential=essential)


def _sanity() -> Iterator[Check]:
    """Whether a method is what it claims to be: the functions of ``checks/sane.py``. They need no labels."""
    for name, function, asks, reason, cure in (
        (
            "method-sane",
            "sane",
            "embeddings of a few dozen cubes vary as those of a network that works do, and follow the images",
            "a wrong unit, dead layers and images that are mixed up cost points and leave no other trace",
            "look at what each sentence names; if the method is meant so, say in its card why",
        ),
        (
            "method-network",
            "network",
            "a network is in evaluation mode, has weights that were trained, and is given inputs of the size, bands "
            "and pooling that the method's parameters declare (a warning; skipped without torch)",
            "a network gives numbers for anything that it is given",
            "compare with the code that the weights were published with: unit, mean and std, order of bands",
        ),
        (
            "method-distinct",
            "distinct",
            "embeddings and scores are not those of another method on record",
            "another size or other weights that give the same numbers were not loaded",
            "look at which file and which network the parameters lead to",
        ),
    ):
        run = f"{CODE}.sane:{function}"
        yield Check(id=name, noun="method", asks=asks, reason=reason, cure=cure, run=run, essential=False)


CHECKS = (
    *_of_plugin("task"),
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
        "task-suites",
        asks="every suite that compares the task names a version of it that is registered",
        reason="a suite is frozen: without that version its board cannot be made",
        cure="register that version beside the new one, or make a new suite",
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
    *_of_plugin("method"),
    _check(
        "method-metadata",
        asks="title, description, SPDX licence; a citation, if there is one, that can be followed",
        reason="the leaderboard must show what a method is and whether it may be used",
        cure="fill in the fields of Method(…)",
    ),
    _check(
        "method-runs",
        asks="the method gives embeddings of the datasets that it can be run on",
        reason="every later check relies on them",
        cure="repair the encoder; one that needs certain bands declares Method(bands=(…)), and is run on datasets that "
        "have them",
    ),
    _check(
        "method-covers",
        asks="every labelled sample of a dataset that the method can be run on has an embedding",
        reason="samples that are left out are usually the hard ones",
        cure="embed all samples; `neuco check FILE --dataset D` lists the missing ones",
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
    *_sanity(),
    *_of_plugin("dataset"),
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
        cure="`neuco data check DATASET` names each damaged image; pack them again without these",
    ),
)


@hookimpl
def neuco_checks() -> Iterator[Check]:
    yield from CHECKS
