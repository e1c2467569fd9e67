"""``neuco stress``: encode test images that get worse, and score them with probes that learned from clean ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

import click
import numpy as np

from neuco_core.cli.options import ids_of
from neuco_core.cli.output import echo_json, json_option, table
from neuco_core.cubes.cubes import Changed
from neuco_core.encode.encoding import Encoding
from neuco_core.encode.requirements import full_params, open_cubes
from neuco_core.env import available_cores, registry_dir
from neuco_core.errors import NeucoError, ScoreError, UsageError
from neuco_core.plugins.catalog import catalog, load_dataset, load_method, load_suite
from neuco_core.progress import sample_progress
from neuco_core.scoring.scorer import score
from neuco_core.specs import Method, Suite, Task, to_json
from neuco_core.tables.embeddings import Embeddings, make_embeddings
from neuco_core.tables.labels import Labels
from neuco_core.text import counted, join_names
from neuco_extensions.stress.changes import KINDS, LEVELS, Damage
from neuco_extensions.stress.curves import Stress, write_stress

SAMPLES = 200  # tested; the others of a dataset are learned from
LEAST = 0.1  # of a clean score: a part of less says nothing
SHARES = ("r2", "f1", "average_precision")  # metrics of which a part means something
STATISTICS = 32  # images by which is known what is usual of a band


@click.command()
@click.argument("method", shell_complete=ids_of("method"))
@click.option("--suite", required=True, shell_complete=ids_of("suite"), help="The tasks that are scored.")
@click.option("--samples", type=click.IntRange(20), default=SAMPLES, show_default=True, help="Test images.")
@click.option("--keep", is_flag=True, help="Store the curves, for the page of the method.")
@json_option
def stress(method: str, suite: str, samples: int, keep: bool, as_json: bool) -> None:
    """Score METHOD on test images that get worse: noise, haze, lost bands, a cloud, a shift, coarser pixels.

    Probes learn from clean images. What is shown is the share of the clean score that is kept at five levels, averaged
    over the tasks on which the clean score is at least 0.1. It is never part of a rank.
    """
    spec = load_method(method)
    if not spec.sees_images:
        raise UsageError(
            f"method {spec.id!r} encodes no images", expected="an encoder of images", got="files or positions"
        )
    result = measure(spec, load_suite(suite), samples)
    if keep:
        click.echo(f"kept in {write_stress(registry_dir(), result)}", err=True)
    if as_json:
        echo_json({**to_json(result), "number": result.number})
        return
    rows = [(kind, *(f"{value:.3f}" for value in values)) for kind, values in result.curves.items()]
    click.echo(table(("share kept", *map(str, LEVELS)), rows, right=set(range(1, 6))))
    tasks = counted(len(result.clean), "task")
    click.echo(f"{spec.id} keeps {result.number:.3f} on average: {tasks}, {samples} test images")


def measure(method: Method, suite: Suite, samples: int) -> Stress:
    """What is kept of the scores of clean images, for each kind of damage and level over all tasks."""
    embeddings: dict[str, str] = {}
    clean: dict[str, float] = {}
    kept: dict[tuple[str, int], list[float]] = defaultdict(list)
    reasons = []
    tasks = [task for task in catalog().suite_tasks(suite) if not task.control]
    for dataset in sorted({task.dataset for task in tasks}):
        try:
            whole = method.embeddings(dataset)
            labels = [(task, task.labels().only(whole.ids)) for task in tasks if task.dataset == dataset]
        except NeucoError as error:
            reasons.append(f"{dataset}: {error}")
            continue
        tested = whole.ids[:: max(2, len(whole) // samples)][:samples]
        of_dataset = []
        for task, truth in labels:
            start = _score(whole, task, truth, tested, suite.protocol)
            if task.metric in SHARES and start >= LEAST:
                of_dataset.append((task, truth))
                embeddings[dataset], clean[task.id] = whole.sha256, round(start, 6)
            else:
                reasons.append(f"{task.id}: {start:.2f} on clean images")
        for step, worse in _worse(method, dataset, whole, tested) if of_dataset else ():
            for task, truth in of_dataset:
                share = _score(worse, task, truth, tested, suite.protocol) / clean[task.id]
                kept[step].append(min(max(share, 0.0), 1.0))
    if not clean:
        what = f"no task of {suite.id} can show what is lost"
        raise ScoreError(what, expected=f"a score of {LEAST} on clean images", got=join_names(reasons))
    curves = {kind: tuple(round(fmean(kept[kind, level]), 6) for level in LEVELS) for kind in KINDS}
    return Stress(suite=suite.id, method=method.id, samples=samples, embeddings=embeddings, clean=clean, curves=curves)


def _worse(
    method: Method, dataset: str, whole: Embeddings, ids: tuple[str, ...]
) -> Iterator[tuple[tuple[str, int], Embeddings]]:
    """The embeddings with those of worse test images, by kind and level; the encoder learned from clean ones."""
    source = open_cubes(method, load_dataset(dataset))
    cubes, damage = Changed(source), Damage(source.read(ids[:: max(1, len(ids) // STATISTICS)]))
    encoding = Encoding(method, cubes, full_params(method, {}), threads=available_cores(), learn=source)
    rows = [whole.ids.index(name) for name in ids]
    count = len(ids) * len(KINDS) * len(LEVELS)
    with encoding.running(), sample_progress(method.id, count, None) as advance:
        for kind in KINDS:
            for level in LEVELS:
                cubes.change = partial(damage, kind=kind, level=level)
                values = whole.values.copy()
                values[rows] = encoding.encode(ids, advance)
                yield (kind, level), make_embeddings(whole.ids, values)


def _score(embeddings: Embeddings, task: Task, labels: Labels, tested: Sequence[str], protocol: str) -> float:
    """The score on the tested samples of a probe that learned from all the rest."""
    split = np.where(np.isin(labels.ids, tested), "test", "train")
    learned = [name for name, part in zip(labels.ids, split, strict=True) if part == "train"]
    fixed = replace(labels, split=split, splitter="fixed", groups=None)
    return score(embeddings, fixed, protocol, metric=task.metric, standardize_ids=learned).mean
