"""Commands that other packages bring, in a process that sees these packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import neuco


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
    assert neuco("soil", path=tmp_path).out == "soil!\n"
    assert "soil  From acme." in neuco("--help", path=tmp_path).out
    rows = {row["name"]: row for row in neuco("plugins", "--json", path=tmp_path).json}
    assert (rows["soil"]["status"], rows["soil"]["registers"]) == ("ok", ["command soil"])


@pytest.mark.parametrize("source", ["raise RuntimeError('cheese')", SOIL.replace('"soil"', '"sand"'), "x = 1"])
def test_a_broken_command_of_another_package_breaks_only_itself(tmp_path: Path, source: str) -> None:
    command_package(tmp_path, "acme", source)
    done = neuco("soil", path=tmp_path)
    assert done.code == 5
    assert "acme" in done.err
    assert neuco("--help", path=tmp_path).code == 0
    rows = {row["name"]: row for row in neuco("plugins", "--json", path=tmp_path).json}
    assert (rows["soil"]["status"], rows["soil"]["source"], rows["soil"]["stage"]) == (
        "broken",
        "acme (acme)",
        "command",
    )
    doctor = neuco("doctor", path=tmp_path)
    assert doctor.code == 5
    assert f"acme (acme): {rows['soil']['error']}" in doctor.out


def test_a_command_that_neuco_has_itself_is_reported(tmp_path: Path) -> None:
    command_package(tmp_path, "acme", SOIL)
    (tmp_path / "acme-1.0.dist-info" / "entry_points.txt").write_text("[neuco.commands]\ntasks = acme\n")
    assert "broken: tasks (acme (acme)): neuco itself has a command 'tasks'" in neuco("plugins", path=tmp_path).err


@pytest.mark.parametrize("content", [b"[console_scripts]\nno equals sign\n", b"[neuco.tasks]\n\xff = x\n"])
def test_a_malformed_list_of_entry_points_is_reported_and_hurts_nobody(tmp_path: Path, content: bytes) -> None:
    command_package(tmp_path, "acme", SOIL)
    command_package(tmp_path, "rotten", "")
    bad = tmp_path / "rotten-1.0.dist-info" / "entry_points.txt"
    bad.write_bytes(content)
    assert neuco("soil", path=tmp_path).out == "soil!\n"
    assert "soil  From acme." in neuco("--help", path=tmp_path).out
    tasks = neuco("tasks", "--json", path=tmp_path)
    assert tasks.err == "1 broken plugin left out: run `neuco plugins`\n"
    assert "biomass_mean" in {task["id"] for task in tasks.json}
    listed = neuco("plugins", path=tmp_path).err
    assert listed.startswith(f"broken: rotten-1.0 ({bad}): its entry points cannot be read")


def test_two_packages_with_one_command_are_refused_by_name(tmp_path: Path) -> None:
    command_package(tmp_path, "acme", SOIL)
    command_package(tmp_path, "umbra", SOIL)
    done = neuco("soil", path=tmp_path)
    assert done.code == 5
    assert "acme" in done.err
    assert "umbra" in done.err
