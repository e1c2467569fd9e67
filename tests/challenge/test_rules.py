"""Rules are read strictly, teams see nothing that is hidden, and EvalAI gets every key that it asks for."""

from __future__ import annotations

import json
import stat
import struct
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from neuco_core.errors import DataError, NeucoError, SpecError, UnknownIdError, UsageError
from neuco_extensions.challenge.evalai.export import export
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.rules import Challenge, load_challenge, read_ids, token_hash
from neuco_extensions.challenge.seal import read_secrets, seal
from neuco_extensions.challenge.setup import add_team, renew_token
from tests.challenge.parts import DEV, edit_rules, embed, make_challenge
from tests.command import neuco_here


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("k = 4", "k = 1", "phases.dev.k"),
        ("k = 4", 'k = "4"', "Expected `int`, got `str`"),
        ("k = 4", "splits = 4", "phases.dev: Object contains unknown field `splits`"),
        ("in_all = 3\n", "in_al = 3\n", "phases.test: Object contains unknown field `in_al` … Did you mean 'in_all'?"),
        ("[limits]", "[limit]", "unknown field `limit` … Did you mean 'limits'?"),
        ("bytes = 100_000", "byte = 1", "limits: Object contains unknown field `byte` … Did you mean 'bytes'?"),
        ("k = 4", 'k = 4\nfeedback = "laddr"', "phases.dev.feedback: Invalid enum value 'laddr'; expected 'ladder' or"),
        ('kind = "classification"', 'kind = "classes"', "tasks.water.kind: Invalid enum value 'classes'; expec"),
        ("start = 2026-01-01T00:00:00Z", "start = 2026-01-01", "phases.dev.start: Expected `datetime`, got `date`"),
        ("per_day = 3\nin_all = 6", "per_day = 7\nin_all = 6", "per_day is 7, more than in_all, 6"),
        ("end = 2026-02-01T00:00:00Z", "end = 2025-02-01T00:00:00Z", "phase dev ends before it starts"),
        ("start = 2026-01-01T00:00:00Z", "start = 2026-01-01T00:00:00", "a time with its zone, such as 2025-"),
        ('after = ["dev"]', 'after = ["final"]', "is no phase that ends before it starts"),
        ('protocol = "ridge"', 'protocol = "rigde"', "Did you mean 'ridge'"),
        ('protocol = "ridge"', 'protocol = "ridge+seed=1"', "the seed is secret"),
        ('tasks = ["height"]', 'tasks = ["height", "height"]', "height twice"),
        ("k = 4", 'k = 4\nfeedback = "none"', "the board would tell"),
        ('labels = "private/labels/water.csv"', 'labels = "s3://bucket/water.csv"', "need their sha256"),
        ('id = "toy"', 'id = "Toy!"', "Expected `str` matching regex"),
        ('id = "toy"', 'id = "toy"\nfolder = "/"', "unknown field 'folder'"),
        ('id = "toy"', "id = ", "not TOML"),
    ],
)
def test_a_fault_says_where_it_is(folder: Path, old: str, new: str, message: str) -> None:
    edit_rules(folder, old, new)
    with pytest.raises(SpecError) as error:
        load_challenge(folder)
    assert all(part in str(error.value) for part in message.split(" … "))
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
    assert not any(secret in sealed for secret in ("height", "water", str(read_secrets(challenge).seeds["test"])))


def test_tokens_are_shown_once_stored_hashed_and_replaced_when_lost(folder: Path) -> None:
    first = add_team(folder, "gamma", 'The "third" team\\')
    challenge = load_challenge(folder)
    assert [challenge.team_of(token) for token in (first, "gamma", "")] == ["gamma", None, None]
    assert challenge.teams["gamma"].title == 'The "third" team\\'
    assert first not in "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    with pytest.raises(UsageError, match=r"challenge team .* gamma --new-token"):
        add_team(folder, "gamma", "Gamma")
    token = renew_token(folder, "gamma")
    challenge = load_challenge(folder)
    assert [challenge.team_of(token) for token in (first, token, "alpha")] == [None, "gamma", "alpha"]
    with pytest.raises(UnknownIdError, match="Did you mean 'gamma'"):
        renew_token(folder, "gama")
    for words in (["gamma"], ["gamma", "--new-token", "--title", "x"], ["delta", "--new-token", "--host"]):
        assert neuco_here("challenge", "team", folder, *words).code == 2
    assert neuco_here("challenge", "team", folder, "gamma", "--new-token").out.strip() != token


def test_teams_that_are_added_at_once_are_all_there(tmp_path: Path) -> None:
    folder = make_challenge(tmp_path / "c", teams=())
    (folder / "challenge.toml").chmod(0o600)
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda number: add_team(folder, f"t{number}", "x"), range(40)))
    challenge = load_challenge(folder)
    assert [challenge.team_of(token) for token in tokens] == [f"t{number}" for number in range(40)]
    assert stat.S_IMODE((folder / "challenge.toml").stat().st_mode) == 0o600  # it names the hidden tasks


@pytest.mark.parametrize(
    ("name", "title"),
    [("a b", "T"), ("x]\n[limits", "T"), ("x.title", "T"), ("", "T"), ("x", ""), ("x", "\x7f"), ("x", "\udcff")],
)
def test_what_is_no_team_changes_nothing(folder: Path, name: str, title: str) -> None:
    before = (folder / "challenge.toml").read_bytes()
    with pytest.raises((SpecError, UsageError)):
        add_team(folder, name, title)
    assert (folder / "challenge.toml").read_bytes() == before


def test_a_hidden_task_without_labels_is_named(folder: Path) -> None:
    edit_rules(folder, 'tasks = ["height"]', 'tasks = ["hight"]')
    with pytest.raises(UnknownIdError, match=r"no hidden task 'hight'. Did you mean 'height'.* of challenge.toml"):
        load_challenge(folder).task("hight")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"id\na\nb\n", "^a header; expected one id a line, each once, got a first line .id."),
        (b"a\nb\nc\nb\n", "^bad ids; expected one id a line, each once, got b more than once"),
        (b" \n", "no ids"),
        ("a\nb\n".encode("utf-16"), "expected UTF-8"),
        (None, "No such file"),
    ],
)
def test_bad_lists_of_ids_are_explained(tmp_path: Path, data: bytes | None, message: str) -> None:
    path = tmp_path / "ids.txt"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_ids(path)


@pytest.mark.parametrize("data", [b"a\nb\n", b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb", b"\na \n\nb\n\n"])
def test_lists_of_ids_may_come_from_any_system(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "ids.txt").write_bytes(data)
    assert read_ids(tmp_path / "ids.txt") == ("a", "b")


def test_a_file_is_checked_with_the_limits_of_the_challenge(folder: Path, tmp_path: Path) -> None:
    words = ("challenge", "check", embed(tmp_path / "a.npz", 0.5), "--ids", folder / "ids.txt")
    assert neuco_here(*words).code == 0
    assert "at most 100 bytes" in neuco_here(*words, "--bytes", "100").err
    assert neuco_here(*words, "--dim", "5").code == 4


def test_names_that_nothing_has_are_errors(folder: Path, tmp_path: Path) -> None:
    assert "Did you mean 'test'" in neuco_here("challenge", "status", folder, "--phase", "tset").err
    assert "Did you mean 'alpha'" in neuco_here("challenge", "status", folder, "--team", "alpah").err
    assert neuco_here("challenge", "evaluate", folder, "--retry", "7").code == 3
    with Host(folder) as host:
        host.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.5), now=DEV)
    ran = neuco_here("challenge", "evaluate", folder, "--retry", "1")
    assert (ran.code, "expected one whose state is failed, got received" in ran.err) == (2, True)


def test_a_host_at_the_terminal_is_told_when_a_phase_is_open(folder: Path, tmp_path: Path) -> None:
    file = embed(tmp_path / "x.npz", 1)
    words = ("challenge", "submit", folder, file, "--team", "alpha", "--phase", "dev")
    for more in ((), ("--at", "2026-02-01T00:00:00Z"), ("--at", "2025-12-31T00:00:00Z")):
        ran = neuco_here(*words, *more)
        assert ran.code == 4
        assert "phase dev is not open; expected a time from 2026-01-01 00:00:00+00:00 to before 2026-02-01" in ran.err
        assert "say when with --at" in ran.err
    zoneless = neuco_here(*words, "--at", "2026-01-05 12:00")
    assert (zoneless.code, "bad --at; expected a time with its zone, such as 2025-" in zoneless.err) == (2, True)
    assert neuco_here(*words, "--at", "2026-02-01T05:29:59+05:30").code == 0


def test_a_challenge_is_sealed_once_and_after_its_labels_were_read(folder: Path) -> None:
    with pytest.raises(UsageError, match="sealed already"):
        seal(load_challenge(folder))
    assert (folder / "private/secrets.json").stat().st_mode & 0o077 == 0
    for path in ("private/secrets.json", "public/seal.json"):
        (folder / path).unlink()
    (folder / "private/labels/water.csv").write_text("id,label\nnobody,1\nelse,0\n")
    with pytest.raises(NeucoError, match="no id of the phase has a label"):
        seal(load_challenge(folder))
    assert not (folder / "private/secrets.json").exists()


def test_what_is_sealed_is_shown_first_and_a_dry_run_seals_nothing(folder: Path) -> None:
    for path in ("private/secrets.json", "public/seal.json", "public/rules.json"):
        (folder / path).unlink()
    files = set(folder.rglob("*"))
    dry = neuco_here("challenge", "seal", folder, "--dry-run")
    assert (dry.code, set(folder.rglob("*"))) == (0, files)
    lines = [line.split() for line in dry.out.splitlines()]
    assert ["test", "2026-02-01", "00:00:00+0000", "2026-03-01", "00:00:00+0000", "80"] in lines
    assert ["dev", "height", "private/labels/height.csv", "60", "regression", "r2"] in lines
    assert ["test", "water", "private/labels/water.csv", "60", "classification", "f1"] in lines
    sealed = neuco_here("challenge", "seal", folder)
    assert sealed.out.startswith(dry.out.partition("nothing is sealed")[0])
    assert (folder / "public/seal.json").exists()
    again = neuco_here("challenge", "seal", folder, "--dry-run")
    assert (again.code, "sealed already" in again.err) == (2, True)


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
