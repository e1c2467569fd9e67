"""The study behind `neuco geobench tune`: a file for each method and task, written after every trial.

What it has found can be submitted to GEO-Bench.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from neuco_core.errors import DataError, NeucoError, ScoreError, UsageError
from neuco_core.files import dump, hashed, read_strictly, write_atomic
from neuco_core.plugins import catalog
from neuco_core.protocol import load_protocol
from neuco_core.runs.engine import EngineLike, StepLimits
from neuco_core.runs.messages import Call, CallContext, Embed, Group, Returned
from neuco_core.specs import exact, to_json
from neuco_core.text import counted, join_names
from neuco_extensions.geobench.facts import DATASETS, SEEDS
from neuco_extensions.geobench.search import (
    INNER,
    SHARE,
    STARTUP,
    TEST_SIZE,
    Repeat,
    Trial,
    TuningPlan,
    divide,
    load_optuna,
    repeated,
    search,
)
from neuco_extensions.geobench.submission import GeobenchSubmission, Model, Runs, SubmissionInfo

if TYPE_CHECKING:
    from neuco_core.specs import Method, Task
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

LARGEST = 10_000_000


class TuningRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A method on a task, as far as it has come. ``key`` names all that the numbers depend on."""

    schema: Literal[1] = 1
    key: str
    method: str
    task: str
    dataset: str
    metric: str
    greater_is_better: bool
    protocol: str
    probe: str
    train: int
    test: int
    trials: tuple[Trial, ...] = ()
    repeats: tuple[Repeat, ...] = ()

    @property
    def best(self) -> Trial:
        sign = -1 if self.greater_is_better else 1
        return min(self.trials, key=lambda trial: sign * trial.value)


def tune(
    method: str,
    task: Task,
    embeddings: Embeddings,
    labels: Labels,
    plan: TuningPlan,
    begun: TuningRun | None = None,
    threads: int | None = None,
    report: Callable[[TuningRun], None] = lambda run: None,
) -> TuningRun:
    """Search and repeat; what ``begun`` has is not done again. Every trial and every repeat is ``report``ed."""
    divided = divide(embeddings, labels, plan)
    # All that the numbers depend on: the very same data, rules and sampler.
    rules = {"protocol": to_json(plan.strict), "space": plan.space, "seed": plan.seed, "metric": task.metric}
    constants = {"test_size": TEST_SIZE, "inner": INNER, "share": SHARE, "startup": STARTUP}
    content = {"embeddings": embeddings.sha256, "labels": labels.sha256, "optuna": load_optuna().__version__}
    run = TuningRun(
        key=hashed(rules | constants | content),
        method=method,
        task=task.id,
        dataset=task.dataset,
        metric=task.metric,
        greater_is_better=catalog.load_metric(task.metric).greater_is_better,
        protocol=plan.strict.name,
        probe=plan.protocol.probe,
        train=len(divided.train),
        test=len(divided.test),
    )
    if begun and begun.key != run.key:
        hint = "Choose another --out, or remove the file to start again"
        where = f"{method}/{task.id}.json"
        raise DataError("the file is of other data, another protocol, seed or optuna", where=where, hint=hint)
    if begun:
        # Another number of trials may well find something else, so repeats begin anew.
        repeats = begun.repeats[: plan.repeats] if len(begun.trials) == plan.trials else ()
        run = replace(run, trials=begun.trials[: plan.trials], repeats=repeats)
    for trial in search(divided, plan, task.metric, run.trials, run.greater_is_better, threads):
        run = replace(run, trials=(*run.trials, trial))
        report(run)
    for repeat in repeated(divided, plan, task.metric, run.best.settings, run.repeats, threads):
        run = replace(run, repeats=(*run.repeats, repeat))
        report(run)
    return run


def read_tuned(path: Path) -> TuningRun | None:
    return read_strictly(path, TuningRun, "a file of `neuco geobench tune`", most=LARGEST) if path.exists() else None


def write_tuned(path: Path, run: TuningRun) -> None:
    write_atomic(path, dump(msgspec.to_builtins(run)))


def tune_on(
    engine: EngineLike, pairs: Sequence[tuple[Method, Task]], plan: TuningPlan, out: Path, threads: int = 1
) -> Iterator[TuningRun]:
    """The same on an engine: a step is a method on a task, written when it ends. The numbers are the same."""
    calls: dict[Embed, list[Call]] = {}
    files = {}
    for method, task in pairs:
        label = f"{method.label} on {task.label}"
        files[label] = out / method.id / f"{task.id}.json"
        arguments = {
            "method": method.id,
            "task": task.label,
            "protocol": plan.protocol.name,
            "counts": {"trials": plan.trials, "repeats": plan.repeats, "seed": plan.seed},
            "begun": msgspec.to_builtins(read_tuned(files[label])),
        }
        embed = Embed(method.label, task.dataset, threads=threads)
        call = Call("neuco_extensions.geobench.tune:tune_on_worker", arguments, label, embed, threads)
        calls.setdefault(embed, []).append(call)
    failures = []
    for step, result in engine.run([Group(tuple(steps), embed) for embed, steps in calls.items()], StepLimits()):
        if isinstance(result, Returned):
            run = msgspec.convert(result.value, TuningRun)
            write_tuned(files[step.label], run)
            yield run
        else:
            failures.append(f"{step.label}: {getattr(result, 'reason', '')}")
    if failures:
        what = f"{counted(len(failures), 'pair')} could not be tuned: {join_names(failures)}"
        raise ScoreError(what, hint="Run it again: it goes on")


def tune_on_worker(
    call: CallContext, method: str, task: str, protocol: str, counts: Mapping[str, int], begun: object
) -> dict[str, Any]:
    plan = TuningPlan(load_protocol(protocol), **counts)
    earlier = msgspec.convert(begun, TuningRun | None)
    spec = catalog.load_task(exact(task))
    run = tune(method, spec, call.embeddings(), call.labels(task), plan, earlier, call.threads)
    return dict(msgspec.to_builtins(run))


def read_all_tuned(folder: Path) -> list[TuningRun]:
    """Every file of a folder that `neuco geobench tune` has written; what is not complete is an error."""
    runs = [run for path in sorted(folder.glob("*/*.json")) if (run := read_tuned(path))]
    if not runs:
        raise DataError("nothing is tuned here", where=folder, hint="Run `neuco geobench tune --out FOLDER`")
    for run in runs:
        if not run.repeats:
            hint = "Run the same `neuco geobench tune` again: it goes on"
            raise DataError(f"{run.method} on {run.task} is not complete", where=folder, hint=hint)
    return runs


def submission_of(tuned: Sequence[TuningRun], datasets: Mapping[str, str]) -> GeobenchSubmission:
    """A submission; ``datasets`` say which dataset of GEO-Bench a task is, and others keep their own names."""
    if strangers := sorted(set(datasets) - {item.task for item in tuned}):
        raise UsageError("tasks that were not tuned", got=", ".join(strangers))
    if errors := sorted({item.task for item in tuned if not item.greater_is_better}):
        hint = "GEO-Bench takes scores of which higher is better: choose another metric"
        raise UsageError("an error instead of a score", got=", ".join(errors), hint=hint)
    for item in tuned:
        if len(item.repeats) < SEEDS:
            got = f"{counted(len(item.repeats), 'repeat')} of {item.method} on {item.task}"
            raise UsageError("too few repeats", expected=SEEDS, got=got, hint="Run `neuco geobench tune --repeats 5`")
    models = {}
    for method in sorted({item.method for item in tuned}):
        models[method] = Model(method, "N/A")  # all that is known of one that is not registered here, such as a file
        with suppress(NeucoError):
            spec = catalog.load_method(method)
            models[method] = Model(
                spec.title or method, f"{spec.n_parameters / 1e6:.3g}M" if spec.n_parameters else "N/A"
            )
    about = SubmissionInfo(
        id="tuned",
        title="tuned",
        source="neuco geobench tune",
        license="N/A",
        tuning="frozen",
        paper="N/A",
        code="N/A",
        trials=str(max(len(item.trials) for item in tuned)),
        notes="A probe on frozen embeddings; settings found inside the training part.",
        comments="N/A",
        models=models,
    )
    return GeobenchSubmission(about, tuple(_runs(item, datasets.get(item.task, item.task)) for item in tuned))


def _runs(item: TuningRun, dataset: str) -> Runs:
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
