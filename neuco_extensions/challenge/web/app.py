"""The routes: the page, public facts, boards, and what a team may do with its token.

Names in addresses are looked up among known ones and are never made into paths. Every error is a fixed sentence.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from neuco_core.boards.model import Board, read_part
from neuco_core.errors import UnknownIdError
from neuco_extensions.challenge.board import live_board
from neuco_extensions.challenge.host import Host, quota_left
from neuco_extensions.challenge.journal import RefusedError
from neuco_extensions.challenge.rules import Challenge
from neuco_extensions.challenge.web.uploads import SENTENCES, HostPool, IncomingUpload, Problem, ServerLimits

LONGEST_TOKEN = 200
NUMBER = re.compile(r"[0-9]{1,15}")
PUBLIC_CHOICES = {"": True, "true": True, "false": False}  # of ?public=
FORM = "The body must be the file itself, not a form. With curl: -T FILE."
REFUSED = {"size": 413, "quota": 403, "closed": 403}
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
log = logging.getLogger("neuco.challenge")


class Service:
    """The routes' state: the challenge, the uploads that run now, and the boards of this tick."""

    def __init__(self, hosts: HostPool, limits: ServerLimits) -> None:
        self._hosts, self._limits = hosts, limits
        self._uploads: Counter[str] = Counter()
        self._boards: dict[str, tuple[float, dict[str, Any] | None]] = {}
        self._board_lock = asyncio.Lock()  # many readers at a tick must not make it many times

    def routes(self) -> list[Route]:
        return [  # GET and HEAD, where nothing else is said
            *(Route(path, page_file) for path in PAGE),
            Route("/files/{name}", self.file),
            Route("/api/challenge", self.facts),
            Route("/api/phases/{phase}/ids", self.ids),
            Route("/api/phases/{phase}/board", self.board),
            Route("/api/phases/{phase}/submissions", self.upload, methods=["POST", "PUT"]),
            Route("/api/submissions", self.submissions),
            Route("/api/submissions/{number}", self.submission),
        ]

    async def facts(self, request: Request) -> Response:
        """The public rules, the server's clock, and the names of the published files."""
        challenge = await self._hosts.refresh()
        files = await self._hosts.run(lambda _: sorted(published_files(challenge)))
        amendments = await self._hosts.run(lambda host: msgspec.to_builtins(host.journal.amendments()))
        now = datetime.now(UTC).isoformat()
        return JSONResponse({**challenge.public(), "amendments": amendments, "now": now, "files": files})

    async def file(self, request: Request) -> Response:
        """One of the files that are public: seal, and after the end boards, submissions and what was hidden."""
        files = await self._hosts.run(lambda host: published_files(host.challenge))
        path = files.get(request.path_params["name"])
        if path is None:
            raise Problem(404)
        return FileResponse(path, media_type="application/json")

    async def ids(self, request: Request) -> Response:
        """The ids that a phase asks for, one a line; not before it starts."""
        challenge, phase = await self._phase(request)
        if datetime.now(UTC) < challenge.phase(phase).start:
            raise Problem(404)
        ids = await self._hosts.run(lambda _: challenge.ids(phase))
        return PlainTextResponse("\n".join(ids) + "\n")

    async def board(self, request: Request) -> Response:
        """The board as the rules let it be seen. It changes at ticks only, so it is made once a tick."""
        challenge, phase = await self._phase(request)
        tick = time.time() // challenge.limits.tick
        async with self._board_lock:
            if self._boards.get(phase, (None,))[0] != tick:
                self._boards[phase] = tick, await self._hosts.run(lambda host: public_board(host, phase))
        board = self._boards[phase][1]
        if board is None:
            raise Problem(404)
        return JSONResponse(board)

    async def submissions(self, request: Request) -> Response:
        team = await self._team(request)

        def state(host: Host) -> dict[str, Any]:
            entries = host.journal.submissions(team=team)
            return {
                "team": team,
                "title": host.challenge.team(team).title,
                "left": quota_left(host.challenge, entries),
                "submissions": [host.answer(entry.id, team) for entry in entries],
            }

        return JSONResponse(await self._hosts.run(state))

    async def submission(self, request: Request) -> Response:
        """One of the team's own. That of another team is answered as one that does not exist."""
        team, number = await self._team(request), request.path_params["number"]
        if not NUMBER.fullmatch(number):
            raise Problem(404)
        try:
            return JSONResponse(await self._hosts.run(lambda host: host.answer(int(number), team)))
        except UnknownIdError as error:
            raise Problem(404) from error

    async def upload(self, request: Request) -> Response:
        """Take a file in. It counts if and only if the answer is 201, or 200 for one that was there already."""
        team = await self._team(request)
        challenge, phase = await self._phase(request)
        public = PUBLIC_CHOICES.get(request.query_params.get("public", ""))
        if public is None:
            raise Problem(400, "public is true or false.")
        if request.headers.get("content-type", "").lower().startswith("multipart/"):
            raise Problem(400, FORM)  # it would be stored, and found to be no embeddings a minute later
        length = request.headers.get("content-length", "")
        if length and int(length) > challenge.limits.bytes:  # h11 lets nothing but digits through
            raise Problem(413)
        with self._place(team):
            async with IncomingUpload(self._hosts, self._limits) as incoming:
                await incoming.read(request.receive)
                if not incoming.size:
                    raise Problem(400, "The file is empty.")
                entry, new = await incoming.enter(team, phase, public=public)
        log.info("submission %d of %s in %s: %d bytes%s", entry.id, team, phase, entry.size, "" if new else ", again")
        answer = await self._hosts.run(lambda host: host.answer(entry.id, team))
        return JSONResponse(answer, 201 if new else 200)

    @contextmanager
    def _place(self, team: str) -> Iterator[None]:
        """One of the uploads that may run at once: each takes memory and a file."""
        if self._uploads[team] >= self._limits.uploads_of_team:
            raise Problem(429, headers={"retry-after": "2"})
        if self._uploads.total() >= self._limits.uploads:
            raise Problem(503, headers={"retry-after": "2"})
        self._uploads[team] += 1
        try:
            yield
        finally:
            self._uploads[team] -= 1

    async def _team(self, request: Request) -> str:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        challenge = await self._hosts.refresh()
        fits = scheme.lower() == "bearer" and 0 < len(token) <= LONGEST_TOKEN
        team = challenge.team_of(token.strip()) if fits else None
        if team is None:
            log.warning("a wrong token from %s", request.client.host if request.client else "nowhere")
            raise Problem(401, headers={"www-authenticate": "Bearer"})
        return team

    async def _phase(self, request: Request) -> tuple[Challenge, str]:
        challenge, phase = await self._hosts.refresh(), request.path_params["phase"]
        if phase not in challenge.phases:
            raise Problem(404)
        return challenge, phase


async def page_file(request: Request) -> Response:
    package, name, kind = PAGE[request.url.path]
    data = resources.files(package).joinpath(name).read_bytes()
    return Response(data, media_type=kind, headers={"cache-control": "no-cache"})


def published_files(challenge: Challenge) -> dict[str, str]:
    """Name → path of each published file: regular ones, neither links nor folders, nor hidden ones, half written."""
    try:
        with os.scandir(challenge.published) as entries:
            regular = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return {}
    return {entry.name: entry.path for entry in regular if not entry.name.startswith(".")}


def public_board(host: Host, phase: str) -> dict[str, Any] | None:
    """None if the rules hide it until the end."""
    final = host.challenge.published / f"board-{phase}.json"
    if final.exists():
        board = read_part(final, Board, "board")
    elif host.challenge.phase(phase).visible:
        board = live_board(host, phase)
    else:
        return None
    teams = [
        {
            "rank": row.rank,
            "team": row.method,
            "title": row.title,
            "host": row.baseline,
            "note": row.note,
            "mean_q": row.values.get("mean_q"),
            "submissions": row.values.get("submissions"),
        }
        for row in board.rows
    ]
    return {"phase": phase, "final": final.exists(), "teams": teams}


async def _error(_: Request, error: Exception) -> Response:
    """Every error as a fixed sentence."""
    status, sentence, headers = 500, "", None
    if isinstance(error, Problem):
        status, sentence, headers = error.status, str(error), error.headers
    elif isinstance(error, RefusedError):
        status, sentence = REFUSED.get(error.code, 403), str(error)
    elif isinstance(error, HTTPException):
        status = error.status_code if error.status_code in SENTENCES else 400
    elif isinstance(error, OSError | sqlite3.OperationalError):
        # A full disk, or a journal that is locked for long: it may pass.
        log.error("not stored: %s", error)
        status, headers = 503, {"retry-after": "30"}
    return JSONResponse({"error": sentence or SENTENCES[status]}, status, headers)


def make_app(hosts: HostPool, limits: ServerLimits) -> Starlette:
    kinds = (Problem, RefusedError, HTTPException, OSError, sqlite3.OperationalError, Exception)
    app = Starlette(routes=Service(hosts, limits).routes(), exception_handlers=dict.fromkeys(kinds, _error))
    app.router.redirect_slashes = False
    return app
