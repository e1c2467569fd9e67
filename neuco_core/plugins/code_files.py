"""Files of a plugin that may decide its numbers: everything in its package, by name and sha256.

Left out are the words about it and modules, which count where they are imported; but not if the code names them,
since then it may read them as data.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

SILENT = re.compile(r"(README|LICENSE|CHANGELOG)(\.md|\.rst|\.txt)?|pyproject\.toml|py\.typed|.*\.pyi?|\.DS_Store")

LONGEST_NAME = 256
Files = Literal["all", "named", "none"]


class UnknownCode(Exception):
    """Something that has no source, that may come from anywhere, or that cannot be compared between two processes."""


def hashed_files(
    folders: Mapping[str, Path], texts: Collection[str], *, only_named: bool = False, lone: Path | None = None
) -> list[list[str]]:
    """The files of packages by name; ``texts`` are those in the code. Beside a ``lone`` module, only what it names."""
    files: list[list[str]] = []
    patterns = [text for text in texts if "*" in text and len(text) < LONGEST_NAME]
    for root, folder in folders.items():
        paths = _walk(folder) if lone is None else (path for path in sorted(folder.iterdir()) if path != lone)
        for path in paths:
            counts = lone is None and not only_named and not SILENT.fullmatch(path.name)
            counts = counts or any(fnmatchcase(path.name, pattern) for pattern in patterns)
            counts = (counts and not _is_compiled(path)) or any(path.name in text for text in texts)
            if counts and path.is_file():
                name = f"{root}/{path.relative_to(folder).as_posix()}".lstrip("/")
                files.append([name, _sha256(path, state(path))])
    return files


def _walk(folder: Path) -> Iterator[Path]:
    """Everything below a folder, hidden or not."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() and path.is_dir():
            raise UnknownCode  # what it leads to is not part of the package, and may change unseen
        yield path


def _is_compiled(path: Path) -> bool:
    """What Python and numba left behind; a plugin runs from source, so nobody reads it."""
    return path.parent.name == "__pycache__" and path.suffix in (".pyc", ".nbi", ".nbc")


def state(path: Path) -> tuple[int, ...]:
    """What differs after a file was written; the time of its last change of state cannot be set back."""
    known = path.stat()
    return known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns


@functools.lru_cache(maxsize=4096)
def _sha256(path: Path, state: tuple[int, ...]) -> str:
    """The hash of a file, computed once in a process while it stays as it is."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
