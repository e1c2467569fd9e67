"""Living suites: one for each dataset, ``all-DATASET``, of every task that it has. Publishing writes them.

A frozen suite compares what it froze; a task that was merged today is in none. So that it is on a page the same day,
with the cells that it lacks and why, there is a suite that follows what is registered. Controls are in none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci.stub import DESCRIPTION, read_json
from neuco_core.plugins.catalog import LIVING as PREFIX
from neuco_core.plugins.catalog import read_suite
from neuco_core.protocol import DEFAULT_PROTOCOL
from neuco_core.specs import Suite
from neuco_core.text import one_line

Row = Mapping[str, Any]


def described(data: Path) -> Iterator[Row]:
    """What all plugins of a tree of data declare."""
    for path in sorted(data.glob(f"neuco_*/*/{DESCRIPTION}")):
        yield from read_json(path)


def living_suites(rows: Iterable[Row], registry: Path) -> dict[str, bytes]:
    """The content of each living suite's file, by its name. A suite that changes gets the next version."""
    rows = list(rows)
    there = [read_suite(path) for path in sorted((registry / "suites").glob("*.toml"))]
    old = {suite.id: suite for suite in there if suite.living}
    tasks: dict[str, dict[str, int]] = {}
    for spec in (row["spec"] for row in rows if row["noun"] == "task" and not row["spec"].get("control")):
        own = tasks.setdefault(spec["dataset"], {})
        own[spec["id"]] = max(spec["version"], own.get(spec["id"], 1))
    datasets = {row["spec"]["id"]: row["spec"] for row in rows if row["noun"] == "dataset"}
    files = {}
    for dataset, own in sorted(tasks.items()):
        spec = datasets.get(dataset, {})
        protocol = spec.get("protocol") or _usual(own, [suite for suite in there if not suite.living])
        before = old.get(PREFIX + dataset)
        version = 1
        if before:
            version = before.version + ((dict(before.tasks), before.protocol) != (own, protocol))
        files[f"{PREFIX}{dataset}.toml"] = _file(dataset, spec.get("title") or dataset, protocol, version, own)
    return files


def _usual(tasks: Iterable[str], suites: Sequence[Suite]) -> str:
    """The protocol under which the suites compare these tasks most often."""
    counts = Counter(suite.protocol for suite in suites for task in tasks if task in suite.tasks)
    return min(counts, key=lambda name: (-counts[name], name)) if counts else DEFAULT_PROTOCOL


def _file(dataset: str, title: str, protocol: str, version: int, tasks: Mapping[str, int]) -> bytes:
    from json import dumps  # a JSON string of printable text is a TOML string

    lines = [
        "# Written by publishing from what is registered (ci/living.py): do not edit.",
        f"id = {dumps(PREFIX + dataset)}",
        f"title = {dumps(one_line(f'Every task of {title}', 300), ensure_ascii=False)}",
        'description = "All registered tasks of the dataset, also those that no frozen suite compares yet"',
        f"version = {version}",
        f"protocol = {dumps(one_line(protocol, 300), ensure_ascii=False)}",
        "living = true",
        "",
        "[options]",
        'coverage = "most"',
        "",
        "[tasks]",
        *(f"{name} = {tasks[name]}" for name in sorted(tasks)),
    ]
    return ("\n".join(lines) + "\n").encode()


def write_living(registry: Path, files: Mapping[str, bytes]) -> bool:
    """Bring the living suites of a registry up to date; gives whether anything changed."""
    folder = registry / "suites"
    folder.mkdir(parents=True, exist_ok=True)
    now = {path.name: path.read_bytes() for path in folder.glob(f"{PREFIX}*.toml")}
    for name in now.keys() - files.keys():
        (folder / name).unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return now != dict(files)
