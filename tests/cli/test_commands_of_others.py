"""Commands that other packages bring, and what becomes of those that cannot be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command import neuco, python
from tests.contract.helpers import quick_neuco
from tests.installed import install

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
