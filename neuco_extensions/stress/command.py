"""``neuco stress``: encode test images that get worse, and score them with probes that learned from clean ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import click
import numpy as np

from neuco_core.cli.options import ids_of
from neuco_core.cli.output import echo_json, json_option, table
from neuco_core.encode.encoding import Encoding
from neuco_core.encode.requirements import full_params, open_cubes
from neuco_core.env import available_cores, registry_dir
from neuco_core.errors import NeucoError, ScoreError, UsageError
from neuco_core.plugins.catalog import catalog, load_dataset, load_method, load_suite
from neuco_core.progress import sample_progress
from neuco_core.scoring.scorer import score
from neuco_core.specs import Method, Task, to_json
from neuco_core.tables.embeddings import Embeddings, make_embeddings
from neuco_core.tables.labels import Labels
from neuco_core.text import join_names
from neuco_extensions.stress.changes import KINDS, LEVELS, Stressed
from neuco_extensions.stress.curves import Stress, write_stress

SAMPLES = 200  # tested; the others of a dataset are learned from
LEAST = 0.1  # of a clean score: a part of less says nothing
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
    spec, of_suite = load_method(method), load_suite(suite)
    if not spec.sees_images:
        raise UsageError(
            f"method {spec.id!r} encodes no images", expected="an encoder of images", got="files or positions"
        )
    tasks = [task for task in catalog().suite_tasks(of_suite) if not task.control]
    result = measure(spec, tasks, of_suite.id, of_suite.protocol, samples)
    if keep:
        click.echo(f"kept in {write_stress(registry_dir(), result)}", err=True)
    if as_json:
        echo_json({**to_json(result), "curves": to_json(result.curves()), "number": result.number})
        return
    rows = [(kind, *(f"{value:.3f}" for value in values)) for kind, values in result.curves().items()]
    click.echo(table(("share kept", *map(str, LEVELS)), rows, right=set(range(1, 6))))
    click.echo(f"{spec.id} keeps {result.number:.3f} on average: {len(result.clean)} tasks, {samples} test images")


def measure(method: Method, tasks: Sequence[Task], suite: str, protocol: str, samples: int) -> Stress:
    """The scores on clean and on worse images, task by task."""
    embeddings: dict[str, str] = {}
    clean: dict[str, float] = {}
    scores: dict[str, dict[str, tuple[float, ...]]] = {}
    reasons = []
    for dataset in sorted({task.dataset for task in tasks}):
        try:
            of_dataset = [(task, task.labels()) for task in tasks if task.dataset == dataset]
            whole = method.embeddings(dataset)
        except NeucoError as error:
            reasons.append(f"{dataset}: {error}")
            continue
        step = max(2, len(whole) // samples)
        tested = whole.ids[::step][:samples]
        rows = dict(_worse(method, dataset, tested))
        for task, labels in of_dataset:
            start = _scored(whole, tested, None, task, labels, protocol)
            if task.metric not in ("r2", "f1", "average_precision") or start < LEAST:
                reasons.append(f"{task.id}: {start:.2f} on clean images")
                continue
            embeddings[dataset], clean[task.id] = whole.sha256, start
            scores[task.id] = {
                kind: tuple(_scored(whole, tested, rows[kind, level], task, labels, protocol) for level in LEVELS)
                for kind in KINDS
            }
    if not clean:
        what = f"no task of {suite} can show what is lost"
        raise ScoreError(what, expected=f"a score of {LEAST} on clean images", got=join_names(reasons))
    return Stress(
        suite=suite,
        method=method.id,
        version=method.version,
        samples=samples,
        embeddings=embeddings,
        clean={name: round(value, 6) for name, value in clean.items()},
        scores={n: {k: tuple(round(v, 6) for v in vs) for k, vs in kinds.items()} for n, kinds in scores.items()},
    )


def _worse(method: Method, dataset: str, ids: Sequence[str]) -> Iterator[tuple[tuple[str, int], np.ndarray]]:
    """The rows of all test images, by kind and level, by one encoder that learned from clean images."""
    source = open_cubes(method, load_dataset(dataset))
    cubes = Stressed(source, ids[:: max(1, len(ids) // STATISTICS)])
    encoding = Encoding(method, cubes, full_params(method, {}), threads=available_cores(), learn=source)
    count = len(ids) * len(KINDS) * len(LEVELS)
    with encoding.running(), sample_progress(method.id, count, None) as advance:
        for cubes.kind in KINDS:
            for cubes.level in LEVELS:
                yield (cubes.kind, cubes.level), encoding.encode(tuple(ids), advance)


def _scored(
    whole: Embeddings, tested: Sequence[str], rows: np.ndarray | None, task: Task, labels: Labels, protocol: str
) -> float:
    """The score on the tested samples, whose ``rows`` may be others, of a probe that learned from all the rest."""
    values = whole.values.copy()
    place = {name: row for row, name in enumerate(whole.ids)}
    if rows is not None:
        values[[place[name] for name in tested]] = rows
    labels = labels.only(whole.ids)
    split = np.where(np.isin(labels.ids, tested), "test", "train")
    learned = [name for name, part in zip(labels.ids, split, strict=True) if part == "train"]
    fixed = replace(labels, split=split, splitter="fixed", groups=None)
    made = make_embeddings(whole.ids, values)
    return score(made, fixed, protocol, metric=task.metric, standardize_ids=learned).mean
