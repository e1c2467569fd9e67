"""No submission is lost, none is counted twice, and no race passes a quota."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import RefusedError, broken_link
from neuco_extensions.challenge.outcome import Outcome
from neuco_extensions.challenge.pool import work_on, workers
from tests.challenge.parts import DEV, embed, make_challenge
from tests.challenge.simulation import bad_file

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(make_challenge(tmp_path / "c"))


def test_quotas_by_day_and_in_all(host: Host, tmp_path: Path) -> None:
    for number in range(6):
        host.submit("alpha", "dev", embed(tmp_path / f"{number}.npz", 1, number), now=DEV + timedelta(days=number // 3))
    for day in (0, 1, 2):
        with pytest.raises(RefusedError, match="no submissions left"):
            host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1, 99), now=DEV + timedelta(days=day))
    host.submit("beta", "dev", embed(tmp_path / "x.npz", 1, 99), now=DEV)


@pytest.mark.parametrize("days", [-10, 27])
def test_early_and_late_ones_are_refused(host: Host, tmp_path: Path, days: int) -> None:
    with pytest.raises(RefusedError, match="not open"):
        host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV + timedelta(days=days))
    assert host.journal.submissions() == []


def test_the_end_is_exact(host: Host, tmp_path: Path) -> None:
    end = host.challenge.phase("dev").end
    host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=end - timedelta(microseconds=1))
    with pytest.raises(RefusedError):
        host.submit("beta", "dev", embed(tmp_path / "x.npz", 1), now=end)


def test_the_same_file_or_source_is_the_same_submission(host: Host, tmp_path: Path) -> None:
    file, other = embed(tmp_path / "x.npz", 1), embed(tmp_path / "y.npz", 2)
    first = host.submit("alpha", "dev", file, now=DEV, source="evalai:1")
    assert host.submit("alpha", "dev", file, now=DEV + timedelta(days=99)) == first
    assert host.submit("alpha", "dev", other, now=DEV, source="evalai:1") == first
    assert host.submit("beta", "dev", file, now=DEV) != first
    host.work_all()
    assert host.submit("alpha", "dev", file, now=DEV).state == "scored"
    assert len(host.journal.submissions()) == 2


def test_what_is_too_large_is_cut_off_and_leaves_nothing(host: Host) -> None:
    sent = 0

    def endless() -> object:
        nonlocal sent
        while True:
            sent += 10_000
            yield b"x" * 10_000

    with pytest.raises(RefusedError, match="larger"):
        host.submit("alpha", "dev", endless(), now=DEV)  # type: ignore[arg-type]
    assert sent <= host.challenge.limits.bytes + 10_000
    assert list(host.challenge.private.glob("incoming/*")) == []


def test_what_cannot_be_read_costs_no_quota_but_not_without_end(host: Host, tmp_path: Path) -> None:
    for number in range(host.challenge.limits.failed_per_day):
        kind = ("text", "zip", "ids", "nan")[number % 4]
        host.submit("alpha", "dev", bad_file(tmp_path / f"{number}.csv", kind), now=DEV + timedelta(minutes=number))
        host.work_all()
    codes = {own.code for own in host.journal.submissions()}
    assert codes == {"format", "ids"}
    with pytest.raises(RefusedError, match="no submissions left"):
        host.submit("alpha", "dev", embed(tmp_path / "good.npz", 1), now=DEV)
    own = host.submit("alpha", "dev", embed(tmp_path / "good.npz", 1), now=DEV + timedelta(days=1))
    assert host.work(only=own.id).state == "scored"  # type: ignore[union-attr]


def test_a_lease_that_ran_out_is_taken_over_and_counted_once(host: Host, tmp_path: Path) -> None:
    own = host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
    first = host.journal.lease(3, seconds=10, now=100.0)
    assert first is not None
    assert host.journal.lease(3, now=105.0) is None
    second = host.journal.lease(3, seconds=10, now=111.0)
    assert second is not None
    assert (second.id, second.attempts) == (own.id, 2)
    assert not host.journal.finish(first, Outcome("scored", {"mean_q": 99.0}, {"height": 99.0}))
    assert host.journal.finish(second, Outcome("scored", {"mean_q": 1.0}, {"height": 1.0}))
    assert not host.journal.finish(second, Outcome("scored", {"mean_q": 2.0}, {"height": 2.0}))
    assert host.journal.get(own.id).feedback == {"mean_q": 1.0}


def test_who_lost_the_lease_writes_no_records(host: Host, tmp_path: Path) -> None:
    host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
    slow = host.journal.lease(9, seconds=0.0, now=1.0)
    assert slow is not None
    found = host.evaluate_submission(slow)
    done = host.work()
    assert done is not None
    before = {path: path.read_bytes() for path in host.challenge.registry.rglob("*.json")}
    changed = replace(found, records=tuple(structs.replace(r, provenance={"time": "later"}) for r in found.records))
    assert host.settle(slow, changed) == done
    assert {path: path.read_bytes() for path in host.challenge.registry.rglob("*.json")} == before


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_processes_here_or_on_dask_give_the_same(host: Host, tmp_path: Path, engine: str) -> None:
    if engine == "dask":
        pytest.importorskip("distributed")
    for number, team in enumerate(("alpha", "alpha", "beta")):
        host.submit(team, "dev", embed(tmp_path / f"{number}.npz", 1 + number, number), now=DEV)
    with workers(engine, 2) as pool:
        done = {own.id: own.scores for own in work_on(host, pool, 2)}
    assert done == {own.id: host.evaluate_submission(own).outcome.scores for own in host.journal.submissions()}
    assert [own.state for own in host.journal.submissions()] == ["scored"] * 3


def test_a_submission_that_workers_die_of_fails_and_can_be_tried_again(host: Host, tmp_path: Path) -> None:
    own = host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
    for moment in range(3):
        assert host.journal.lease(3, seconds=0.5, now=float(moment)) is not None
    assert host.journal.lease(3, now=9.0) is None
    failed = host.journal.get(own.id)
    assert (failed.state, failed.code) == ("failed", "failed")
    assert "given up after 3" in failed.detail
    host.journal.retry(own.id)
    assert host.work(only=own.id).state == "scored"  # type: ignore[union-attr]


def test_submissions_of_a_team_are_evaluated_in_their_order(host: Host, tmp_path: Path) -> None:
    for number, team in enumerate(("alpha", "alpha", "beta")):
        host.submit(team, "dev", embed(tmp_path / f"{number}.npz", 1, number), now=DEV)
    leased = [host.journal.lease(3), host.journal.lease(3), host.journal.lease(3)]
    assert [own and own.id for own in leased] == [1, 3, None]


def test_the_hosts_own_fault_costs_no_attempt(host: Host, tmp_path: Path) -> None:
    own = host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
    labels = host.challenge.private / "labels/height.csv"
    labels.rename(tmp_path / "away.csv")
    for _ in range(5):
        with pytest.raises(Exception, match="labels"):
            host.work()
    (tmp_path / "away.csv").rename(labels)
    assert host.journal.get(own.id).state == "received"
    assert host.work().state == "scored"  # type: ignore[union-attr]


@pytest.mark.parametrize("column", ["team = 'beta'", "received = '2026-01-01T00:00:00.000000+00:00'", "public = 0"])
def test_an_edited_entry_breaks_the_chain(host: Host, tmp_path: Path, column: str) -> None:
    for number in range(3):
        host.submit("alpha", "dev", embed(tmp_path / f"{number}.npz", 1, number), now=DEV)
    assert broken_link(host.journal.submissions()) is None
    with sqlite3.connect(host.journal.path) as db:
        db.execute(f"UPDATE submissions SET {column} WHERE id = 2")
    assert broken_link(host.journal.submissions()) == 2
    with sqlite3.connect(host.journal.path) as db:
        db.execute("DELETE FROM submissions WHERE id = 1")
    assert broken_link(host.journal.submissions()) == 1


def test_eight_processes_cannot_race_a_quota(tmp_path: Path) -> None:
    folder, gate = (
        make_challenge(tmp_path / "c", {"per_day = 3\nin_all = 6": "per_day = 40\nin_all = 40"}),
        tmp_path / "go",
    )
    files = [embed(tmp_path / f"{number}.npz", 1, number) for number in range(80)]
    starts = []
    for client in range(8):
        plan = tmp_path / f"plan-{client}.json"
        order = files[10 * client :] + files[: 10 * client]  # each meets the others' files later, as duplicates
        plan.write_text(json.dumps([["alpha", "dev", str(path), DEV.isoformat()] for path in order[:30]]))
        words = ["submit", str(folder), str(plan), str(plan.with_suffix(".log")), str(gate)]
        starts.append(subprocess.Popen([sys.executable, "-m", "tests.challenge.actor", *words], env=ONE_THREAD))
    while len(list(tmp_path.glob("*.ready"))) < 8 and all(process.poll() is None for process in starts):
        time.sleep(0.01)
    gate.touch()
    assert [process.wait() for process in starts] == [0] * 8
    told = [json.loads(line)[1] for log in tmp_path.glob("*.log") for line in log.read_text().splitlines()]
    assert len(told) == 240
    assert {answer for answer in told if answer != "quota"} == set(range(1, 41))
    with Host(folder) as host:
        assert [own.id for own in host.journal.submissions()] == list(range(1, 41))
        assert broken_link(host.journal.submissions()) is None


def test_killed_at_any_step_nothing_is_lost_or_counted_twice(tmp_path: Path) -> None:
    folder, file = make_challenge(tmp_path / "c"), embed(tmp_path / "x.npz", 0.5)
    words = [sys.executable, "-m", "tests.challenge.actor", "die", str(folder), str(file)]
    done = subprocess.run(words, env=ONE_THREAD, check=True, stdout=subprocess.PIPE, text=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [own["killed"] for own in told] == [True] * (len(told) - 1) + [False]
    assert len(told) > 20
    assert len({json.dumps([own["rows"], own["files"]]) for own in told}) == 1
    assert [row[:2] for row in told[0]["rows"]] == [[1, "scored"]]
