"""Teams come and go while a challenge runs: they are entered into the rules, and get a new token for a lost one."""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path

import msgspec

from neuco_core.challenge.rules import RULES, TEAM_ID, Team, load_challenge, token_hash
from neuco_core.errors import NeucoError, SpecError, UsageError
from neuco_core.fetch.cache import exclusive
from neuco_core.files import write_atomic


def add_team(folder: str | Path, name: str, title: str, *, host: bool = False) -> str:
    """Enter a team into the rules; gives its token, which is shown once and stored nowhere."""
    path = Path(folder, RULES)
    if not re.fullmatch(TEAM_ID, name):
        expected = "at most 40 of a-z, 0-9, _ and -, the first a letter or digit"
        hint = "How people call the team is --title"
        raise UsageError("bad name of a team", expected=expected, got=repr(name), hint=hint)
    load_challenge(folder)
    with exclusive(Path(folder)):  # two who add a team at once would lose one of them
        if name in load_challenge(folder).teams:
            hint = f"If its token is lost, make a new one: neuco challenge team {folder} {name} --new-token"
            raise UsageError(f"there is a team {name!r} already", where=path, hint=hint)
        token = new_token()
        try:
            team = msgspec.convert({"title": title, "token": token_hash(token), "host": host}, Team)
        except msgspec.ValidationError as error:
            raise SpecError("bad title of a team", expected="1 to 200 characters", got=f"{len(title)}") from error
        shown = json.dumps(team.title, ensure_ascii=False)
        lines = [f"\n[teams.{name}]", f"title = {shown}", f'token = "{team.token}"', *(["host = true"] if host else [])]
        before = path.read_bytes()
        write_atomic(path, before.rstrip(b"\n") + b"\n" + "\n".join(lines).encode() + b"\n")
        try:
            load_challenge(folder)
        except NeucoError:
            write_atomic(path, before)  # a title that TOML cannot hold
            raise
    return token


def renew_token(folder: str | Path, name: str) -> str:
    """A new token of a team; the old one is worth nothing from now on."""
    path = Path(folder, RULES)
    load_challenge(folder)
    with exclusive(Path(folder)):
        old, token = load_challenge(folder).team(name).token, new_token()
        write_atomic(path, path.read_bytes().replace(old.encode(), token_hash(token).encode()))
    return token


def new_token() -> str:
    return secrets.token_urlsafe(32)
