"""Pins: checksums that somebody verified for sources whose plugin declares none.

One file holds them: ``registry/pins.json`` in a checkout (it ships with the package), or ``pins.json`` in the
user's configuration folder, or whatever ``NEUCO_PINS`` names. A hash that a plugin declares always wins.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from neuco_core import paths
from neuco_core._validate import SHA256
from neuco_core.errors import DataError, UnpinnedError
from neuco_core.fetch.cache import config_dir, exclusive, writing
from neuco_core.files import read_limited, write_atomic
from neuco_core.specs import Remote

SCHEMA = 1
LARGEST = 10_000_000  # bytes
UNREGISTERED = "Declare its sha256; for the labels of a registered task, run `neuco data pin TASK`"


@dataclass(frozen=True)
class Pin:
    """Which bytes are the right ones, according to ``source``: a pins file, or "" for the plugin itself."""

    sha256: str
    size: int | None = None
    source: str = ""


def shipped_file() -> Path:
    """The pins of the registry, which comes with neuco."""
    return paths.layers(paths.registry_dir())[-1] / "pins.json"


def user_file() -> Path:
    """The user's own pins."""
    chosen = os.environ.get("NEUCO_PINS")
    return Path(chosen).expanduser().absolute() if chosen else config_dir() / "pins.json"


def pins_file() -> Path:
    """The file for new pins: the registry's if the user may edit it, else the user's own."""
    own_registry = paths.checkout() is not None or os.environ.get("NEUCO_REGISTRY")
    return shipped_file() if own_registry and not os.environ.get("NEUCO_PINS") else user_file()


def find_pin(remote: Remote) -> Pin | None:
    """The hash that a remote must have: the declared one, else the pinned one, else None."""
    if remote.sha256 is not None:
        return Pin(remote.sha256, remote.size)
    shipped, user = read_pins(shipped_file()).get(remote.url), read_pins(user_file()).get(remote.url)
    if shipped and user and shipped.sha256 != user.sha256:
        raise DataError(
            f"two pins disagree about {remote.url}",
            where=user.source,
            expected=f"sha256 {shipped.sha256} as in {shipped.source}",
            got=user.sha256,
            hint="Delete the entry that is wrong",
        )
    return shipped or user


def require_pin(remote: Remote) -> Pin:
    """As ``find_pin``, but an unpinned source is an error that names the command to run."""
    pin = find_pin(remote)
    if pin is None:
        owner = task_of(remote) or _method_of(remote)
        hint = f"Run `neuco data pin {owner}` to fetch, inspect and pin it" if owner else UNREGISTERED
        what = "unpinned: nobody has verified the checksum of this source yet"
        raise UnpinnedError(what, where=remote.url, hint=hint)
    return pin


def task_of(remote: Remote) -> str | None:
    """The task that a source belongs to, so that the command in a hint can be copied as it is."""
    from neuco_core.plugins.catalog import list_tasks

    return next((task.id for task in list_tasks() if task.source == remote), None)


def _method_of(remote: Remote) -> str:
    """The same for weights of a method, as an option."""
    from neuco_core.plugins.catalog import list_methods

    return next((f"--method {method.id}" for method in list_methods() if remote in method.weights.values()), "")


def read_pins(path: Path) -> dict[str, Pin]:
    """The pins of a file by address; no file, no pins."""
    try:
        content = json.loads(read_limited(path, LARGEST))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, MemoryError, DataError) as error:
        reason = error.what if isinstance(error, DataError) else error
        raise DataError(f"the pins cannot be read: {reason}", where=path, hint="Repair or delete the file") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA or not isinstance(content.get("pins"), dict):
        raise DataError("bad pins file", where=path, expected=f'an object with "schema": {SCHEMA} and "pins"')
    return {url: _pin(path, url, value) for url, value in content["pins"].items()}


def _pin(path: Path, url: str, value: object) -> Pin:
    sha256 = value.get("sha256") if isinstance(value, Mapping) else None
    size = value.get("size") if isinstance(value, Mapping) else None
    bad_size = isinstance(size, bool) or not isinstance(size, int) or size < 0
    if not isinstance(sha256, str) or not SHA256.fullmatch(sha256) or bad_size:
        raise DataError(f"bad pin of {url}", where=path, expected="sha256 and size", got=repr(value))
    return Pin(sha256, size, str(path))


def write_pin(url: str, sha256: str, size: int) -> Path:
    """Add or replace a pin; gives the file it is in."""
    path = pins_file()
    with exclusive(path.parent):
        pins = {**read_pins(path), url: Pin(sha256, size)}
        values = {key: {"sha256": pin.sha256, "size": pin.size} for key, pin in pins.items()}
        content = {"pins": values, "schema": SCHEMA}
        text = json.dumps(content, allow_nan=False, ensure_ascii=False, indent=2, sort_keys=True)
        with writing(path.parent):
            write_atomic(path, (text + "\n").encode())
    return path
