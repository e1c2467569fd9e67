"""Exported rules have every key that EvalAI asks for, the dates and quotas of the toml, and no secret."""

from __future__ import annotations

import json
import struct
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from neuco_core.errors import UsageError
from neuco_extensions.challenge.evalai.export import export
from neuco_extensions.challenge.rules import Challenge, load_challenge
from tests.challenge.parts import make_challenge
from tests.command import neuco_here

# What EvalAI's own check of a configuration asks for (challenge_config_utils.py), and its documentation.
EVALAI = """title short_description description evaluation_details terms_and_conditions image submission_guidelines
    evaluation_script remote_evaluation start_date end_date published leaderboard challenge_phases dataset_splits
    challenge_phase_splits"""
EVALAI_PHASE = """id name description leaderboard_public is_public is_submission_public start_date end_date
    test_annotation_file codename max_submissions_per_day max_submissions_per_month max_submissions"""
EVALAI_SPLIT = """challenge_phase_id leaderboard_id dataset_split_id visibility leaderboard_decimal_precision
    is_leaderboard_order_descending"""


@pytest.fixture
def challenge(folder: Path) -> Challenge:
    return load_challenge(folder)


def moment(value: object) -> datetime:
    """As EvalAI reads it: UTC, whether YAML took it for a date or a text."""
    return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)


def test_evalai_gets_all_that_it_asks_for(challenge: Challenge, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = neuco_here("challenge", "export", challenge.folder, "--format", "evalai", "--out", out)
    assert ran.code == 0, ran.text
    config = yaml.safe_load((out / "challenge_config.yaml").read_text())
    assert set(EVALAI.split()) <= set(config)
    assert config["remote_evaluation"] is True
    for key in ("description", "evaluation_details", "terms_and_conditions", "submission_guidelines"):
        assert config[key].endswith(".html")
        assert (out / config[key]).read_text()
    assert zipfile.ZipFile(out / config["evaluation_script"]).namelist() == ["main.py"]
    assert struct.unpack(">II", (out / config["image"]).read_bytes()[16:24]) == (128, 128)
    board = config["leaderboard"][0]["schema"]
    assert board["default_order_by"] in board["labels"]
    assert moment(config["start_date"]) == challenge.phases["dev"].start
    assert moment(config["end_date"]) == challenge.phases["test"].end
    for phase in config["challenge_phases"]:
        rules = challenge.phases[phase["codename"]]
        assert set(EVALAI_PHASE.split()) <= set(phase)
        assert (moment(phase["start_date"]), moment(phase["end_date"])) == (rules.start, rules.end)
        assert (phase["max_submissions_per_day"], phase["max_submissions"]) == (rules.per_day, rules.in_all)
        assert json.loads((out / phase["test_annotation_file"]).read_text()) == {}
        assert (out / phase["description"]).read_text()
    assert [phase["codename"] for phase in config["challenge_phases"]] == list(challenge.phases)
    numbers = {
        key: {entry["id"] for entry in config[key]} for key in ("leaderboard", "challenge_phases", "dataset_splits")
    }
    for split in config["challenge_phase_splits"]:
        assert set(EVALAI_SPLIT.split()) <= set(split)
        assert split["leaderboard_id"] in numbers["leaderboard"]
        assert split["challenge_phase_id"] in numbers["challenge_phases"]
        assert split["dataset_split_id"] in numbers["dataset_splits"]


def test_nothing_hidden_is_exported(challenge: Challenge, tmp_path: Path) -> None:
    files = export(challenge, tmp_path / "out")
    text = "\n".join(path.read_text(errors="replace") for path in files if path.suffix in (".yaml", ".html", ".json"))
    for secret in ("height", "water", "private", str(tmp_path)):
        assert secret not in text
    with pytest.raises(UsageError, match="not empty"):
        export(challenge, tmp_path / "out")


def test_titles_are_neither_markup_nor_yaml(tmp_path: Path) -> None:
    title = "<script>alert(1)</script> & more: ü 🌍 {{ x }} # \\"
    challenge = load_challenge(make_challenge(tmp_path / "toy", {'"A toy challenge"': f"'{title}'"}))
    for path in export(challenge, tmp_path / "out"):
        assert path.suffix != ".html" or "<script" not in path.read_text()
    assert yaml.safe_load((tmp_path / "out/challenge_config.yaml").read_text())["title"] == title
