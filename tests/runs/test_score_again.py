"""The commands that a run of the matrix advises: run as they are printed, they do what is left and nothing else."""

from __future__ import annotations

import json
import shlex

from tests.runs.helpers import PROTOCOL, World


def test_the_retry_command_plans_what_failed_and_nothing_else(world: World) -> None:
    selectors = ["--dataset", "toy", "--task", "toy_[ab]", "--method", "toy_one", "--method", "toy_broken"]
    run_options = ["--jobs", "1", "--time-limit", "90"]
    done = world.neuco("score", "--all", "--fresh", *selectors, "--protocol", PROTOCOL, *run_options)
    assert done.returncode == 1, done.stdout
    records = map(json.loads, world.records().values())
    failed = {(record["method"], record["task"]) for record in records if record["status"] == "failed"}
    assert failed == {("toy_broken", "toy_a"), ("toy_broken", "toy_b")}
    [line] = [line for line in done.stderr.splitlines() if "Try again: neuco " in line]
    retry = shlex.split(line.partition("Try again: neuco ")[2])
    assert retry[-5:] == [*run_options, "--retry"], "what the user said about the run stays"
    cells = json.loads(world.neuco(*retry, "--dry-run", "--json").stdout)["cells"]
    to_run = {(cell["method"], cell["task"]) for cell in cells if cell["state"] != "cached"}
    assert to_run == {(cell["method"], cell["task"]) for cell in cells if cell["state"] == "retry"} == failed


def test_debug_shows_the_encoders_own_traceback(world: World) -> None:
    words = ("score", "--method", "toy_broken", "--task", "toy_a", "--protocol", PROTOCOL, "--jobs", "1")
    plain = world.neuco(*words)
    assert "Traceback" not in plain.stderr
    assert "`neuco --debug …` shows a method's own traceback. Try again: " in plain.stderr
    traceback = world.neuco("--debug", *words, "--retry").stderr.partition("PluginError")[0]
    assert 'raise ValueError("this encoder never works")' in traceback
    assert "in encode" in traceback
