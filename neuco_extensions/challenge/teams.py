"""Teams come and go while a challenge runs: they are entered into the rules, and get a new token for a lost one."""

from __future__ import annotations

import json
import re
import secrets
import stat
import tomllib
from pathlib import Path

import msgspec
from filelock import FileLock

from neuco_core.errors import SpecError, UsageError
from neuco_core.files import write_atomic
from neuco_extensions.challenge.rules import RULES, TEAM_ID, Team, load_challenge, token_hash

LOCK = ".teams.lock"


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
        token = new_token()
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
        old, token = load_challenge(folder).team(name).token, new_token()
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


def new_token() -> str:
    return secrets.token_urlsafe(32)
