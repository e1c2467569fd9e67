"""No submission is lost, none is counted twice, and no race passes a quota."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

from neuco_extensions.challenge.host import Host, quota_left
from neuco_extensions.challenge.journal import JournalEntry, RefusedError, Verdict, broken_link, stamp
from tests.challenge.parts import ACTOR, DEV, bad_file, embed, make_challenge, work

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def test_a_phase_takes_submissions_from_its_start_to_just_before_its_end(host: Host, tmp_path: Path) -> None:
    phase, file = host.challenge.phase("dev"), embed(tmp_path / "x.npz", 1)
    for moment in (phase.start - timedelta(microseconds=1), phase.end, DEV + 27 * DAY):
        with pytest.raises(RefusedError, match="not open"):
            host.submit("alpha", "dev", file, now=moment)
    assert host.journal.submissions() == []
    host.submit("alpha", "dev", file, now=phase.end - timedelta(microseconds=1))
    host.submit("beta", "dev", file, now=phase.start)


def test_the_same_file_or_source_is_the_same_submission(host: Host, tmp_path: Path) -> None:
    file, other = embed(tmp_path / "x.npz", 1), embed(tmp_path / "y.npz", 2)
    first = host.submit("alpha", "dev", file, now=DEV, source="evalai:1")
    assert host.submit("alpha", "dev", file, now=DEV + 99 * DAY) == first
    assert host.submit("alpha", "dev", other, now=DEV, source="evalai:1") == first
    assert host.submit("beta", "dev", file, now=DEV) != first
    work(host)
    assert host.submit("alpha", "dev", file, now=DEV).state == "scored"
    assert len(host.journal.submissions()) == 2


def test_what_is_too_large_is_cut_off_and_leaves_nothing(host: Host) -> None:
    with pytest.raises(RefusedError, match="larger"):
        host.submit("alpha", "dev", Path("/dev/zero"), now=DEV)
    assert list(host.challenge.private.glob("incoming/*")) == []


def test_the_lease_of_a_killed_worker_is_taken_over_and_counted_once(host: Host, tmp_path: Path) -> None:
    """And who has lost it, if it was only slow, writes no records."""
    entry = host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
    with Host(host.challenge.folder) as slow:
        first = slow.journal.lease(9)
        assert first is not None
        assert host.journal.lease(9) is None
        verdict = slow.evaluate("dev", slow.file_path(first), name=first.name)
        slow.journal._lock.release()  # as a kill does
        work(host)
        assert len(list((host.challenge.private / "workers").iterdir())) == 1  # the one that lives
        done = host.journal.get(entry.id)
        assert (done.state, done.attempts) == ("scored", 2)
        before = host.records_path(done).read_bytes()
        changed = tuple(structs.replace(record, provenance={"time": "later"}) for record in verdict.records)
        assert slow.settle(first, replace(verdict, records=changed)) == done
        assert not slow.journal.finish(first, Verdict("scored", {"mean_q": 99.0}, {"height": 99.0}))
    assert host.records_path(done).read_bytes() == before
    assert host.journal.get(entry.id) == done


def test_a_submission_that_workers_die_of_fails_and_can_be_tried_again(host: Host, tmp_path: Path) -> None:
    entry = host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
    for _ in range(3):
        leased = host.journal.lease(3)
        assert leased is not None
        host.journal.give_back(leased, counts=True)
    assert host.journal.lease(3) is None
    failed = host.journal.get(entry.id)
    assert (failed.state, failed.code) == ("failed", "failed")
    assert "given up after 3" in failed.detail
    host.journal.retry(entry.id)
    work(host)
    assert host.journal.get(entry.id).state == "scored"


def test_submissions_of_a_team_are_evaluated_in_their_order(host: Host, tmp_path: Path) -> None:
    for number, team in enumerate(("alpha", "alpha", "beta")):
        host.submit(team, "dev", embed(tmp_path / f"{number}.npz", 1, number), now=DEV)
    leased = [host.journal.lease(3), host.journal.lease(3), host.journal.lease(3)]
    assert [entry and entry.id for entry in leased] == [1, 3, None]


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
        starts.append(subprocess.Popen([*ACTOR, *words], env=ONE_THREAD))
    while len(list(tmp_path.glob("*.ready"))) < clients and all(process.poll() is None for process in starts):
        time.sleep(0.01)
    gate.touch()
    assert [process.wait() for process in starts] == [0] * clients
    answers = [json.loads(line)[1] for log in tmp_path.glob("*.log") for line in log.read_text().splitlines()]
    assert len(answers) == clients * min(30, 10 * clients)
    assert {answer for answer in answers if answer != "quota"} == set(range(1, quota + 1))
    with Host(folder) as host:
        assert [entry.id for entry in host.journal.submissions()] == list(range(1, quota + 1))
        assert broken_link(host.journal.submissions(), []) is None


@pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_any_step_nothing_is_lost_or_counted_twice(tmp_path: Path, stride: int) -> None:
    folder, file = make_challenge(tmp_path / "c"), embed(tmp_path / "x.npz", 0.5)
    words = [*ACTOR, "die", str(folder), str(file), str(stride)]
    done = subprocess.run(words, env=ONE_THREAD, check=True, stdout=subprocess.PIPE, text=True)
    lives = [json.loads(line) for line in done.stdout.splitlines()]
    assert [life["killed"] for life in lives] == [True] * (len(lives) - 1) + [False]
    assert len(lives) > 20 / stride
    assert len({json.dumps([life["rows"], life["files"]]) for life in lives}) == 1
    assert [row[:2] for row in lives[0]["rows"]] == [[1, "scored"]]


@pytest.fixture
def hourly(tmp_path: Path) -> Host:
    return Host(make_challenge(tmp_path / "c", {"dim = 16": "dim = 16\nfailed_per_day = 2\ntick = 3600"}))


def test_the_journal_accepts_as_many_as_are_quota_left(hourly: Host, tmp_path: Path) -> None:
    for number, (day, today, in_all) in enumerate(((0, 3, 6), (0, 2, 5), (0, 1, 4), (1, 3, 3), (1, 2, 2), (1, 1, 1))):
        now = DEV + day * DAY
        entries = hourly.journal.submissions(team="alpha")
        assert quota_left(hourly.challenge, entries, now=now)["dev"] == {"today": today, "in_all": in_all}
        hourly.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.5, number), now=now)
        if today == 1:
            with pytest.raises(RefusedError, match="no submissions left"):
                hourly.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.5, 99), now=now)
    with pytest.raises(RefusedError, match="no submissions left"):  # a new day, but no more in all
        hourly.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.5, 99), now=DEV + 2 * DAY)
    hourly.submit("beta", "dev", embed(tmp_path / "a.npz", 0.5, 99), now=DEV)
    entries = hourly.journal.submissions(team="alpha")
    assert quota_left(hourly.challenge, entries, now=DEV + 2 * DAY)["dev"] == {"today": 0, "in_all": 0}
    assert quota_left(hourly.challenge, entries, now=DEV)["test"] == {"today": 3, "in_all": 3}
    hourly.close()


def test_a_file_that_cannot_be_read_is_given_back_with_its_answer_but_not_without_end(
    hourly: Host, tmp_path: Path
) -> None:
    def send(kind: str) -> list[JournalEntry]:
        """The submissions, as if each had been evaluated a minute after its receipt."""
        hourly.submit("alpha", "dev", bad_file(tmp_path / "1.csv", kind), now=DEV)
        work(hourly)
        return [entry._replace(finished=stamp(DEV + HOUR / 60)) for entry in hourly.journal.submissions()]

    entries = send("text")
    assert quota_left(hourly.challenge, entries, now=DEV + HOUR)["dev"] == {"today": 2, "in_all": 5}
    assert quota_left(hourly.challenge, entries, now=DEV + 2 * HOUR)["dev"] == {"today": 3, "in_all": 6}
    entries = send("ids")
    assert [entry.code for entry in entries] == ["format", "ids"]
    with pytest.raises(RefusedError, match="no submissions left"):
        send("nan")
    assert quota_left(hourly.challenge, entries, now=DEV + 2 * HOUR)["dev"] == {"today": 0, "in_all": 6}
    assert quota_left(hourly.challenge, entries, now=DEV + DAY)["dev"] == {"today": 3, "in_all": 6}
    assert hourly.submit("alpha", "dev", embed(tmp_path / "good.npz", 1), now=DEV + DAY).id == 3
    hourly.close()
