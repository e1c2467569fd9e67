"""A working challenge on embedded data: what ``neuco challenge init`` writes."""

from __future__ import annotations

import random
from pathlib import Path

from neuco_core.errors import UsageError
from neuco_core.files import write_atomic
from neuco_core.plugins.catalog import load_dataset, load_task
from neuco_extensions.challenge.rules import RULES, load_challenge

# Hidden tasks of the example, and the tasks of the embedded dataset that they are made of.
TASKS = {
    "biomass": "mini_biomass_mean",
    "crops": "mini_crops",
    "forest": "mini_landcover_forest",
    "heat": "mini_heatisland_mean",
}
TEXT = """\
# The rules of this challenge. The file is yours: it names the hidden tasks. Teams read public/ and ids.txt.
# All fields are in docs/challenge.md. Once the challenge is sealed, only teams may be added.
id = "{name}"
title = "A first challenge"
dataset = "mini"

[limits]
bytes = 50_000_000      # of a file
dim = 1024              # of an embedding
tick = 60               # answers appear at whole minutes, so that their times tell nothing

[phases.dev]
start = 2025-01-01T00:00:00Z
end = 2025-02-01T00:00:00Z
tasks = ["biomass", "forest"]
ids = "ids.txt"                     # what every submission must have
used = "private/dev-ids.txt"        # what counts in this phase; all others are decoys
protocol = "ridge"
k = 10                              # splits, drawn with a secret seed that all submissions share
per_day = 10
in_all = 100
feedback = "ladder"                 # a new mean Q is told only if it beats the team's best by one standard error
digits = 2

[phases.test]
start = 2025-02-01T00:00:00Z
end = 2025-03-01T00:00:00Z
tasks = ["biomass", "crops", "forest", "heat"]
ids = "ids.txt"
protocol = "ridge"
k = 20
per_day = 3
in_all = 3
feedback = "ladder"
ranked = "last"                     # the last public submission counts for the rank,
mean_q = "best"                     # the best one for the mean Q that is shown
after = ["dev"]                     # only teams with a score there are ranked
failed_probes = 3                   # splits without a score that are tolerated

"""
HIDDEN = """\
[tasks.{name}]
labels = "private/labels/{name}.csv"

"""


def write_example(folder: Path) -> None:
    """Rules, ids and labels of a small challenge; nothing is overwritten."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError("the folder is not empty", where=folder, hint="Name another one: nothing is overwritten")
    ids = sorted(load_dataset("mini").ids())
    labelled: set[str] = set()
    for name, task in TASKS.items():
        labels = load_task(task).labels()
        labelled |= set(labels.ids)
        lines = [f"{sample},{float(value)!r}" for sample, value in zip(labels.ids, labels.values, strict=True)]
        write_atomic(folder / f"private/labels/{name}.csv", _text(["id,label", *lines]))
    used = random.Random(1).sample(sorted(labelled), len(labelled) // 2)  # noqa: S311 - of an example, and not secret
    write_atomic(folder / "private/dev-ids.txt", _text(sorted(used)))
    write_atomic(folder / "ids.txt", _text(ids))
    name = folder.resolve().name.lower()
    text = TEXT.format(name="".join(c if c.isalnum() and c.isascii() else "-" for c in name).strip("-") or "first")
    write_atomic(folder / RULES, (text + "".join(HIDDEN.format(name=name) for name in TASKS)).encode())
    (folder / "private").chmod(0o700)
    load_challenge(folder)


def _text(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()
