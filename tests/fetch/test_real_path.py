"""From a CSV of one's own to scores on the real tasks: labels that are confirmed once, without and with a terminal."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from neuco_core import load_task, pin_labels
from neuco_core.errors import FetchError, UnpinnedError
from neuco_core.fetch.fetch import fetch, find_pin
from neuco_tasks.ssl4eo_s12_downstream import fake
from tests.command import Said, neuco
from tests.fetch.hugging_face import HuggingFace
from tests.terminal import converse

REPO = "datasets/embed2scale/SSL4EO-S12-downstream"
IDS = fake.sample_ids(60)
QUESTION = "Pin 8 files?"
PROTOCOL = ("--k", "3", "--epochs", "2")


@pytest.fixture
def hub(tmp_path: Path, committed_registry: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HuggingFace]:
    files = {f"labels/{name}": written(tmp_path / name) for name in fake.FILES}
    with HuggingFace(REPO, files) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.base)
        monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))  # no record is made in anybody's own
        for folder in ("suites", "published"):
            shutil.copytree(committed_registry / folder, tmp_path / "registry" / folder)
        yield server


@pytest.fixture
def mine(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    values = np.array([[fake.truth(i)] for i in range(60)]) + rng.normal(size=(60, 4)) / 10
    rows = [",".join([name, *map(str, row)]) for name, row in zip(IDS, values, strict=True)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["id,0,1,2,3", *rows]) + "\n")
    return str(path)


def written(path: Path, ids: list[str] = IDS) -> bytes:
    fake.write_labels(path, ids)
    return path.read_bytes()


def pins(tmp_path: Path) -> dict[str, dict[str, object]]:
    path = tmp_path / "pins.json"
    return json.loads(path.read_text())["pins"] if path.exists() else {}


def score(mine: str, *more: str) -> Said:
    return neuco("score", "--embeddings", mine, "--suite", "neuco-real", *PROTOCOL, *more)


def test_one_yes_leads_from_a_file_to_scores(hub: HuggingFace, mine: str, tmp_path: Path) -> None:
    commit = hub.branches["main"]
    words = ("score", "--embeddings", mine, "--suite", "neuco-real", *PROTOCOL, "--save")
    code, screen = converse(*words, until=QUESTION, then=b"y\n")
    assert code == 0, screen
    before, after = screen.split(QUESTION)
    seen = f"hf://{REPO}@{commit}/labels/biomass_mean__regr.csv"
    for part in ("labels of 8 tasks", seen, "rows    60", "labels  from 0 to 1", "sha256"):
        assert part in before
    assert "8 of 8 scored now" in after
    assert "labels pinned by you, not known to the registry: biomass_mean," in after
    assert "where it would stand: neuco leaderboard show neuco-real --with" in after
    assert pins(tmp_path)[load_task("biomass_mean").source.url]["url"] == seen
    (line, *_) = (tmp_path / "registry" / "records" / "mine.jsonl").read_text().splitlines()
    assert json.loads(line)["provenance"]["labels"] == "pinned by you"
    assert "pinned by you" in neuco("tasks", "biomass_mean").out
    requests = len(hub.requests)
    assert score(mine).code == 0, "asked once"
    assert len(hub.requests) == requests


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 4), (b"\x03", 130)])
def test_a_no_and_ctrl_c_pin_nothing(hub: HuggingFace, mine: str, tmp_path: Path, answer: bytes, code: int) -> None:
    words = ("score", "--embeddings", mine, "--suite", "neuco-real", *PROTOCOL)
    ended, screen = converse(*words, until=QUESTION, then=answer)
    assert ended == code, screen
    assert pins(tmp_path) == {}
    assert "Traceback" not in screen


def test_without_a_terminal_it_is_an_error_with_the_way_out(hub: HuggingFace, mine: str, tmp_path: Path) -> None:
    refused = score(mine)
    assert refused.code == 4
    assert "Run `neuco data pin --suite neuco-real`" in refused.err
    assert (hub.requests, pins(tmp_path)) == ([], {})
    shown = neuco("data", "pin", "--suite", "neuco-real")
    assert (shown.code, shown.out.count("not pinned yet")) == (2, 8)
    assert "nothing is pinned. Compare the figures" in shown.err
    assert pins(tmp_path) == {}
    assert score(mine, "--yes").code == 0
    assert len(pins(tmp_path)) == 8


def test_one_call_in_python(hub: HuggingFace) -> None:
    task = load_task("biomass_mean")
    with pytest.raises(UnpinnedError, match=r"neuco.pin_labels\('biomass_mean'\)"):
        task.labels()
    (report,) = pin_labels("biomass_mean")
    assert (report.state, report.rows, report.lowest, report.highest) == ("new", 60, 0.0, 1.0)
    assert len(task.labels()) == 60


def test_a_file_that_changed_the_next_day_is_still_had_from_its_commit(hub: HuggingFace, tmp_path: Path) -> None:
    pin_labels("biomass_mean")
    source = load_task("biomass_mean").source
    pin = find_pin(source)
    assert pin is not None
    hub.push({"labels/biomass_mean__regr.csv": written(tmp_path / "new.csv", IDS[:50])})
    for path in (tmp_path / "cache").rglob("biomass_mean__regr.csv"):
        path.unlink()
    fetch(source)
    assert hub.requests[-2].startswith(f"{REPO}/resolve/{pin.url.split('@')[1][:40]}/")
    again = neuco("data", "pin", "biomass_mean", "--yes")
    assert (again.code, "its owner changed it" in again.err) == (4, True)
    accepted = neuco("data", "pin", "biomass_mean", "--replace", "--yes")
    assert (accepted.code, "differs from its pin" in accepted.out, "rows    50" in accepted.out) == (0, True, True)


def test_a_commit_that_is_gone_costs_no_labels(hub: HuggingFace, tmp_path: Path) -> None:
    """Its owner rewrote the history, or the server named a wrong one: the bytes decide, not their address."""
    pin_labels("biomass_mean")
    gone = hub.branches["main"]
    hub.push({"README.md": b"more words"})
    del hub.commits[gone]
    for path in (tmp_path / "cache").rglob("biomass_mean__regr.csv"):
        path.unlink()
    assert fetch(load_task("biomass_mean").source).is_file()


def test_what_the_server_refuses_is_said_once(hub: HuggingFace, mine: str, tmp_path: Path) -> None:
    hub.gated = True
    gated = neuco("data", "pin", "--suite", "neuco-real", "--yes")
    assert (gated.code, gated.text.count("grants access on request")) == (7, 1)
    assert "could not be pinned" in gated.err
    hub.repo = "somebody/else"
    with pytest.raises(FetchError, match=r"refused access \(HTTP 401\)"):
        pin_labels("biomass_mean")
    assert pins(tmp_path) == {}


def test_a_place_among_the_published_results(hub: HuggingFace, mine: str) -> None:
    nobody = neuco("leaderboard", "show", "neuco-real")
    assert "No scores yet. The labels are not on this machine: `neuco data pin --suite neuco-real`." in nobody.out
    assert "neuco leaderboard show neuco-paper-table-4" in nobody.out
    assert "Rank" not in nobody.out
    pin_labels(suite="neuco-real")
    lines = Path(mine).read_text().splitlines(keepends=True)
    few = Path(mine).with_name("few.csv")
    few.write_text("".join(lines[:-7]))
    assert "where it would stand" not in score(str(few)).out
    scored = score(mine)
    hint = next(line for line in scored.out.splitlines() if line.startswith("where it would stand: "))
    assert "neuco leaderboard show neuco-paper-table-4 --with" in hint
    assert hint.endswith(" (by that board's protocol, neuco-2025+k=50,lr=0.0001)")
    stands = neuco("leaderboard", "show", "neuco-paper-table-4", "--with", mine)
    assert stands.code == 0, stands.err
    assert "mine.csv would have rank 19 of 19 among results as published, which were not re-run here" in stands.out
    alone = neuco("leaderboard", "show", "neuco-real", "--with", mine)
    assert "mine.csv is the only method with scores here, so there is no rank yet." in alone.out


def test_a_folder_that_is_no_copy_is_not_linked(tmp_path: Path, hub: HuggingFace) -> None:
    refused = neuco("data", "link", "ssl4eo_s12_downstream", tmp_path)
    assert refused.code == 4
    assert "this folder is no copy of 'ssl4eo_s12_downstream'; expected labels/" in refused.err
    fake.write_labels(tmp_path / "copy" / "labels" / "crops__regr.csv", IDS)
    assert neuco("data", "link", "ssl4eo_s12_downstream", tmp_path / "copy").code == 0
    fake.write_folder(tmp_path / "cubes", 2, (), side=8)
    assert neuco("data", "link", "ssl4eo_s12_downstream", tmp_path / "cubes").code == 0
