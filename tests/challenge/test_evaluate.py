"""An evaluation: the same numbers for the same file, an outcome for whatever a team may send, and none of the faults
of a host or of a killed worker costs a team its submission.
"""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from neuco_core.errors import DataError, NeucoError
from neuco_core.fetch.cache import hash_file
from neuco_core.fetch.transfer import TransientError
from neuco_core.plugins.catalog import load_dataset, load_task
from neuco_core.protocol import load_protocol
from neuco_core.scoring.cell import CellOutcome, score_cell
from neuco_core.scoring.scorer import score
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings
from neuco_extensions.challenge import evaluate as module
from neuco_extensions.challenge import workers
from neuco_extensions.challenge.audit import audit, close
from neuco_extensions.challenge.evalai.worker import Bridge, Job
from neuco_extensions.challenge.evaluate import PhaseError, hidden
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import MESSAGES
from neuco_extensions.challenge.rules import load_challenge
from neuco_extensions.challenge.seal import contents
from neuco_extensions.challenge.workers import EvaluationThread, evaluate_waiting, start_engine
from tests.challenge.parts import (
    BAD,
    DEV,
    IDS,
    SAMPLES,
    TEST,
    bad_file,
    edit_rules,
    embed,
    failed,
    make_challenge,
    work,
)
from tests.challenge.server import no_file_above, open_challenge, serving, wait_until


def in_order(path: Path, ids: tuple[str, ...]) -> Embeddings:
    values = read_embeddings(path).frame().loc[list(ids)].to_numpy()
    return make_embeddings(ids, values)


@pytest.mark.parametrize("kind", BAD)
def test_whatever_a_team_sends_has_an_outcome(host: Host, tmp_path: Path, kind: str) -> None:
    verdict = host.evaluate("dev", bad_file(tmp_path / "1.csv", kind))
    assert verdict.code == {"ids": "ids", "huge": "size"}.get(kind, "format")
    assert (verdict.records, verdict.scores, verdict.feedback) == ((), {}, {})
    assert str(tmp_path) not in MESSAGES[verdict.code]
    assert not list(tmp_path.glob("*.evil"))  # what a pickle would make


def test_the_numbers_are_those_of_the_scorer(host: Host, tmp_path: Path) -> None:
    verdict = host.evaluate("test", embed(tmp_path / "x.npz", 0.5))
    secret = host.hidden("test")
    used = in_order(tmp_path / "x.npz", secret.used)
    protocol = load_protocol("ridge").with_(k=6, seed=567_856_785)
    for record in verdict.records:
        expected = score(used, secret.labels[record.task], protocol)
        assert record.per_split == tuple(None if math.isnan(value) else value for value in expected.per_split)
        assert verdict.scores[record.task] == expected.q
        assert (record.samples["embeddings"], record.inputs["embeddings"]) == (SAMPLES, used.sha256)  # no decoys
    assert len(secret.used) == SAMPLES
    assert set(secret.ids) == set(IDS) > set(secret.used)


@pytest.mark.parametrize(("count", "code"), [(3, "scored"), (4, "failed")])
def test_a_few_failed_probes_are_tolerated(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, code: str
) -> None:
    def with_gaps(*args: Any, **options: Any) -> CellOutcome:
        outcome = score_cell(*args, **options)
        result = outcome.require()
        gaps = (math.nan,) * (count if result.task == "height" else 0)
        return replace(outcome, score=replace(result, per_split=(*gaps, *result.per_split[len(gaps) :])))

    monkeypatch.setattr(module, "score_cell", with_gaps)
    assert host.evaluate("test", embed(tmp_path / "x.npz", 0.5)).code == code


def test_test_parts_without_variance_are_nobodys_fault(host: Host, tmp_path: Path) -> None:
    secret = host.hidden("test")
    used = in_order(embed(tmp_path / "x.npz", 0.5), secret.used)
    result = score(used, secret.labels["height"], secret.protocol)
    assert result.protocol.flat == "leave-out"
    flat = replace(result, per_split=(math.nan, *result.per_split[1:]), splits={"no_variance": 1, "undefined": 1})
    assert module.failed_probes(flat) == 0
    assert module.failed_probes(replace(flat, splits={"no_variance": 0, "undefined": 1})) == 1


def test_only_used_ids_count(tmp_path: Path) -> None:
    (tmp_path / "used.txt").write_text("\n".join(IDS[:40]))
    folder = make_challenge(tmp_path / "c", {"k = 4": 'k = 4\nused = "../used.txt"'})
    with Host(folder) as host:
        assert set(host.hidden("dev").used) <= set(IDS[:40])
        assert len(host.hidden("test").used) == SAMPLES
    (tmp_path / "used.txt").write_text("stranger\n")
    with pytest.raises(PhaseError, match="1 used id of phase dev not asked for"):
        hidden(load_challenge(folder), "dev", 1)


def test_a_task_may_come_from_an_installed_package(folder: Path) -> None:
    edit_rules(folder, 'tasks = ["height"]', 'tasks = ["olinda_elevation_mean"]')
    (folder / "ids.txt").write_text("\n".join(load_dataset("olinda").ids()[:100]) + "\n")
    challenge = load_challenge(folder)
    assert len(hidden(challenge, "dev", 1).used) == 100
    sha256 = load_task("olinda_elevation_mean").source.sha256
    assert any(sha256 in content for content in contents(challenge, {}).values())  # type: ignore[operator]


def test_labels_at_an_address_lie_nowhere_in_the_folder(folder: Path, tmp_path: Path) -> None:
    """An address of any kind, such as a private bucket's; tests/fetch has the kinds."""
    store, changes = tmp_path / "store", {}
    shutil.copytree(folder / "private/labels", store)
    for path in store.iterdir():
        pinned = f'labels = "{path.as_uri()}"\nsha256 = "{hash_file(path)}"'
        changes[f'labels = "private/labels/{path.name}"'] = pinned
    there, file = make_challenge(tmp_path / "there", changes), embed(tmp_path / "a.npz", 0.5)
    shutil.rmtree(there / "private/labels")
    assert "store" not in "".join(path.read_text() for path in (there / "public").iterdir())
    with Host(folder) as host, Host(there) as remote:
        for one in (host, remote):
            one.submit("alpha", "dev", file, now=DEV)
            one.submit("alpha", "test", file, now=TEST)
        store.rename(tmp_path / "away")  # as without the right to read it: a submission waits, and fails not
        with pytest.raises(PhaseError, match=r"the labels of phase dev cannot be had: .*store/height"):
            work(remote)
        assert [(e.state, e.attempts) for e in remote.journal.submissions()] == [("received", 0)] * 2
        (tmp_path / "away").rename(store)
        assert work(host) == work(remote) == 2
        assert [e.scores for e in host.journal.submissions()] == [e.scores for e in remote.journal.submissions()]
        close(remote)
    assert failed(there) == []
    (store / "water.csv").write_text((store / "water.csv").read_text().replace(",1\n", ",0\n", 1))
    with Host(there) as host, pytest.raises(PhaseError, match="not the declared file"):
        host.hidden("test")


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
