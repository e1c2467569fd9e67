"""One flipped byte in any file that a shipped plugin declares is caught, and in any file of the cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from neuco_core.errors import OfflineError
from neuco_core.fetch.fetch import fetch
from tests.command import python
from tests.fetch.helpers import BODY, remote
from tests.fetch.http_server import FileServer

# Runs on a copy of the plugins, so that the real files are never touched.
FLIP = """
import importlib, json, pkgutil, sys
from pathlib import Path
import neuco_methods, neuco_tasks
for package in (neuco_tasks, neuco_methods):  # only the copy
    package.__path__ = [str(Path(sys.argv[1], package.__name__))]
from neuco_core import Remote, list_methods, list_tasks
from neuco_core.fetch.fetch import fetch
from neuco_core.errors import ChecksumError

remotes = {task.source for task in list_tasks()}
remotes |= {remote for method in list_methods() for remote in method.files.values()}
for package in (neuco_tasks, neuco_methods):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        source = Path(found.module_finder.path, found.name.rpartition(".")[2] + ".py")
        if not found.ispkg and source.is_file() and "Remote(" in source.read_text() and source.stem != "test":
            values = vars(importlib.import_module(found.name)).values()
            remotes |= {value for value in values if isinstance(value, Remote)}
caught = {}
for remote in remotes:
    if not remote.url.startswith("pkg://"):
        continue
    path = fetch(remote)
    assert str(path).startswith(sys.argv[1]), path
    original = path.read_bytes()
    for place in (0, len(original) // 2, len(original) - 1):
        changed = bytearray(original)
        changed[place] ^= 1
        path.write_bytes(changed)
        try:
            fetch(remote)
        except ChecksumError:
            caught[remote.url] = caught.get(remote.url, 0) + 1
    path.write_bytes(original)
    fetch(remote)
print(json.dumps(caught))
"""


def test_a_flipped_byte_in_any_declared_file_is_caught(tmp_path: Path, root: Path) -> None:
    for package in ("neuco_tasks", "neuco_methods"):
        shutil.copytree(root / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    caught = python("-c", FLIP, tmp_path, env={"PYTHONDONTWRITEBYTECODE": "1"}, cwd=tmp_path).json
    assert "pkg://neuco_tasks.olinda/labels.csv" in caught
    assert set(caught.values()) == {3}, caught


@pytest.mark.parametrize("place", [0, len(BODY) // 2, len(BODY) - 1])
def test_a_flipped_byte_in_the_cache_is_caught_and_healed(server: FileServer, place: int) -> None:
    wanted = remote(server.url("good"))
    path = fetch(wanted)
    changed = bytearray(BODY)
    changed[place] ^= 1
    path.write_bytes(changed)
    assert fetch(wanted) == path
    assert path.read_bytes() == BODY
    assert server.count("good") == 2


@pytest.mark.parametrize("damage", [b"", BODY[:-1], BODY + b"\n"])
def test_a_damaged_file_in_the_cache_is_never_given_out(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    wanted = remote(server.url("good"), sized=False)
    path = fetch(wanted)
    path.write_bytes(damage)
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    with pytest.raises(OfflineError):
        fetch(wanted)
    assert not path.exists(), "thrown away"
    monkeypatch.delenv("NEUCO_OFFLINE")
    assert fetch(wanted).read_bytes() == BODY
