"""What anybody may read: the page and its parts, the rules' public side, ids, boards, and the published files."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from neuco_core.boards.model import Board, read_part
from neuco_extensions.challenge.board import live_board
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.rules import Challenge
from neuco_extensions.challenge.web.threads import Hosts

OWN, BOARDS = "neuco_extensions.challenge.web", "neuco_core.site"
# Address → package, file and type. The look is that of the boards' site.
PAGE = {
    "/": (OWN, "page/index.html", "text/html"),
    "/assets/challenge.css": (OWN, "page/challenge.css", "text/css"),
    "/assets/challenge.js": (OWN, "page/challenge.js", "text/javascript"),
    "/assets/upload.js": (OWN, "page/upload.js", "text/javascript"),
    "/assets/style.css": (BOARDS, "assets/style.css", "text/css"),
    "/assets/theme.js": (BOARDS, "assets/theme.js", "text/javascript"),
    "/assets/icon.svg": (BOARDS, "assets/icon.svg", "image/svg+xml"),
}


async def page_file(request: Request) -> Response:
    package, name, kind = PAGE[request.url.path]
    data = resources.files(package).joinpath(name).read_bytes()
    return Response(data, media_type=kind, headers={"cache-control": "no-cache"})


def facts(challenge: Challenge) -> dict[str, Any]:
    """The public rules, the server's clock, and the names of the published files."""
    return {**challenge.public(), "now": datetime.now(UTC).isoformat(), "files": sorted(_files(challenge))}


def _files(challenge: Challenge) -> dict[str, str]:
    """Name → path of each published file: regular ones, neither links nor folders, nor hidden ones, half written."""
    try:
        with os.scandir(challenge.published) as entries:
            seen = [own for own in entries if not own.name.startswith(".") and own.is_file(follow_symlinks=False)]
            return {own.name: own.path for own in seen}
    except FileNotFoundError:
        return {}


def file_answer(challenge: Challenge, name: str) -> Response | None:
    path = _files(challenge).get(name)
    return None if path is None else FileResponse(path, media_type="application/json")


def ids(challenge: Challenge, phase: str) -> str | None:
    """The ids that a phase asks for, one a line; not before it starts."""
    if datetime.now(UTC) < challenge.phase(phase).start:
        return None
    return "\n".join(challenge.ids(phase)) + "\n"


class Boards:
    """Boards as the rules let them be seen. They change at ticks only, so each is made once a tick."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._made: dict[str, tuple[float, dict[str, Any] | None]] = {}
        self._lock = asyncio.Lock()  # many readers at a tick must not make it many times

    async def of(self, phase: str) -> dict[str, Any] | None:
        """None if the rules hide it until the end."""
        tick = time.time() // self._hosts.challenge.limits.tick
        async with self._lock:
            if self._made.get(phase, (None,))[0] != tick:
                self._made[phase] = tick, await self._hosts.run(lambda host: _board(host, phase))
            return self._made[phase][1]


def _board(host: Host, phase: str) -> dict[str, Any] | None:
    final = host.challenge.published / f"board-{phase}.json"
    if final.exists():
        return {"phase": phase, "final": True, "teams": _teams(read_part(final, Board, "board"))}
    if not host.challenge.phase(phase).visible:
        return None
    return {"phase": phase, "final": False, "teams": _teams(live_board(host, phase))}


def _teams(board: Board) -> list[dict[str, Any]]:
    return [
        {"rank": row.rank, "team": row.method, "title": row.title, "host": row.baseline, "note": row.note}
        | {name: row.values.get(name) for name in ("mean_q", "submissions")}
        for row in board.rows
    ]
