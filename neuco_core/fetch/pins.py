"""Pins: checksums that somebody verified for sources whose plugin declares none.

One file holds them: ``registry/pins.json`` in a checkout (it ships with the package), or ``pins.json`` in the
user's configuration folder, or whatever ``NEUCO_PINS`` names. A hash that a plugin declares always wins.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from neuco_core import paths
from neuco_core.errors import DataError, UnpinnedError
from neuco_core.fetch.cache import config_dir, exclusive, write_json
from neuco_core.fields import SHA256
from neuco_core.jsonio import read_strictly
from neuco_core.specs import Remote

LARGEST = 10_000_000  # bytes
UNREGISTERED = "Declare its sha256; for the labels of a registered task, run `neuco data pin TASK`"


@dataclass(frozen=True)
class Pin:
    """Which bytes are the right ones, according to ``source``: a pins file, or "" for the plugin itself."""

    sha256: str
    size: int | None = None
    source: str = ""


@dataclass(frozen=True)
class PinsFile:
    """A pins file: its entries by address."""

    pins: dict[str, Pin]
    schema: Literal[1]


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
        owner = owner_of(remote)
        hint = f"Run `neuco data pin {owner}` to fetch, inspect and pin it" if owner else UNREGISTERED
        what = "unpinned: nobody has verified the checksum of this source yet"
        raise UnpinnedError(what, where=remote.url, hint=hint)
    return pin


def owner_of(remote: Remote) -> str:
    """The arguments of ``neuco data pin`` for a source, so that the command in a hint can be copied; "" if unknown."""
    from neuco_core.plugins.catalog import list_methods, list_tasks

    for task in list_tasks():
        if task.source == remote:
            return task.id
    for method in list_methods():
        if remote in method.weights.values():
            return f"--method {method.id}"
    return ""


def read_pins(path: Path) -> dict[str, Pin]:
    """The pins of a file by address; no file, no pins."""
    if not path.exists():
        return {}
    content = read_strictly(path, PinsFile, "a file of pins", most=LARGEST, hint="Repair or delete the file")
    for url, pin in content.pins.items():
        if not SHA256.fullmatch(pin.sha256) or pin.size is None or pin.size < 0:
            raise DataError(f"bad pin of {url}", where=path, expected="sha256 and size", got=repr(pin))
    return {url: replace(pin, source=str(path)) for url, pin in content.pins.items()}


def write_pin(url: str, sha256: str, size: int) -> None:
    """Add or replace a pin."""
    path = pins_file()
    with exclusive(path.parent):
        pins = {**read_pins(path), url: Pin(sha256, size)}
        values = {key: {"sha256": pin.sha256, "size": pin.size} for key, pin in pins.items()}
        write_json(path, {"pins": values, "schema": 1})
