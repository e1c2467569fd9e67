"""Rules are read strictly: every fault says where it is, and teams see nothing that is hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neuco_core.challenge.rules import add_team, load_challenge, token_hash
from neuco_core.challenge.seal import read_secrets, seal
from neuco_core.errors import DataError, NeucoError, SpecError, UsageError
from tests.challenge.parts import make_challenge


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("k = 4", "k = 1", "phases[...].k"),
        ("k = 4", 'k = "4"', "Expected `int`, got `str`"),
        ("k = 4", "splits = 4", "unknown field `splits`"),
        ("per_day = 3\nin_all = 6", "per_day = 7\nin_all = 6", "per_day is 7, more than in_all, 6"),
        ("end = 2026-02-01T00:00:00Z", "end = 2025-02-01T00:00:00Z", "phase dev ends before it starts"),
        ("start = 2026-01-01T00:00:00Z", "start = 2026-01-01T00:00:00", "timezone"),
        ('after = ["dev"]', 'after = ["final"]', "is no phase that ends before it starts"),
        ('protocol = "ridge"', 'protocol = "rigde"', "Did you mean 'ridge'"),
        ('protocol = "ridge"', 'protocol = "ridge+seed=1"', "the seed is secret"),
        ('tasks = ["height"]', 'tasks = ["height", "height"]', "height twice"),
        ('feedback = "none"', "", ""),
        ("k = 4", 'k = 4\nfeedback = "none"', "the board would tell"),
        ('labels = "private/labels/water.csv"', 'labels = "s3://bucket/water.csv"', "need their sha256"),
        ('id = "toy"', 'id = "Toy!"', "Expected `str` matching regex"),
        ('id = "toy"', 'id = "toy"\nfolder = "/"', "unknown field 'folder'"),
        ('id = "toy"', "id = ", "not TOML"),
    ],
)
def test_a_fault_says_where_it_is(tmp_path: Path, old: str, new: str, said: str) -> None:
    folder = make_challenge(tmp_path / "c")
    path = folder / "challenge.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    if not said:
        load_challenge(folder)
        return
    with pytest.raises(SpecError) as error:
        load_challenge(folder)
    assert said in str(error.value)
    assert "challenge.toml" in str(error.value)


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="neuco challenge init"):
        load_challenge(tmp_path)


def test_what_teams_may_read_tells_nothing_hidden(tmp_path: Path) -> None:
    challenge = load_challenge(make_challenge(tmp_path / "c", {"k = 4": 'k = 4\nused = "ids.txt"'}))
    text = json.dumps(challenge.public())
    for secret in ("height", "water", "labels", "token", "used", *(token_hash(team) for team in challenge.teams)):
        assert secret not in text
    assert challenge.public()["phases"]["test"]["tasks"] == 2
    assert "height" not in (challenge.published / "rules.json").read_text()
    sealed = (challenge.published / "seal.json").read_text()
    assert not any(secret in sealed for secret in ("height", "water"))
    assert str(read_secrets(challenge).seeds["test"]) not in sealed


def test_tokens_are_shown_once_and_stored_hashed(tmp_path: Path) -> None:
    folder = make_challenge(tmp_path / "c")
    token = add_team(folder, "gamma", 'The "third" team\\')
    challenge = load_challenge(folder)
    assert challenge.team_of(token) == "gamma"
    assert challenge.teams["gamma"].title == 'The "third" team\\'
    assert challenge.team_of("gamma") is None
    assert challenge.team_of("") is None
    assert token not in "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    before = (folder / "challenge.toml").read_bytes()
    for name, title in (("gamma", "again"), ("No id", "x"), ("x", ""), ("y\n[limits]", "x")):
        with pytest.raises((NeucoError, ValueError)):
            add_team(folder, name, title)
    assert (folder / "challenge.toml").read_bytes() == before


def test_a_challenge_is_sealed_once_and_after_its_labels_were_read(tmp_path: Path) -> None:
    folder = make_challenge(tmp_path / "c")
    with pytest.raises(UsageError, match="sealed already"):
        seal(load_challenge(folder))
    assert (folder / "private/secrets.json").stat().st_mode & 0o077 == 0
    for path in ("private/secrets.json", "public/seal.json"):
        (folder / path).unlink()
    (folder / "private/labels/water.csv").write_text("id,label\nnobody,1\nelse,0\n")
    with pytest.raises(NeucoError, match="no id of the phase has a label"):
        seal(load_challenge(folder))
    assert not (folder / "private/secrets.json").exists()
