"""The numbers of all records and boards, the public names, the commands and the exit codes, as they were frozen.

``python -m tests.project.test_frozen`` writes the snapshot anew. An edit of it has its reason in the commit: a renamed
command, a name that is gone, numbers that changed on purpose.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

import neuco_core
from neuco_core.boards.model import Board
from neuco_core.boards.published import list_published
from neuco_core.boards.store import stored_board
from neuco_core.cli import cli
from neuco_core.errors import EXIT_CODES
from neuco_core.fetch.cache import hash_file
from neuco_core.files import digest
from neuco_core.records.store import read_all
from tests.ci.helpers import git
from tests.registry import copy_registry

SNAPSHOT = Path(__file__).with_name("frozen.json")


def board_numbers(board: Board) -> dict[str, Any]:
    """Ranks and columns by method, and every value of every cell."""
    rows = {
        row.method: {
            "rank": row.rank,
            "values": row.values,
            "cells": {task: [cell.status, cell.values] for task, cell in row.cells.items()},
        }
        for row in board.rows
    }
    return {"rows": rows, "groups": board.groups, "tasks": {task.id: task.values for task in board.tasks}}


def now(registry: Path) -> dict[str, Any]:
    suites = sorted(path.stem for path in (registry / "leaderboards").glob("*.json"))
    records = {
        "/".join(record.key): [record.status, record.mean, record.std, record.q, digest(record.per_split)]
        for record in read_all(registry)
    }
    boards = {name: board_numbers(stored_board(registry, name)) for name in suites}
    boards |= {item.id: board_numbers(item.board()) for item in list_published(registry)}
    snapshot = {
        "records": records,
        "boards": {name: digest(json.loads(json.dumps(numbers))) for name, numbers in boards.items()},
        "ranks": {name: {m: row["rank"] for m, row in board["rows"].items()} for name, board in boards.items()},
        "names": sorted(neuco_core.__all__),
        "commands": sorted(cli.list_commands(None)),  # type: ignore[arg-type]
        "exit codes": {str(code): meaning for code, meaning in EXIT_CODES.items()},
    }
    plain: dict[str, Any] = json.loads(json.dumps(snapshot))
    return plain


@pytest.fixture(scope="module")
def current(committed_registry: Path) -> dict[str, Any]:
    return now(committed_registry)


@pytest.mark.parametrize("part", ["records", "boards", "ranks", "names", "commands", "exit codes"])
def test_nothing_frozen_has_changed(part: str, current: dict[str, Any]) -> None:
    frozen = json.loads(SNAPSHOT.read_text())
    assert current[part] == frozen[part]


def test_a_clone_that_converts_line_ends_keeps_the_bytes_that_hashes_name(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(root / "neuco_tasks", source / "neuco_tasks", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / ".gitattributes", source)
    git(source, "init", "--quiet")
    git(source, "add", "--all")
    git(source, "commit", "--quiet", "-m", "data")
    git(tmp_path, "clone", "--quiet", "--config", "core.autocrlf=true", str(source), "clone")
    files = [path for path in source.rglob("neuco_tasks/**/*") if path.is_file()]
    assert len([path for path in files if path.suffix == ".csv"]) > 5
    for path in files:
        assert hash_file(path) == hash_file(tmp_path / "clone" / path.relative_to(source)), path


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        frozen = now(copy_registry(Path(folder) / "registry"))
    SNAPSHOT.write_text(json.dumps(frozen, indent=1, sort_keys=True) + "\n")
