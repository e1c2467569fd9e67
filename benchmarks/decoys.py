"""Can a team tell which ids have labels? ``python benchmarks/decoys.py [--samples 5000] [--submissions 100]``.

As many decoys are asked for as there are labelled ids. Two attackers use up their submissions:

- *spoil*: after its honest embeddings it submits the same with one id made wild. A change shows a label.
- *sacrifice*: it holds good embeddings back. It begins with poor ones, and each submission is a little better but for
  one id that is wild. If that climbs the id is a decoy, and if not it has a label.

All guesses together are measured by the area under the curve (AUC): 0.5 is as good as none, 1 is all ids known.
Answers are those of the core itself, as in ``benchmarks/ladder.py``. ± is the standard error over repetitions.

Then, for some labelled ids alone: how often does an answer differ if they are spoilt, and if they are restored after a
team began with them spoilt? For decoys it never does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from sklearn.metrics import roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import ladder
from benchmarks.ladder import PHASE, RULES, Team, World
from neuco_extensions.challenge.feedback import Rung, feedback

WILD = 1e4  # times the spread of an honest value
LEVELS = (10, 20, 50)  # of quality, from poor to honest: with few a climb is sure, with many more decoys can be told
Guess = np.ndarray  # for each id, labelled ones first: the higher, the more likely it has a label


def spoil(world: World, rule: str, submissions: int, rng: np.random.Generator) -> Guess:
    team, guess = Team(world, rule), np.zeros(2 * ladder.SAMPLES)
    first = team.submit(world.honest)
    for sample in _tried(submissions - 1, rng):
        guess[sample] = 1.0 if team.submit(_wild(world.honest, sample, rng)) != first else -1.0
    return guess


def sacrifice(world: World, rule: str, submissions: int, rng: np.random.Generator, levels: int = 20) -> Guess:
    """The first level is submitted as it is. Who climbed takes the next one, and who reached the last has no more."""
    team, guess = Team(world, rule), np.zeros(2 * ladder.SAMPLES)
    noise, shares = rng.normal(size=world.honest.shape), np.linspace(2.0, 0.0, levels)
    level, best = 1, team.submit(world.honest + shares[0] * noise)
    for sample in _tried(submissions - 1, rng):
        answer = team.submit(_wild(world.honest + shares[level] * noise, sample, rng))
        guess[sample] = -1.0 if answer > best else 1.0
        level, best = level + (answer > best), max(answer, best)
        if level == levels:
            break
    return guess


ATTACKS: dict[str, Callable[[World, str, int, np.random.Generator], Guess]] = {
    "spoil": spoil,
    **{f"sacrifice {levels}": partial(sacrifice, levels=levels) for levels in LEVELS},
}


def _tried(number: int, rng: np.random.Generator) -> np.ndarray:
    """Ids at random, half of them decoys, so that chance alone says nothing."""
    both = [part * ladder.SAMPLES + rng.permutation(ladder.SAMPLES) for part in (0, 1)]
    return rng.permuted(np.stack(both, axis=1), axis=1).ravel()[:number]


def _wild(values: np.ndarray, sample: int, rng: np.random.Generator) -> np.ndarray:
    if sample >= ladder.SAMPLES:
        return values  # a decoy: nobody looks at it
    changed = values.copy()
    changed[sample] = WILD * rng.normal(size=values.shape[1])
    return changed


def known(attack: str, rule: str, submissions: int, seed: int) -> float:
    """How well an attacker tells labelled ids from decoys in the end: the area under the curve."""
    world, rng = World.draw(seed), np.random.default_rng(3_000_000 + seed)
    truth = np.arange(2 * ladder.SAMPLES) < ladder.SAMPLES
    return float(roc_auc_score(truth, ATTACKS[attack](world, rule, submissions, rng)))


def differing(seed: int, size: int, tries: int = 20) -> dict[str, np.ndarray]:
    """By rule the share of answers that differ if so many ids are spoilt, and if they are restored after that."""
    world, rng = World.draw(seed), np.random.default_rng(2_000_000 + seed)
    honest, seen = world.records(world.honest), {rule: np.zeros(2) for rule in RULES}
    for _ in range(tries):
        values = world.honest.copy()
        chosen = rng.choice(ladder.SAMPLES, size, replace=False)
        values[chosen] = rng.normal(size=(size, values.shape[1])) * rng.choice([1.0, 3.0])
        spoilt = world.records(values)
        for rule, own in RULES.items():
            phase = msgspec.structs.replace(PHASE, **own)
            for place, (first, second) in enumerate(((honest, spoilt), (spoilt, honest))):
                before = feedback(phase, 1, first, None)[0]["mean_q"]
                after = feedback(phase, 2, second, Rung(before, 1, first))[0]["mean_q"]
                seen[rule][place] += (after != before) / tries
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=ladder.SAMPLES, help="labelled ids, and as many decoys")
    parser.add_argument("--submissions", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--rules", nargs="+", choices=[*RULES], default=[*RULES])
    chosen = parser.parse_args()
    ladder.SAMPLES, ladder.FRESH = chosen.samples, 0
    print(
        f"AUC of what is known after {chosen.submissions} submissions, {chosen.samples} labelled ids and as many decoys"
    )
    print(f"{'rule':10}" + "".join(f"{attack:>18}" for attack in ATTACKS))
    for rule in chosen.rules:
        print(f"{rule:10}", end="")
        for attack in ATTACKS:
            found = [known(attack, rule, chosen.submissions, seed) for seed in range(chosen.repetitions)]
            error = np.std(found, ddof=1) / np.sqrt(len(found))
            print(f"{f'{np.mean(found):.3f} ± {error:.3f}':>18}", end="", flush=True)
        print()
    sizes = (1, 8, 64)
    every = {size: [differing(seed, size) for seed in range(chosen.repetitions)] for size in sizes}
    print("share of answers that differ if labelled ids are spoilt / restored")
    print(f"{'rule':10}" + "".join(f"{f'{size} ids':>18}" for size in sizes))
    for rule in chosen.rules:
        shares = [np.mean([one[rule] for one in every[size]], axis=0) for size in sizes]
        print(f"{rule:10}" + "".join(f"{f'{spoilt:.2f} / {restored:.2f}':>18}" for spoilt, restored in shares))


if __name__ == "__main__":
    main()
