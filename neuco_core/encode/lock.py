"""A plugin's locked environment: ``requirements.txt`` in its folder, every package pinned and hashed, wheels only.

    timm==1.0.30 --hash=sha256:c8e2…

Nothing else is allowed in it: what pip would also take (addresses, other files, options, other indexes) could bring
code that nobody has pinned. It is installed without dependencies, so it names all of them that neuco itself does not
bring.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from neuco_core.env import requirement_name
from neuco_core.errors import DataError, DependencyError
from neuco_core.fetch.fetch import require_pin
from neuco_core.files import read_limited
from neuco_core.text import join_names, shorten

if TYPE_CHECKING:
    from neuco_core.specs import Method

FILE = "requirements.txt"
LARGEST = 1_000_000  # bytes
MOST = 200  # packages
PINNED = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
EXPECTED = "NAME==VERSION --hash=sha256:… (64 digits)"
HINT = "Write it with `uv pip compile --generate-hashes`, or give the embeddings as a file: --embeddings URL"


@dataclass(frozen=True)
class Locked:
    """One package of a lock: ``name`` in its normal form, and the hashes of the wheels that may be installed."""

    name: str
    version: str
    hashes: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join([f"{self.name}=={self.version}", *(f"--hash=sha256:{digest}" for digest in self.hashes)])


def read_lock(path: Path) -> tuple[Locked, ...]:
    """The packages of a file; anything that pip would read otherwise is an error with its line."""
    try:
        text = read_limited(path, LARGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the lock cannot be read: {error}", where=path) from error
    packages: dict[str, Locked] = {}
    for number, line in _lines(text):
        locked = _package(line, f"{path.parent.name}/{path.name}, line {number}")
        if locked.name in packages:
            raise DataError("a package twice", where=f"{path}, line {number}", got=locked.name)
        packages[locked.name] = locked
    if len(packages) > MOST:
        raise DataError("too many packages", where=path, expected=f"at most {MOST}", got=len(packages), hint=HINT)
    return tuple(packages.values())


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with those that they are continued by, without comments, each with the number of its first."""
    whole, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        plain = re.sub(r"(^|\s)#.*$", "", line).strip()
        first = first or number
        whole += " " + plain.removesuffix("\\")
        if plain.endswith("\\"):
            continue
        if whole.strip():
            yield first, whole.strip()
        whole, first = "", 0
    if whole.strip():
        yield first, whole.strip()


def _package(line: str, where: str) -> Locked:
    pin, *options = line.split()
    match = PINNED.fullmatch(pin)
    hashes = [HASH.fullmatch(option) for option in options]
    if match is None or not all(hashes):
        odd = pin if match is None else next(option for option in options if not HASH.fullmatch(option))
        raise DataError("not a locked package", where=where, expected=EXPECTED, got=shorten(odd), hint=HINT)
    if not hashes:
        raise DataError("a package without a hash", where=where, expected=EXPECTED, got=pin, hint=HINT)
    return Locked(requirement_name(match[1]), match[2], tuple(found[1] for found in hashes if found))


def lock_of(method: Method) -> Path | None:
    """The lock in the folder of the plugin that registers a method, if there is one."""
    if method.origin is None:
        return None
    source = Path(method.origin.source)
    if not source.is_dir():
        from importlib.util import find_spec

        try:
            spec = find_spec(method.origin.source.partition(":")[0])
        except (ImportError, ValueError):
            return None
        source = Path(spec.origin).parent if spec and spec.origin else source
    path = source / FILE
    return path if path.is_file() else None


def locked_versions(method: Method) -> dict[str, str]:
    """Versions by package, as the method's lock has them; none without one."""
    path = lock_of(method)
    return {item.name: item.version for item in read_lock(path)} if path else {}


def public(version: str) -> str:
    """A version without the mark of a special build: ``2.13.0+cpu`` is 2.13.0 for those who use it."""
    return version.partition("+")[0]


def check_lock(method: Method) -> None:
    """Raise unless what the method's lock names is installed here, in its versions."""
    path = lock_of(method)
    if path is None:
        return
    lacking = []
    for item in read_lock(path):
        try:
            installed = metadata.version(item.name)
        except metadata.PackageNotFoundError:
            installed = ""
        if public(installed) != public(item.version):
            lacking.append(f"{item.name} {item.version}" + (f" (here: {installed})" if installed else ""))
    if lacking:
        what = f"method {method.id!r} needs {join_names(lacking)}, as locked"
        raise DependencyError(what, where=path, hint=f"Install them with: {command(path)}")


def weight_hashes(method: Method) -> dict[str, str]:
    """Which bytes the weights are, without fetching them; empty for a method that has none."""
    return {name: require_pin(remote).sha256 for name, remote in method.weights.items()}


def command(path: Path) -> str:
    """What installs a lock; wheels only, so that no code of theirs runs while it is installed."""
    return f"python -m pip install --require-hashes --only-binary :all: --no-deps -r {path}"
