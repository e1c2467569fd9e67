"""A small challenge for tests: two tasks made of random numbers, ids with and without labels, two phases."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import numpy as np

from neuco_core.runs.engine import StepLimits
from neuco_core.runs.messages import CallContext, Group, Result, Returned, Step
from neuco_core.specs import resolve
from neuco_core.tables.embeddings import make_embeddings, write_embeddings
from neuco_extensions.challenge import workers
from neuco_extensions.challenge.audit import audit
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.rules import load_challenge, token_hash
from neuco_extensions.challenge.seal import seal

SAMPLES, DECOYS, DIM = 60, 20, 6
IDS = tuple(f"p{number:03d}" for number in range(SAMPLES + DECOYS))
TEAMS = ("alpha", "beta")
BAD = ("zip", "text", "ids", "nan", "bomb", "pickle", "huge")  # kinds of files
ACTOR = (sys.executable, "-m", "tests.challenge.actor")
DEV = datetime(2026, 1, 5, 12, tzinfo=UTC)
TEST = datetime(2026, 2, 5, 12, tzinfo=UTC)
PHASES = """
[phases.dev]
start = 2026-01-01T00:00:00Z
end = 2026-02-01T00:00:00Z
tasks = ["height"]
ids = "ids.txt"
k = 4
protocol = "ridge"
per_day = 3
in_all = 6

[phases.test]
start = 2026-02-01T00:00:00Z
end = 2026-03-01T00:00:00Z
tasks = ["height", "water"]
ids = "ids.txt"
k = 6
protocol = "ridge"
per_day = 3
in_all = 3
after = ["dev"]
"""
RULES = """
id = "toy"
title = "A toy challenge"
dataset = "toy"

[limits]
bytes = 100_000
dim = 16

[tasks.height]
labels = "private/labels/height.csv"

[tasks.water]
labels = "private/labels/water.csv"
kind = "classification"
"""


def truth() -> np.ndarray:
    """What the labels are made of, (ids, dim)."""
    return np.random.default_rng(7).normal(size=(len(IDS), DIM))


def labelled() -> list[int]:
    """The places of the ids that have labels: decoys lie among them."""
    return sorted(np.random.default_rng(8).permutation(len(IDS))[:SAMPLES].tolist())


def make_challenge(folder: Path, changes: dict[str, str] | None = None, *, teams: tuple[str, ...] = TEAMS) -> Path:
    """Write and seal a challenge; ``changes`` replace text in its rules."""
    hidden = folder / "private" / "labels"
    hidden.mkdir(parents=True)
    values = truth()
    height = values @ np.array([3.0, -2.0, 1.0, 0.5, 0.0, 0.0]) + np.random.default_rng(9).normal(size=len(IDS))
    for name, labels in {"height": height, "water": (height > 0).astype(int)}.items():
        lines = [f"{IDS[n]},{labels[n]}" for n in labelled()]
        (hidden / f"{name}.csv").write_text("\n".join(["id,label", *lines]) + "\n")
    (folder / "ids.txt").write_text("\n".join(IDS) + "\n")
    text = RULES + PHASES
    for old, new in (changes or {}).items():
        text = text.replace(old, new)
    for team in teams:
        host = "\nhost = true" if team.startswith("base") else ""
        text += f'\n[teams.{team}]\ntitle = "Team {team}"\ntoken = "{token_hash(team)}"{host}\n'
    (folder / "challenge.toml").write_text(text)
    with mock.patch("neuco_extensions.challenge.seal.secrets.randbelow", side_effect=(1, 567_856_785)):
        seal(load_challenge(folder))  # the same splits whenever the tests run
    return folder


def edit_rules(folder: Path, old: str, new: str) -> None:
    path = folder / "challenge.toml"
    path.write_text(path.read_text().replace(old, new, 1))


def embed(path: Path, noise: float, seed: int = 0, ids: tuple[str, ...] = IDS) -> Path:
    """Embeddings that tell the labels the better the less noise there is."""
    values = truth() + noise * np.random.default_rng(seed).normal(size=(len(IDS), DIM))
    write_embeddings(make_embeddings(ids, values[: len(ids)]), path)
    return path


def bad_file(path: Path, kind: str) -> Path:
    """A file that is not what it should be."""
    if kind == "ids":
        return embed(path.with_suffix(".npz"), 1.0, int(path.stem), IDS[:-1])
    lines = ["id,0,1", *(f"{name},0.5,nan" for name in IDS)]
    data = {
        "zip": b"PK\x03\x04" + path.name.encode(),
        "text": f"these are no embeddings: {path.name}\n".encode(),
        "nan": "\n".join([*lines, f"# {path.name}"]).encode(),
        "bomb": gzip.compress(path.name.encode() + bytes(30_000_000)),
        "pickle": f"cos\nmkdir\n(S'{path}.evil'\ntR.".encode(),
        "huge": path.name.encode() * 30_000,
    }[kind]
    path.write_bytes(data)
    return path


class InProcess:
    """An engine that has no workers: what a worker would do is done here, which costs no start of a process."""

    name, progress = "in process", None

    def run(self, groups: Iterable[Group | None], limits: StepLimits) -> Iterator[tuple[Step, Result]]:
        workers._host.cache_clear()  # a worker that starts reads rules and labels anew
        for group in filter(None, groups):
            for step in group.steps:
                context = CallContext(None, None, step.threads, None)  # type: ignore[arg-type]
                yield step, Returned(resolve(step.function)(context, **step.arguments))  # type: ignore[union-attr]


def work(host: Host) -> int:
    """Evaluate all that waits; how many that were."""
    return len(list(workers.evaluate_waiting(host, InProcess(), 1)))


def failed(folder: Path) -> list[str]:
    """The checks of an audit that do not pass."""
    return [check.name for check in audit(folder, InProcess()) if not check.ok]
