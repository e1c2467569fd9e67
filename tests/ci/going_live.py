"""The whole project as its host has it: the tree, with what docs/maintain/maintaining.md asks to fill in."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import hatchling

import neuco_core
from tests.ci.helpers import ROOT, Upstream

VERSION = neuco_core.__version__
TAG = f"v{VERSION}"
DATE = "2026-12-01"
LEFT_OUT = (".git", ".neuco", ".venv", ".hypothesis", ".*_cache", "build", "dist", "__pycache__", "*.egg-info", "tests")
# The wheel in an environment of its own, which borrows the dependencies of this one: installing them takes minutes, and
# tests/project/test_wheel.py does it.
SETUP = """#!/bin/sh
set -eu
case "${{1:-}}" in
*.whl)
    "{python}" -m venv --without-pip "$RUNNER_TEMP/venv"
    echo "{packages}" >"$(echo "$RUNNER_TEMP"/venv/lib/python*/site-packages)/borrowed.pth"
    "{python}" -m pip --python "$RUNNER_TEMP/venv/bin/python" install --quiet --no-deps --no-index "$1"
    echo "$RUNNER_TEMP/venv/bin" >>"$GITHUB_PATH" ;;
*) echo "{bin}" >>"$GITHUB_PATH" ;;
esac
"""


def fill_in(project: Path) -> None:
    """Everything that a release asks for."""
    urls = '[project.urls]\nRepository = "https://example.org/neuco"\n\n[project.scripts]'
    _edit(project / "pyproject.toml", re.escape("[project.scripts]"), urls)
    _edit(project / "CHANGELOG.md", rf"^## {re.escape(VERSION)} \(.*\)$", f"## {VERSION} ({DATE})")
    _edit(project / "CITATION.cff", rf"^version: {re.escape(VERSION)}$", f"version: {VERSION}\ndate-released: {DATE}")
    (project / ".github" / "CODEOWNERS").write_text("* @someone\n")
    _edit(project / "mkdocs.yml", r"^# repo_url: .*$", "repo_url: https://example.org/neuco")


def _edit(path: Path, pattern: str, text: str) -> None:
    changed, count = re.subn(pattern, text, path.read_text(encoding="utf-8"), count=1, flags=re.MULTILINE)
    assert count == 1, f"{path}: {pattern}"
    path.write_text(changed, encoding="utf-8")


def copy_project(target: Path) -> None:
    shutil.copytree(ROOT, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*LEFT_OUT))


def live(folder: Path) -> Upstream:
    """An upstream with all of it on main; only the set-up of Python is another."""

    def prepare(fork: Path) -> None:
        copy_project(fork)
        fill_in(fork)
        packages = Path(hatchling.__file__).parents[1]
        setup = SETUP.format(python=sys.executable, packages=packages, bin=Path(sys.executable).parent)
        (fork / "ci" / "setup.sh").write_text(setup)

    upstream = Upstream(folder)
    upstream.merge(upstream.pull_request("whole", prepare))
    return upstream
