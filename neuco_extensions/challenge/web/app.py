"""The routes: the page, public facts, boards, and what a team may do with its token.

Names in addresses are looked up among known ones and are never made into paths. Every error is a fixed sentence.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from neuco_core.errors import UnknownIdError
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import RefusedError
from neuco_extensions.challenge.quota import left
from neuco_extensions.challenge.rules import Challenge
from neuco_extensions.challenge.web import public
from neuco_extensions.challenge.web.guard import SENTENCES, retry_after
from neuco_extensions.challenge.web.pace import Buckets, FullError, Pace, Places, address_key
from neuco_extensions.challenge.web.threads import Hosts
from neuco_extensions.challenge.web.uploads import CutError, Incoming, SlowError

T = TypeVar("T")
LONGEST_TOKEN = 200
NUMBER = re.compile(r"[0-9]{1,15}")
CHOICES = {"": True, "true": True, "false": False}  # of ?public=
FORM = "The body must be the file itself, not a form. With curl: -T FILE."
REFUSED = {"size": 413, "quota": 403, "closed": 403}
log = logging.getLogger("neuco.challenge")


class Problem(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, sentence: str = "", **headers: str) -> None:
        super().__init__(sentence or SENTENCES[status])
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Service:
    """The routes' state: the challenge, and who did how much."""

    def __init__(self, hosts: Hosts, pace: Pace) -> None:
        self._hosts, self._pace = hosts, pace
        self._places = Places(pace)
        self._failures, self._asked = Buckets(pace.failures), Buckets(pace.asked_by_team)
        self._boards = public.Boards(hosts)

    def routes(self) -> list[Route]:
        def get(path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
            return Route(path, answer, methods=["GET"])

        return [
            *(get(path, public.page_file) for path in public.PAGE),
            get("/files/{name}", self.file),
            get("/api/challenge", self.facts),
            get("/api/phases/{phase}/ids", self.ids),
            get("/api/phases/{phase}/board", self.board),
            Route("/api/phases/{phase}/submissions", self.upload, methods=["POST", "PUT"]),
            get("/api/submissions", self.submissions),
            get("/api/submissions/{number}", self.submission),
        ]

    async def facts(self, request: Request) -> Response:
        challenge = await self._hosts.refresh()
        return JSONResponse(await self._hosts.run(lambda _: public.facts(challenge)))

    async def ids(self, request: Request) -> Response:
        challenge, phase = await self._phase(request)
        text = await self._hosts.run(lambda _: public.ids(challenge, phase))
        return PlainTextResponse(_or_404(text))

    async def board(self, request: Request) -> Response:
        _, phase = await self._phase(request)
        return JSONResponse(_or_404(await self._boards.of(phase)))

    async def file(self, request: Request) -> Response:
        """One of the files that are public: seal, and after the end boards, submissions and what was hidden."""
        challenge, name = self._hosts.challenge, request.path_params["name"]
        return _or_404(await self._hosts.run(lambda _: public.file_answer(challenge, name)))

    async def submissions(self, request: Request) -> Response:
        team = await self._team(request)

        def state(host: Host) -> dict[str, Any]:
            submissions = host.journal.submissions(team=team)
            answers = [host.answer(own.id, team) for own in submissions]
            return {"left": left(host.challenge, submissions), "submissions": answers}

        about = {"team": team, "title": self._hosts.challenge.team(team).title}
        return JSONResponse({**about, **await self._hosts.run(state)})

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
        choice = CHOICES.get(request.query_params.get("public", ""))
        if choice is None:
            raise Problem(400, "public is true or false.")
        if request.headers.get("content-type", "").lower().startswith("multipart/"):
            raise Problem(400, FORM)  # it would be stored, and found to be no embeddings a minute later
        length = request.headers.get("content-length", "")
        if length and int(length) > challenge.limits.bytes:  # h11 lets nothing but digits through
            raise Problem(413)
        with self._places.one(team):
            async with Incoming(self._hosts, self._pace) as incoming:
                await incoming.read(request.receive)
                if not incoming.size:
                    raise Problem(400, "The file is empty.")
                own, new = await incoming.enter(team, phase, public=choice)
        log.info("submission %d of %s in %s: %d bytes, %s", own.id, team, phase, own.size, "new" if new else "known")
        answer = await self._hosts.run(lambda host: host.answer(own.id, team))
        return JSONResponse(answer, 201 if new else 200)

    async def _team(self, request: Request) -> str:
        """The team of a token. An address with many wrong ones has to wait, whatever it brings."""
        address = address_key(request.client.host if request.client else "")
        if wait := self._failures.wait(address):
            raise Problem(429, **retry_after(wait))
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        challenge = await self._hosts.refresh()
        fits = scheme.lower() == "bearer" and 0 < len(token) <= LONGEST_TOKEN
        team = challenge.team_of(token.strip()) if fits else None
        if team is None:
            self._failures.take(address)
            log.warning("a wrong token from %s", address)
            raise Problem(401, www_authenticate="Bearer")
        if wait := self._asked.take(team):
            raise Problem(429, **retry_after(wait))
        return team

    async def _phase(self, request: Request) -> tuple[Challenge, str]:
        challenge, phase = await self._hosts.refresh(), request.path_params["phase"]
        if phase not in challenge.phases:
            raise Problem(404)
        return challenge, phase


def _or_404(value: T | None) -> T:
    if value is None:
        raise Problem(404)
    return value


def _error(status: int, sentence: str = "", headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": sentence or SENTENCES[status]}, status, headers)


async def _problem(_: Request, error: Any) -> Response:
    return _error(error.status, str(error), error.headers)


async def _refused(_: Request, error: Any) -> Response:
    return _error(REFUSED.get(error.code, 403), str(error))


async def _full(_: Request, error: Any) -> Response:
    return _error(429 if error.of_team else 503, headers=retry_after(2))


async def _slow(_: Request, error: Any) -> Response:
    return _error(408)


async def _cut(_: Request, error: Any) -> Response:
    return _error(400)  # nobody is there to read it


async def _http(_: Request, error: Any) -> Response:
    return _error(error.status_code if error.status_code in SENTENCES else 400)


async def _trouble(_: Request, error: Any) -> Response:
    """A full disk, or a journal that is locked for long: it may pass."""
    log.error("not stored: %s", error)
    return _error(503, headers=retry_after(30))


async def _fault(_: Request, error: Any) -> Response:
    return _error(500)


HANDLERS: dict[Any, Any] = {
    Problem: _problem,
    RefusedError: _refused,
    FullError: _full,
    SlowError: _slow,
    CutError: _cut,
    HTTPException: _http,
    OSError: _trouble,
    sqlite3.OperationalError: _trouble,
    Exception: _fault,
}


def make_app(hosts: Hosts, pace: Pace) -> Starlette:
    app = Starlette(routes=Service(hosts, pace).routes(), exception_handlers=HANDLERS)
    app.router.redirect_slashes = False
    return app
