"""What is the hosts' fault, or a killed worker's, costs no team its submission and keeps nobody waiting."""

from __future__ import annotations

import resource
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neuco_core.errors import DataError, NeucoError, SpecError, UsageError
from neuco_core.fetch.transfer import TransientError
from neuco_extensions.challenge.evalai.worker import Bridge, Job
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.rules import load_challenge
from neuco_extensions.challenge.teams import add_team
from tests.challenge.parts import DEV, TEAMS, embed, make_challenge
from tests.command import neuco_here

LEASE = """
import os, sys
from neuco_extensions.challenge.host import Host
host = Host(sys.argv[1])
print(host.journal.lease(9).id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with Host(make_challenge(tmp_path / "c")) as made:
        yield made


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """As on a full disk, files cannot grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def job(number: int = 1, team: int = 7) -> Job:
    return Job(number, "dev", team, "Team seven", True, DEV)


def test_a_killed_worker_keeps_nobody_waiting(host: Host, tmp_path: Path) -> None:
    host.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
    command = [sys.executable, "-c", LEASE, host.challenge.folder]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert worker.stdout
        assert worker.stdout.readline() == b"1\n"
        assert host.work() is None  # it lives
    finally:
        worker.kill()
        worker.communicate()
    done = host.work()
    assert done is not None
    assert (done.state, done.attempts) == ("scored", 2)
    assert len(list((host.challenge.private / "workers").iterdir())) == 1  # its own


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
                host.work()
    assert (host.journal.get(1).state, host.journal.get(1).attempts) == ("received", 0)
    assert host.work().state == "scored"  # type: ignore[union-attr]


def test_a_lost_record_of_an_earlier_submission_makes_the_next_wait(host: Host, tmp_path: Path) -> None:
    for number in range(2):
        host.submit("alpha", "dev", embed(tmp_path / f"{number}.npz", 1, number), now=DEV)
    host.work()
    record = host.records_path(host.journal.get(1))
    data = record.read_bytes()
    record.unlink()
    for _ in range(4):
        with pytest.raises((NeucoError, OSError)):
            host.work()
    assert host.journal.get(2).state == "received"
    record.write_bytes(data)
    assert host.work().state == "scored"  # type: ignore[union-attr]


@pytest.mark.parametrize("fault", ["rules", "labels", "locked"])
def test_on_evalai_the_hosts_faults_make_submissions_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    folder, file = make_challenge(tmp_path / "c"), embed(tmp_path / "x.npz", 1)
    bridge, rules = Bridge(folder), (folder / "challenge.toml").read_text()
    if fault == "rules":  # being edited
        (folder / "challenge.toml").write_text(rules.replace("k = 4", "k = 5"))
    if fault == "labels":
        (folder / "private/labels/height.csv").rename(tmp_path / "away.csv")
    monkeypatch.setattr("neuco_extensions.challenge.journal.WAIT", 0.01)
    with sqlite3.connect(folder / "private/journal.sqlite3", isolation_level=None) as other:
        if fault == "locked":
            assert bridge.host.journal.submissions() == []
            other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TransientError):
            bridge(job(), file)
    other.close()
    (folder / "challenge.toml").write_text(rules)
    if fault == "labels":
        (tmp_path / "away.csv").rename(folder / "private/labels/height.csv")
    assert bridge(job(), file).code == "scored"
    bridge.close()


def test_who_only_evaluates_opens_no_journal(tmp_path: Path) -> None:
    folder = make_challenge(tmp_path / "c")
    with Host(folder) as host:
        assert host.evaluate("dev", embed(tmp_path / "x.npz", 1)).verdict.scored
    assert not list((folder / "private").glob("journal*"))


def test_a_journal_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    folder = make_challenge(tmp_path / "c")
    (folder / "private/journal.sqlite3").write_bytes(b"no database" * 1000)
    with Host(folder) as host, pytest.raises(DataError, match="the journal cannot be opened"):
        host.journal.submissions()


def test_a_copy_of_the_journal_alone_lacks_nothing_after_the_end(host: Host, tmp_path: Path) -> None:
    from neuco_extensions.challenge.close import close

    with Host(host.challenge.folder) as other:  # as a server that runs on
        other.submit("alpha", "dev", embed(tmp_path / "x.npz", 1), now=DEV)
        host.work_all()
        close(host)
        (tmp_path / "copy.sqlite3").write_bytes(host.journal.path.read_bytes())
    with sqlite3.connect(tmp_path / "copy.sqlite3") as db:
        assert db.execute("SELECT state FROM submissions").fetchall() == [("scored",)]
    db.close()


@pytest.mark.slow
def test_processes_that_add_teams_at_once_lose_none(tmp_path: Path) -> None:
    folder = make_challenge(tmp_path / "c")
    rules = folder / "challenge.toml"
    rules.chmod(0o600)
    code = "import sys; from neuco_extensions.challenge.teams import add_team\n"
    code += "for number in range(15): add_team(sys.argv[1], f'{sys.argv[2]}-{number}', 'T')"
    started = [subprocess.Popen([sys.executable, "-c", code, str(folder), f"t{n}"]) for n in range(4)]
    assert [process.wait() for process in started] == [0] * 4
    assert len(load_challenge(folder).teams) == len(TEAMS) + 60
    assert stat.S_IMODE(rules.stat().st_mode) == 0o600  # it names the hidden tasks


@pytest.mark.parametrize(
    ("name", "title"),
    [("a b", "T"), ("x]\n[limits", "T"), ("x.title", "T"), ("", "T"), ("x", ""), ("x", "\x7f"), ("x", "\udcff")],
)
def test_what_is_no_team_changes_nothing(tmp_path: Path, name: str, title: str) -> None:
    folder = make_challenge(tmp_path / "c")
    before = (folder / "challenge.toml").read_bytes()
    with pytest.raises((SpecError, UsageError)):
        add_team(folder, name, title)
    assert (folder / "challenge.toml").read_bytes() == before


def test_a_host_at_the_terminal_is_told_when_a_phase_is_open(tmp_path: Path) -> None:
    folder, file = make_challenge(tmp_path / "c"), embed(tmp_path / "x.npz", 1)
    words = ("challenge", "submit", folder, file, "--team", "alpha", "--phase", "dev")
    for more in ((), ("--at", "2026-02-01T00:00:00Z"), ("--at", "2025-12-31")):
        said = neuco_here(*words, *more)
        assert said.code == 4
        assert "phase dev is not open; expected a time from 2026-01-01 00:00:00+00:00 to before 2026-02-01" in said.err
        assert "say when with --at" in said.err
    assert neuco_here(*words, "--at", "2026-02-01T05:29:59+05:30").code == 0
