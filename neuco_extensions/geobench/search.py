"""Search, repeat, summarise: the settings of a probe found inside the training part, then runs with several seeds.

A task is divided once into a training part and a test part. The search gets a table that has no test row at all,
neither its label nor its embedding, so that not even a mean is learned from it. Each trial is scored on splits inside
the training part. What was best is then trained with several seeds and judged on the test part. A seed stands for the
order of training, the first weights, and the nine tenths of the training part that are learned from.

Trial n draws from a stream of its own, and depends on the trials before it only. So a search that is killed goes on
from its file, and ends as it would have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from neuco_core.env import how_to_install
from neuco_core.errors import DependencyError, ScoreError, UsageError
from neuco_core.protocol import SHUFFLE, Protocol
from neuco_core.scoring.scorer import score
from neuco_core.scoring.splits import splits_of, splitter_of
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels

TEST_SIZE = 0.2
INNER = 3  # splits inside the training part, by which a trial is judged
SHARE = 0.9
STARTUP = 5  # trials drawn at random, before the sampler has anything to learn from
Setting = int | float
# By probe: what is searched. (low, high) of a float is on a logarithmic scale, a list is a choice.
TRAINED: dict[str, Any] = {
    "lr": (1e-4, 1e-1),
    "weight_decay": (1e-5, 1e-1),
    "epochs": (5, 60),
    "batch_size": [16, 32, 64, 128],
}
SPACES = {"linear": TRAINED, "mlp": TRAINED}


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings, and the mean of the metric on the splits inside the training part."""

    settings: dict[str, Setting]
    value: float


class Repeat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seed: int
    score: float


@dataclass(frozen=True)
class TuningPlan:
    """How much is done. ``protocol`` has no say in which rows are the test part but for its splitter."""

    protocol: Protocol
    trials: int = 16
    repeats: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trials < 1 or self.repeats < 2:
            got = f"{self.trials} and {self.repeats}"
            raise UsageError("too little to summarise", expected="at least 1 trial and 2 repeats", got=got)
        if self.protocol.probe not in SPACES:
            hint = "Name a protocol whose probe has, such as --protocol neuco-strict or mlp-1"
            what = f"the probe {self.protocol.probe!r} has nothing to search"
            raise UsageError(what, expected=", ".join(SPACES), hint=hint)

    @property
    def strict(self) -> Protocol:
        """The protocol without anything that looks at the part it is judged on."""
        return self.protocol.with_(select="last", scale_on="train")

    @property
    def space(self) -> Mapping[str, Any]:
        return SPACES[self.protocol.probe]


@dataclass(frozen=True)
class Divided:
    """A task in two parts that share no sample. ``searched`` is all that the search gets."""

    searched: tuple[Embeddings, Labels]
    whole: tuple[Embeddings, Labels]
    train: tuple[str, ...]
    test: frozenset[str]


def divide(embeddings: Embeddings, labels: Labels, plan: TuningPlan) -> Divided:
    """The parts: as the task names them, by its groups, or at random."""
    both = labels.only(embeddings.ids)
    if len(both.ids) < 20:
        raise ScoreError("too few samples to tune on", where=labels.task, expected="at least 20", got=len(both.ids))
    rules = plan.protocol.with_(k=1, test_size=TEST_SIZE, seed=plan.seed)
    ((train, test),) = splits_of(both, rules)[:1]
    names = tuple(both.ids[i] for i in sorted(train))
    inside = both.only(names)
    # A fixed split has done its work; groups still must not meet inside.
    inside = replace(inside, split=None, splitter="" if splitter_of(both, rules).needs_split else inside.splitter)
    return Divided(
        searched=(embeddings.only(names), inside),
        whole=(embeddings.only(both.ids), both),
        train=names,
        test=frozenset(both.ids[i] for i in test),
    )


def search(
    divided: Divided,
    plan: TuningPlan,
    metric: str,
    done: Sequence[Trial],
    greater_is_better: bool,
    threads: int | None = None,
) -> Iterator[Trial]:
    optuna = load_optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize" if greater_is_better else "minimize")
    kinds = optuna.distributions
    ranges: dict[str, Any] = {}
    for name, values in plan.space.items():
        if isinstance(values, list):
            ranges[name] = kinds.CategoricalDistribution(values)
        elif isinstance(values[0], int):
            ranges[name] = kinds.IntDistribution(*values)
        else:
            ranges[name] = kinds.FloatDistribution(*values, log=True)
    for trial in done:
        study.add_trial(optuna.trial.create_trial(params=trial.settings, distributions=ranges, value=trial.value))
    for number in range(len(done), plan.trials):
        stream = np.random.SeedSequence((plan.seed, number)).generate_state(1)[0]
        study.sampler = optuna.samplers.TPESampler(seed=int(stream), n_startup_trials=STARTUP)
        asked = study.ask(ranges)
        settings = {name: asked.params[name] for name in plan.space}
        value = inner_score(divided, plan, metric, settings, threads)
        study.tell(asked, value)
        yield Trial(settings, value)


def inner_score(
    divided: Divided, plan: TuningPlan, metric: str, settings: Mapping[str, Setting], threads: int | None = None
) -> float:
    """The mean of the metric on splits inside the training part; a test row here is a fault of ours, and an error."""
    embeddings, labels = divided.searched
    if seen := sorted({*embeddings.ids, *labels.ids} & divided.test):
        raise ScoreError("the search was given rows of the test part", where=labels.task, got=", ".join(seen[:3]))
    rules = plan.strict.with_(k=INNER, test_size=TEST_SIZE, seed=plan.seed, **settings)
    return float(score(embeddings, labels, rules, metric=metric, threads=threads).mean)


def repeated(
    divided: Divided,
    plan: TuningPlan,
    metric: str,
    settings: Mapping[str, Setting],
    done: Sequence[Repeat],
    threads: int | None = None,
) -> Iterator[Repeat]:
    """The best settings with one seed after another, each learned on a part of the training part."""
    embeddings, labels = divided.whole
    for number in range(len(done), plan.repeats):
        seed = plan.seed + number
        order = np.random.RandomState(seed).permutation(len(divided.train))
        chosen = [divided.train[i] for i in order[: int(np.ceil(SHARE * len(order)))]]
        used = labels.only([*chosen, *divided.test])
        parts = np.array(["test" if name in divided.test else "train" for name in used.ids])
        rules = plan.strict.with_(splitter=SHUFFLE, k=1, seed=seed, **settings)
        named = replace(used, split=parts, splitter="fixed")
        yield Repeat(seed, float(score(embeddings, named, rules, metric=metric, threads=threads).per_split[0]))


def load_optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise DependencyError("a search needs optuna", hint=f"Run `{how_to_install('tune')}`") from error
    return optuna
