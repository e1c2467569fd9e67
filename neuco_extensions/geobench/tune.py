"""The study behind `neuco geobench tune`: a file for each method and task, written after every trial.

What it has found can be submitted to GEO-Bench.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from neuco_core.errors import DataError, NeucoError, ScoreError, UsageError
from neuco_core.files import write_atomic
from neuco_core.jsonio import dump, hashed, read_strictly
from neuco_core.plugins import catalog
from neuco_core.protocol import load_protocol
from neuco_core.runs.engine import EngineLike
from neuco_core.runs.messages import Call, CallContext, Embed, Group, Returned, StepLimits
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
    best_of,
    divide,
    load_optuna,
    repeated,
    search,
)
from neuco_extensions.geobench.submission import About, GeobenchSubmission, Model, Runs

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
        return best_of(self.trials, self.greater_is_better)


def tune(
    method: str,
    task: Task,
    embeddings: Embeddings,
    labels: Labels,
    plan: TuningPlan,
    *,
    out: Path,
    threads: int | None = None,
    report: Callable[[TuningRun], None] = lambda run: None,
) -> TuningRun:
    """Search and repeat; every trial and every repeat is written when it is done, and ``report``ed."""
    divided = divide(embeddings, labels, plan)
    sizes = len(divided.train), len(divided.test)
    found = _begin(method, task, plan, key_of(task, plan, embeddings.sha256, labels.sha256), sizes, out)
    trials, repeats = _usable(found, plan)

    def keep() -> None:
        write_atomic(out, dump(msgspec.to_builtins(now())))
        report(now())

    def now() -> TuningRun:
        return msgspec.structs.replace(found, trials=tuple(trials), repeats=tuple(repeats))

    for trial in search(divided, plan, task.metric, list(trials), found.greater_is_better, threads):
        trials.append(trial)
        keep()
    for repeat in repeated(divided, plan, task.metric, now().best.settings, list(repeats), threads):
        repeats.append(repeat)
        keep()
    return now()


def _usable(found: TuningRun, plan: TuningPlan) -> tuple[list[Trial], list[Repeat]]:
    """Of what is in a file; another number of trials may well find something else, so repeats begin anew."""
    same = len(found.trials) == plan.trials
    return list(found.trials[: plan.trials]), list(found.repeats[: plan.repeats]) if same else []


def key_of(task: Task, plan: TuningPlan, embeddings: str, labels: str) -> str:
    """All that the numbers depend on: the very same data, rules and sampler."""
    given = {"protocol": to_json(plan.strict), "space": plan.space, "seed": plan.seed, "metric": task.metric}
    constants = {"test_size": TEST_SIZE, "inner": INNER, "share": SHARE, "startup": STARTUP}
    content = {"embeddings": embeddings, "labels": labels, "optuna": load_optuna().__version__}
    return hashed(given | constants | content)


def _begin(method: str, task: Task, plan: TuningPlan, key: str, sizes: tuple[int, int], out: Path) -> TuningRun:
    """What is in the file, or a beginning."""
    if out.exists():
        found = read_tuned(out)
        if found.key != key:
            hint = "Choose another --out, or remove the file to begin anew"
            raise DataError("the file is of other data, another protocol, seed or optuna", where=out, hint=hint)
        return found
    return TuningRun(
        key=key,
        method=method,
        task=task.id,
        dataset=task.dataset,
        metric=task.metric,
        greater_is_better=catalog.load_metric(task.metric).greater_is_better,
        protocol=plan.strict.name,
        probe=plan.protocol.probe,
        train=sizes[0],
        test=sizes[1],
    )


def read_tuned(path: Path) -> TuningRun:
    return read_strictly(path, TuningRun, "a file of `neuco geobench tune`", most=LARGEST)


def tune_on(
    engine: EngineLike, pairs: Sequence[tuple[Method, Task]], plan: TuningPlan, out: Path, threads: int = 1
) -> Iterator[TuningRun]:
    """The same on an engine: a step is a method on a task, written when it ends. The numbers are the same."""
    calls: dict[Embed, list[Call]] = {}
    pair_of = {}
    for method, task in pairs:
        path = out / method.id / f"{task.id}.json"
        trials, repeats = _usable(read_tuned(path), plan) if path.exists() else ([], [])
        arguments = {
            "task": task.label,
            "protocol": plan.protocol.name,
            "counts": {"trials": plan.trials, "repeats": plan.repeats, "seed": plan.seed},
            "done": msgspec.to_builtins({"trials": trials, "repeats": repeats}),
        }
        embed = Embed(method.label, task.dataset, threads=threads)
        label = f"{method.label} on {task.label}"
        pair_of[label] = method.id, task
        function = "neuco_extensions.geobench.tune:tune_on_worker"
        calls.setdefault(embed, []).append(Call(function, arguments, label, embed, threads))
    failures = []
    for step, result in engine.run([Group(tuple(steps), embed) for embed, steps in calls.items()], StepLimits()):
        if isinstance(result, Returned):
            yield _from_engine(*pair_of[step.label], plan, result.value, out)
        else:
            failures.append(f"{step.label}: {getattr(result, 'reason', '')}")
    if failures:
        what = f"{counted(len(failures), 'pair')} could not be tuned: {join_names(failures)}"
        raise ScoreError(what, hint="Run it again: it goes on")


def tune_on_worker(
    call: CallContext, task: str, protocol: str, counts: Mapping[str, int], done: Mapping[str, Any]
) -> dict[str, Any]:
    """Search the settings inside the training part, and repeat the best; what is done already is not done again."""
    metric = catalog.load_task(exact(task)).metric
    better = catalog.load_metric(metric).greater_is_better
    labels, embeddings = call.labels(task), call.embeddings()
    plan = TuningPlan(load_protocol(protocol), **counts)
    trials = msgspec.convert(done["trials"], list[Trial])
    repeats = msgspec.convert(done["repeats"], list[Repeat])
    divided = divide(embeddings, labels, plan)
    trials += search(divided, plan, metric, tuple(trials), better, call.threads)
    settings = best_of(trials, better).settings
    repeats += repeated(divided, plan, metric, settings, tuple(repeats), call.threads)
    contents = {"labels": labels.sha256, "embeddings": embeddings.sha256}
    sizes = {"train": len(divided.train), "test": len(divided.test)}
    return {**contents, **sizes, **msgspec.to_builtins({"trials": trials, "repeats": repeats})}


def _from_engine(method: str, task: Task, plan: TuningPlan, result: Mapping[str, Any], out: Path) -> TuningRun:
    path = out / method / f"{task.id}.json"
    key = key_of(task, plan, result["embeddings"], result["labels"])
    begun = _begin(method, task, plan, key, (result["train"], result["test"]), path)
    trials = msgspec.convert(result["trials"], tuple[Trial, ...])
    repeats = msgspec.convert(result["repeats"], tuple[Repeat, ...])
    found = msgspec.structs.replace(begun, trials=trials, repeats=repeats)
    write_atomic(path, dump(msgspec.to_builtins(found)))
    return found


def read_all_tuned(folder: Path) -> list[TuningRun]:
    """Every file of a folder that `neuco geobench tune` has written; what is not complete is an error."""
    found = [read_tuned(path) for path in sorted(folder.glob("*/*.json"))]
    if not found:
        raise DataError("nothing is tuned here", where=folder, hint="Run `neuco geobench tune --out FOLDER`")
    for tuned in found:
        if not tuned.repeats:
            hint = "Run the same `neuco geobench tune` again: it goes on"
            raise DataError(f"{tuned.method} on {tuned.task} is not complete", where=folder, hint=hint)
    return found


def submission_of(
    tuned: Sequence[TuningRun], name: str, *, datasets: Mapping[str, str] | None = None
) -> GeobenchSubmission:
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
    return GeobenchSubmission(about, tuple(_runs(item, chosen.get(item.task, item.task)) for item in tuned))


def _model(method: str) -> Model:
    """A method that is not registered here, such as a file, has its name alone."""
    with suppress(NeucoError):
        spec = catalog.load_method(method)
        size = f"{spec.n_parameters / 1e6:.3g}M" if spec.n_parameters else "N/A"
        return Model(spec.title or method, size)
    return Model(method, "N/A")


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
