"""The study behind `neuco geobench tune`: a file for each method and task, written after every trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from neuco_core.errors import DataError, ScoreError
from neuco_core.files import write_atomic
from neuco_core.jsonio import dump, hashed, read_strictly
from neuco_core.plugins import catalog
from neuco_core.protocol import load_protocol
from neuco_core.runs.engine import EngineLike
from neuco_core.runs.messages import Call, CallContext, Embed, Group, Returned, StepLimits
from neuco_core.specs import exact, to_json
from neuco_core.text import counted, join_names
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

if TYPE_CHECKING:
    from neuco_core.specs import Method, Task
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

LARGEST = 10_000_000


class Tuned(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
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
    told: Callable[[Tuned], None] = lambda tuned: None,
) -> Tuned:
    """Search and repeat; every trial and every repeat is written when it is done, and ``told``."""
    divided = divide(embeddings, labels, plan)
    sizes = len(divided.train), len(divided.test)
    found = _begin(method, task, plan, key_of(task, plan, embeddings.sha256, labels.sha256), sizes, out)
    trials, repeats = _usable(found, plan)

    def keep() -> None:
        write_atomic(out, dump(msgspec.to_builtins(now())))
        told(now())

    def now() -> Tuned:
        return msgspec.structs.replace(found, trials=tuple(trials), repeats=tuple(repeats))

    for trial in search(divided, plan, task.metric, list(trials), found.greater_is_better, threads):
        trials.append(trial)
        keep()
    for repeat in repeated(divided, plan, task.metric, now().best.settings, list(repeats), threads):
        repeats.append(repeat)
        keep()
    return now()


def _usable(found: Tuned, plan: TuningPlan) -> tuple[list[Trial], list[Repeat]]:
    """Of what is in a file; another number of trials may well find something else, so repeats begin anew."""
    same = len(found.trials) == plan.trials
    return list(found.trials[: plan.trials]), list(found.repeats[: plan.repeats]) if same else []


def key_of(task: Task, plan: TuningPlan, embeddings: str, labels: str) -> str:
    """All that the numbers depend on: the very same data, rules and sampler."""
    given = {"protocol": to_json(plan.strict), "space": plan.space, "seed": plan.seed, "metric": task.metric}
    constants = {"test_size": TEST_SIZE, "inner": INNER, "share": SHARE, "startup": STARTUP}
    content = {"embeddings": embeddings, "labels": labels, "optuna": load_optuna().__version__}
    return hashed(given | constants | content)


def _begin(method: str, task: Task, plan: TuningPlan, key: str, sizes: tuple[int, int], out: Path) -> Tuned:
    """What is in the file, or a beginning."""
    if out.exists():
        found = read_tuned(out)
        if found.key != key:
            hint = "Choose another --out, or remove the file to begin anew"
            raise DataError("the file is of other data, another protocol, seed or optuna", where=out, hint=hint)
        return found
    return Tuned(
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


def read_tuned(path: Path) -> Tuned:
    return read_strictly(path, Tuned, "a file of `neuco geobench tune`", most=LARGEST)


def tune_on(
    engine: EngineLike, pairs: Sequence[tuple[Method, Task]], plan: TuningPlan, out: Path, threads: int = 1
) -> Iterator[Tuned]:
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


def _from_engine(method: str, task: Task, plan: TuningPlan, result: Mapping[str, Any], out: Path) -> Tuned:
    path = out / method / f"{task.id}.json"
    key = key_of(task, plan, result["embeddings"], result["labels"])
    begun = _begin(method, task, plan, key, (result["train"], result["test"]), path)
    trials = msgspec.convert(result["trials"], tuple[Trial, ...])
    repeats = msgspec.convert(result["repeats"], tuple[Repeat, ...])
    found = msgspec.structs.replace(begun, trials=trials, repeats=repeats)
    write_atomic(path, dump(msgspec.to_builtins(found)))
    return found
