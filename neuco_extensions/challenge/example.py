"""A working challenge on embedded data: what ``neuco challenge init`` writes."""

from __future__ import annotations

import random
import re
from importlib import resources
from pathlib import Path

from neuco_core.errors import UsageError
from neuco_core.files import write_atomic
from neuco_core.plugins.catalog import load_dataset, load_task
from neuco_extensions.challenge.rules import RULES, load_challenge

# The hidden tasks of ``example.toml``, and the tasks of the embedded dataset that they are made of.
TASKS = {
    "biomass": "mini_biomass_mean",
    "crops": "mini_crops",
    "forest": "mini_landcover_forest",
    "heat": "mini_heatisland_mean",
}


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
    text = resources.files(__package__).joinpath("example.toml").read_text(encoding="utf-8")
    name = re.sub(r"[^a-z0-9]", "-", folder.resolve().name.lower()).strip("-") or "first"
    write_atomic(folder / RULES, text.replace('id = "first"', f'id = "{name}"').encode())
    (folder / "private").chmod(0o700)
    load_challenge(folder)


def _text(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()
