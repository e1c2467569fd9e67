"""The commands that a run of the matrix advises: run as they are printed, they do what is left and nothing else."""

from __future__ import annotations

import json
import shlex

import pytest

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
    assert words[-5:] == ["--jobs", "1", "--time-limit", "90", "--retry"], "what the user said about the run stays"


def test_debug_shows_the_encoders_own_traceback(world: World) -> None:
    words = ("score", "--method", "toy_broken", "--task", "toy_a", "--protocol", PROTOCOL, "--jobs", "1")
    plain = world.neuco(*words)
    assert "Traceback" not in plain.stderr
    assert "`neuco --debug …` shows a method's own traceback. Try again: " in plain.stderr
    told = world.neuco("--debug", *words, "--retry").stderr
    first = told.partition("PluginError")[0]
    assert 'raise ValueError("this encoder never works")' in first
    assert "in encode" in first
