"""What zip files hold: names, sizes and CRC-32s of their members, as the directory at the end of each file lists them.

So the content of a folder of archives is known without reading it. Times, places and the way members are packed do not
count: a copy is the same data. Whether members are what the directory says, only reading them all tells (``damage``).
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from neuco_core.fetch.cache import cache_dir
from neuco_core.files import write_atomic
from neuco_core.tables.limits import check_members

LAYOUT = 1
# A file written to within the clock's grain of being read can change once more and look untouched.
GRAIN = 2_000_000_000  # nanoseconds


class Directories:
    """The contents of the archives in one folder, each read once.

    What was read is kept beside the status of its file (place, size, times, inode), which saves reading it again as
    long as that is unchanged, and is never part of the answer: 40,000 directories take some 15 seconds, their status 1.
    """

    def __init__(self, root: Path, content: Callable[[Path], str] | None = None) -> None:
        """``content`` tells what a file holds, if it is no archive."""
        self._root, self._content = root, content or _content
        name = hashlib.sha256(str(root.absolute()).encode()).hexdigest()[:32]
        self._file = cache_dir() / "cubes" / f"{name}.json"

    def contents(self, paths: Iterable[Path]) -> Iterator[str]:
        """A hash of what each archive holds; of a damaged one, of what can be said about it."""
        known, seen = self._load(), {}
        for path in paths:
            name, stat = path.relative_to(self._root).as_posix(), path.stat()
            # The time of the last change of any kind cannot be set back, unlike that of the content.
            status = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
            read_before, content = known.get(name, (None, ""))
            if read_before != status:
                content = self._content(path)
            if max(stat.st_mtime_ns, stat.st_ctime_ns) < time.time_ns() - GRAIN:
                seen[name] = [status, content]
            yield str(content)
        if seen != known:
            with suppress(OSError):  # a full or read-only disk: the directories are read again next time
                write_atomic(self._file, json.dumps({"layout": LAYOUT, "files": seen}).encode())

    def _load(self) -> dict[str, list[Any]]:
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self._file.read_bytes())
            if kept["layout"] == LAYOUT and all(len(item) == 2 for item in kept["files"].values()):
                return dict(kept["files"])
        return {}


def _content(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            listed = [(member.filename, member.file_size, member.CRC) for member in archive.infolist()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        # Not what it was, whatever it was: so nothing that was made of it is current. Reading it says what is wrong.
        listed = [(f"damaged: {type(error).__name__}", path.stat().st_size, 0)]
    listed.sort(key=lambda member: member[0])  # of members with one name the last is read, so their order stays
    return hashlib.sha256(repr(listed).encode()).hexdigest()[:32]


def damage(path: Path) -> str:
    """What is wrong with an archive, after reading every byte of its members; "" if it is what its directory says."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive, path)
            bad = archive.testzip()
    except Exception as error:  # zip and zlib raise whatever their parts raise
        return " ".join(str(error).split()) or type(error).__name__
    return f"the bytes of {bad!r} do not match its CRC-32" if bad else ""
