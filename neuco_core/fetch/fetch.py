"""``fetch``: turn a remote into a local path with verified bytes, or fail."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from neuco_core.errors import ChecksumError, DataError, FetchError, NeucoError, OfflineError
from neuco_core.fetch import cache
from neuco_core.fetch.local import resolve
from neuco_core.fetch.pins import Pin, find_pin, require_pin
from neuco_core.fetch.settings import Settings
from neuco_core.fetch.transfer import download, shown
from neuco_core.specs import Remote

LOCAL = ("file", "pkg")


def fetch(remote: Remote, *, progress: bool | None = None) -> Path:
    """The verified file of a remote.

    Files of packages (``pkg://``) and ``file://`` are hashed where they are, every time. Everything else is
    fetched once into the cache and hashed there every time. ``progress=None`` shows a bar on a terminal. An address
    on this machine goes before the others, which are tried in their order: the bytes are the same.
    """
    settings = Settings.from_environment()
    pin = require_pin(remote)
    name = file_name(remote.url)  # also for what a mirror gives: it is looked for under one name
    failures: list[NeucoError] = []
    for url in sorted(remote.urls, key=lambda url: not is_local(url)):
        try:
            if is_local(url):
                return _local(url, pin)
            return _cached(url, pin, name, settings, progress)
        except (FetchError, DataError) as error:
            failures.append(error)
    raise _summary(remote, failures)


def is_local(url: str) -> bool:
    """Whether an address is on this machine, so that nothing is copied into the cache."""
    return urlsplit(url).scheme in LOCAL


def cached(remote: Remote) -> Path | None:
    """The remote's file if the cache has it intact; uses no network and changes nothing."""
    pin = find_pin(remote)
    item = cache.entry(pin.sha256, file_name(remote.url)) if pin else None
    return item.path if item and item.path.is_file() and item.intact() else None


def verify(path: Path, pin: Pin, name: str) -> None:
    """Raise unless the file has the pinned size and hash."""
    size = path.stat().st_size
    if pin.size is not None and size != pin.size:
        raise ChecksumError("not the declared file", where=name, expected=f"{pin.size} bytes", got=size, hint=_why(pin))
    got = cache.hash_file(path)
    if got != pin.sha256:
        raise ChecksumError(
            "not the declared file", where=name, expected=f"sha256 {pin.sha256}", got=got, hint=_why(pin)
        )


def _why(pin: Pin) -> str:
    if pin.source:
        return (
            f"The pin is in {pin.source}. Either the file is corrupt (try again, or another mirror), or its owner "
            "changed it: then look at the change, raise the task's version and run `neuco data pin --replace`"
        )
    return (
        "Either the file is corrupt (fetch or install it again), or it was changed on purpose: "
        "then declare the new sha256 and raise the version"
    )


def _local(url: str, pin: Pin) -> Path:
    path = resolve(url)
    verify(path, pin, url)
    return path


def _cached(url: str, pin: Pin, name: str, settings: Settings, progress: bool | None) -> Path:
    item = cache.entry(pin.sha256, name)
    if _usable(item):
        return item.path
    if settings.offline:
        hint = "Unset NEUCO_OFFLINE and run `neuco data fetch TASK` once, or link a local copy with `neuco data link`"
        raise OfflineError("not in the cache, and NEUCO_OFFLINE is set", where=shown(url), hint=hint)
    with cache.exclusive(item.path.parents[1]):
        # Another process may have fetched it while this one waited.
        return item.path if _usable(item) else _download(url, pin, item, settings, progress)


def _usable(item: cache.Entry) -> bool:
    """Whether the cache has the file; a corrupt one is removed."""
    if not item.path.is_file():
        return False
    if item.intact():
        return True
    cache.discard(item)
    return False


def _download(url: str, pin: Pin, item: cache.Entry, settings: Settings, progress: bool | None) -> Path:
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


def fetch_unverified(remote: Remote, folder: Path, *, progress: bool | None = None) -> Path:
    """The file of the first address that answers, unchecked, in ``folder``: for ``neuco data pin`` to look at."""
    failures: list[NeucoError] = []
    for url in remote.urls:
        try:
            return resolve(url) if is_local(url) else _bring(url, remote, folder, progress)
        except (FetchError, DataError) as error:
            failures.append(error)
    raise _summary(remote, failures)


def _bring(url: str, remote: Remote, folder: Path, progress: bool | None) -> Path:
    settings = Settings.from_environment()
    if settings.offline:
        raise OfflineError("a pin needs the network, and NEUCO_OFFLINE is set", where=shown(url))
    path = folder / file_name(remote.url)
    download(url, path, settings, size=remote.size, progress=progress)
    return path


def file_name(url: str) -> str:
    """The last part of an address, as a name that is safe in any folder."""
    name = PurePosixPath(unquote(urlsplit(url).path)).name
    safe = (char if char.isascii() and (char.isalnum() or char in "._-+") else "_" for char in name)
    return "".join(safe).lstrip(".")[-120:] or "file"


def _summary(remote: Remote, failures: list[NeucoError]) -> NeucoError:
    """One error for all addresses; of their common kind, if they have one."""
    if len(failures) == 1:
        return failures[0]
    kinds = {type(error) for error in failures}
    kind = kinds.pop() if len(kinds) == 1 else FetchError
    reasons = "; ".join(str(error) for error in failures)
    return kind(f"none of the {len(failures)} addresses delivered the file: {reasons}", where=shown(remote.url))
