"""Reconciling main: what is missing is scored, boards are made, and a second run finds nothing to do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ci.describe import CATALOG
from ci.plugin_sandbox import PluginData
from ci.reconcile import compared, lost_records, made_board, registered, withdrawable
from neuco_core.boards.store import board_path
from neuco_core.errors import DataError
from neuco_core.records.model import Record, summary
from neuco_core.records.store import read_all, write_records
from neuco_core.specs import Method, Suite
from tests.ci.helpers import ROOT, WHO, Upstream, both, ci, edit, git, method, plugin_data, remove, task, write_file
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

    merge(fresh_upstream, "broken", write_file("neuco_methods/random/__init__.py", "import nix\n"))
    done = ci(fresh_upstream.clone("third"), "reconcile", "--push")
    assert (done.returncode, "No module named 'nix'" in done.stderr) == (1, True), done.stderr
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
    mean, std, q = summary(splits, True) or (0, 0, 0)
    return msgspec.structs.replace(record, per_split=splits, mean=mean, std=std, q=q, metrics={})


def plugin(name: str, spec: str) -> PluginData:
    return plugin_data(Method(id=spec, encoder=object), folder=f"neuco_methods/{name}")


@pytest.mark.parametrize("name", ["averaging_notebook", "averaging-notebook"])
def test_two_plugins_with_one_id_are_refused(name: str) -> None:
    """Neither would be registered any more, and whoever was ranked under that id would be gone."""
    with pytest.raises(DataError, match="neuco_methods/averaging and neuco_methods/averaging_notebook"):
        registered([plugin("averaging", name), plugin("averaging_notebook", "averaging_notebook")])


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
