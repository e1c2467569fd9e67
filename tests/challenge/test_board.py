"""Boards of a challenge: which submission counts, who competes, and who moved because of whom."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from neuco_core.boards.published import read_published
from neuco_core.boards.stats.ranking import rank
from neuco_core.errors import DataError
from neuco_core.site.board_page import board_page
from neuco_core.site.page_data import from_published
from neuco_extensions.challenge.audit import audit
from neuco_extensions.challenge.board import final_board, history, live_board
from neuco_extensions.challenge.feedback import mean_q, standard_error
from neuco_extensions.challenge.host import Host, visible_at
from neuco_extensions.challenge.past import Snapshot, TeamRank, read_past, replay
from tests.challenge.parts import DEV, TEST, InProcess, bad_file, embed, make_challenge, work
from tests.command import neuco_here

SENT = {
    "dev": (("alpha", 1.0), ("beta", 0.6), ("base", 3.0)),
    "test": (("alpha", 0.1), ("beta", 0.6), ("alpha", 2.0), ("gamma", 0.2), ("base", 0.05)),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Host:
    base = tmp_path_factory.mktemp("board")
    host = Host(make_challenge(base / "c", {"k = 6": "k = 20"}, teams=("alpha", "beta", "gamma", "base")))
    for phase, start in (("dev", DEV), ("test", TEST)):
        for number, (team, noise) in enumerate(SENT[phase]):
            file = embed(base / f"{phase}-{number}.npz", noise, number)
            host.submit(team, phase, file, now=start + timedelta(hours=number))
    private = embed(base / "private.npz", 0.01, 77)
    host.submit("beta", "test", private, now=TEST + timedelta(hours=9), public=False)
    work(host)
    return host


def test_the_last_counts_for_the_rank_and_the_best_for_mean_q(played: Host) -> None:
    rows = {row.method: row for row in final_board(played, "test").rows}
    entries = [entry for entry in played.journal.submissions("test") if entry.public]
    best, _, last = (entry for entry in entries if entry.team in ("alpha", "beta"))
    assert (best.mean_q or 0) > (last.mean_q or 0)
    assert rows["alpha"].values["mean_q"] == pytest.approx(best.mean_q)
    assert rows["alpha"].cells["height"].values["q"] == pytest.approx(last.scores["height"])
    assert rows["alpha"].values["submissions"] == 2
    assert rows["beta"].values["submissions"] == 1  # the private one counts for nothing here
    q = np.array([[r.cells[t].values["q"] for r in (rows["alpha"], rows["beta"])] for t in ("height", "water")])
    assert [rows["alpha"].rank, rows["beta"].rank] == rank(q.astype(float)).final.tolist()
    # The open board shows what teams were told last.
    shown = {row.method: row.values["mean_q"] for row in live_board(played, "test").rows}
    assert shown == {entry.team: entry.feedback["mean_q"] for entry in entries}


def test_baselines_and_those_who_were_not_there_are_shown_and_do_not_compete(played: Host) -> None:
    rows = {row.method: row for row in final_board(played, "test").rows}
    assert (rows["base"].rank, rows["base"].note) == (None, "of the hosts: shown, not competing")
    assert (rows["gamma"].rank, rows["gamma"].note) == (None, "did not take part in an earlier phase")
    assert sorted(row.rank for row in rows.values() if row.rank) == [1, 2]
    assert rows["gamma"].values["mean_q"] > rows["beta"].values["mean_q"]


def test_a_board_on_which_nobody_competes_names_no_command_of_a_suite(tmp_path: Path) -> None:
    host = Host(make_challenge(tmp_path / "c", teams=("gamma", "base")))
    host.submit("gamma", "test", embed(tmp_path / "gamma.npz", 0.2, 1), now=TEST)
    work(host)
    done = neuco_here("challenge", "board", tmp_path / "c", "test", "--final")
    assert (done.code, "No method is ranked." in done.out, "neuco score" in done.out) == (0, True, False), done.text


def test_two_teams_with_one_file_tie(host: Host, tmp_path: Path) -> None:
    for team in ("alpha", "beta"):
        host.submit(team, "dev", embed(tmp_path / "x.npz", 0.5), now=DEV)
    work(host)
    for board in (final_board(host, "dev"), live_board(host, "dev")):
        assert [(row.method, row.rank) for row in board.rows] == [("alpha", 1), ("beta", 1)]


def test_the_open_board_ranks_by_what_was_told_alone(tmp_path: Path) -> None:
    """Else two teams of one person could see which of two files is better, where both are told the same number."""
    rounded = {"k = 4": 'k = 4\nfeedback = "rounded"\ndigits = 0\nfloor = 1000.0'}
    with Host(make_challenge(tmp_path / "c", rounded)) as host:
        host.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.50), now=DEV)
        host.submit("beta", "dev", embed(tmp_path / "b.npz", 0.45), now=DEV)
        work(host)
        exact = [entry.mean_q for entry in host.journal.submissions()]
        assert exact[0] != exact[1]
        assert [(row.rank, row.values["mean_q"]) for row in live_board(host, "dev").rows] == [(1, 1000.0), (1, 1000.0)]
        assert [version.ranks for version in history(host, "dev", final=False)][-1] == {"alpha": 1, "beta": 1}
        assert {row.rank for row in final_board(host, "dev").rows} == {1, 2}


def test_an_empty_board_says_from_when_it_has_a_score(tmp_path: Path) -> None:
    open_now = {"start = 2026-01-01": "start = 2020-01-01", "2026-02-01": "2100-02-01", "2026-03-01": "2100-03-01"}
    folder = make_challenge(tmp_path / "c", {**open_now, "dim = 16": "dim = 16\ntick = 3600"})
    nothing = "A toy challenge: dev: no team has a score that may be seen yet"
    with Host(folder) as host:
        host.submit("alpha", "dev", bad_file(tmp_path / "1.csv", "ids"))
        host.submit("beta", "dev", embed(tmp_path / "private.npz", 0.5), public=False)
        work(host)
        assert neuco_here("challenge", "board", folder, "dev").out == f"{nothing}\n"
        entry = host.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.5))
        work(host)
        moment = visible_at(host.journal.get(entry.id), 3600)
        assert moment is not None
        shown = neuco_here("challenge", "board", folder, "dev").out
        assert shown == f"{nothing}; the first may be seen from {moment:%F %T}+0000\n"
        assert [row.method for row in live_board(host, "dev", now=moment).rows] == ["alpha"]
        assert live_board(host, "dev", now=moment - timedelta(seconds=1)).rows == ()


def test_the_time_of_receipt_says_which_is_the_last(host: Host, tmp_path: Path) -> None:
    """What came by mail, or late from EvalAI's queue, is entered after what came later."""
    host.submit("alpha", "dev", embed(tmp_path / "late.npz", 2.0), now=DEV + timedelta(hours=2))
    host.submit("alpha", "dev", embed(tmp_path / "early.npz", 0.1), now=DEV)
    work(host)
    (row,) = final_board(host, "dev").rows
    late, early = host.journal.submissions()
    assert row.cells["height"].values["q"] == pytest.approx(late.scores["height"])
    assert row.values["mean_q"] == pytest.approx(early.mean_q)
    times = [version.at for version in history(host, "dev", final=True)]
    assert times == sorted(times)


def test_a_team_that_was_removed_is_named(host: Host, folder: Path, tmp_path: Path) -> None:
    host.submit("beta", "dev", embed(tmp_path / "x.npz", 0.5), now=DEV)
    work(host)
    rules = folder / "challenge.toml"
    rules.write_text(rules.read_text().partition("\n[teams.beta]")[0])
    with Host(folder) as without, pytest.raises(DataError, match="team 'beta' has submissions and is not in the rules"):
        live_board(without, "dev")
    wrong = [(check.name, "'beta'" in check.wrong) for check in audit(folder, InProcess()) if not check.ok]
    assert wrong == [("quotas", True)]


def test_a_standard_error_is_that_of_differences_over_seeds(played: Host) -> None:
    """Other splits of the same two files give other differences: their spread is what is estimated, roughly."""
    one, two = (played.records(e) for e in played.journal.submissions("dev") if e.team in ("alpha", "beta"))
    error = standard_error(one, two)
    assert standard_error(one, one) == 0.0
    assert standard_error(two, one) == pytest.approx(error)
    assert 0 < error < 10 * abs(mean_q(one) - mean_q(two)) + 10


def test_history_names_who_moved_and_because_of_whom(played: Host) -> None:
    versions = history(played, "test", final=True)
    changes = [str(change) for version in versions for change in version.changes]
    assert changes[0].startswith("alpha is new, at rank 1")
    assert "alpha moves from rank 1 to 2: its own doing" in changes
    assert "beta moves from rank 2 to 1: caused by others: alpha" in changes
    assert versions[-1].ranks == final_board(played, "test").ranks


def test_replay_blames_those_whose_numbers_changed() -> None:
    first = {"a": TeamRank(1, 3.0), "b": TeamRank(2, 2.0), "base": TeamRank(None, 0.0)}
    second = {"a": TeamRank(2, 3.0), "b": TeamRank(1, 4.0), "base": TeamRank(None, 0.0)}
    versions = replay([Snapshot("t1", first), Snapshot("t2", first), Snapshot("t3", second)])
    assert [version.at for version in versions] == ["t1", "t3"]
    assert [str(change) for change in versions[1].changes] == [
        "b has new scores: 2.000 → 4.000",
        "a moves from rank 1 to 2: caused by others: b",
        "b moves from rank 2 to 1: its own doing",
    ]
    assert versions[1].ranks == {"a": 2, "b": 1}


def swapped(before: Snapshot, after: Snapshot) -> bool:
    """Whether two teams swapped ranks though neither had another number."""
    was, now = before.teams, after.teams
    pairs = combinations([name for name in now if name in was and was[name].value == now[name].value], 2)
    return any(((was[a].rank or 0) < (was[b].rank or 0)) != ((now[a].rank or 0) < (now[b].rank or 0)) for a, b in pairs)


def test_the_past_of_the_real_challenge_is_replayed(committed_registry: Path) -> None:
    past = read_past(committed_registry, "earthvision-2025-challenge")
    assert past is not None
    item = read_published(committed_registry / "published/earthvision-2025-challenge.json")
    last = past.phases["test"][-1].teams
    printed = {row.name: (row.values["rank"], row.values["mean_q"]) for row in item.rows if not row.baseline}
    assert {name: (entry.rank, entry.value) for name, entry in last.items() if "aseline" not in name} == printed
    page = board_page(replace(from_published(item), registry=committed_registry))
    versions = past.versions()
    assert page.count("<polyline") == sum(len({n for v in entry for n in v.ranks}) for entry in versions.values())
    assert "caused by others: " in page
    assert "embed2scale-challenge-supplement" in page
    steps = [step for snapshots in past.phases.values() for step in pairwise(snapshots)]
    assert sum(swapped(before, after) for before, after in steps) == 29
    assert read_past(committed_registry, "neuco-paper-table-4") is None
