"""Files that are already on this machine: ``pkg://package/path`` and ``file:///path``."""

from __future__ import annotations

import importlib.resources
from pathlib import Path
from urllib.parse import unquote, urlsplit

from neuco_core.errors import FetchError


def resolve(url: str) -> Path:
    """The path of a local address; an error if there is no such file."""
    return _packaged(url) if url.startswith("pkg://") else _file(url)


def _packaged(url: str) -> Path:
    package, _, inside = url.removeprefix("pkg://").partition("/")
    names = inside.split("/")
    if not all(name not in ("", ".", "..") for name in names):
        raise FetchError("bad address of a packaged file", where=url, expected="pkg://package/path/in/it")
    try:
        path = importlib.resources.files(package).joinpath(*names)
    except (ImportError, TypeError, ValueError) as error:
        hint = "Install the package that the plugin belongs to"
        raise FetchError(f"no such package {package!r}: {error}", where=url, hint=hint) from error
    if not isinstance(path, Path):
        # A package inside a zip file; none of the tools we support installs one.
        raise FetchError("the package is not unpacked on disk", where=url, hint="Install it with pip")
    if not path.is_file():
        raise FetchError("the package has no such file", where=url, hint="Install it again, or correct the address")
    return path


def _file(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise FetchError("bad address of a local file", where=url, expected="file:///absolute/path")
    path = Path(unquote(parts.path))
    if not path.is_file():
        raise FetchError("no such file", where=url)
    return path
