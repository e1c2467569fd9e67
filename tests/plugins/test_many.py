"""A thousand packages: one is imported to load its task, all are listed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.plugins import make_packages

COUNT = 1000


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    make_packages(folder, COUNT)
    return folder


def run(folder: Path, *args: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, check=True, env=environment).stdout


def test_loading_one_task_of_a_thousand_packages_imports_exactly_one(packages: Path) -> None:
    code = (
        "import sys, neuco_core\nprint(neuco_core.load_task('plugin0500').origin.distribution,"
        " *[name for name in sys.modules if name.startswith('plugin')])"
    )
    assert run(packages, "-c", code).split() == ["plugin0500", "plugin0500"]


def test_listing_a_thousand_packages_lists_them_all(packages: Path) -> None:
    tasks = json.loads(run(packages, "-m", "neuco_core.cli", "tasks", "--json"))
    assert {f"plugin{i:04d}" for i in range(COUNT)} <= {task["id"] for task in tasks}
