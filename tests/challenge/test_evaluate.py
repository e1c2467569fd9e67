"""An evaluation: the same numbers for the same file, and an outcome for whatever a team may send."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from neuco_core.fetch.cache import hash_file
from neuco_core.plugins.catalog import load_dataset, load_task
from neuco_core.protocol import load_protocol
from neuco_core.scoring.cell import CellOutcome, score_cell
from neuco_core.scoring.scorer import score
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings
from neuco_extensions.challenge import evaluate as module
from neuco_extensions.challenge.audit import close
from neuco_extensions.challenge.evaluate import PhaseError, hidden
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import MESSAGES
from neuco_extensions.challenge.rules import load_challenge
from neuco_extensions.challenge.seal import contents
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
