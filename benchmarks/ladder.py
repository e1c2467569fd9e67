"""What an adaptive attacker gains from answers: ``python benchmarks/ladder.py [--out docs/why/ladder.svg]``.

A team has honest embeddings. It never sees a label, only the mean Q that is returned, and changes its embeddings by
that, in one of these ways:

- *nudge*: all numbers are moved a little, in a random direction and then in the opposite one; as long as an answer is
  higher the same step is made again, and what was answered higher is kept.
- *push*: the same in larger steps.
- *signs* (boosting, after Blum and Hardt, arXiv:1502.04585): one more column of random numbers; a random vector is
  added to it; if the answer is higher it stays, else it is taken off twice. Every answer moves the column, by its sign.
- *edge*: nudges beneath a step of the rounding. The embeddings are spoilt with noise until the answer is about to fall
  to the next number, so that the slightest change shows; what was learnt goes onto the honest ones in the end.

Answers are those of the challenge itself (``neuco_extensions/challenge/feedback.py``), under these rules: as it is,
rounded to two digits, rounded to whole numbers, a ladder that asks for one standard error alone, and ladders that ask
for a step besides: of 0.1, which is the default, and of 0.5. A rule is as good as it is against the attack that gains
most from it.

The gain is how much the mean Q of what the attacker holds rose over its honest submission, less how much the same rose
on fresh samples, of whose labels no answer was made. There random changes are worth nothing, so that the gain is
overfitting alone. ± is the standard error over repetitions, each with data, labels and splits of its own.

Which ids have labels is another question: see ``benchmarks/decoys.py``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuco_core.figures import blank, save
from neuco_core.protocol import Protocol, load_protocol
from neuco_core.scoring.scorer import score
from neuco_core.tables.embeddings import make_embeddings
from neuco_core.tables.labels import Labels, content_hash
from neuco_extensions.challenge.feedback import Rung, feedback
from neuco_extensions.challenge.rules import Phase

SAMPLES, DIM, TASKS, K = 400, 8, 2, 20
FRESH = 5  # sets of as many fresh samples, so that the truth is better known than what is compared with it
NUDGE, PUSH = 0.07, 0.2  # of a new vector, the embeddings being 1
MONTH = {"start": datetime(2026, 1, 1, tzinfo=UTC), "end": datetime(2026, 2, 1, tzinfo=UTC)}
PHASE = Phase(**MONTH, tasks=("t",), ids="ids.txt", k=K, per_day=10**6, in_all=10**6)
RULES: dict[str, dict[str, Any]] = {
    "as it is": {"feedback": "rounded", "digits": 6},
    "2 digits": {"feedback": "rounded", "digits": 2},
    "0 digits": {"feedback": "rounded", "digits": 0},
    "one error": {"feedback": "ladder", "step": 0.0},
    "ladder": {"feedback": "ladder"},
}
HIGHER: dict[str, dict[str, Any]] = {"ladder 0.5": {"feedback": "ladder", "step": 0.5}}  # which hosts may choose
LABELS = {
    "as it is": "not rounded",
    "2 digits": "rounded to 2 digits",
    "0 digits": "rounded to whole numbers",
    "one error": "ladder of one error",
    "ladder": "ladder with a step of 0.1",
    "ladder 0.5": "ladder with a step of 0.5",
}
# Yields what is submitted and what the attacker would hand in if it were the end; is sent the answer.
Attack = Generator[tuple[np.ndarray, np.ndarray], float, None]


@dataclass(frozen=True)
class World:
    """Honest embeddings of all samples, of which the first ``SAMPLES`` are the challenge's and the others fresh."""

    honest: np.ndarray
    labels: np.ndarray
    protocol: Protocol

    @staticmethod
    def draw(seed: int) -> World:
        rng = np.random.default_rng(seed)
        honest = rng.normal(size=(SAMPLES * (1 + FRESH), DIM))
        signal = honest @ rng.normal(size=(DIM, TASKS)) / np.sqrt(DIM)
        protocol = load_protocol("ridge").with_(k=K, seed=int(rng.integers(2**32)))
        return World(honest, signal + rng.normal(size=signal.shape), protocol)

    def records(self, values: np.ndarray, part: int = 0) -> list[Any]:
        """Score embeddings on the challenge's samples, or on a fresh part; only what feedback looks at is kept."""
        rows = slice(part * SAMPLES, (part + 1) * SAMPLES)
        ids = tuple(f"s{number:04d}" for number in range(SAMPLES))
        embeddings = make_embeddings(ids, values[rows].astype(np.float32))
        found = []
        for task, own in enumerate(self.labels[rows].T):
            labels = Labels(f"t{task}", "regression", ids, own, content_hash(ids, own, None, None))
            one = score(embeddings, labels, self.protocol, metric="r2", threads=1)
            parts = {"per_split": one.per_split, "q": one.q, "samples": one.samples, "greater_is_better": True}
            found.append(SimpleNamespace(task=labels.task, **parts))
        return found

    def excess(self, values: np.ndarray) -> float:
        """The mean Q on the challenge's samples, less that on fresh ones."""
        parts = [np.mean([one.q for one in self.records(values, part)]) for part in range(1 + FRESH)]
        return float(parts[0] - np.mean(parts[1:]))


class Team:
    """The submissions of one team under one rule, answered by the core."""

    def __init__(self, world: World, rule: str) -> None:
        self.world, self.phase = world, msgspec.structs.replace(PHASE, **(RULES | HIGHER)[rule])
        self.number, self.best = 0, None

    def submit(self, values: np.ndarray) -> float:
        self.number += 1
        records = self.world.records(values)
        told, behind = feedback(self.phase, self.number, records, self.best)
        if behind == self.number:
            self.best = Rung(told["mean_q"], self.number, records)
        return told["mean_q"]

    best: Rung | None


def signs(honest: np.ndarray, rng: np.random.Generator) -> Attack:
    column = rng.normal(size=len(honest))
    held = _with(honest, column)
    answer = yield held, held
    while True:
        vector = rng.normal(size=len(honest))
        new = yield _with(honest, column + vector), held
        column = column + vector if new > answer else column - vector
        held = _with(honest, column)
        answer = max(new, answer) if new > answer else (yield held, held)


def nudge(honest: np.ndarray, rng: np.random.Generator, size: float = NUDGE) -> Attack:
    held = honest
    best = yield held, held
    while True:
        vector = rng.normal(size=honest.shape)
        for step in (size, -size):
            before = best
            while (answer := (yield held + step * vector, held)) > best:
                best, held = answer, held + step * vector
            if best > before:
                break


def push(honest: np.ndarray, rng: np.random.Generator) -> Attack:
    return nudge(honest, rng, PUSH)


def edge(honest: np.ndarray, rng: np.random.Generator) -> Attack:
    """The share of noise is found by halving, and raised a little when a nudge brought the answer over the edge."""
    noise, held = rng.normal(size=honest.shape), honest
    top = yield honest, honest
    low, high = 0.0, 4.0
    for _ in range(14):
        middle = (low + high) / 2
        answer = yield honest + middle * noise, held
        low, high = (low, middle) if answer < top else (middle, high)
    share, little = high, high - low
    while True:
        vector = rng.normal(size=honest.shape)
        for step in (NUDGE, -NUDGE):
            tried = held + step * vector
            answer = yield tried + share * noise, held
            if answer < top:
                continue
            held = tried
            while (yield held + share * noise, held) >= top:
                share, little = share + little, little * 2  # until it is beneath again
            little = high - low
            break


def _with(honest: np.ndarray, column: np.ndarray) -> np.ndarray:
    return np.column_stack([honest, column / (column.std() or 1.0)])


ATTACKS: dict[str, Callable[[np.ndarray, np.random.Generator], Attack]] = {
    "nudge": nudge,
    "push": push,
    "signs": signs,
    "edge": edge,
}
# Steps of two digits are not worth the detour over the edge, and on a ladder nothing that is spoilt is answered.
USED = {rule: ("signs", "nudge", "push") if "ladder" in rule else ("signs", "nudge") for rule in RULES | HIGHER}
USED["0 digits"] = ("signs", "nudge", "edge")


def gains(attack: str, rule: str, seed: int, at: list[int]) -> list[float]:
    """The gain of an attack after so many submissions."""
    world = World.draw(seed)
    team, steps = Team(world, rule), ATTACKS[attack](world.honest, np.random.default_rng(1_000_000 + seed))
    submitted, held = next(steps)
    start, found = world.excess(world.honest), []
    for number in range(1, at[-1] + 1):
        submitted, held = steps.send(team.submit(submitted))
        if number in at:
            found.append(world.excess(held) - start)
    return found


def draw(found: dict[str, dict[str, np.ndarray]], at: list[int], path: Path) -> None:
    """A line for each rule, of the attack that gains most from it."""
    figure, axes = blank(7.2, 4.2)
    ends = []
    for rule, by_attack in found.items():
        name = strongest(by_attack)
        values = np.column_stack([np.zeros(len(by_attack[name])), by_attack[name]])
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
        line = axes.plot([0, *at], mean, marker="o", ms=3, lw=2.4 if rule == "ladder" else 1.4)[0]
        axes.fill_between([0, *at], mean - error, mean + error, color=line.get_color(), alpha=0.2, lw=0)
        ends.append((float(mean[-1]), f"{LABELS[rule]} ({name})", line.get_color()))
    low, gap = -np.inf, 0.055 * max(end for end, *_ in ends)  # so that no two labels overlap
    for end, label, color in sorted(ends):
        low = max(end, low + gap)
        place = (at[-1] * 1.02, low)
        axes.annotate(label, place, va="center", color=color, fontsize=9)
    axes.axhline(0, color="0.7", lw=0.8, zorder=0)
    axes.set(xlabel="submissions", ylabel="mean Q gained by overfitting", xlim=(0, at[-1] * 1.5))
    axes.set_xticks([0, *at])
    save(figure, path)


def strongest(by_attack: dict[str, np.ndarray]) -> str:
    return max(by_attack, key=lambda name: float(by_attack[name][:, -1].mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--out", type=Path, help="the figure")
    chosen = parser.parse_args()
    at = [chosen.submissions * part // 4 for part in (1, 2, 3, 4)]
    found: dict[str, dict[str, np.ndarray]] = {}
    print("rule       attack " + "".join(f"{f'after {number}':>16}" for number in at))
    for rule, attacks in USED.items():
        found[rule] = {}
        for attack in attacks:
            values = np.array([gains(attack, rule, seed, at) for seed in range(chosen.repetitions)])
            found[rule][attack] = values
            errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            cells = [f"{mean:.2f} ± {error:.2f}" for mean, error in zip(values.mean(axis=0), errors, strict=True)]
            print(f"{rule:10} {attack:6} " + "".join(f"{cell:>16}" for cell in cells), flush=True)
    if chosen.out:
        draw(found, at, chosen.out)


if __name__ == "__main__":
    main()
