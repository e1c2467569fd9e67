"""Pull requests of the rehearsals: what each changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.contract.helpers import METHOD, TEST, write_good

Change = Callable[[Path], None]


def task(fork: Path) -> None:
    """A good task with a dataset and labels of its own; its baseline is one of upstream's methods."""
    source = write_good(fork.parent / f"{fork.name}-source") / "neuco_tasks" / "good"
    shutil.copytree(source, fork / "neuco_tasks" / "good")
    init = fork / "neuco_tasks/good/__init__.py"
    edit(init, 'method="plain", score=0.84', 'method="averaging", score=0.84')
    # A function with the name of a module beside it is replaced by that module as soon as it is imported.
    edit(init, "def cubes():", "def open_cubes():")
    edit(init, "cubes=cubes", "cubes=open_cubes")


def method(fork: Path) -> None:
    """A good method."""
    folder = fork / "neuco_methods" / "plain"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(METHOD)
    (folder / "README.md").write_text("# plain\n\nThe pixels.\n")
    (folder / "test.py").write_text(TEST)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if old not in text:
        raise AssertionError(f"{old!r} is not in {path}")
    path.write_text(text.replace(old, new))


def with_encode(body: str) -> Change:
    """A method whose encoder first runs some code."""

    def change(fork: Path) -> None:
        method(fork)
        lines = "".join(f"        {line}\n" for line in body.splitlines())
        edit(fork / "neuco_methods/plain/__init__.py", "        return batch", f"{lines}        return batch")

    return change


def both(*changes: Change) -> Change:
    def change(fork: Path) -> None:
        for item in changes:
            item(fork)

    return change


def change_file(name: str, old: str, new: str) -> Change:
    return lambda fork: edit(fork / name, old, new)


def write_file(name: str, text: str) -> Change:
    def change(fork: Path) -> None:
        (fork / name).parent.mkdir(parents=True, exist_ok=True)
        (fork / name).write_text(text)

    return change


def link(name: str, target: str) -> Change:
    return lambda fork: (fork / name).symlink_to(target)


def remove(name: str) -> Change:
    return lambda fork: shutil.rmtree(fork / name)
