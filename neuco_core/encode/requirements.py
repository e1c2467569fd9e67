"""What a method needs before it runs: its parameters, its packages, and cubes with its bands and seasons.

A plugin may lock its environment: ``requirements.txt`` in its folder, every package pinned and hashed, wheels only.

    timm==1.0.30 --hash=sha256:c8e2…

Nothing else is allowed in it: what pip would also take (addresses, other files, options, other indexes) could bring
code that nobody has pinned. It is installed without dependencies, so it names all of them that neuco itself does not
bring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuco_core.cubes.cubes import CubeSource, select
from neuco_core.env import installed_version, requirement_name
from neuco_core.errors import DataError, DependencyError, UsageError
from neuco_core.files import read_limited
from neuco_core.plugins.code_key import StandIn, folder_of
from neuco_core.text import join_names, shorten

if TYPE_CHECKING:
    from neuco_core.specs import Dataset, Method

FILE = "requirements.txt"
LARGEST = 1_000_000  # bytes
MOST = 200  # packages
PINNED = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
EXPECTED = "NAME==VERSION --hash=sha256:… (64 digits)"
HINT = "Write it with `uv pip compile --generate-hashes`, or give the embeddings as a file: --embeddings URL"


def full_params(method: Method, params: Mapping[str, Any]) -> dict[str, Any]:
    """The method's parameters with the given ones in their place; a name that the encoder does not know is an error."""
    if method.encoder is None:
        raise UsageError(f"method {method.id!r} reads a file and has no encoder")
    merged = {**method.params, **params}
    signature = inspect.signature(method.encoder)
    try:
        signature.bind(**merged, **method.weights)
    except TypeError:
        known = ", ".join(name for name in signature.parameters if name not in method.weights) or "none"
        unknown = [name for name in merged if name not in signature.parameters or name in method.weights]
        unknown += [name for name in method.weights if name not in signature.parameters]
        raise UsageError(f"method {method.id!r} has no parameter {join_names(unknown)}; it has: {known}") from None
    for name, value in params.items():  # of the type of the method's own; a whole number will do for any number
        default = method.params.get(name)
        if default is not None and type(value) is not type(default) and (type(value), type(default)) != (int, float):
            words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[type(default)]
            raise UsageError(f"bad parameter {name} of method {method.id!r}", expected=words, got=repr(value))
    return merged


def open_cubes(method: Method, dataset: Dataset) -> CubeSource:
    """The dataset's cubes, if it has any, they have the bands that the method needs, and its packages are there."""
    if dataset.cubes is None:
        raise DataError(
            f"dataset {dataset.id!r} has no cubes, so the encoder {method.id!r} cannot be run on it",
            hint="Give a file of embeddings instead, or choose a method that brings one",
        )
    if dataset.bands:  # known without opening anything
        check_bands(method, dataset.id, dataset.bands)
    check_packages(method)  # after the bands: no package helps against a dataset that will not do
    source = dataset.cubes()
    check_bands(method, dataset.id, source.bands)
    absent = [season for season in method.seasons if season not in source.seasons]
    if absent:
        got = ", ".join(source.seasons)
        raise DataError(f"method {method.id!r} needs the seasons {join_names(absent)}", where=dataset.id, got=got)
    if isinstance(method.encoder, StandIn):
        return source  # it reads what was made elsewhere
    return select(source, method.bands, method.seasons)  # others are not read, and the encoder does not see them


def check_bands(method: Method, dataset_id: str, bands: tuple[str, ...]) -> None:
    """A method names whole modalities or single bands; all of them must be there."""
    modalities = {band.partition("/")[0] for band in bands}
    missing = [name for name in method.bands if name not in bands and name not in modalities]
    if missing:
        raise DataError(
            f"method {method.id!r} needs {len(method.bands)} bands and dataset {dataset_id!r} has {len(bands)}: "
            f"{len(missing)} are missing ({join_names(missing)})",
            hint=f"`neuco show {dataset_id}` lists its bands",
        )


def check_packages(method: Method) -> None:
    """Raise, with what to run, unless the method's packages are installed, in the versions that its lock names."""
    if isinstance(method.encoder, StandIn):
        return  # it ran elsewhere, where they are
    path = lock_of(method)
    lacking = []
    for item in read_lock(path) if path else ():
        here = installed_version(item.name)
        if public(here) != public(item.version):
            lacking.append(f"{item.name} {item.version}" + (f" (here: {here})" if here else ""))
    if lacking:
        what = f"method {method.id!r} needs {join_names(lacking)}, as locked"
        # Wheels only, so that no code of theirs runs while they are installed.
        command = f"python -m pip install --require-hashes --only-binary :all: --no-deps -r {path}"
        raise DependencyError(what, where=path, hint=f"Install them with: {command}")
    for requirement in method.requires:
        name = requirement_name(requirement)
        if not installed_version(name):
            hint = f"Install it with: pip install '{requirement}'"
            raise DependencyError(f"method {method.id!r} needs the package {name}", hint=hint)


def lock_of(method: Method) -> Path | None:
    """The lock in the folder of the plugin that registers a method, if there is one."""
    folder = folder_of(method)
    path = folder / FILE if folder else None
    return path if path and path.is_file() else None


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
    plain = re.sub(r"(^|[ \t])#.*", "", "\n".join(text.splitlines()), flags=re.MULTILINE)
    number = 1
    for line in re.split(r"(?<!\\)\n", plain):  # one that ends with a backslash goes on in the next
        if words := line.replace("\\\n", " ").split():
            locked = _package(words, f"{path.parent.name}/{path.name}, line {number}")
            if locked.name in packages:
                raise DataError("a package twice", where=f"{path}, line {number}", got=locked.name)
            packages[locked.name] = locked
        number += line.count("\n") + 1
    if len(packages) > MOST:
        raise DataError("too many packages", where=path, expected=f"at most {MOST}", got=len(packages), hint=HINT)
    return tuple(packages.values())


def _package(words: list[str], where: str) -> Locked:
    pin, *options = words
    match = PINNED.fullmatch(pin)
    hashes = [HASH.fullmatch(option) for option in options]
    if match is None or not all(hashes):
        odd = pin if match is None else next(option for option in options if not HASH.fullmatch(option))
        raise DataError("not a locked package", where=where, expected=EXPECTED, got=shorten(odd), hint=HINT)
    if not hashes:
        raise DataError("a package without a hash", where=where, expected=EXPECTED, got=pin, hint=HINT)
    return Locked(requirement_name(match[1]), match[2], tuple(found[1] for found in hashes if found))


def public(version: str) -> str:
    """A version without the mark of a special build: ``2.13.0+cpu`` is 2.13.0 for those who use it."""
    return version.partition("+")[0]
