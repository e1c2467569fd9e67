"""Where verified files are kept. A file appears under its final name whole, or not at all.

Layout: ``<cache>/sha256/ab/abcd…/name``. A file is first written below ``<cache>/tmp`` and moved when its hash
is right, so a killed process leaves nothing under a final name. Other parts of neuco
keep folders of their own beside these.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from neuco_core.errors import DataError
from neuco_core.files import write_atomic

LOCK = ".lock"
MADE = ("encoded", "cubes", "gathered")  # folders of what is made anew when it is missing
QUIET = 3600.0  # seconds without a write after which a download counts as dead


def cache_dir() -> Path:
    """The cache folder: ``NEUCO_CACHE``, or the usual place of the platform. It is created when something is stored."""
    return _own_folder("NEUCO_CACHE", "user_cache_path")


def config_dir() -> Path:
    """The folder of the user's own pins and links: ``NEUCO_CONFIG``, or the usual place of the platform."""
    return _own_folder("NEUCO_CONFIG", "user_config_path")


def _own_folder(variable: str, usual: str) -> Path:
    chosen = os.environ.get(variable)
    if chosen:
        path = Path(chosen).expanduser().absolute()
    else:
        import platformdirs

        path = getattr(platformdirs, usual)("neuco", appauthor=False)
    # Here and not where something is stored: a command that only reads would take a file for an empty folder.
    with suppress(OSError):  # what may not be looked at is reported when something is stored
        nearest = next(part for part in (path, *path.parents) if part.exists())
        if not nearest.is_dir():
            hint = f"Set {variable} to a folder, or to a path where one can be created"
            raise DataError("not a folder", where=path, expected="a folder", got=f"the file {nearest}", hint=hint)
    return path


def hash_file(path: Path) -> str:
    """The sha256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def entry(sha256: str, name: str) -> Path:
    """The place of a file in the cache, whether it is there or not: its folder is named by its hash."""
    return cache_dir() / "sha256" / sha256[:2] / sha256 / (name or "file")


def intact(path: Path) -> bool:
    """Whether a file in the cache is there with the bytes that its folder says."""
    return path.is_file() and hash_file(path) == path.parent.name


def entries() -> list[Path]:
    """All files in the cache, by hash."""
    return [path for path in sorted((cache_dir() / "sha256").glob("??/*/*")) if path.is_file()]


def files_made(name: str) -> list[Path]:
    """What encoders made, or cubes that were drawn, in one of the folders ``MADE``."""
    return [path for path in sorted((cache_dir() / name).rglob("*")) if path.is_file()]


def leftovers() -> list[Path]:
    """Parts that killed downloads left behind; a download in progress is here too."""
    return sorted(path for path in (cache_dir() / "tmp").glob("*/*") if path.is_file())


def prunable(used: Collection[str] | None) -> list[Path]:
    """What can be removed: files with another sha256 than those in use, and leftovers; for None all that neuco made."""
    unused = [path for path in entries() if used is None or path.parent.name not in used]
    dead = [path for path in leftovers() if time.time() - path.stat().st_mtime > QUIET]
    if used is not None:
        return [*unused, *dead]
    made = [path for name in MADE for path in files_made(name)]
    return [*unused, *dead, *made, *sorted((cache_dir() / "sha256").glob(f"*/{LOCK}"))]


def remove(paths: Iterable[Path]) -> None:
    """Remove files, and the folders of the cache that are then empty."""
    root = cache_dir()
    for path in paths:
        path.unlink(missing_ok=True)
        for folder in path.relative_to(root).parents:
            with suppress(OSError):  # it is not empty
                (root / folder).rmdir()


def discard(path: Path) -> None:
    """Remove a file from the cache; another process may have done it already."""
    with writing(path.parent):
        remove([path])


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Name the folder where this machine cannot write: it is full, read-only, or somebody else's."""
    try:
        yield
    except OSError as error:
        hint = "Free some space, or set NEUCO_CACHE (for pins and links NEUCO_CONFIG) to a folder of yours elsewhere"
        raise DataError(f"cannot be written: {error.strerror or error}", where=folder, hint=hint) from error


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder on the same disk as the cache, removed whatever happens."""
    root = cache_dir() / "tmp"
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix="fetch-", dir=root)
    with folder as name:
        yield Path(name)


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Let one process at a time change a folder, which is created if it does not exist."""
    from filelock import FileLock  # heavy: listing tasks looks into the cache, and locks nothing

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):  # said now: what is stored later may have taken hours
            raise PermissionError(errno.EACCES, "read-only, or somebody else's")
        lock = FileLock(folder / LOCK)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def write_json(path: Path, value: object) -> None:
    """Write a file of the user's, such as pins and links: with one entry a line, for people and for git."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=2, sort_keys=True)
    with writing(path.parent):
        write_atomic(path, (text + "\n").encode())


def store(source: Path, target: Path) -> Path:
    """Move a verified file to its place."""
    with writing(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        return source.replace(target)
