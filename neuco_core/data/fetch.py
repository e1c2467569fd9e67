"""``fetch``: a remote file as a local path whose bytes are the declared ones, or an error."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from neuco_core.data import cache
from neuco_core.data.local import resolve
from neuco_core.data.pins import Pin, require_pin
from neuco_core.data.settings import Settings
from neuco_core.data.transfer import download, shown
from neuco_core.errors import ChecksumError, DataError, FetchError, NeucoError, OfflineError
from neuco_core.specs import Remote

LOCAL = ("file", "pkg")


def fetch(remote: Remote, *, progress: bool | None = None) -> Path:
    """The verified file of a remote.

    Files of packages (``pkg://``) and ``file://`` are hashed where they are, every time. Everything else is
    fetched once into the cache and hashed there every time. ``progress=None`` shows a bar on a terminal.
    """
    settings = Settings.from_environment()
    pin = require_pin(remote)
    name = file_name(remote.url)  # also for what a mirror gives: it is looked for under one name
    failures: list[tuple[str, NeucoError]] = []
    for url in remote.urls:
        try:
            if urlsplit(url).scheme in LOCAL:
                return _local(url, pin)
            return _cached(url, pin, name, settings, progress)
        except (FetchError, DataError) as error:
            failures.append((url, error))
    raise _summary(remote, failures)


def verify(path: Path, pin: Pin, name: str) -> None:
    """Raise unless the file has the size and the hash that it must have."""
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
    with cache.exclusive(pin.sha256):
        # Another process may have fetched it while this one waited.
        return item.path if _usable(item) else _download(url, pin, item, settings, progress)


def _usable(item: cache.Entry) -> bool:
    """Whether the cache has the file; a corrupt one is thrown away."""
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
    """Put the file of the primary address into ``folder`` without a check: for ``neuco data pin`` to look at."""
    settings = Settings.from_environment()
    if urlsplit(remote.url).scheme in LOCAL:
        return resolve(remote.url)
    if settings.offline:
        raise OfflineError("a pin needs the network, and NEUCO_OFFLINE is set", where=shown(remote.url))
    path = folder / file_name(remote.url)
    download(remote.url, path, settings, size=remote.size, progress=progress)
    return path


def file_name(url: str) -> str:
    """The last part of an address, as a name that is safe in any folder."""
    name = PurePosixPath(unquote(urlsplit(url).path)).name
    return "".join(char if char.isalnum() or char in "._-+" else "_" for char in name).lstrip(".")[-120:] or "file"


def _summary(remote: Remote, failures: list[tuple[str, NeucoError]]) -> NeucoError:
    if len(failures) == 1:
        return failures[0][1]
    reasons = "; ".join(str(error) for _, error in failures)
    same = {type(error) for _, error in failures}
    kind = same.pop() if len(same) == 1 else FetchError
    return kind(f"none of {len(failures)} addresses gave the file: {reasons}", where=remote.url)
