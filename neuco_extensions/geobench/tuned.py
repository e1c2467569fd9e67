"""What `neuco geobench tune` has found, summarised: as a board by capabilities, and as a submission to GEO-Bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from neuco_core.boards.published import Published, PublishedRow
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.plugins.catalog import load_method
from neuco_core.text import counted
from neuco_extensions.geobench.facts import DATASETS, SEEDS
from neuco_extensions.geobench.published import FACTS
from neuco_extensions.geobench.submission import About, Model, Runs, Submission
from neuco_extensions.geobench.tune import Tuned, read_tuned


def read_all_tuned(folder: Path) -> list[Tuned]:
    """Every file of a folder that `neuco geobench tune` has written; what is not complete is an error."""
    found = [read_tuned(path) for path in sorted(folder.glob("*/*.json"))]
    if not found:
        raise DataError("nothing is tuned here", where=folder, hint="Run `neuco geobench tune --out FOLDER`")
    for tuned in found:
        if not tuned.repeats:
            hint = "Run the same `neuco geobench tune` again: it goes on"
            raise DataError(f"{tuned.method} on {tuned.task} is not complete", where=folder, hint=hint)
    return found


def board_of(tuned: Sequence[Tuned]) -> Published:
    """A board by the capabilities that the tasks name as tags; repeats are the runs."""
    tasks = sorted({item.task for item in tuned})
    methods = sorted({item.method for item in tuned})
    scores = {(item.method, item.task): tuple(run.score for run in item.repeats) for item in tuned}
    rows = [
        PublishedRow(
            method=name,
            title=name,
            name=name,
            baseline=False,
            runs=tuple(scores.get((name, task), ()) for task in tasks),
            facts={"tuning": "frozen", "decoder": tuned[0].probe},
        )
        for name in methods
    ]
    return Published(
        schema=2,
        id="tuned",
        title="Tuned here",
        kind="geobench",
        description="Settings found inside the training part, then repeated with several seeds.",
        citation="",
        source="`neuco geobench tune`",
        rows=tuple(rows),
        tasks=tuple(tasks),
        metrics={item.task: item.metric for item in tuned},
        fact_columns=FACTS,
    )


def submission_of(tuned: Sequence[Tuned], name: str, *, datasets: Mapping[str, str] | None = None) -> Submission:
    """A submission; ``datasets`` say which dataset of GEO-Bench a task is, and others keep their own names."""
    chosen = dict(datasets or {})
    if strangers := sorted(set(chosen) - {item.task for item in tuned}):
        raise UsageError("tasks that were not tuned", got=", ".join(strangers))
    if errors := sorted({item.task for item in tuned if not item.greater_is_better}):
        hint = "GEO-Bench takes scores of which higher is better: choose another metric"
        raise UsageError("an error instead of a score", got=", ".join(errors), hint=hint)
    for item in tuned:
        if len(item.repeats) < SEEDS:
            got = f"{counted(len(item.repeats), 'repeat')} of {item.method} on {item.task}"
            raise UsageError("too few repeats", expected=SEEDS, got=got, hint="Run `neuco geobench tune --repeats 5`")
    about = About(
        id=name,
        title=name,
        source="neuco geobench tune",
        license="N/A",
        tuning="frozen",
        paper="N/A",
        code="N/A",
        trials=str(max(len(item.trials) for item in tuned)),
        notes="A probe on frozen embeddings; settings found inside the training part.",
        comments="N/A",
        models={method: _model(method) for method in sorted({item.method for item in tuned})},
    )
    return Submission(about, tuple(_runs(item, chosen.get(item.task, item.task)) for item in tuned))


def _model(method: str) -> Model:
    """A method that is not registered here, such as a file, has its name alone."""
    with suppress(NeucoError):
        spec = load_method(method)
        size = f"{spec.n_parameters / 1e6:.3g}M" if spec.n_parameters else "N/A"
        return Model(spec.title or method, size)
    return Model(method, "N/A")


def _runs(item: Tuned, dataset: str) -> Runs:
    settings, repeats = item.best.settings, item.repeats[:SEEDS]
    return Runs(
        backbone=item.method,
        dataset=dataset,
        metric=DATASETS.get(dataset, item.metric),
        decoder=item.probe,
        lr=float(settings["lr"]),
        weight_decay=float(settings["weight_decay"]),
        batch_size=int(settings["batch_size"]),
        batch_size_selection="HPO",
        n_trials=len(item.trials),
        early_stop_patience=None,
        data_percentages=100,
        partition="100%",
        experiment=f"neuco_{item.method}_{item.probe}",
        seeds=tuple(run.seed for run in repeats),
        scores=tuple(run.score for run in repeats),
    )
