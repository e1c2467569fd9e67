"""What writes rules: a working challenge on embedded data, and teams, who come and go while a challenge runs."""

from __future__ import annotations

import json
import random
import re
import secrets
import stat
import tomllib
from importlib import resources
from pathlib import Path

import msgspec
from filelock import FileLock

from neuco_core.errors import SpecError, UsageError
from neuco_core.files import write_atomic
from neuco_core.plugins.catalog import load_dataset, load_task
from neuco_extensions.challenge.rules import RULES, TEAM_ID, Team, load_challenge, token_hash

LOCK = ".teams.lock"
# The hidden tasks of ``example.toml``, and the tasks of the embedded dataset that they are made of.
TASKS = {
    "biomass": "mini_biomass_mean",
    "crops": "mini_crops",
    "forest": "mini_landcover_forest",
    "heat": "mini_heatisland_mean",
}


def write_example(folder: Path) -> None:
    """Rules, ids and labels of a small challenge; nothing is overwritten."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError("the folder is not empty", where=folder, hint="Name another one: nothing is overwritten")
    ids = sorted(load_dataset("mini").ids())
    labelled: set[str] = set()
    for name, task in TASKS.items():
        labels = load_task(task).labels()
        labelled |= set(labels.ids)
        lines = [f"{sample},{float(value)!r}" for sample, value in zip(labels.ids, labels.values, strict=True)]
        write_atomic(folder / f"private/labels/{name}.csv", _text(["id,label", *lines]))
    used = random.Random(1).sample(sorted(labelled), len(labelled) // 2)  # noqa: S311 - of an example, and not secret
    write_atomic(folder / "private/dev-ids.txt", _text(sorted(used)))
    write_atomic(folder / "ids.txt", _text(ids))
    text = resources.files(__package__).joinpath("example.toml").read_text(encoding="utf-8")
    name = re.sub(r"[^a-z0-9]", "-", folder.resolve().name.lower()).strip("-") or "first"
    write_atomic(folder / RULES, text.replace('id = "first"', f'id = "{name}"').encode())
    (folder / "private").chmod(0o700)
    load_challenge(folder)


def _text(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def add_team(folder: str | Path, name: str, title: str, *, host: bool = False) -> str:
    """Enter a team into the rules; gives its token, which is shown once and stored nowhere."""
    path = Path(folder, RULES)
    if not re.fullmatch(TEAM_ID, name):
        expected = "at most 40 of a-z, 0-9, _ and -, the first a letter or digit"
        hint = "How people call the team is --title"
        raise UsageError("bad name of a team", expected=expected, got=repr(name), hint=hint)
    load_challenge(folder)
    with FileLock(Path(folder, LOCK)):  # two who add a team at once would lose one of them
        if name in load_challenge(folder).teams:
            hint = f"If its token is lost, make a new one: neuco challenge team {folder} {name} --new-token"
            raise UsageError(f"there is a team {name!r} already", where=path, hint=hint)
        token = secrets.token_urlsafe(32)
        try:
            team = msgspec.convert({"title": title, "token": token_hash(token), "host": host}, Team)
        except msgspec.ValidationError as error:
            raise SpecError("bad title of a team", expected="1 to 200 characters", got=f"{len(title)}") from error
        lines = [f"\n[teams.{name}]", f"title = {json.dumps(title, ensure_ascii=False)}", f'token = "{team.token}"']
        if host:
            lines.append("host = true")
        text = "\n".join(["", *lines, ""])
        _write(path, path.read_bytes().rstrip(b"\n") + text.encode(errors="surrogatepass"))
    return token


def renew_token(folder: str | Path, name: str) -> str:
    """A new token of a team; the old one is worth nothing from now on."""
    path = Path(folder, RULES)
    load_challenge(folder)
    with FileLock(Path(folder, LOCK)):
        old, token = load_challenge(folder).team(name).token, secrets.token_urlsafe(32)
        _write(path, path.read_bytes().replace(old.encode(), token_hash(token).encode()))
    return token


def _write(path: Path, whole: bytes) -> None:
    try:
        tomllib.loads(whole.decode())
    except ValueError as error:
        raise SpecError(f"a title that TOML cannot hold: {error}", where=path) from error
    mode = stat.S_IMODE(path.stat().st_mode)  # hosts may have hidden the file from others
    write_atomic(path, whole)
    path.chmod(mode)
