"""Extensions are uses of the core: without any of them each of its commands works."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core.cli import COMMANDS
from tests.command import Said, neuco, python
from tests.without_extensions import copy_core

WORDS = "--title T --description D --license CC0-1.0"
LINES = (
    "tasks",
    "methods",
    "datasets",
    "suites",
    "protocols",
    "plugins",
    "doctor",
    "show olinda",
    "data ls",
    "check olinda --only dataset-metadata",
    "embed --method averaging --dataset digits --out digits.npz",
    "check digits.npz --dataset digits",
    f"new method mine --encoder {WORDS} --into .",
    "score --method averaging --task digits_class --k 2 --jobs 1",
    "score --method averaging --task digits_class --jobs 1",
    "verify averaging/digits_class --jobs 1",
    "explain averaging digits_class",
    "compare averaging random --task digits_class --k 2",
    "leaderboard list",
    "leaderboard show olinda --estimated --details",
    "leaderboard site olinda --out site",
)
RUN = """
import shlex, sys
from neuco_core.cli import main
for line in sys.argv[1:]:
    try:
        main(shlex.split(line))
    except SystemExit as end:
        print(f"{end.code}: {line}", file=sys.stderr)
print([name for name in sys.modules if name.startswith("neuco_extensions")], file=sys.stderr)
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_core(tmp_path_factory.mktemp("alone") / "core")


def test_every_command_of_the_core_works(core: Path, tmp_path: Path) -> None:
    assert {line.split()[0] for line in LINES} == set(COMMANDS)
    env = {"NEUCO_REGISTRY": str(core / "registry"), "NEUCO_CACHE": str(tmp_path / "cache")}
    done = python("-c", RUN, *LINES, cwd=tmp_path, path=core, env=env)
    ends = [line for line in done.err.splitlines() if line.partition(": ")[2] in LINES]
    assert ends == [f"0: {line}" for line in LINES], done.text
    assert done.err.splitlines()[-1] == "[]"


def test_the_commands_of_extensions_are_gone(core: Path) -> None:
    def run(*args: str) -> Said:
        return neuco(*args, path=core, cwd=core)

    assert "Extensions" not in run("--help").out
    assert "No such command 'challenge'" in run("challenge").err
