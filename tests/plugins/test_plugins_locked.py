"""Plugins that cannot be read, and the switch that makes every problem an error."""

from __future__ import annotations

import errno
import importlib
from pathlib import Path
from typing import Any

import pytest

from neuco_core.env import switched_on
from neuco_core.errors import PluginError, UsageError
from neuco_core.plugins.discovery import extended
from neuco_core.specs import Task
from tests.plugins.helpers import Tree, only_problem


def lock(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """What ``chmod 000`` does, for root too: nothing in the folder can be seen."""

    def locked(look: Any) -> Any:
        def refuse(path: Path, *args: Any, **kwargs: Any) -> Any:
            if folder in (path.parent, path if look.__name__ == "iterdir" else None):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return look(path, *args, **kwargs)

        return refuse

    for name in ("iterdir", "exists", "is_dir", "is_file"):
        monkeypatch.setattr(Path, name, locked(getattr(Path, name)))


def test_a_folder_that_cannot_be_read_is_reported(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "elsewhere" / tree.package
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder.parent))
    lock(monkeypatch, folder)
    package = importlib.import_module(tree.package)
    monkeypatch.setattr(package, "__path__", extended(package.__path__, tree.package))
    problem = only_problem(tree)
    assert (problem.name, problem.file) == (tree.package, str(folder))
    assert problem.error == "the folder cannot be read: Permission denied"


def test_a_directory_that_cannot_be_read_is_reported(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tree.add("rotten")
    lock(monkeypatch, path.parent)
    problem = only_problem(tree)
    assert (problem.file, problem.error) == (str(path.parent), "cannot be read: Permission denied")


def test_a_place_on_the_path_that_cannot_be_read_is_nobodys_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "locked"))
    lock(monkeypatch, tmp_path / "locked")
    assert extended([], "neuco_nothing") == []


def test_strict_makes_a_broken_plugin_an_error(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.add("good")
    tree.add("rotten", "raise RuntimeError('cheese')")
    monkeypatch.setenv("NEUCO_STRICT", "1")
    with pytest.raises(PluginError, match="plugin 'rotten' is broken, and NEUCO_STRICT is set: RuntimeError: cheese"):
        tree.catalog().all(Task)
    assert tree.catalog().load(Task, "good").id == "good"


def test_a_switch_understands_the_usual_words() -> None:
    for on, words in ((True, ("1", "true", "YES", "on", " 1 ")), (False, ("", "0", "False", "no", "off"))):
        assert [switched_on("NEUCO_STRICT", {"NEUCO_STRICT": word}) for word in words] == [on] * 5
    with pytest.raises(UsageError, match=r"NEUCO_STRICT: not a boolean; expected 1/true.* got 'maybe'"):
        switched_on("NEUCO_STRICT", {"NEUCO_STRICT": "maybe"})
