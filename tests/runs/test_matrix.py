"""The matrix as a user runs it: planned, saved cell by cell, resumed, and never taken down by one cell."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from neuco_core.runs.run import shared_folder
from tests.runs.helpers import METHODS, PROTOCOL, TASKS, World, kill

CELLS = len(METHODS) * len(TASKS)


def test_a_run_scores_everything_once_and_then_nothing(world: World) -> None:
    first = world.score("--jobs", "2")
    assert first.returncode == 0, first.stderr
    assert f"{CELLS} of {CELLS} scored now" in first.stdout
    assert len(world.records()) == CELLS
    # Embeddings once per method, and a few again to compare; labels once per task, whatever the number of workers.
    embedded = sorted(line for line in world.logged() if line.startswith("embed"))
    assert embedded == [line for dim in (2, 3, 4) for line in [f"embed {dim}"] * 2]
    read = [line.split()[1] for line in (world.folder / "log.labels").read_text().splitlines()]
    assert sorted(read) == [f"{name}.csv" for name in TASKS]
    before = len(world.logged())
    second = world.score("--jobs", "1")
    assert second.returncode == 0
    assert f"{CELLS} scores from cache" in second.stdout
    assert "scored now" not in second.stdout
    assert len(world.logged()) == before


def test_a_changed_input_makes_just_its_cells_stale_and_says_why(world: World) -> None:
    world.score()
    path = world.folder / "neuco_methods/toy/work.py"
    path.write_text(path.read_text() + "\n# a comment\n")
    plan = world.score("--dry-run", "--json")
    assert {cell["state"] for cell in json.loads(plan.stdout)["cells"]} == {"cached"}, "a comment changes no number"
    path.write_text(path.read_text().replace("[:, : self.dim]", "[:, : self.dim] * 2"))
    # The probe is in the same file: its code changed for every cell.
    plan = world.score("--dry-run", "--json")
    cells = json.loads(plan.stdout)["cells"]
    assert {cell["state"] for cell in cells} == {"stale"}
    assert all("encoder's code" in cell["reason"] and "the probe changed" in cell["reason"] for cell in cells)


def test_a_package_that_was_missing_and_is_installed_is_no_failure_any_more(world: World) -> None:
    path = world.folder / "neuco_methods/toy/work.py"
    path.write_text("import lately_installed\n" + path.read_text())
    words = ("score", "--protocol", "ridge", "--method", "toy_one", "--task", "toy_a")
    for _ in range(2):
        first = world.neuco(*words)
        assert "lately_installed" in first.stdout, first.stdout + first.stderr
        (text,) = world.records().values()
        assert '"failure":"dependency"' in text
    world.write("lately_installed.py", "")
    second = world.neuco(*words)
    assert second.returncode == 0, second.stdout + second.stderr
    (text,) = world.records().values()
    assert '"status":"ok"' in text


def test_the_reason_of_one_changed_label_file_is_listed_once_for_all_methods(world: World) -> None:
    assert world.score().returncode == 0
    path = world.folder / "labels/toy_a.csv"
    before = path.read_text()
    path.write_text(before + "\n")
    scored, verified = world.score("--fresh"), world.neuco("verify")
    assert "toy_a (data)" in scored.stderr
    assert "--retry" not in scored.stderr, "another file is no better at the second try"
    for out in (scored.stdout, scored.stderr, verified.stdout, verified.stderr.partition("neuco: error")[0]):
        reason = r"not the declared file; expected sha256 \w+, got \w+ \(file:\S+/labels/toy_a\.csv\)"
        assert len(re.findall(reason, out)) == 1, out
        assert "toy_three on toy_a" in out or "toy_three  toy_a" in out or "and 2 more" in out
    assert verified.stdout.count("as above") == verified.stderr.count("as above") == len(METHODS) - 1
    path.write_text(before)
    assert "scored now" not in world.score().stdout, "a damaged file has taken the place of no score"


def test_cells_that_cannot_be_scored_say_so(world: World) -> None:
    words = ["score", "--all", "--protocol", PROTOCOL, "--method", "toy_one"]
    done = world.neuco(*words, "--task", "toy_unpinned", "--task", "toy_bare_task", "--task", "toy_a")
    assert done.returncode == 0, done.stderr
    assert "skipped toy_one on toy_unpinned: the labels of toy_unpinned are not downloaded yet" in done.stdout
    assert "not-applicable toy_one on toy_bare_task: dataset toy_bare has no cubes to encode" in done.stdout
    texts = world.records()
    assert sum('"status":"skipped"' in text for text in texts.values()) == 1
    assert sum('"status":"not-applicable"' in text for text in texts.values()) == 1


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_and_resumed_is_the_same_as_never_killed(world: World, kills: int) -> None:
    assert world.score(registry="whole").returncode == 0
    chance = random.Random(7)
    world.log.unlink()
    for _ in range(kills):
        _run_and_kill(world, after=chance.randrange(3), then=chance.uniform(0, 0.4))
    final = _checked_run(world)
    assert final.returncode == 0, final.stderr
    assert world.records() == world.records("whole")


def test_the_next_run_removes_the_folder_of_a_killed_one_and_never_that_of_a_live_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "from neuco_core.runs.run import shared_folder\nwith shared_folder() as f: print(f, flush=True); input()"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    runs = [subprocess.Popen([sys.executable, "-c", code], env={"TMPDIR": str(tmp_path)}, **pipes) for _ in range(2)]
    killed, live = (Path(run.stdout.readline().strip()) for run in runs if run.stdout)
    (killed / "labels.npz").touch()
    for folder in (killed, live):
        os.utime(folder, (0, 0))
    kill(runs[0])
    with shared_folder() as own:
        assert sorted(map(str, tmp_path.iterdir())) == sorted([own, str(live)])
    runs[1].communicate("\n")
    assert list(tmp_path.iterdir()) == []


def _saved(world: World) -> set[str]:
    """Cells whose record is complete, as the probe logs them."""
    dims = dict(zip(METHODS, (2, 3, 4), strict=True))
    records = _records(world)
    assert {record["status"] for record in records.values()} <= {"ok"}
    return {f"cell {dims[method]} {task}" for method, task in records}


def _run_and_kill(world: World, after: int, then: float) -> None:
    """Kill the run a moment after it has begun some cells, and check that it began none that was saved before."""
    saved, before = _saved(world), len(world.logged())
    process = world.start(*world.score_words("--jobs", "2"), TOY_SLEEP="0.2")
    children = psutil.Process(process.pid)
    while process.poll() is None and sum("cell" in line for line in world.logged()[before:]) < after:
        time.sleep(0.01)
    time.sleep(then)
    workers = children.children(recursive=True) if process.poll() is None else []
    kill(process)
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive, "a killed run leaves no workers behind"
    begun = {line for line in world.logged()[before:] if line.startswith("cell")}
    assert not begun & saved


def _checked_run(world: World) -> subprocess.CompletedProcess[str]:
    saved, before = _saved(world), len(world.logged())
    done = world.score("--jobs", "2")
    begun = [line for line in world.logged()[before:] if line.startswith("cell")]
    assert not set(begun) & saved
    assert len(begun) == CELLS - len(saved)
    return done


def test_cells_that_do_harm_cost_only_themselves(world: World) -> None:
    methods = (*METHODS, "toy_evil", "toy_broken", "toy_aborting")
    limits = ["--time-limit", "10", "--memory-limit", "900MB"]
    done = world.score(*limits, "--jobs", "2", methods=methods)
    assert done.returncode == 1
    records = _records(world)
    outcomes = {cell: record["failure"] or record["status"] for cell, record in records.items()}
    assert {cell: kind for cell, kind in outcomes.items() if cell[0] in METHODS} == {
        (method, task): "ok" for method in METHODS for task in TASKS
    }
    harm = {"toy_a": "crash", "toy_b": "memory", "toy_c": "timeout", "toy_d": "crash", "toy_e": "method", "toy_f": "ok"}
    assert {task: outcomes["toy_evil", task] for task in TASKS} == harm
    assert {outcomes["toy_broken", task] for task in TASKS} == {"method"}
    assert {outcomes["toy_aborting", task] for task in TASKS} == {"crash"}
    assert "toy_evil on toy_c (timeout)" in done.stderr
    assert "Try again: neuco score " in done.stderr
    assert done.stderr.rstrip().endswith("--retry")
    assert "SIGABRT" in records["toy_evil", "toy_a"]["reason"]
    assert "SIGKILL" in records["toy_evil", "toy_d"]["reason"]
    assert "this encoder never works" in records["toy_broken", "toy_a"]["reason"]

    before = len(world.logged())
    again = world.score(*limits, methods=("toy_evil",))
    assert again.returncode == 1, "what failed before and was not tried again is still no success"
    assert again.stdout.count("failed toy_evil on ") == 5
    assert len(world.logged()) == before
    retried = world.score("--retry", methods=("toy_evil",), TOY_GOOD="1")
    assert retried.returncode == 0, retried.stderr
    assert {_records(world)["toy_evil", task]["status"] for task in TASKS} == {"ok"}


def _records(world: World) -> dict[tuple[str, str], dict[str, Any]]:
    records = map(json.loads, world.records().values())
    return {(record["method"], record["task"]): record for record in records}


def test_an_interrupt_ends_the_workers_and_keeps_what_is_done(world: World) -> None:
    process = world.start(*world.score_words("--jobs", "1", "--json"), TOY_SLEEP="0.3")
    while sum("cell" in line for line in world.logged()) < 3 and process.poll() is None:
        time.sleep(0.01)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert out == "", "nothing that is not whole is printed"
    assert not psutil.wait_procs(workers, timeout=60)[1]
    assert len(_saved(world)) >= 2
    assert _checked_run(world).returncode == 0


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
