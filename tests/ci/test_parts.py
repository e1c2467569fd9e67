"""``ci/parts.sh`` on a machine that forbids user namespaces: what it loads, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.ci.helpers import ROOT

STAND_INS = {
    "id": "echo 0",
    "setpriv": 'shift 3\nexec "$@"',  # without its three options
    "bwrap": 'test -e "$(dirname "$0")/loaded"',
    "apparmor_parser": 'echo "$@" >"$(dirname "$0")/loaded"\ncat >>"$(dirname "$0")/loaded"',
}


def parts(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(ROOT / "ci" / "parts.sh"), *arguments]
    variables = {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin", "CI": "true"}
    return subprocess.run(command, env=variables, capture_output=True, text=True)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    for name, script in STAND_INS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_only_bubblewrap_may_make_user_namespaces(machine: Path) -> None:
    done = parts(machine, "sandbox")
    assert (done.returncode, done.stderr) == (0, "")
    assert "loading an AppArmor profile" in done.stdout
    loaded = (machine / "loaded").read_text()
    assert loaded.startswith("--replace\n")
    assert f"profile neuco-bwrap {machine}/bwrap flags=(unconfined) {{\n  userns,\n}}" in loaded
    assert "/proc/sys" not in (ROOT / "ci" / "parts.sh").read_text()


def test_nothing_is_loaded_where_it_works(machine: Path) -> None:
    (machine / "bwrap").write_text("#!/bin/sh\nexit 0\n")
    done = parts(machine, "sandbox")
    assert (done.returncode, done.stdout, (machine / "loaded").exists()) == (0, "", False)


def test_a_machine_that_cannot_be_helped_is_a_failure_in_ci(machine: Path) -> None:
    (machine / "apparmor_parser").write_text("#!/bin/sh\nexit 1\n")
    done = parts(machine, "sandbox")
    assert (done.returncode, "user namespaces are forbidden" in done.stderr) == (1, True)
    assert parts(machine, "sandbocks").returncode == 2
