"""Commit and reveal: at the start salted hashes of rules, labels and seeds are published, at the end what they are of.

A commitment is the sha256 of a secret salt and the content: nobody can find a seed of 32 bits by trying them all, and
the hosts can change nothing without being seen.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from neuco_core.errors import DataError, UsageError
from neuco_core.fields import Sha256
from neuco_core.files import canonical, dump, hashed, read_strictly, write_atomic
from neuco_extensions.challenge.evaluate import Hidden, hidden
from neuco_extensions.challenge.rules import Challenge

SECRETS = "secrets.json"
SEAL = "seal.json"
PUBLIC_RULES = "rules.json"
LARGEST = 10_000_000
T = TypeVar("T")


class Secrets(Struct, frozen=True, forbid_unknown_fields=True):
    """By phase the seed of its splits, and by commitment its salt. This file decides everything: guard it."""

    seeds: dict[str, int]
    salts: dict[str, Sha256]


class Seal(Struct, frozen=True, forbid_unknown_fields=True):
    """What is published at the start."""

    challenge: str
    commitments: dict[str, Sha256]


def contents(challenge: Challenge, seeds: dict[str, int]) -> dict[str, str]:
    """All that is committed to. Tasks are numbered, since even their names are hidden."""
    values: dict[str, Any] = {"rules": challenge.rules()}
    for name in challenge.phases:
        values[f"ids/{name}"] = hashed(challenge.ids(name))
        values[f"used/{name}"] = hashed(sorted(challenge.used(name)))
        values[f"seed/{name}"] = seeds.get(name)
    names = sorted({task for phase in challenge.phases.values() for task in phase.tasks})
    for number, name in enumerate(names, 1):
        task = challenge.task(name)
        values[f"labels/{number}"] = [name, task.version, task.source.sha256]
    return {name: canonical(value) for name, value in values.items()}


def commitment(salt: str, content: str) -> str:
    return hashlib.sha256(bytes.fromhex(salt) + content.encode()).hexdigest()


def unsealed(challenge: Challenge) -> list[Hidden]:
    """What would be sealed, by phase. Labels that cannot be read are better met now than with the first submission."""
    if (challenge.private / SECRETS).exists() or (challenge.published / SEAL).exists():
        hint = "A challenge is sealed once: copy its rules and labels into a new folder to change them"
        raise UsageError("the challenge is sealed already", where=challenge.folder, hint=hint)
    return [hidden(challenge, name, 0) for name in challenge.phases]


def seal(challenge: Challenge) -> Seal:
    """Draw seeds and salts, and publish the commitments. It happens once."""
    unsealed(challenge)
    path = challenge.private / SECRETS
    seeds = {name: secrets.randbelow(2**32) for name in challenge.phases}
    sealed = contents(challenge, seeds)
    salts = {name: secrets.token_hex(32) for name in sealed}
    made = Seal(challenge.id, {name: commitment(salts[name], content) for name, content in sealed.items()})
    path.parent.mkdir(parents=True, exist_ok=True)
    # The user's alone from its first byte.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(dump(msgspec.to_builtins(Secrets(seeds, salts))))
        file.flush()
        os.fsync(file.fileno())
    write_atomic(challenge.published / PUBLIC_RULES, dump(public_rules(challenge)))
    write_atomic(challenge.published / SEAL, dump(msgspec.to_builtins(made)))
    return made


def public_rules(challenge: Challenge) -> dict[str, Any]:
    """What of the rules is published with the seal: teams may still join."""
    return {name: value for name, value in challenge.public().items() if name != "teams"}


def read_secrets(challenge: Challenge) -> Secrets:
    return _read(challenge.private / SECRETS, Secrets)


def _read(path: Path, kind: type[T]) -> T:
    if not path.exists():
        hint = f"Run: neuco challenge seal {path.parents[1]}"
        raise DataError("the challenge is not sealed yet", where=path, hint=hint)
    value = read_strictly(path, kind, f"a {kind.__name__.lower()} file", most=LARGEST)
    if dump(msgspec.to_builtins(value)) != path.read_bytes():
        raise DataError("edited since it was written", where=path)
    return value


def check_seal(challenge: Challenge, secret: Secrets) -> None:
    """Raise unless everything that was committed to is still the same."""
    published, now = _read(challenge.published / SEAL, Seal), contents(challenge, secret.seeds)
    broken = []
    for name in sorted(now.keys() | published.commitments.keys() | secret.salts.keys()):
        salt = secret.salts.get(name, "")
        if name not in now or commitment(salt, now[name]) != published.commitments.get(name):
            broken.append(name)
    if broken or published.challenge != challenge.id:
        hint = "Bring back what was sealed: a change needs a new challenge; `neuco challenge amend` extends a deadline"
        what = f"changed since it was sealed: {', '.join(broken) or 'the name'}"
        raise DataError(what, where=challenge.folder, hint=hint)
