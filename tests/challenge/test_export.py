"""Exported rules have every key that EvalAI and Codabench ask for, the dates and quotas of the toml, and no secret."""

from __future__ import annotations

import json
import struct
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from neuco_core.errors import DataError, UsageError
from neuco_extensions.challenge import codabench as scoring
from neuco_extensions.challenge.export import export
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.outcome import MESSAGES
from neuco_extensions.challenge.rules import Challenge, load_challenge
from tests.challenge.parts import IDS, embed, make_challenge

# What EvalAI's own check of a configuration asks for (challenge_config_utils.py), and its documentation.
EVALAI = """title short_description description evaluation_details terms_and_conditions image submission_guidelines
    evaluation_script remote_evaluation start_date end_date published leaderboard challenge_phases dataset_splits
    challenge_phase_splits"""
EVALAI_PHASE = """id name description leaderboard_public is_public is_submission_public start_date end_date
    test_annotation_file codename max_submissions_per_day max_submissions_per_month max_submissions"""
EVALAI_SPLIT = """challenge_phase_id leaderboard_id dataset_split_id visibility leaderboard_decimal_precision
    is_leaderboard_order_descending"""
# "Required" on Codabench's page about the file, and what its unpacker refuses to be without.
CODABENCH = {
    "": "version title image terms pages tasks phases leaderboards",
    "pages": "title file",
    "tasks": "index name scoring_program",
    "phases": "name start end tasks",
    "leaderboards": "title key columns",
}


@pytest.fixture
def challenge(tmp_path: Path) -> Challenge:
    return load_challenge(make_challenge(tmp_path / "toy"))


def read(folder: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((folder / name).read_text())
    return content


def moment(value: object) -> datetime:
    """As both platforms read it: UTC, whether YAML took it for a date or a text."""
    return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)


def test_evalai_gets_all_that_it_asks_for(challenge: Challenge, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(challenge, "evalai", out)
    config = read(out, "challenge_config.yaml")
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


def test_codabench_gets_all_that_it_asks_for(challenge: Challenge, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(challenge, "codabench", out, image="example/neuco:1")
    config = read(out, "competition.yaml")
    for part, keys in CODABENCH.items():
        for entry in config[part] if part else [config]:
            assert set(keys.split()) <= set(entry), part
    assert config["version"] == 2
    for name in (config["image"], config["terms"], *(page["file"] for page in config["pages"])):
        assert (out / name).read_bytes()
    for task in config["tasks"]:
        command = read(out / task["scoring_program"], "metadata.yaml")["command"]
        assert command.endswith(f"neuco_extensions.challenge.codabench /app/input /app/output {task['name']}")
    tasks = {task["index"]: task["name"] for task in config["tasks"]}
    assert len(tasks) == len(config["tasks"])
    before = None
    for phase in config["phases"]:
        rules = challenge.phases[phase["name"]]
        assert [tasks[number] for number in phase["tasks"]] == [phase["name"]]
        assert moment(phase["start"]) == rules.start
        assert 0 <= (rules.end - moment(phase["end"])).total_seconds() <= 1
        assert (phase["max_submissions_per_day"], phase["max_submissions"]) == (rules.per_day, rules.in_all)
        assert before is None or before < moment(phase["start"])  # it refuses phases that touch
        before = moment(phase["end"])
    column = config["leaderboards"][0]["columns"][0]
    assert {"title", "key", "index"} <= set(column)
    assert column["key"] == "mean_q"


@pytest.mark.parametrize("platform", ["evalai", "codabench"])
def test_nothing_hidden_is_exported(
    challenge: Challenge, tmp_path: Path, platform: Literal["evalai", "codabench"]
) -> None:
    files = export(challenge, platform, tmp_path / "out", image="example/neuco:1")
    text = "\n".join(path.read_text(errors="replace") for path in files if path.suffix in (".yaml", ".html", ".json"))
    for secret in ("height", "water", "private", str(tmp_path)):
        assert secret not in text
    with pytest.raises(UsageError, match="not empty"):
        export(challenge, platform, tmp_path / "out", image="example/neuco:1")


def test_titles_are_no_markup(tmp_path: Path) -> None:
    own = load_challenge(make_challenge(tmp_path / "toy", {"A toy challenge": "<script>alert(1)</script> & more"}))
    for path in export(own, "evalai", tmp_path / "out"):
        assert path.suffix != ".html" or "<script" not in path.read_text()


def test_codabench_needs_an_image_a_seal_and_phases_one_after_the_other(tmp_path: Path) -> None:
    own = load_challenge(make_challenge(tmp_path / "toy"))
    with pytest.raises(UsageError, match="--image"):
        export(own, "codabench", tmp_path / "out")
    seal = own.published / "seal.json"
    seal.rename(tmp_path / "seal.json")
    export(own, "evalai", tmp_path / "evalai")  # its worker can wait for the seal
    with pytest.raises(DataError, match=r"not sealed yet.* Run: neuco challenge seal"):
        export(own, "codabench", tmp_path / "out", image="x")
    assert not (tmp_path / "out").exists()
    both = {'after = ["dev"]': "", "start = 2026-02-01": "start = 2026-01-15"}
    own = load_challenge(make_challenge(tmp_path / "overlapping", both))
    with pytest.raises(UsageError, match="before dev ends"):
        export(own, "codabench", tmp_path / "out", image="x")


def test_codabench_scores_as_the_challenge_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "input", tmp_path / "output"
    (source / "res").mkdir(parents=True)
    target.mkdir()
    folder = make_challenge(source / "ref")
    file = embed(source / "res" / "embeddings.csv", 0.5)
    assert scoring.main(source, target, "dev") == 0
    with Host(folder) as host:
        exact = sum((scores := host.evaluate("dev", file).outcome.scores).values()) / len(scores)
    assert json.loads((target / "scores.json").read_text()) == {"mean_q": round(exact, 2)}
    embed(file, 0.5, ids=IDS[:-1])
    assert scoring.main(source, target, "dev") == 1
    file.write_bytes(b"PK\x03\x04")
    assert scoring.main(source, target, "dev") == 1
    (folder / "private" / "labels" / "height.csv").unlink()
    assert scoring.main(source, target, "dev") == 1
    said = capsys.readouterr()
    assert said.err.splitlines() == [MESSAGES["ids"], MESSAGES["format"], MESSAGES["failed"]]
    assert said.out == ""
