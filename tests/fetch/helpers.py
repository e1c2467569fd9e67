"""Small things that the tests of fetching share."""

from __future__ import annotations

import hashlib
from pathlib import Path

from neuco_core.specs import Remote

# About 3 MiB that do not repeat, so that a part in the wrong place is noticed.
BODY = b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(100_000))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def remote(url: str, data: bytes = BODY, *, sized: bool = True, mirrors: tuple[str, ...] = ()) -> Remote:
    return Remote(url, sha256=sha256(data), size=len(data) if sized else None, mirrors=mirrors)


def files_below(folder: Path) -> list[str]:
    """Every file in the cache, so that a test can say that there is nothing new."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
