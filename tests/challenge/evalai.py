"""EvalAI for tests: a server on the loopback that behaves as it does towards a remote worker, and workers as processes.

From its source: a PATCH re-opens a submission that had ended, each PUT of a finished one adds a line to the board (in
some versions), a receipt is good for the last delivery only, and a message that is not deleted is handed out again.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from neuco_extensions.challenge.evalai import worker as module
from neuco_extensions.challenge.evalai.api import Account, Api
from neuco_extensions.challenge.evalai.worker import Deliveries, EvalAIWorker, Evaluate, Job
from neuco_extensions.challenge.journal import Verdict
from tests.challenge.actor import die_before, in_child

TOKEN = "token-of-a-host"
CHALLENGE = 7
PHASES: dict[int, str | None] = {11: "dev", 12: "test", 13: None}
SECRET = "label-of-sample-42-is-3.14159"
STEPS = [
    (Deliveries, "receive"),
    (Deliveries, "update"),
    (Api, "running"),
    (module, "bring"),
    (EvalAIWorker, "_verdict"),
    (Api, "put"),
    (Api, "acknowledge"),
]


@dataclass
class Message:
    body: dict[str, int | str]
    hidden_until: float = 0.0
    receipt: str = ""


@dataclass
class EvalAI:
    """Start with ``with``; ``faults`` are answers to give instead of the right one, by method and part of the path."""

    visibility: float = 0.3  # seconds that a message is hidden after it was handed out
    submissions: dict[int, dict[str, Any]] = field(default_factory=dict)
    board: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    ends: Counter[int] = field(default_factory=Counter)
    queues: dict[str, list[Message]] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    faults: list[tuple[str, str, str]] = field(default_factory=list)
    requests: list[tuple[float, str, str, str]] = field(default_factory=list)
    deliveries: int = 0

    def submit(self, number: int, content: bytes, *, phase: int = 11, queue: str = "queue") -> None:
        self.submissions[number] = {
            "id": number,
            "participant_team": 3,
            "participant_team_name": "../team<script>",
            "challenge_phase": phase,
            "status": "submitted",
            "input_file": f"{self.url}/media/submission_{number}/..%2f..%2fetc%2fpasswd.csv?Signature=signed-{number}",
            "submitted_at": "2026-01-02T03:04:05.678901Z",
            "started_at": None,
            "is_public": True,
            "is_baseline": False,
        }
        self.files[number] = content
        body = {"challenge_pk": str(CHALLENGE), "phase_pk": str(phase), "submission_pk": number}
        self.queues.setdefault(queue, []).append(Message(body))

    @property
    def received(self) -> str:
        """All that anybody sent to this server."""
        return "\n".join(f"{method} {path} {body}" for _, method, path, body in self.requests)

    def status(self, number: int) -> str:
        return str(self.submissions[number]["status"])

    def waiting(self) -> int:
        return sum(map(len, self.queues.values()))

    # What follows is the server itself.

    def __enter__(self) -> EvalAI:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        routes = [
            self._route("/api/jobs/challenge/queues/{queue}/", self._receive),
            self._route("/api/jobs/queues/{queue}/", self._delete, "POST"),
            self._route("/api/jobs/submission/{number:int}", self._submission),
            self._route("/api/challenges/challenge/phase/{number:int}/", self._phase),
            self._route(f"/api/jobs/challenge/{CHALLENGE}/update_submission/", self._update, "PUT", "PATCH"),
            Route("/media/submission_{number:int}/{rest:path}", self._file),
        ]
        config = uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off", ws="none")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)
        self._socket.close()

    def _route(self, path: str, answer: Callable[[Request, dict[str, str]], Response], *methods: str) -> Route:
        """For those who have the token: what was asked is kept, and a fault may come in place of the answer."""

        async def asked(request: Request) -> Response:
            body = (await request.body()).decode()
            self.requests.append((time.monotonic(), request.method, request.url.path, body))
            fields = {key: values[0] for key, values in parse_qs(body, keep_blank_values=True).items()}
            if request.headers.get("authorization") != f"Bearer {TOKEN}":
                return JSONResponse({"detail": "Invalid token."}, 401)
            for fault in self.faults:
                method, part, what = fault
                if method == request.method and part in request.url.path:
                    self.faults.remove(fault)
                    if what == "429":
                        return JSONResponse({"detail": "throttled"}, 429, {"Retry-After": "1"})
                    if what == "500":
                        return PlainTextResponse("<h1>Server Error</h1>", 500)
                    answer(request, fields)
                    return PlainTextResponse("upstream timed out", 504)
            return answer(request, fields)

        return Route(path, asked, methods=methods or ("GET",))

    def _receive(self, request: Request, fields: dict[str, str]) -> Response:
        now = time.monotonic()
        for message in self.queues.get(request.path_params["queue"], []):
            if message.hidden_until <= now:
                self.deliveries += 1
                message.hidden_until, message.receipt = now + self.visibility, f"receipt-{self.deliveries}"
                return JSONResponse({"body": message.body, "receipt_handle": message.receipt})
        return JSONResponse({"body": None, "receipt_handle": None})

    def _delete(self, request: Request, fields: dict[str, str]) -> Response:
        queue = self.queues.get(request.path_params["queue"], [])
        for message in queue:
            if message.receipt == fields["receipt_handle"]:
                queue.remove(message)
                return JSONResponse({"success": "Message deleted successfully"})
        return JSONResponse({"error": "The receipt handle has expired"}, 400)

    def _submission(self, request: Request, fields: dict[str, str]) -> Response:
        state = self.submissions.get(request.path_params["number"])
        return JSONResponse(state) if state else JSONResponse({"error": "does not exist"}, 404)

    def _phase(self, request: Request, fields: dict[str, str]) -> Response:
        return JSONResponse({"codename": PHASES[request.path_params["number"]]})

    def _update(self, request: Request, fields: dict[str, str]) -> Response:
        state = self.submissions[int(fields["submission"])]
        state["status"] = fields["submission_status"].lower()
        if request.method == "PATCH":
            state["started_at"] = "2026-01-02T03:04:06Z"
        else:
            state |= {key: fields[key] for key in ("stdout", "stderr", "result", "metadata")}
            self.ends[state["id"]] += 1
            for line in json.loads(fields["result"]):
                if set(line["accuracies"]) != {"mean_q"} or line["split"] not in PHASES.values():
                    state["status"] = "running"
                    return JSONResponse({"error": "Following metrics are missing"}, 400)
                self.board.append((state["id"], line["accuracies"]))
        return JSONResponse({"success": "Submission result has been successfully updated"})

    async def _file(self, request: Request) -> Response:
        return Response(self.files[request.path_params["number"]])


def account(server: str, queue: str = "queue", **more: Any) -> Account:
    quick: dict[str, Any] = {"backoff": 0.01, "poll": 0.02, "hold": 0.0, "per_minute": 10_000, "files": ()}
    return Account(server, queue, CHALLENGE, **{"token": TOKEN, **quick, **more})


def evaluate_in(folder: Path, seconds: float = 0.0) -> Evaluate:
    """What files say is done: ``score 12.3``, or ``boom``. Each evaluation leaves a line."""

    def evaluate(job: Job, path: Path) -> Verdict:
        with (folder / "evaluations.txt").open("a") as file:
            file.write(f"{job.submission} {os.getpid()} {path.name}\n")
        time.sleep(seconds)
        word, _, number = path.read_text().partition(" ")
        if word != "score":
            raise RuntimeError(f"{SECRET} in {path}")
        return Verdict("scored", {"mean_q": float(number)}, {"hidden_task": 0.123456}, SECRET)

    return evaluate


# Processes: ``python -m tests.challenge.evalai work|die …``.


def work(server: str, folder: str) -> None:
    """Empty the queue, slowly."""
    EvalAIWorker(account(server), Path(folder), evaluate_in(Path(folder), 0.15), tell=print).run(once=True)


def die(server: str, folder: str, stride: str) -> None:
    """Be killed before the n-th step, for n = 1, 1 + stride, … until that is beyond the last one.

    Each time a second worker, which is not killed, does the rest. A queue and a folder of its own belong to each n.
    """
    for number in range(1, 100, int(stride)):
        here = Path(folder, str(number))
        here.mkdir()
        killed = in_child(partial(_live, server, here, number, number))
        time.sleep(0.1)  # until the queue hands it out again
        in_child(partial(_live, server, here, number, 0))
        print(number, int(killed), flush=True)
        if not killed:
            return


def _live(server: str, folder: Path, number: int, last: int) -> None:
    """With ``last``, be killed before that step."""
    die_before(last, STEPS)
    EvalAIWorker(account(server, f"queue{number}"), folder, evaluate_in(folder), tell=print).run(once=True)


if __name__ == "__main__":
    {"work": work, "die": die}[sys.argv[1]](*sys.argv[2:])
