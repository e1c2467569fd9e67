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
from neuco_core.runs.steps import EngineLike, Group, Step, StepLimits
from neuco_core.scoring.search import (
    INNER,
    SHARE,
    STARTUP,
    TEST_SIZE,
    Plan,
    Repeat,
    Trial,
    best_of,
    divide,
    load_optuna,
    repeated,
    search,
)
from neuco_core.specs import to_json
from neuco_core.text import counted, join_names

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
    plan: Plan,
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


def _usable(found: Tuned, plan: Plan) -> tuple[list[Trial], list[Repeat]]:
    """Of what is in a file; another number of trials may well find something else, so repeats begin anew."""
    same = len(found.trials) == plan.trials
    return list(found.trials[: plan.trials]), list(found.repeats[: plan.repeats]) if same else []


def key_of(task: Task, plan: Plan, embeddings: str, labels: str) -> str:
    """All that the numbers depend on: the very same data, rules and sampler."""
    given = {"protocol": to_json(plan.strict), "space": plan.space, "seed": plan.seed, "metric": task.metric}
    constants = {"test_size": TEST_SIZE, "inner": INNER, "share": SHARE, "startup": STARTUP}
    content = {"embeddings": embeddings, "labels": labels, "optuna": load_optuna().__version__}
    return hashed(given | constants | content)


def _begin(method: str, task: Task, plan: Plan, key: str, sizes: tuple[int, int], out: Path) -> Tuned:
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
    engine: EngineLike, pairs: Sequence[tuple[Method, Task]], plan: Plan, out: Path, threads: int = 1
) -> Iterator[Tuned]:
    """The same on an engine: a step is a method on a task, written when it ends. The numbers are the same."""
    groups: dict[tuple[str, str], list[Step]] = {}
    known = {}
    for method, task in pairs:
        known[method.label, task.label] = method.id, task
        path = out / method.id / f"{task.id}.json"
        done = _usable(read_tuned(path), plan) if path.exists() else ([], [])
        asked = {"trials": plan.trials, "repeats": plan.repeats, "seed": plan.seed, "done": msgspec.to_builtins(done)}
        step = Step(
            method.label, task.dataset, task.label, plan.protocol.name, threads=threads, tuning=tuple(asked.items())
        )
        groups.setdefault((method.label, task.dataset), []).append(step)
    failures = []
    for step, result in engine.run([Group(*key, tuple(own)) for key, own in groups.items()], StepLimits()):
        if step.task and result["status"] == "ok":
            yield _from_engine(*known[step.method, step.task], plan, result, out)
        elif step.task:
            failures.append(f"{step.method} on {step.task}: {result.get('reason', result['status'])}")
    if failures:
        what = f"{counted(len(failures), 'pair')} could not be tuned: {join_names(failures)}"
        raise ScoreError(what, hint="Run it again: it goes on")


def _from_engine(method: str, task: Task, plan: Plan, result: Mapping[str, Any], out: Path) -> Tuned:
    path = out / method / f"{task.id}.json"
    key = key_of(task, plan, result["embeddings"], result["labels"])
    begun = _begin(method, task, plan, key, (result["train"], result["test"]), path)
    trials = msgspec.convert(result["trials"], tuple[Trial, ...])
    repeats = msgspec.convert(result["repeats"], tuple[Repeat, ...])
    found = msgspec.structs.replace(begun, trials=trials, repeats=repeats)
    write_atomic(path, dump(msgspec.to_builtins(found)))
    return found
