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

import numpy as np
import pytest
from msgspec import structs

from neuco_extensions.challenge import workers
from neuco_extensions.challenge.audit import audit
from neuco_extensions.challenge.host import Host, quota_left
from neuco_extensions.challenge.journal import MESSAGES, JournalEntry, RefusedError, Verdict, broken_link, stamp
from neuco_extensions.challenge.workers import evaluate_waiting, start_engine
from tests.challenge.parts import DEV, IDS, embed, make_challenge
from tests.challenge.simulation import bad_file

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
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


def test_a_lease_that_was_taken_over_is_counted_once(host: Host, tmp_path: Path) -> None:
    """And who has lost it writes no records."""
    entry = host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
    with Host(host.challenge.folder) as slow:
        first = slow.journal.lease(9)
        assert first is not None
        assert host.journal.lease(9) is None
        evaluation = slow.evaluate_entry(first)
        slow.journal.give_back(first, counts=True)
        done = host.work()
        assert done is not None
        assert (done.id, done.state, done.attempts) == (entry.id, "scored", 2)
        before = host.records_path(done).read_bytes()
        changed = tuple(structs.replace(record, provenance={"time": "later"}) for record in evaluation.records)
        assert slow.settle(first, replace(evaluation, records=changed)) == done
        assert not slow.journal.finish(first, Verdict("scored", {"mean_q": 99.0}, {"height": 99.0}))
    assert host.records_path(done).read_bytes() == before
    assert host.journal.get(entry.id) == done


@pytest.mark.parametrize("engine", ["local", pytest.param("dask", marks=pytest.mark.slow)])
def test_workers_here_or_on_dask_give_the_same(host: Host, tmp_path: Path, engine: str) -> None:
    if engine == "dask":
        pytest.importorskip("distributed")
    for number, team in enumerate(("alpha", "alpha", "beta")):
        host.submit(team, "dev", embed(tmp_path / f"{number}.npz", 1 + number, number), now=DEV)
    done = {entry.id: entry.scores for entry in evaluate_waiting(host, start_engine(engine, 2), 2)}
    assert done == {entry.id: host.evaluate_entry(entry).verdict.scores for entry in host.journal.submissions()}
    assert [entry.state for entry in host.journal.submissions()] == ["scored"] * 3


def test_a_file_that_unpacks_to_more_fails_in_fixed_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file gives the same answer in the audit, and the worker goes on with the next one."""
    monkeypatch.setattr(workers, "LIBRARIES", 120 << 20)
    bomb = tmp_path / "bomb.npz"  # 240 MB as float32: what its reader allows, and more than the rules do
    np.savez_compressed(bomb, ids=np.array(IDS), values=np.zeros((15_000_000, 4), dtype=np.uint8))
    with Host(make_challenge(tmp_path / "c", {"bytes = 100_000": "bytes = 2_000_000"})) as host:
        host.submit("alpha", "dev", bomb, now=DEV)
        host.submit("alpha", "dev", embed(tmp_path / "good.npz", 0.5), now=DEV)
        assert len(list(evaluate_waiting(host, start_engine("local", 1), 1))) == 2
        bad, good = host.journal.submissions()
        assert (bad.state, bad.code, bad.attempts) == ("failed", "failed", 1)
        assert "memory" in bad.detail
        assert host.answer(bad.id, "alpha")["message"] == MESSAGES["failed"]
        assert good.state == "scored"
    assert all(check.ok for check in audit(tmp_path / "c", engine=start_engine("local", 1)))


def test_a_submission_that_workers_die_of_fails_and_can_be_tried_again(host: Host, tmp_path: Path) -> None:
    own = host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
    for _ in range(3):
        leased = host.journal.lease(3)
        assert leased is not None
        host.journal.give_back(leased, counts=True)
    assert host.journal.lease(3) is None
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


@pytest.mark.parametrize("clients", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_processes_cannot_race_a_quota(tmp_path: Path, clients: int) -> None:
    quota = 5 * clients
    limits = {"per_day = 3\nin_all = 6": f"per_day = {quota}\nin_all = {quota}"}
    folder, gate = make_challenge(tmp_path / "c", limits), tmp_path / "go"
    files = [embed(tmp_path / f"{number}.npz", 1, number) for number in range(10 * clients)]
    starts = []
    for client in range(clients):
        plan = tmp_path / f"plan-{client}.json"
        order = files[10 * client :] + files[: 10 * client]  # each meets the others' files later, as duplicates
        plan.write_text(json.dumps([["alpha", "dev", str(path), DEV.isoformat()] for path in order[:30]]))
        words = ["submit", str(folder), str(plan), str(plan.with_suffix(".log")), str(gate)]
        starts.append(subprocess.Popen([sys.executable, "-m", "tests.challenge.actor", *words], env=ONE_THREAD))
    while len(list(tmp_path.glob("*.ready"))) < clients and all(process.poll() is None for process in starts):
        time.sleep(0.01)
    gate.touch()
    assert [process.wait() for process in starts] == [0] * clients
    told = [json.loads(line)[1] for log in tmp_path.glob("*.log") for line in log.read_text().splitlines()]
    assert len(told) == sum(min(30, 10 * clients) for _ in range(clients))
    assert {answer for answer in told if answer != "quota"} == set(range(1, quota + 1))
    with Host(folder) as host:
        assert [own.id for own in host.journal.submissions()] == list(range(1, quota + 1))
        assert broken_link(host.journal.submissions()) is None


@pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_any_step_nothing_is_lost_or_counted_twice(tmp_path: Path, stride: int) -> None:
    folder, file = make_challenge(tmp_path / "c"), embed(tmp_path / "x.npz", 0.5)
    words = [sys.executable, "-m", "tests.challenge.actor", "die", str(folder), str(file), str(stride)]
    done = subprocess.run(words, env=ONE_THREAD, check=True, stdout=subprocess.PIPE, text=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [own["killed"] for own in told] == [True] * (len(told) - 1) + [False]
    assert len(told) > 20 / stride
    assert len({json.dumps([own["rows"], own["files"]]) for own in told}) == 1
    assert [row[:2] for row in told[0]["rows"]] == [[1, "scored"]]


@pytest.fixture
def hourly(tmp_path: Path) -> Host:
    return Host(make_challenge(tmp_path / "c", {"dim = 16": "dim = 16\nfailed_per_day = 2\ntick = 3600"}))


def evaluated(host: Host) -> list[JournalEntry]:
    """The submissions, as if each had been evaluated a minute after its receipt."""
    host.work_all()
    return [own._replace(finished=stamp(DEV + timedelta(minutes=1))) for own in host.journal.submissions()]


def test_the_journal_accepts_as_many_as_are_quota_left(hourly: Host, tmp_path: Path) -> None:
    for number, (day, today, in_all) in enumerate(((0, 3, 6), (0, 2, 5), (0, 1, 4), (1, 3, 3), (1, 2, 2), (1, 1, 1))):
        now = DEV + day * DAY
        own = hourly.journal.submissions(team="alpha")
        assert quota_left(hourly.challenge, own, now=now)["dev"] == {"today": today, "in_all": in_all}
        hourly.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.5, number), now=now)
        if today == 1:
            with pytest.raises(RefusedError):
                hourly.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.5, 99), now=now)
    own = hourly.journal.submissions(team="alpha")
    assert quota_left(hourly.challenge, own, now=DEV + 2 * DAY)["dev"] == {"today": 0, "in_all": 0}
    assert quota_left(hourly.challenge, own, now=DEV)["test"] == {"today": 3, "in_all": 3}
    hourly.close()


def test_a_file_that_cannot_be_read_is_given_back_with_its_answer(hourly: Host) -> None:
    hourly.submit("alpha", "dev", [b"no embeddings"], now=DEV)
    own = evaluated(hourly)
    assert own[0].code == "format"
    assert quota_left(hourly.challenge, own, now=DEV + HOUR)["dev"] == {"today": 2, "in_all": 5}
    assert quota_left(hourly.challenge, own, now=DEV + 2 * HOUR)["dev"] == {"today": 3, "in_all": 6}
    hourly.submit("alpha", "dev", [b"again"], now=DEV)
    own = evaluated(hourly)
    with pytest.raises(RefusedError):
        hourly.submit("alpha", "dev", [b"and again"], now=DEV)
    assert quota_left(hourly.challenge, own, now=DEV + 2 * HOUR)["dev"] == {"today": 0, "in_all": 6}
    assert quota_left(hourly.challenge, own, now=DEV + DAY)["dev"] == {"today": 3, "in_all": 6}
    hourly.close()
