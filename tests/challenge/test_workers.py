"""Evaluation by workers, and faults: what is the hosts' or a killed worker's costs no team its submission."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import numpy as np
import psutil
import pytest

from neuco_core.errors import DataError, NeucoError
from neuco_core.fetch.transfer import TransientError
from neuco_extensions.challenge import workers
from neuco_extensions.challenge.audit import audit, close
from neuco_extensions.challenge.evalai.worker import Bridge, Job
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import MESSAGES
from neuco_extensions.challenge.workers import EvaluationThread, evaluate_waiting, start_engine
from tests.challenge.parts import DEV, IDS, edit_rules, embed, make_challenge, work
from tests.challenge.server import no_file_above, open_challenge, serving, wait_until


def children(pid: int) -> list[psutil.Process]:
    """Those that evaluate; other tests may have left a browser or a server."""
    return [child for child in psutil.Process(pid).children() if "neuco_core.runs.worker" in child.cmdline()]


def test_a_killed_workers_submission_is_evaluated_once_by_the_next(tmp_path: Path) -> None:
    folder = open_challenge(tmp_path / "challenge")
    with Host(folder) as host:
        entry = host.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.1))
        with EvaluationThread(folder, 1):  # stopped in the midst: it gives the submission back
            wait_until(lambda: host.journal.get(entry.id).state == "running")
        back = host.journal.get(entry.id)
        assert (back.state, back.attempts) == ("received", 0)
        wait_until(lambda: not children(os.getpid()))
        with EvaluationThread(folder, 1):
            wait_until(lambda: host.journal.get(entry.id).state == "running" and bool(children(os.getpid())))
            children(os.getpid())[0].kill()
            wait_until(lambda: host.journal.get(entry.id).state == "scored")
        end = host.journal.get(entry.id)
        assert (end.attempts, end.answer_number) == (2, 1)
        assert len(host.records(end)) == 1
    wait_until(lambda: not children(os.getpid()))


@pytest.mark.slow
def test_dask_evaluates_for_the_server_and_gives_the_same(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    folder = open_challenge(tmp_path / "challenge")
    with Host(folder) as host, EvaluationThread(folder, 2, "dask"):
        early = host.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.1))
        wait_until(lambda: host.journal.get(early.id).state == "scored")
        later = [host.submit(team, "dev", embed(tmp_path / f"{team}.npz", 0.2)) for team in ("alpha", "beta")]
        wait_until(lambda: all(host.journal.get(entry.id).state == "scored" for entry in later))
        for entry in (host.journal.get(sent.id) for sent in (early, *later)):
            assert (entry.attempts, entry.scores) == (1, host.evaluate("dev", host.file_path(entry)).scores)


def test_workers_end_when_their_server_is_killed(tmp_path: Path) -> None:
    with serving(open_challenge(tmp_path), workers=1) as server:
        server.put(embed(tmp_path / "a.npz", 0.1).read_bytes())
        wait_until(lambda: bool(children(server.process.pid)))
        (worker,) = children(server.process.pid)
        server.kill()
        # Who inherits it may not look after it: one that is dead and still listed is gone, too.
        wait_until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)


def test_a_file_that_unpacks_to_more_fails_in_fixed_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file gives the same answer in the audit, and the worker goes on with the next one."""
    monkeypatch.setattr(workers, "LIBRARIES", 120 << 20)
    bomb = tmp_path / "bomb.npz"  # 240 MB as float32: what its reader allows, and more than the rules do
    np.savez_compressed(bomb, ids=np.array(IDS), values=np.zeros((15_000_000, 4), dtype=np.uint8))
    with Host(make_challenge(tmp_path / "c", {"bytes = 100_000": "bytes = 2_000_000"})) as host:
        host.submit("alpha", "dev", bomb, now=DEV)
        good = host.submit("alpha", "dev", embed(tmp_path / "good.npz", 0.5), now=DEV)
        assert len(list(evaluate_waiting(host, start_engine("local", 1), 1))) == 2
        bad, good = host.journal.submissions()
        assert (bad.state, bad.code, bad.attempts) == ("failed", "failed", 1)
        assert "memory" in bad.detail
        assert host.answer(bad.id, "alpha")["message"] == MESSAGES["failed"]
        assert good.scores == host.evaluate("dev", host.file_path(good)).scores
    assert all(check.ok for check in audit(tmp_path / "c", start_engine("local", 1)))


def test_a_full_disk_leaves_no_transaction_open(host: Host, tmp_path: Path) -> None:
    file = embed(tmp_path / "x.npz", 1)
    host.journal.submissions()
    log = Path(f"{host.journal.path}-wal")
    with no_file_above(log.stat().st_size if log.exists() else 0):
        for _ in range(2):
            with pytest.raises((sqlite3.Error, OSError)) as caught:
                host.submit("alpha", "dev", file, now=DEV)
            assert "transaction" not in str(caught.value)
    assert host.submit("alpha", "dev", file, now=DEV).id == 1
    with Host(host.challenge.folder) as other:
        assert other.submit("beta", "dev", file, now=DEV).id == 2  # nobody holds the lock


@pytest.mark.parametrize("fault", [sqlite3.OperationalError("disk is full"), OSError("full"), DataError("no record")])
def test_an_outcome_that_cannot_be_kept_costs_no_attempt(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fail(*_: object) -> str:
        raise fault

    host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
    with monkeypatch.context() as patch:
        patch.setattr(Host, "keep_records", fail)
        for _ in range(5):
            with pytest.raises(type(fault)):
                work(host)
    assert (host.journal.get(1).state, host.journal.get(1).attempts) == ("received", 0)
    work(host)
    assert host.journal.get(1).state == "scored"


@pytest.mark.parametrize("lost", ["labels/height.csv", "records/s000001.jsonl"])
def test_a_file_of_the_hosts_that_is_lost_makes_submissions_wait(host: Host, tmp_path: Path, lost: str) -> None:
    host.submit("alpha", "dev", embed(tmp_path / "0.npz", 1), now=DEV)
    work(host)
    host.submit("alpha", "dev", embed(tmp_path / "1.npz", 1, 1), now=DEV)
    path = host.challenge.private / lost
    path.rename(tmp_path / "away")
    for _ in range(5):
        with pytest.raises(NeucoError, match=path.stem):
            work(host)
    assert (host.journal.get(2).state, host.journal.get(2).attempts) == ("received", 0)
    (tmp_path / "away").rename(path)
    work(host)
    assert host.journal.get(2).state == "scored"


@pytest.mark.parametrize("fault", ["rules", "labels", "locked"])
def test_on_evalai_the_hosts_faults_make_submissions_wait(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    job, file, labels = Job(1, "dev", 7, "Seven", True, DEV), embed(tmp_path / "x.npz", 1), folder / "private/labels"
    bridge = Bridge(folder)
    if fault == "rules":  # being edited
        edit_rules(folder, "k = 4", "k = 5")
    if fault == "labels":
        (labels / "height.csv").rename(tmp_path / "away.csv")
    monkeypatch.setattr("neuco_extensions.challenge.journal.WAIT", 0.01)
    with sqlite3.connect(folder / "private/journal.sqlite3", isolation_level=None) as other:
        if fault == "locked":
            assert bridge.host.journal.submissions() == []
            other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TransientError):
            bridge(job, file)
    other.close()
    edit_rules(folder, "k = 5", "k = 4")
    if fault == "labels":
        (tmp_path / "away.csv").rename(labels / "height.csv")
    assert bridge(job, file).code == "scored"
    bridge.close()


def test_who_only_evaluates_opens_no_journal(folder: Path, tmp_path: Path) -> None:
    with Host(folder) as host:
        assert host.evaluate("dev", embed(tmp_path / "x.npz", 1)).code == "scored"
    assert not list((folder / "private").glob("journal*"))
    (folder / "private/journal.sqlite3").write_bytes(b"no database" * 1000)
    with Host(folder) as host, pytest.raises(DataError, match="the journal cannot be opened"):
        host.journal.submissions()


def test_a_copy_of_the_journal_alone_lacks_nothing_after_the_end(host: Host, tmp_path: Path) -> None:
    with Host(host.challenge.folder) as other:  # as a server that runs on
        other.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
        work(host)
        close(host)
        (tmp_path / "copy.sqlite3").write_bytes(host.journal.path.read_bytes())
    with sqlite3.connect(tmp_path / "copy.sqlite3") as db:
        assert db.execute("SELECT state FROM submissions").fetchall() == [("scored",)]
    db.close()
