"""``fetch``: turn a remote into a local path with verified bytes, or fail."""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from neuco_core.errors import ChecksumError, DataError, FetchError, NeucoError, OfflineError
from neuco_core.fetch import cache
from neuco_core.fetch.pins import Pin, find_pin, require_pin
from neuco_core.fetch.transfer import Settings, download, shown
from neuco_core.specs import Remote


def fetch(remote: Remote, *, progress: bool | None = None) -> Path:
    """The verified file of a remote.

    Files of packages (``pkg://``) and ``file://`` are hashed where they are, every time. Everything else is
    fetched once into the cache and hashed there every time. ``progress=None`` shows a bar on a terminal. An address
    on this machine goes before the others, which are tried in their order: the bytes are the same.
    """
    pin = require_pin(remote)
    item = cache.entry(pin.sha256, file_name(remote.url))  # also for what a mirror gives: it is looked for by one name

    def read(url: str) -> Path:
        if not is_local(url):
            return _cached(url, pin, item, progress)
        path = resolve(url)
        verify(path, pin, url)
        return path

    return _first(remote, sorted(remote.urls, key=lambda url: not is_local(url)), read)


def fetch_unverified(remote: Remote, folder: Path, *, progress: bool | None = None) -> Path:
    """The file of the first address that answers, unchecked, in ``folder``: for ``neuco data pin`` to look at."""
    settings = Settings.from_environment()
    path = folder / file_name(remote.url)

    def read(url: str) -> Path:
        if is_local(url):
            return resolve(url)
        if settings.offline:
            raise OfflineError("a pin needs the network, and NEUCO_OFFLINE is set", where=shown(url))
        download(url, path, settings, size=remote.size, progress=progress)
        return path

    return _first(remote, remote.urls, read)


def _first(remote: Remote, urls: Iterable[str], read: Callable[[str], Path]) -> Path:
    """What the first address gives that works; else one error for all, of their common kind if they have one."""
    failures: list[NeucoError] = []
    for url in urls:
        try:
            return read(url)
        except (FetchError, DataError) as error:
            failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    kinds = {type(error) for error in failures}
    kind = kinds.pop() if len(kinds) == 1 else FetchError
    reasons = "; ".join(str(error) for error in failures)
    raise kind(f"none of the {len(failures)} addresses delivered the file: {reasons}", where=shown(remote.url))


def is_local(url: str) -> bool:
    """Whether an address is on this machine, so that nothing is copied into the cache."""
    return urlsplit(url).scheme in ("file", "pkg")


def cached(remote: Remote) -> Path | None:
    """The remote's file if the cache has it intact; uses no network and changes nothing."""
    pin = find_pin(remote)
    item = cache.entry(pin.sha256, file_name(remote.url)) if pin else None
    return item.path if item and item.path.is_file() and item.intact() else None


def verify(path: Path, pin: Pin, name: str) -> None:
    """Raise unless the file has the pinned size and hash."""
    size = path.stat().st_size
    if pin.size is not None and size != pin.size:
        expected, got = f"{pin.size} bytes", str(size)
    else:
        expected, got = f"sha256 {pin.sha256}", cache.hash_file(path)
        if got == pin.sha256:
            return
    if pin.source:
        hint = f"The pin is in {pin.source}. Either the file is corrupt (try again, or another mirror), or its owner "
        hint += "changed it: then look at the change, raise the task's version and run `neuco data pin --replace`"
    else:
        hint = "Either the file is corrupt (fetch or install it again), or it was changed on purpose: "
        hint += "then declare the new sha256 and raise the version"
    raise ChecksumError("not the declared file", where=name, expected=expected, got=got, hint=hint)


def _cached(url: str, pin: Pin, item: cache.CachedFile, progress: bool | None) -> Path:
    settings = Settings.from_environment()
    if _usable(item):
        return item.path
    if settings.offline:
        hint = "Unset NEUCO_OFFLINE and run `neuco data fetch TASK` once, or link a local copy with `neuco data link`"
        raise OfflineError("not in the cache, and NEUCO_OFFLINE is set", where=shown(url), hint=hint)
    with cache.exclusive(item.path.parents[1]):
        if _usable(item):  # another process may have fetched it while this one waited
            return item.path
        with cache.scratch() as folder:
            path = folder / item.name
            resumed = download(url, path, settings, size=pin.size, progress=progress)
            try:
                verify(path, pin, shown(url))
            except ChecksumError:
                if not resumed:
                    raise
                # The parts may be of two versions of the file; only a whole one proves that the server's is wrong.
                download(url, path, settings, size=pin.size, progress=progress)
                verify(path, pin, shown(url))
            return cache.store(path, item)


def _usable(item: cache.CachedFile) -> bool:
    """Whether the cache has the file; a corrupt one is removed."""
    if not item.path.is_file():
        return False
    if item.intact():
        return True
    cache.discard(item)
    return False


def file_name(url: str) -> str:
    """The last part of an address, as a name that is safe in any folder."""
    name = PurePosixPath(unquote(urlsplit(url).path)).name
    safe = (char if char.isascii() and (char.isalnum() or char in "._-+") else "_" for char in name)
    return "".join(safe).lstrip(".")[-120:] or "file"


def resolve(url: str) -> Path:
    """The path of a local address, ``pkg://package/path`` or ``file:///path``; an error if there is no such file."""
    if url.startswith("pkg://"):
        return _packaged(url)
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise FetchError("bad address of a local file", where=url, expected="file:///absolute/path")
    path = Path(unquote(parts.path))
    if not path.is_file():
        raise FetchError("no such file", where=url)
    return path


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
