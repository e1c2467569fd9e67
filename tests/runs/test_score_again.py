"""The commands that a run of the matrix advises: run as they are printed, they do what is left and nothing else."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from neuco_core.cli.score_again import resume_command, retry_command
from tests.runs.helpers import PROTOCOL, World

# A fourth method that fails, so that there are too many to name.
BAD = """
from neuco_core import Method, hookimpl

def encoder(dim):
    raise ValueError("this encoder cannot be made")

@hookimpl
def neuco_methods():
    for name in "wxyz":
        yield Method(id=f"bad_{name}", encoder=encoder, params={"dim": 2}, dim=2)
"""


def advice(errors: str) -> list[str]:
    [line] = [line for line in errors.splitlines() if "Try again: neuco " in line]
    return shlex.split(line.partition("Try again: neuco ")[2])


def planned(world: World, words: list[str]) -> dict[tuple[str, str], str]:
    """What a command would run, by cell."""
    found = json.loads(world.neuco(*words, "--dry-run", "--json").stdout)
    return {
        (cell["method"], cell["task"]): cell["state"]
        for cell in found["cells"]
        if cell["state"] in ("new", "stale", "retry")
    }


@pytest.mark.parametrize(
    ("selectors", "cells"),
    [
        (["--dataset", "toy", "--method", "toy_one", "--method", "toy_broken"], 6),  # few methods, many tasks
        (["--task", "toy_[ab]", "--method", "bad_*", "--method", "toy_one"], 8),  # many methods, few tasks
        (["--dataset", "toy", "--task", "toy_[!u]*", "--method", "bad_*", "--method", "toy_one"], 24),  # many of both
        (["--task", "toy_a", "--method", "toy_broken"], 1),
    ],
)
def test_the_retry_command_plans_what_failed_and_nothing_else(world: World, selectors: list[str], cells: int) -> None:
    world.write("neuco_methods/bad/__init__.py", BAD)
    done = world.neuco("score", "--all", *selectors, "--protocol", PROTOCOL, "--jobs", "1", "--time-limit", "90")
    assert done.returncode == 1, done.stdout
    failed = {
        (record["method"], record["task"]): "retry"
        for record in map(json.loads, world.records().values())
        if record["status"] == "failed"
    }
    assert len(failed) == cells
    words = advice(done.stderr)
    assert planned(world, words) == failed
    assert words[-4:] == ["--jobs", "1", "--time-limit", "90"], "what the user said about the run stays"


GIVEN: dict[str, Any] = {"methods": (), "tasks": (), "suite": None, "kind": None, "tags": (), "dataset": None}
ALL: dict[str, Any] = {**GIVEN, "everything": True}


def test_methods_and_tasks_are_named_independently() -> None:
    few, many = ["a", "b"], [f"n{i}" for i in range(9)]
    given = {**ALL, "tags": ("soil", "x y"), "engine": "local"}
    command = retry_command(given, "ridge", [(name, task) for name in few for task in many])
    assert command == "neuco score --retry --method a --method b --tag soil --tag 'x y' --protocol ridge"
    command = retry_command(given, "neuco-2025", [(name, task) for name in many for task in few])
    assert command == "neuco score --all --retry --task a --task b"


def test_the_protocol_is_said_where_it_is_not_implied() -> None:
    from neuco_core.plugins.catalog import list_suites

    suite = next(suite for suite in list_suites() if suite.protocol != "neuco-2025")
    given = {**ALL, "suite": suite.id}
    assert resume_command(given, suite.protocol) == f"neuco score --all --suite {suite.id}"
    assert resume_command(given, "neuco-2025").endswith("--protocol neuco-2025")
    one = retry_command(given, suite.protocol, [("m", "t")])
    assert one == f"neuco score --retry --method m --task t --protocol {suite.protocol}"


def test_how_it_is_run_stays() -> None:
    given = {**ALL, "engine": "dask://h:1", "jobs": 2, "time_limit": 1.5, "embed_time_limit": 7200.0}
    command = resume_command({**given, "memory_limit": 4 * 10**9}, "neuco-2025")
    assert command == (
        "neuco score --all --engine dask://h:1 --jobs 2 --time-limit 1.5 --embed-time-limit 7200 --memory-limit 4000MB"
    )
