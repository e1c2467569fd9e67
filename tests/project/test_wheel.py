"""The wheel and the example package, installed into a clean virtual environment outside the repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import neuco_core
from ci.release import the_wheel
from tests.ci.going_live import LEFT_OUT
from tests.parts import missing
from tests.registry import copy_registry


class Installed:
    """A virtual environment with nothing but the wheel, the example and their dependencies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "venv" / "bin"

    def run(self, program: str, *args: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NEUCO", "VIRTUAL"))
        }
        environment = kept | {"NEUCO_CACHE": str(self.folder / "cache"), "XDG_DATA_HOME": str(self.folder / "data")}
        environment |= variables
        command = [str(self.bin / program), *args]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=environment, timeout=900)
        if check and done.returncode:
            raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Installed:
    made = Installed(tmp_path_factory.mktemp("outside"))
    wheels = made.folder / "wheels"
    # Without isolation the build uses the hatchling that is tested here; the dependencies come from the index.
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels)]
    source = made.folder / "source"  # without records of one's own
    shutil.copytree(root, source, ignore=shutil.ignore_patterns(*LEFT_OUT, "registry"))
    copy_registry(source / "registry")
    for project in (source, source / "examples" / "neuco-task-example"):
        subprocess.run([*build, str(project)], check=True, capture_output=True)
    # By the pip that is here, and compiled as it is imported: a pip of its own and all of SciPy's bytecode take 20 s.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made.bin.parent)], check=True)
    pip = ("-m", "pip", "--python", str(made.bin / "python"), "--quiet", "--disable-pip-version-check", "install")
    what = ("--no-compile", "-c", str(root / "constraints.txt"), *map(str, sorted(wheels.glob("*.whl"))), "pytest")
    done = made.run(sys.executable, *pip, *what, check=False)
    if done.returncode:
        missing("package index", "the dependencies of the wheel cannot be installed", done.stderr)
    return made


def test_the_wheel_holds_what_it_should_and_could_be_released(installed: Installed, tmp_path: Path) -> None:
    (wheel,) = (installed.folder / "wheels").glob("neuco-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "neuco/__init__.py",
        "neuco/py.typed",
        "neuco_core/py.typed",
        "neuco_core/_registry/suites/embedded.toml",
        "neuco_core/_registry/geobench/114be1f0/runs.csv",
        "neuco_core/_registry/records/averaging.jsonl",  # boards rank with them
        "neuco_extensions/geobench/normalisers/geobench-2-v1.json",
        "neuco_tasks/olinda/__init__.py",
        "neuco_tasks/olinda/README.md",
        "neuco_tasks/olinda/labels.csv",
        "neuco_methods/averaging/__init__.py",
    } <= names
    assert not [name for name in names if name.startswith(("tests/", "ci/", "examples/", "registry/"))]
    shutil.copy(wheel, tmp_path)
    assert the_wheel(tmp_path).name.startswith(f"neuco-{neuco_core.__version__}-"), "and is small enough"


def test_boards_show_offline(installed: Installed, root: Path) -> None:
    show = ("leaderboard", "show", "olinda", "--json")
    published = json.loads((root / "registry/leaderboards/olinda.json").read_text())
    assert json.loads(installed.run("neuco", *show, NEUCO_OFFLINE="1").stdout) == published
    rows = json.loads(installed.run("neuco", "leaderboard", "list", "--json", NEUCO_OFFLINE="1").stdout)
    assert {row["id"]: row["methods"] for row in rows}["mini"] == 12


def test_a_file_has_a_place_among_the_shipped_methods(installed: Installed) -> None:
    """The three lines of the README, and the same in Python, after a plain ``pip install``."""
    made = ("embed", "--method", "averaging", "--param", "size=4", "--dataset", "olinda", "--out", "mine.npz")
    installed.run("neuco", *made)
    ranked = ("leaderboard", "show", "olinda", "--with", "mine.npz")
    assert "mine.npz would have rank" in installed.run("neuco", *ranked, NEUCO_OFFLINE="1").stdout
    code = "import neuco; print(neuco.evaluate('mine.npz', 'olinda', progress=False).rank_on('olinda'))"
    assert "mine.npz would have rank" in installed.run("python", "-c", code, NEUCO_OFFLINE="1").stdout


def test_what_is_tried_before_a_release(installed: Installed, root: Path) -> None:
    done = subprocess.run(
        ["sh", str(root / "ci" / "try.sh")],
        capture_output=True,
        text=True,
        env={"PATH": f"{installed.bin}{os.pathsep}{os.environ['PATH']}", "HOME": str(installed.folder)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 scored now" in done.stdout


def test_the_installed_wheel_works_outside_the_repository(installed: Installed, root: Path) -> None:
    doctor = json.loads(installed.run("neuco", "doctor", "--json").stdout)
    by_check = {row["check"]: row for row in doctor}
    assert str(root) not in by_check["neuco"]["detail"]
    user, _, shipped = by_check["registry"]["detail"].partition(" over ")
    assert shipped.endswith("neuco_core/_registry")
    assert user.endswith("neuco/registry")
    assert by_check["extra torch"]["status"] == "missing"
    assert not [row for row in doctor if row["status"] == "failed"]


def test_records_go_to_the_users_registry_which_lies_over_the_shipped_one(installed: Installed) -> None:
    command = ("score", "--method", "averaging", "--task", "olinda_elevation_mean", "--k", "3", "--protocol", "ridge")
    made = installed.run("neuco", *command).stdout
    assert "1 of 1 scored now, records in " in made
    assert "site-packages" not in made
    assert "1 score from cache" in installed.run("neuco", *command).stdout
    assert "olinda" in installed.run("neuco", "leaderboard", "show", "olinda").stdout


def test_the_example_package_is_found_by_its_entry_points_and_scored(installed: Installed) -> None:
    rows = {row["name"]: row for row in json.loads(installed.run("neuco", "plugins", "--json").stdout)}
    assert rows["example"]["source"] == "neuco-task-example 0.1.0 (neuco_task_example)"
    assert set(rows["example"]["registers"]) == {"dataset example", "task example_frequency", "method example_spectrum"}
    args = ("score", "--method", "example_spectrum", "--task", "example_frequency", "--protocol", "ridge")
    assert "example_frequency" in installed.run("neuco", *args).stdout


def test_the_tests_of_the_example_package_pass(installed: Installed, root: Path) -> None:
    test = root / "examples" / "neuco-task-example" / "test.py"
    done = installed.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(test))
    assert "3 passed" in done.stdout
