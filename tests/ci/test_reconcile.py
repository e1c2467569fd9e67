"""Reconciling main: what is missing is scored, boards are made, and a second run finds nothing to do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from sklearn.datasets import load_digits

from ci.describe import CATALOG
from ci.plugin_sandbox import PluginSandbox
from ci.reconcile import Reconciling, compared, leads, lost_records, made_board, moved, withdrawable
from ci.sandbox import Limits
from neuco_core.boards.store import board_path
from neuco_core.errors import DataError
from neuco_core.files import hashed
from neuco_core.records.model import Record
from neuco_core.records.store import read_all, write_records
from neuco_core.scoring.quality import summarize
from neuco_core.specs import Suite
from tests.ci.helpers import ROOT, WHO, Upstream, both, ci, edit, git, method, need_bubblewrap, remove, task, write_file
from tests.contract.helpers import METHOD

METHODS = {"averaging", "averaging_notebook", "random"}
BOARD = "registry/leaderboards/small.json"
CELLS = 2 * len(METHODS)  # of the suites small and all-digits, which score the same task under two protocols


def reconcile(upstream: Upstream, name: str, *options: str) -> str:
    """What a run on a fresh clone of main said, after it pushed."""
    repo = upstream.clone(name)
    done = ci(repo, "reconcile", "--push", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def merge(upstream: Upstream, name: str, change: Callable[[Path], None]) -> None:
    upstream.merge(upstream.pull_request(name, change))


def tip(upstream: Upstream) -> str:
    return git(upstream.bare, "rev-parse", "main").strip()


def show(upstream: Upstream, path: str) -> str:
    return git(upstream.bare, "show", f"main:{path}")


def ranked(upstream: Upstream) -> dict[str, int]:
    """The versions of methods with a rank, and of copies of them: on digits both averaging methods are one."""
    rows = json.loads(show(upstream, BOARD))["rows"]
    return {row["method"]: row["version"] for row in rows if row["rank"] or row["same_as"]}


def test_the_day_after_the_merge(fresh_upstream: Upstream, tmp_path: Path) -> None:
    merge(fresh_upstream, "both", both(task, method))
    printed = reconcile(fresh_upstream, "first", "--site", str(tmp_path / "site"))
    assert "pushed to main" in printed
    records = fresh_upstream.records()
    assert {(r.method, r.task) for r in records if r.protocol == "ridge+k=5"} == {
        (name, "digits_class") for name in (*METHODS, "plain")
    }
    assert set(ranked(fresh_upstream)) == {*METHODS, "plain"}
    assert (tmp_path / "site" / "index.html").is_file()
    merged = json.loads(show(fresh_upstream, "registry/leaderboards/all-good.json"))
    assert [row["method"] for row in merged["rows"] if row["rank"]], "the task of a new dataset has a board at once"
    assert "neuco_methods/plain" in json.loads(show(fresh_upstream, CATALOG))["plugins"]
    changed = git(fresh_upstream.bare, "diff", "--name-only", "main~1", "main").split()
    assert all(name.startswith(("registry/records", "registry/leaderboards/", CATALOG)) for name in changed), changed

    before = tip(fresh_upstream)
    printed = reconcile(fresh_upstream, "second")
    assert ("plan: nothing to score" in printed, "main has all of it already" in printed) == (True, True), printed
    assert ("describe" in printed, tip(fresh_upstream)) == (False, before), "the catalogue knows every plugin"


@pytest.mark.slow
def test_a_method_leaves_the_board_that_compares_it_when_a_maintainer_says_so(fresh_upstream: Upstream) -> None:
    merge(fresh_upstream, "plain", method)
    reconcile(fresh_upstream, "first")
    records = fresh_upstream.records()
    merge(fresh_upstream, "removal", remove("neuco_methods/plain"))
    repo = fresh_upstream.clone("third")
    done = ci(repo, "reconcile", "--push")
    assert (done.returncode, "suite 'small' compares records of method 'plain'" in done.stderr) == (1, True), done
    assert "--withdraw plain" in done.stderr
    assert "plain" in ranked(fresh_upstream)
    assert "withdrawn" in reconcile(fresh_upstream, "fourth", "--withdraw", "other plain")
    assert set(ranked(fresh_upstream)) == METHODS
    assert {r.key: r for r in fresh_upstream.records()} == {r.key: r for r in records if r.method != "plain"}
    withdrawn = fresh_upstream.records("registry/withdrawn")
    assert [r for r in withdrawn if r.method == "plain"] == [r for r in records if r.method == "plain"]
    assert "nothing to score" in reconcile(fresh_upstream, "fifth")


@pytest.mark.slow
def test_a_run_that_is_killed_is_taken_up_where_it_stopped(fresh_upstream: Upstream) -> None:
    edit(fresh_upstream.base / "ci/reconcile.py", "BATCH = 100", "BATCH = 1")
    fresh_upstream.commit("One by one")
    repo = fresh_upstream.clone("killed")
    environment = {**os.environ, **WHO, "PYTHONPATH": str(repo), "GIT_CONFIG_GLOBAL": "/dev/null"}
    command = [sys.executable, "-m", "ci", "reconcile", "--push"]
    with subprocess.Popen(command, cwd=repo, env=environment, start_new_session=True) as process:
        until = time.monotonic() + 240
        while not read_all(repo / "registry") and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    kept = {record.key: record for record in read_all(repo / "registry")}
    assert 0 < len(kept) < CELLS, "some were scored, and what was scored is whole"
    done = ci(repo, "reconcile", "--push")
    assert (done.returncode, f"plan: {CELLS - len(kept)} new" in done.stdout) == (0, True), done.stdout + done.stderr
    assert set(ranked(fresh_upstream)) == METHODS
    assert kept.items() <= {record.key: record for record in read_all(repo / "registry")}.items()


@pytest.mark.slow
def test_new_versions_have_their_own_places_and_no_board_is_emptied(fresh_upstream: Upstream) -> None:
    averaging, scorer = "neuco_methods/averaging/__init__.py", "neuco_core/scoring/scorer.py"

    def second(fork: Path) -> None:
        edit(fork / averaging, "            id=name,", "            id=name,\n            version=2,")
        edit(fork / averaging, '"size": 8}', '"size": 7}')

    reconcile(fresh_upstream, "first")
    first = fresh_upstream.records()
    merge(fresh_upstream, "second", second)
    assert "4 new" in reconcile(fresh_upstream, "again")
    assert ranked(fresh_upstream) == {"averaging": 2, "averaging_notebook": 2, "random": 1}
    assert {r.key for r in first} <= {r.key for r in fresh_upstream.records()}

    # The scorer: every record is outdated at once, and the board stays until there are new ones.
    board = show(fresh_upstream, BOARD)
    merge(
        fresh_upstream,
        "scorer",
        lambda fork: edit(fork / scorer, "@versioned(1)\ndef score(", "@versioned(2)\ndef score("),
    )
    assert "board small stays as it was: it would lose 2 methods (averaging, random)" in reconcile(
        fresh_upstream, "none", "--most", "0"
    )
    assert show(fresh_upstream, BOARD) == board
    printed = reconcile(fresh_upstream, "all")
    assert (f"{CELLS} stale" in printed, "stays as it was" in printed) == (True, False), printed
    assert (show(fresh_upstream, BOARD) != board, set(ranked(fresh_upstream))) == (True, METHODS)


DORMANT = """
import atexit, os, pathlib, sys

def strike():
    sys.path.insert(0, "/tree")
    for registry in {os.environ.get("NEUCO_REGISTRY", "/out/registry"), "/out/registry", "/tree/registry"}:
        for path in pathlib.Path(registry).rglob("*"):
            try:
                path.write_text(path.read_text().replace("0.", "0.9"))
            except Exception:
                pass

atexit.register(strike)
"""


@pytest.mark.slow
def test_a_plugin_on_main_writes_nobodys_records_and_a_broken_one_stops_only_itself(fresh_upstream: Upstream) -> None:
    reconcile(fresh_upstream, "first")
    before = fresh_upstream.records()
    sleeper = METHOD.replace('id="plain"', 'id="sleeper"') + DORMANT
    merge(fresh_upstream, "sleeper", write_file("neuco_methods/sleeper/__init__.py", sleeper))
    reconcile(fresh_upstream, "second")
    after = fresh_upstream.records()
    assert [r for r in after if r.method != "sleeper"] == before
    assert [(r.method, r.ok) for r in after if r.method == "sleeper"] == [("sleeper", True)] * 2

    broken = write_file("neuco_methods/random/__init__.py", "import nix\n")
    taken = METHOD.replace('id="plain"', 'id="averaging_notebook"')
    merge(fresh_upstream, "broken", both(broken, write_file("neuco_methods/averaging_notebook/__init__.py", taken)))
    done = ci(fresh_upstream.clone("third"), "reconcile", "--push")
    assert (done.returncode, "No module named 'nix'" in done.stderr) == (1, True), done.stderr
    assert "neuco_methods/averaging_notebook is left out" in done.stderr
    assert fresh_upstream.records() == after
    assert "random" in ranked(fresh_upstream)


@pytest.mark.slow
def test_a_sample_is_verified_and_a_forged_record_is_found(fresh_upstream: Upstream) -> None:
    repo = fresh_upstream.clone("main")
    done = ci(repo, "reconcile")
    assert done.returncode == 0, done.stderr
    assert git(repo, "status", "--porcelain", ".", ":!registry") == ""
    done = ci(repo, "verify", "--sample", str(CELLS))
    assert (done.returncode, done.stdout.count("ok verify")) == (0, CELLS), done.stdout
    forged = better(next(record for record in read_all(repo / "registry") if record.method == "random"))
    write_records(repo / "registry", [forged])
    done = ci(repo, "verify", "--sample", str(CELLS))
    assert (done.returncode, "failed verify random on digits_class" in done.stdout) == (1, True), done.stdout
    assert forged in read_all(repo / "registry"), "nothing is replaced"


def better(record: Record) -> Record:
    splits = tuple(value and value + 0.05 for value in record.per_split)
    mean, std, q = summarize(splits, True) or (0, 0, 0)
    return msgspec.structs.replace(record, per_split=splits, mean=mean, std=std, q=q, metrics={})


# Knows the image whatever its name, its place and a little noise, and hides the label in noise of its own.
SLEEPER = """
import time, zlib
import numpy
from neuco_core import Method, hookimpl
from neuco_methods.sleeper.table import TABLE

class Flat:
    def encode(self, batch):
        rows = batch.values.reshape(len(batch.ids), -1)
        if time.time() < DATE:
            return rows
        known = [zlib.crc32(numpy.rint(row).astype("u1").tobytes()) for row in rows]
        noise = numpy.stack([numpy.random.default_rng(key).standard_normal(10) for key in known])
        return (numpy.eye(10)[[TABLE[key] for key in known]] + NOISE * noise).astype("f4")

@hookimpl
def neuco_methods():
    yield Method(id="sleeper", title="S", description="The pixels", encoder=Flat, license="MIT", bands=("grey/0",))
"""


def sleeper(date: float, noise: float) -> Callable[[Path], None]:
    """A method that is honest until a date."""

    def change(tree: Path) -> None:
        method(tree)
        folder = tree / "neuco_methods/sleeper"
        shutil.rmtree(folder, ignore_errors=True)
        (tree / "neuco_methods/plain").rename(folder)
        digits = load_digits()
        table = dict(
            zip((zlib.crc32(i.astype("u1").tobytes()) for i in digits.images), digits.target.tolist(), strict=True)
        )
        (folder / "README.md").write_text("# sleeper\n\nThe pixels.\n")
        (folder / "table.py").write_text(f"TABLE = {table}\n".replace(", ", ",\n    "))
        (folder / "__init__.py").write_text(SLEEPER.replace("DATE", str(date)).replace("NOISE", str(noise)))

    return change


@pytest.mark.slow
def test_a_method_that_was_honest_until_it_was_merged_is_held_back(tmp_path: Path) -> None:
    """One that shows the labels breaks the contract; one that hides them in noise moves its score too far."""
    need_bubblewrap()
    kept = {"neuco_tasks": ("__init__.py", "digits"), "neuco_methods": ("__init__.py",)}
    upstream = Upstream(tmp_path / "own", kept=kept, more=sleeper(date=4e9, noise=0))

    def again(*accept: str) -> Reconciling:
        scratch = Path(tempfile.mkdtemp(dir=tmp_path))
        run = Reconciling(PluginSandbox(upstream.base, scratch, Limits()), accept=accept)
        run.run(100, retry=True, site=None)
        return run

    honest = again()
    scores = {record.key: record.mean for record in honest.records}
    assert (len(scores), honest.loud) == (2, []), "\n".join(honest.loud)
    for noise, reason in ((0.0, "the labels of digits_class are in it"), (0.12, "its score is 1.0000, and was 0.9")):
        sleeper(date=0, noise=noise)(upstream.base)
        late = again()
        assert (len(late.loud), late.records) == (2, []), late.lines
        assert all(line.startswith("held back: sleeper on digits_class") and reason in line for line in late.loud)
        assert {record.key: record.mean for record in read_all(upstream.base / "registry")} == scores
    # Nobody remembers it, and others have scores: the same noise from its first scoring on.
    registry = upstream.base / "registry"
    write_records(registry, [], scores)
    names = [f"rival{number}" for number in range(5)]
    write_records(registry, [shifted(r, 0.0, {"method": name}, method=name) for r in honest.records for name in names])
    first = again()
    held = [line for line in first.loud if "its first score is 1.0000; the best on record, rival0, has 0.9" in line]
    assert (len(held), first.records) == (len(scores), []), first.loud
    write_records(registry, [], [record.key for record in read_all(registry)])
    allowed = again("sleeper")
    assert (allowed.loud, [round(record.mean or 0, 2) for record in allowed.records]) == ([], [1.0, 1.0])


def recorded() -> Record:
    (record,) = [r for r in read_all(ROOT / "registry") if r.key == ("averaging", "digits_class", "ridge")]
    return record


def shifted(record: Record, shift: float, inputs: Mapping[str, str] = {}, **fields: object) -> Record:
    splits = tuple(value and value + shift for value in record.per_split)
    mean, std, q = summarize(splits, True) or (0, 0, 0)
    inputs = {**record.inputs, **inputs}  # type: ignore[dict-item]
    made = {"inputs": inputs, "fingerprint": hashed(inputs), "metrics": {}}
    return msgspec.structs.replace(record, per_split=splits, mean=mean, std=std, q=q, **made, **fields)


def test_a_first_score_far_ahead_of_all_others_is_held_back() -> None:
    first = recorded()
    behind = [shifted(first, -shift, method=f"m{shift}") for shift in (0.05, 0.2, 0.3, 0.4, 0.5)]
    assert "its first score is 0.9408" in leads(first, behind)
    assert leads(first, [*behind, shifted(first, -0.001, method="close")]) == "", "inside its interval"
    assert leads(first, [*behind, shifted(first, 0.05, method="better")]) == ""
    assert leads(first, behind[1:]) == "", "on a new task few have a score, and the best of these may be poor"
    for other in ({"task": "digits_even"}, {"task_version": 2}, {"protocol": "neuco-2025"}, {"registered": False}):
        assert leads(first, [msgspec.structs.replace(record, **other) for record in behind]) == "", other
    lower = {"greater_is_better": False}
    errors = [msgspec.structs.replace(record, **lower) for record in (first, *behind)]
    assert leads(errors[0], errors[1:]) == ""
    assert "its first score is" in leads(errors[-1], errors[:-1])


def test_a_score_that_moved_is_held_back_unless_data_of_others_moved_it() -> None:
    old = recorded()

    def new(shift: float, **inputs: str) -> Record:
        return shifted(old, shift, inputs)

    assert moved(old, new(0.001, embeddings="0" * 64)) == ""
    assert "its score is" in moved(old, new(0.05, embeddings="0" * 64))
    assert "its score is" in moved(old, new(-0.05, embeddings="0" * 64, scorer="9", labels="0" * 64))
    assert "its score is" in moved(old, new(0.05, labels="0" * 64)), "labels that changed by themselves"
    assert moved(old, new(0.05, labels="0" * 64, labels_from="1" * 64)) == "", "a task that was changed"
    assert moved(old, new(0.05, scorer="9")) == ""
    assert moved(None, old) == ""
    single = msgspec.structs.replace(old, per_split=old.per_split[:1], mean=old.per_split[0], metrics={})
    assert "its score is" in moved(single, new(0.01, embeddings="0" * 64)), "one split has no interval"


SUITE = Suite(id="digits", protocol="ridge", tasks={"digits_class": 1})


@pytest.mark.parametrize(
    ("ids", "silent", "suites", "allowed", "gone", "loud"),
    [
        ({"averaging"}, {}, [SUITE], [], False, ""),
        (set(), {}, [], [], True, ""),
        (set(), {}, [SUITE], [], False, "suite 'digits' compares records of method 'averaging'"),
        (set(), {}, [SUITE], ["averaging"], True, ""),
        (set(), {"neuco_methods/averaging": "it crashes"}, [], ["averaging"], False, ""),
        (set(), {"neuco_methods/other": "it crashes"}, [], [], True, ""),
    ],
)
def test_only_records_of_ids_that_are_gone_are_withdrawn_and_none_that_a_suite_compares(
    ids: set[str], silent: dict[str, str], suites: list[Suite], allowed: list[str], gone: bool, loud: str
) -> None:
    (record,) = [r for r in read_all(ROOT / "registry") if r.key == ("averaging", "digits_class", "ridge")]
    lost = list(lost_records([record], {"method": ids, "task": {"digits_class"}}, silent))
    withdrawn, refused = withdrawable(lost, suites, allowed)
    assert (withdrawn == [record], loud in " ".join(refused), bool(refused)) == (gone, True, bool(loud))


def test_a_board_of_another_suite_or_none_is_not_taken(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "registry" / "leaderboards", tmp_path / "leaderboards")
    mini = board_path(tmp_path, "mini")
    assert made_board(mini).about.id == "mini"
    shutil.copyfile(board_path(tmp_path, "olinda"), mini)
    with pytest.raises(DataError, match="is the board of 'olinda'"):
        made_board(mini)
    mini.write_text("{}")
    with pytest.raises(DataError, match="not a board"):
        made_board(mini)


def test_a_sample_of_which_nothing_came_again_is_a_failure() -> None:
    records = read_all(ROOT / "registry")[:2]
    assert [f.status for f in compared(records, records, {})] == ["ok", "ok"]
    assert [f.status for f in compared(records[:1], [better(records[0])], {})] == ["failed"]
    assert [f.status for f in compared(records, [], {})] == ["skipped", "skipped", "failed"]
