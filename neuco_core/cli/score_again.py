"""The command that goes on with a run of ``neuco score``, and the one that tries again what failed in it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

FEW = 3  # names that a command may have without growing unwieldy
SELECTORS = {
    "methods": "--method",
    "files": "--embeddings",
    "name": "--name",
    "tasks": "--task",
    "suite": "--suite",
    "kind": "--kind",
    "tags": "--tag",
    "dataset": "--dataset",
}
MANNER = {
    "engine": "--engine",
    "threads": "--threads",
    "jobs": "--jobs",
    "time_limit": "--time-limit",
    "embed_time_limit": "--embed-time-limit",
    "memory_limit": "--memory-limit",
}
ALL_TASKS: Mapping[str, Any] = {"tasks": (), "suite": None, "kind": None, "tags": (), "dataset": None}


def resume_command(given: Mapping[str, Any], protocol: str) -> str:
    """The command with the options that were given; ``given`` has them as click does."""
    from neuco_core.plugins.catalog import load_suite
    from neuco_core.records.store import DEFAULT_PROTOCOL

    words = ["neuco", "score"] + ["--all"] * bool(given.get("everything"))
    words += [f"--{flag}" for flag in ("retry", "fresh", "save", "strict") if given.get(flag)]
    words += _words(given, SELECTORS)
    implied = load_suite(given["suite"]).protocol if given.get("suite") else DEFAULT_PROTOCOL
    words += ["--protocol", protocol] if protocol != implied else []
    return shlex.join(words + _words(given, MANNER))


def retry_command(given: Mapping[str, Any], protocol: str, failed: Iterable[tuple[str, str]]) -> str:
    """The command that runs the failed (method, task) cells again, and nothing that was not asked for before.

    Methods and tasks are named where they are few; else the user's own words stay. Both choose among the cells of
    the run that ended, and of these all that did not fail are done.
    """
    cells = list(failed)
    methods, tasks = sorted({method for method, _ in cells}), sorted({task for _, task in cells})
    less = {**given, "retry": True, "fresh": False}
    if len(methods) <= max(FEW, len(given["methods"])) and not given.get("files"):
        less.update({"methods": methods, "everything": False})
    if len(tasks) <= max(FEW, len(given["tasks"])):
        less.update({**ALL_TASKS, "tasks": tasks})
    return resume_command(less, protocol)


def _words(given: Mapping[str, Any], flags: Mapping[str, str]) -> list[str]:
    found = []
    for name, flag in flags.items():
        value = given.get(name)
        values = value if isinstance(value, list | tuple) else [] if value is None else [value]
        found += [word for item in values if (name, item) != ("engine", "local") for word in (flag, _text(name, item))]
    return found


def _text(name: str, value: object) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    if name == "memory_limit" and isinstance(value, int) and value % 10**6 == 0:
        return f"{value // 10**6}MB"
    return str(value)
