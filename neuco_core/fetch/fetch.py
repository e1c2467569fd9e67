"""``fetch``: turn a remote into a local path with verified bytes, or fail.

Which bytes are the right ones its plugin declares, and otherwise a pin: a checksum that somebody verified. One file
holds the pins: ``registry/pins.json`` in a checkout (it ships with the package), or ``pins.json`` in the user's
configuration folder, or whatever ``NEUCO_PINS`` names. A hash that a plugin declares always wins.
"""

from __future__ import annotations

import importlib.resources
import os
import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from neuco_core.env import layers, registry_dir, user_registry
from neuco_core.errors import ChecksumError, DataError, FetchError, NeucoError, OfflineError, UnpinnedError, UsageError
from neuco_core.fetch import cache
from neuco_core.fetch.transfer import Settings, download, shown
from neuco_core.fields import SHA256
from neuco_core.files import read_strictly
from neuco_core.specs import Dataset, Method, Remote, Task

LARGEST = 10_000_000  # bytes of a file of pins
T = TypeVar("T")
NOT_DECLARED = "not the declared file"
UNREGISTERED = "Declare its sha256; for the labels of a registered task, run `neuco data pin TASK`"


def fetch(remote: Remote, *, progress: bool | None = None) -> Path:
    """The verified file of a remote.

    Files of packages (``pkg://``) and ``file://`` are hashed where they are, every time. Everything else is
    fetched once into the cache and hashed there every time. ``progress=None`` shows a bar on a terminal. An address
    on this machine goes before the others, which are tried in their order: the bytes are the same. A branch may have
    moved on, so the commit at which its file was pinned is asked first; that may be gone, as owners rewrite histories.
    """
    pin = require_pin(remote)
    urls: list[str] = []
    for url in remote.urls:
        urls += [pin.url, url] if pin.url not in ("", url) and unrevised(url) == unrevised(pin.url) else [url]

    def read(url: str) -> Path:
        if not is_local(url):  # also what a mirror gives is looked for by the name in the first address
            return _cached(url, pin, cache.entry(pin.sha256, file_name(remote.url)), progress)
        verify(resolve(url), pin, url)
        return resolve(url)

    return _first_answer(sorted(urls, key=lambda url: not is_local(url)), read)


def unrevised(url: str) -> str:
    """An address in a repository without its branch, tag or commit."""
    return re.sub("@[^/]+/", "@/", url, count=1)


def fetch_unverified(remote: Remote, folder: Path) -> tuple[Path, str]:
    """The file of the first address that answers, unchecked, and the address, with the commit for its branch."""
    settings = Settings.from_environment()
    path = folder / file_name(remote.url)

    def read(url: str) -> tuple[Path, str]:
        if is_local(url):
            return resolve(url), url
        if settings.offline:
            raise OfflineError("a pin needs the network, and NEUCO_OFFLINE is set", where=shown(url))
        commit = download(url, path, settings, size=remote.size, progress=None).commit
        return path, re.sub("@[^/]+/", f"@{commit}/", url, count=1) if commit and url.startswith("hf:") else url

    return _first_answer(remote.urls, read)


def _first_answer(urls: Sequence[str], read: Callable[[str], T]) -> T:
    """What the first address gives that can be read; one error for all of them: their common one, or of their kind."""
    failures: list[NeucoError] = []
    for url in urls:
        try:
            return read(url)
        except (FetchError, DataError) as error:
            failures.append(error)
    if len({error.what for error in failures}) == 1:
        raise failures[0]
    kinds = {type(error) for error in failures}
    kind = kinds.pop() if len(kinds) == 1 else FetchError
    reasons = "; ".join(str(error) for error in failures)
    raise kind(f"none of the {len(failures)} addresses delivered the file: {reasons}", where=shown(urls[0]))


def is_local(url: str) -> bool:
    """Whether an address is on this machine, so that nothing is copied into the cache."""
    return urlsplit(url).scheme in ("file", "pkg")


def cached(remote: Remote) -> Path | None:
    """The remote's file if the cache has it intact; uses no network and changes nothing."""
    pin = find_pin(remote)
    path = cache.entry(pin.sha256, file_name(remote.url)) if pin else None
    return path if path and cache.intact(path) else None


def _cached(url: str, pin: Pin, target: Path, progress: bool | None) -> Path:
    settings = Settings.from_environment()
    if _usable(target):
        return target
    if settings.offline:
        hint = "Unset NEUCO_OFFLINE and run `neuco data fetch TASK` once, or link a local copy with `neuco data link`"
        raise OfflineError("not in the cache, and NEUCO_OFFLINE is set", where=shown(url), hint=hint)
    with cache.exclusive(target.parents[1]):
        if _usable(target):  # another process may have fetched it while this one waited
            return target
        with cache.scratch() as folder:
            path = folder / target.name
            resumed = download(url, path, settings, size=pin.size, progress=progress).resumed
            try:
                verify(path, pin, shown(url))
            except ChecksumError:
                if not resumed:
                    raise
                # The parts may be of two versions of the file; only a whole one proves that the server's is wrong.
                download(url, path, settings, size=pin.size, progress=progress)
                verify(path, pin, shown(url))
            return cache.store(path, target)


def _usable(path: Path) -> bool:
    """Whether the cache has the file; a corrupt one is removed."""
    usable = cache.intact(path)
    if not usable and path.is_file():
        cache.discard(path)
    return usable


def file_name(url: str) -> str:
    """The last part of an address, as a name that is safe in any folder."""
    name = PurePosixPath(unquote(urlsplit(url).path)).name
    safe = (char if char.isascii() and (char.isalnum() or char in "._-+") else "_" for char in name)
    return "".join(safe).lstrip(".")[-120:] or "file"


def resolve(url: str) -> Path:
    """The path of a local address, ``pkg://package/path`` or ``file:///path``; an error if there is no such file."""
    if not url.startswith("pkg://"):
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise FetchError("bad address of a local file", where=url, expected="file:///absolute/path")
        path = Path(unquote(parts.path))
        if not path.is_file():
            raise FetchError("no such file", where=url)
        return path
    package, *names = url.removeprefix("pkg://").split("/")
    if not names or not {"", ".", ".."}.isdisjoint(names):
        raise FetchError("bad address of a packaged file", where=url, expected="pkg://package/path/in/it")
    try:
        packaged = importlib.resources.files(package).joinpath(*names)
    except (ImportError, TypeError, ValueError) as error:
        hint = "Install the package that the plugin belongs to"
        raise FetchError(f"no such package {package!r}: {error}", where=url, hint=hint) from error
    if not isinstance(packaged, Path):
        # A package inside a zip file; none of the tools we support installs one.
        raise FetchError("the package is not unpacked on disk", where=url, hint="Install it with pip")
    if not packaged.is_file():
        raise FetchError("the package has no such file", where=url, hint="Install it again, or correct the address")
    return packaged


class Pin(Struct, frozen=True, forbid_unknown_fields=True):
    """Which bytes are the right ones, according to ``source``: a pins file, or "" for the plugin itself.

    ``url`` is the address with the commit at which they were seen, where the declared one names a branch.
    """

    sha256: str
    size: int | None = None
    url: str = ""
    source: str = ""


class PinsFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A pins file: its entries by address."""

    pins: dict[str, Pin]
    schema: Literal[1]


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
    raise ChecksumError(NOT_DECLARED, where=name, expected=expected, got=got, hint=hint)


def shipped_pins() -> Path:
    """The pins of the registry, which comes with neuco."""
    return layers(registry_dir())[-1] / "pins.json"


def user_pins() -> Path:
    """The user's own pins."""
    chosen = os.environ.get("NEUCO_PINS")
    path = Path(chosen).expanduser().absolute() if chosen else cache.config_dir() / "pins.json"
    if chosen and path.is_dir():
        hint = f"Set it to {path / 'pins.json'}, or unset it"
        raise UsageError("NEUCO_PINS is set to a folder", where=path, expected="a file", hint=hint)
    return path


def pins_file() -> Path:
    """The file for new pins: the registry's if the user may edit it, else the user's own."""
    if os.environ.get("NEUCO_PINS") or registry_dir() == user_registry():
        return user_pins()
    return shipped_pins()


def find_pin(remote: Remote, files: Sequence[Mapping[str, Pin]] = ()) -> Pin | None:
    """The declared hash of a remote, else the pinned one, else None; ``files`` are pins that were read before."""
    if remote.sha256 is not None:
        return Pin(remote.sha256, remote.size)
    shipped, user = (pins.get(remote.url) for pins in files or (read_pins(shipped_pins()), read_pins(user_pins())))
    if shipped and user and shipped.sha256 != user.sha256:
        raise DataError(
            f"two pins disagree about {remote.url}",
            where=user.source,
            expected=f"sha256 {shipped.sha256} as in {shipped.source}",
            got=user.sha256,
            hint="Delete the entry that is wrong",
        )
    return shipped or user


def find_pins(remotes: Sequence[Remote]) -> list[Pin | None]:
    """The pin of each remote; the files of pins are read once for all of them, if a remote declares no hash."""
    unknown = any(remote.sha256 is None for remote in remotes)
    files = (read_pins(shipped_pins()), read_pins(user_pins())) if unknown else ()
    return [find_pin(remote, files) for remote in remotes]


def require_pin(remote: Remote) -> Pin:
    """As ``find_pin``, but an unpinned source is an error that names the command to run."""
    from neuco_core.plugins.catalog import list_methods, list_tasks

    pin = find_pin(remote)
    if pin is not None:
        return pin
    for task in list_tasks():
        if task.source == remote:
            hint = f"Run `neuco data pin {task.id}` to download and confirm them (in Python: "
            hint += f"neuco.pin_labels({task.id!r})), or `neuco data link {task.dataset} FOLDER` to use your copy"
            raise UnpinnedError(f"the labels of {task.id} are not downloaded yet", hint=hint)
    for method in list_methods():
        if remote in method.weights.values():
            hint = f"Run `neuco data pin --method {method.id}` to download and confirm them"
            raise UnpinnedError(f"the weights of {method.id} are not downloaded yet", hint=hint)
    raise UnpinnedError("this file has no checksum", where=remote.url, hint=UNREGISTERED)


def read_pins(path: Path) -> dict[str, Pin]:
    """The pins of a file by address; no file, no pins."""
    if not path.exists():
        return {}
    content = read_strictly(path, PinsFile, "a file of pins", most=LARGEST, hint="Repair or delete the file")
    for url, pin in content.pins.items():
        if not SHA256.fullmatch(pin.sha256) or pin.size is None or pin.size < 0:
            raise DataError(f"bad pin of {url}", where=path, expected="sha256 and size", got=repr(pin))
    return {url: replace(pin, source=str(path)) for url, pin in content.pins.items()}


def write_pins(new: Mapping[str, Pin]) -> None:
    """Add or replace pins, all of them or none."""
    path = pins_file()
    with cache.exclusive(path.parent):
        values: dict[str, dict[str, str | int | None]] = {}
        for url, pin in {**read_pins(path), **new}.items():
            values[url] = {"sha256": pin.sha256, "size": pin.size} | ({"url": pin.url} if pin.url else {})
        cache.write_json(path, {"pins": values, "schema": 1})


def users() -> dict[str, list[str]]:
    """The tasks, methods and datasets that use a file, by its sha256."""
    from neuco_core.plugins.catalog import catalog

    specs = [spec for plugin in catalog().plugins.survey()[0] for _, spec in plugin.specs]  # in all their versions
    sources = [(task.label, task.source) for task in specs if isinstance(task, Task)]
    methods = [spec for spec in specs if isinstance(spec, Method)]
    sources += [(m.label, remote) for m in methods for remote in (*m.files.values(), *m.weights.values())]
    sources += [(d.label, remote) for d in specs if isinstance(d, Dataset) for remote in d.archives]
    names: dict[str, list[str]] = {}
    for name, remote in sorted(sources, key=itemgetter(0)):
        pin = find_pin(remote)
        if pin is not None:
            names.setdefault(pin.sha256, []).append(name)
    return names
