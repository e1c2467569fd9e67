"""The EvalAI worker against a server that behaves as EvalAI: each submission ends once, in the right state, no leak."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import requests
from requests.adapters import HTTPAdapter

from neuco_core.errors import FetchError
from neuco_core.fetch.transfer import TransientError
from neuco_extensions.challenge.evalai import api
from neuco_extensions.challenge.evalai.api import Account, Api, RefusedPlaceError, allowed, origin
from neuco_extensions.challenge.evalai.worker import Deliveries, Delivery, EvalAIWorker, Evaluate, Job
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import MESSAGES, Code, Verdict
from neuco_extensions.challenge.rules import load_challenge
from tests.challenge.evalai import CHALLENGE, SECRET, TOKEN, EvalAI, account, evaluate_in
from tests.challenge.parts import IDS, embed, make_challenge
from tests.command import Said, neuco_here
from tests.fetch.http_server import REDIRECTS, FileServer

ACCOUNT = Account("https://evalai.test", "q", 1, TOKEN, files=("https://files.test",))
# Requests that fail once; what was lost was dealt with, and its answer did not come.
FAULTS = [
    ("GET", "queues", "429"),
    ("GET", "submission", "500"),
    ("PATCH", "update", "500"),
    ("PATCH", "update", "lost"),
    ("PUT", "update", "429"),
    ("PUT", "update", "500"),
    ("PUT", "update", "lost"),
    ("POST", "queues", "500"),
]


@pytest.fixture
def server() -> Iterator[EvalAI]:
    with EvalAI() as running:
        yield running


def work(server: EvalAI, folder: Path, evaluate: Evaluate | None = None, **more: Any) -> list[str]:
    """Let a worker empty the queue; the lines that it told."""
    lines: list[str] = []
    folder.mkdir(parents=True, exist_ok=True)
    evaluate = evaluate or evaluate_in(folder)
    EvalAIWorker(account(server.url, **more), folder, evaluate, tell=lines.append).run(once=True)
    return lines


def process(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.challenge.evalai", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def evaluations(folder: Path) -> list[str]:
    path = folder / "evaluations.txt"
    return path.read_text().splitlines() if path.exists() else []


def no_leak(server: EvalAI, lines: list[str]) -> None:
    for text in (server.received, "\n".join(lines)):
        for secret in (SECRET, "hidden_task", "0.123456", "Traceback", "RuntimeError"):
            assert secret not in text
    assert TOKEN not in "\n".join(lines)
    assert "signed-" not in "\n".join(lines)
    for state in server.submissions.values():
        assert state.get("stdout", "") in ("", *MESSAGES.values())
        assert state.get("stderr", "") in ("", *MESSAGES.values())
        assert set(json.loads(state.get("metadata", "{}"))) <= {"code", "neuco", "sha256"}


def test_submissions_end_in_the_right_state_and_nothing_leaks(server: EvalAI, tmp_path: Path) -> None:
    server.submit(1, b"score 12.3")
    server.submit(2, b"boom", phase=12)
    lines = work(server, tmp_path)
    assert (server.status(1), server.status(2)) == ("finished", "failed")
    assert server.board == [(1, {"mean_q": 12.3})]
    assert server.ends == {1: 1, 2: 1}
    assert server.waiting() == 0
    assert server.submissions[2]["stderr"] == MESSAGES["failed"]
    no_leak(server, lines)
    assert [method for _, method, _, _ in server.requests if method != "GET"] == ["PATCH", "PUT", "POST"] * 2
    kept = [Deliveries(tmp_path).get(number) for number in (1, 2)]
    assert [delivery.step for delivery in kept] == ["acknowledged", "acknowledged"]
    assert SECRET in kept[1].verdict.detail  # the hosts can see why
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".file", ".part")]
    assert {line.split()[2] for line in evaluations(tmp_path)} == {"1.file", "2.file"}


def test_a_busy_server_is_asked_again_and_answered_once(server: EvalAI, tmp_path: Path) -> None:
    server.faults += FAULTS
    server.submit(1, b"score 5")
    lines = work(server, tmp_path)
    assert server.faults == []
    assert server.status(1) == "finished"
    assert (server.ends[1], server.board, server.waiting()) == (1, [(1, {"mean_q": 5.0})], 0)
    assert len(evaluations(tmp_path)) == 1
    no_leak(server, lines)
    for method, part in (("GET", "queues"), ("PUT", "update")):
        moments = [moment for moment, verb, path, _ in server.requests if verb == method and part in path]
        assert moments[1] - moments[0] >= 1.0  # as Retry-After asked for


def test_waits_grow_are_spread_and_bounded() -> None:
    client = Api(account("https://evalai.test", backoff=1.0))
    once = TransientError("x")
    waits = [[client.after(tries, once) for _ in range(50)] for tries in (1, 4, 20)]
    assert all(0.5 <= wait <= 1 for wait in waits[0])
    assert all(4 <= wait <= 8 for wait in waits[1])
    assert all(30 <= wait <= 60 for wait in waits[2])
    assert len(set(waits[1])) > 40
    assert client.after(1, TransientError("x", wait=90.0)) == 90


def test_no_more_than_so_many_requests_are_sent_in_a_minute(server: EvalAI, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    client = Api(account(server.url, per_minute=3))
    for _ in range(4):
        client.receive()
    assert [60 < seconds <= 61 for seconds in pauses] == [True]


def test_a_submission_that_comes_again_is_not_evaluated_again(server: EvalAI, tmp_path: Path) -> None:
    server.submit(1, b"score 5")
    server.queues["queue"] *= 2  # the queue hands some messages out twice
    server.submit(2, b"score 6")
    work(server, tmp_path)
    assert server.ends == {1: 1, 2: 1}
    assert len(evaluations(tmp_path)) == 2
    assert server.waiting() == 0


def test_what_ended_elsewhere_is_acknowledged_and_left(server: EvalAI, tmp_path: Path) -> None:
    for number, status in enumerate(["cancelled", "finished", "failed"], 1):
        server.submit(number, b"score 5")
        server.submissions[number]["status"] = status
    server.submit(4, b"score 5")
    del server.submissions[4]
    work(server, tmp_path)
    assert [server.status(number) for number in (1, 2, 3)] == ["cancelled", "finished", "failed"]
    assert (server.waiting(), evaluations(tmp_path), sum(server.ends.values())) == (0, [], 0)


def test_what_is_cancelled_during_its_evaluation_stays_cancelled(server: EvalAI, tmp_path: Path) -> None:
    server.submit(1, b"score 5")

    def evaluate(job: Job, path: Path) -> Verdict:
        server.submissions[1]["status"] = "cancelled"
        return Verdict("scored", {"mean_q": 1.0})

    work(server, tmp_path, evaluate)
    assert (server.status(1), server.board, server.waiting()) == ("cancelled", [], 0)


def test_what_another_machine_runs_is_left_until_it_is_stale(server: EvalAI, tmp_path: Path) -> None:
    server.submit(1, b"score 5")
    server.submissions[1] |= {"status": "running", "started_at": "2026-01-02T03:04:06Z"}
    work(server, tmp_path / "one", stale=1e12)
    assert (server.status(1), server.waiting()) == ("running", 1)
    time.sleep(server.visibility)
    work(server, tmp_path / "two", stale=60.0)
    assert (server.status(1), server.waiting()) == ("finished", 0)


def test_a_host_can_let_a_failed_submission_run_again(server: EvalAI, tmp_path: Path) -> None:
    server.submit(1, b"boom")
    work(server, tmp_path)
    assert server.status(1) == "failed"
    server.submit(1, b"score 5")
    server.submissions[1]["status"] = "resuming"
    work(server, tmp_path)
    assert (server.status(1), server.board) == ("finished", [(1, {"mean_q": 5.0})])


def test_a_refused_answer_is_kept_and_given_later(server: EvalAI, tmp_path: Path) -> None:
    """EvalAI refuses a metric that its board does not have: the hosts' mistake must not cost a submission."""
    server.submit(1, b"score 5")
    lines = work(server, tmp_path, lambda *_: Verdict("scored", {"accuracy": 1.0}))
    assert server.status(1) == "running"
    assert server.waiting() == 1
    assert any("kept back" in line and "metrics are missing" in line for line in lines)
    assert Deliveries(tmp_path).open()[0].step == "evaluated"


def test_messages_that_are_not_ours_are_left(server: EvalAI, tmp_path: Path) -> None:
    server.submit(1, b"score 5")
    server.queues["queue"][0].body["challenge_pk"] = 8
    server.submit(2, b"score 5")
    server.queues["queue"][1].body["phase_pk"] = "eleven"
    lines = work(server, tmp_path)
    assert (server.waiting(), server.status(1), server.status(2)) == (2, "submitted", "submitted")
    assert ["left in the queue" in line for line in lines] == [True, True]


ODD_BODIES = [[11], "11", {"phase_pk": 11}, {"submission_pk": "9" * 5000}, {"phase_pk": 2**64}, {"challenge_pk": None}]
ODD_STATES = [{"participant_team": "three"}, {"participant_team": 1e300}, {"status": None}, {"input_file": [1]}]


@pytest.mark.parametrize("restarts", [1, 2])
def test_odd_fields_put_their_submission_aside_and_the_worker_goes_on(
    server: EvalAI, tmp_path: Path, restarts: int
) -> None:
    """Also at the next start, when what is open is dealt with first."""
    server.visibility = 60.0
    odd = len(ODD_BODIES) + len(ODD_STATES)
    for number in range(1, odd + 3):
        server.submit(number, b"score 5")
    for message, fields in zip(server.queues["queue"], ODD_BODIES, strict=False):
        message.body = {**message.body, **fields} if isinstance(fields, dict) else fields  # type: ignore[assignment]
    del server.queues["queue"][2].body["submission_pk"]
    for number, fields in enumerate(ODD_STATES, len(ODD_BODIES) + 1):
        server.submissions[number] |= fields
    server.submissions[odd + 1]["challenge_phase"] = server.queues["queue"][odd].body["phase_pk"] = 13
    for _ in range(restarts):
        lines = work(server, tmp_path)
    kept = {line.split()[1] for line in lines if "kept back: EvalAI's" in line and "cannot be read" in line}
    assert kept == {str(number) for number in range(len(ODD_BODIES) + 1, odd + 2)}
    assert restarts > 1 or sum("was left in the queue: EvalAI's message" in line for line in lines) == len(ODD_BODIES)
    assert (server.status(odd + 2), server.board) == ("finished", [(odd + 2, {"mean_q": 5.0})])
    no_leak(server, lines)


def test_a_full_disk_makes_a_submission_wait(server: EvalAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.submit(1, b"score 5")
    with monkeypatch.context() as full:
        full.setattr(Deliveries, "update", Mock(side_effect=sqlite3.OperationalError("database or disk is full")))
        assert "submission 1 has to wait: database or disk is full" in work(server, tmp_path)
    work(server, tmp_path)
    assert server.status(1) == "finished"


@pytest.mark.parametrize(
    ("behaviour", "more", "code", "came"),
    [
        ("trickles", {"deadline": 0.3}, "failed", 0),
        ("endless", {"max_bytes": 3_000_000}, "size", 0),
        ("huge", {}, "size", 0),
        ("missing", {}, "failed", 0),
        ("circle", {}, "failed", 0),
        ("escape", {}, "failed", 0),
        ("elsewhere", {}, "failed", 0),
        ("moved", {}, "failed", 1),  # followed, and what lies there is no score
        ("flaky", {}, "failed", 1),
    ],
)
def test_files_that_do_not_come_as_they_should(
    server: EvalAI,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: str,
    more: dict[str, Any],
    code: Code,
    came: int,
) -> None:
    class Public:
        is_global = True

    monkeypatch.setattr(api.ipaddress, "ip_address", lambda address: Public)  # else this machine's are refused
    with FileServer() as store:
        monkeypatch.setitem(REDIRECTS, "elsewhere", store.url("good").replace("127.0.0.1", "localhost"))
        server.submit(1, b"")
        server.submissions[1]["input_file"] = f"{store.url(behaviour)}?Signature=signed-1"
        lines = work(server, tmp_path, files=(store.base,), **more)
        assert store.count("good") == (behaviour == "moved")
    assert (server.status(1), server.submissions[1]["stderr"]) == ("failed", MESSAGES[code])
    assert (server.ends[1], server.waiting(), len(evaluations(tmp_path))) == (1, 0, came)
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".file", ".part")]
    assert not [headers for _, headers in store.http.requests if "Authorization" in headers]
    no_leak(server, lines)


def test_a_place_that_the_host_did_not_name_costs_no_submission(server: EvalAI, tmp_path: Path) -> None:
    server.submit(1, b"score 5")
    server.submissions[1]["input_file"] = "https://bucket.test/1.csv?Signature=signed-1"
    lines = work(server, tmp_path)
    assert (server.status(1), server.waiting()) == ("submitted", 1)
    assert any("kept back" in line and "--files https://bucket.test" in line for line in lines)
    no_leak(server, lines)


def test_a_redirect_from_https_to_http_is_not_followed_between_named_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls: list[str] = []

    def send(adapter: HTTPAdapter, request: requests.PreparedRequest, **_: object) -> requests.Response:
        urls.append(str(request.url))
        response = requests.Response()
        response.status_code, response.url, response.request, response.raw = 302, urls[-1], request, io.BytesIO()
        response.headers["Location"] = "http://evalai.test/x?Signature=signed-1"
        return response

    monkeypatch.setattr(HTTPAdapter, "send", send)
    here = Account("http://evalai.test", "q", 1, TOKEN, files=("https://evalai.test",))
    monkeypatch.setattr("socket.getaddrinfo", lambda *args, **more: [])
    with pytest.raises(FetchError, match="insecure address") as caught:
        api.bring("https://evalai.test/x", tmp_path / "1.file", here)
    assert (urls, "signed-1" in str(caught.value)) == (["https://evalai.test/x"], False)


@pytest.mark.parametrize(
    "url",
    [
        "http://evalai.test/x",  # https was asked for
        "https://evalai.test:8443/x",
        "https://user@evalai.test/x",
        "https://evalai.test.evil.test/x",
        "https://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "//evalai.test/x",
        "https://[::1/x",
        "",
    ],
)
def test_only_the_named_places_are_asked(url: str) -> None:
    allowed("https://evalai.test/media/x", ACCOUNT)
    with pytest.raises(RefusedPlaceError):
        allowed(url, ACCOUNT)


def test_a_store_whose_name_leads_home_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [(2, 1, 6, "", ("10.0.0.8", 443))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *args, **more: addresses)
    with pytest.raises(RefusedPlaceError, match="private network"):
        allowed("https://files.test/x", ACCOUNT)
    addresses[0] = (2, 1, 6, "", ("93.184.216.34", 443))
    allowed("https://files.test/x", ACCOUNT)
    assert origin("https://FILES.test/x") == origin("https://files.test:443/")


def test_answers_are_due_at_whole_ticks(tmp_path: Path) -> None:
    """EvalAI shows how long a submission ran: the wait makes a quick evaluation look like a slow one."""
    worker = EvalAIWorker(account("https://evalai.test", hold=60.0), tmp_path, evaluate_in(tmp_path))
    due = [
        worker.due(Delivery(1, 11, "r", "evaluated", 1000.0, 1000.0 + took, None, Verdict("failed")))
        for took in (0.25, 59.0, 61.0, -5.0)  # the clock may have been set back
    ]
    assert due == [1060.0, 1060.0, 1120.0, 1060.0]


def test_others_are_evaluated_while_an_answer_is_held_back(server: EvalAI, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        server.submit(number, b"score 5")
    server.visibility = 60.0
    work(server, tmp_path, hold=1.5)
    updates = [method for _, method, path, _ in server.requests if "update_submission" in path]
    assert updates == ["PATCH"] * 3 + ["PUT"] * 3
    assert (server.ends, server.waiting()) == ({1: 1, 2: 1, 3: 1}, 0)


@pytest.mark.slow
def test_two_workers_at_once_share_the_work(server: EvalAI, tmp_path: Path) -> None:
    server.visibility = 0.05  # far less than an evaluation takes: each is handed out again and again
    for number in range(1, 13):
        server.submit(number, b"boom" if number % 3 == 0 else b"score %d" % number)
    both = [process("work", server.url, tmp_path), process("work", server.url, tmp_path)]
    printed = [line for one in both for text in one.communicate(timeout=60) for line in text.splitlines()]
    assert [one.returncode for one in both] == [0, 0], printed
    work(server, tmp_path)  # messages whose worker ended while they were hidden
    assert [server.status(n) for n in range(1, 13)] == ["failed" if n % 3 == 0 else "finished" for n in range(1, 13)]
    assert set(server.ends.values()) == {1}
    assert sorted(server.board) == [(n, {"mean_q": float(n)}) for n in range(1, 13) if n % 3]
    assert server.waiting() == 0
    done = [line.split()[:2] for line in evaluations(tmp_path)]
    assert len(done) == 12
    assert len({who for _, who in done}) == 2
    no_leak(server, printed)


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_worker_killed_between_any_two_steps_ends_each_submission_once(
    server: EvalAI, tmp_path: Path, stride: int
) -> None:
    server.visibility = 0.02
    for number in range(1, 41):
        server.submit(number, b"score 5" if number % 2 else b"boom", queue=f"queue{number}")
    worker = process("die", server.url, tmp_path, stride)
    out, err = worker.communicate(timeout=120)
    assert worker.returncode == 0, err
    ends = [tuple(map(int, line.split())) for line in out.splitlines() if line[:1].isdigit()]
    assert len(ends) > 10 // stride
    assert [killed for _, killed in ends] == [1] * (len(ends) - 1) + [0]  # the last went through
    for number, _ in ends:
        assert server.status(number) == ("finished" if number % 2 else "failed"), number
        assert server.ends[number] == 1, number
        assert server.queues[f"queue{number}"] == [], number
        assert 1 <= len(evaluations(tmp_path / str(number))) <= 2
    assert sorted(number for number, _ in server.board) == [number for number, _ in ends if number % 2]
    no_leak(server, (out + err).splitlines())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    quota = {"per_day = 3\nin_all = 6": "per_day = 1\nin_all = 1"}
    return make_challenge(tmp_path / "toy", {"dim = 16": "dim = 16\ntick = 1", **quota})


def run_command(server: EvalAI, folder: Path, monkeypatch: pytest.MonkeyPatch, token: str = TOKEN) -> Said:
    monkeypatch.setenv("EVALAI_TOKEN", token)
    queue = ("--server", server.url, "--queue", "queue", "--challenge", str(CHALLENGE))
    return neuco_here("challenge", "worker", folder, *queue, "--once")


def test_submissions_of_evalai_are_scored_like_any_other_and_wait_for_the_hosts(
    server: EvalAI, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.visibility = 60.0  # none is handed out twice: after 60 requests the worker would wait for a minute
    file, other = embed(tmp_path / "a.csv", 0.5), embed(tmp_path / "b.csv", 0.5, seed=1).read_bytes()
    short = embed(tmp_path / "c.csv", 0.5, ids=IDS[:-1]).read_bytes()
    for number, content in enumerate((short, b"\x00" * 200_000, other, file.read_bytes(), other), 1):
        server.submit(number, content)
    server.submissions[3]["submitted_at"] = "2025-01-01T00:00:00Z"  # before the phase began
    server.submit(6, other, phase=12)
    monkeypatch.setattr("tests.challenge.evalai.PHASES", {11: "dev", 12: "unheard-of"})
    ran = run_command(server, folder, monkeypatch)
    assert ran.code == 0, ran.text
    assert len(server.requests) < 50
    codes = ["ids", "size", "closed", "scored", "quota"]
    assert [json.loads(server.submissions[number]["metadata"])["code"] for number in range(1, 6)] == codes
    assert [server.submissions[number]["stderr"] for number in (1, 2)] == [MESSAGES["ids"], MESSAGES["size"]]
    assert "submission 6 has to wait" in ran.text
    assert [server.status(number) for number in range(1, 7)] == [*["failed"] * 3, "finished", "failed", "running"]
    with Host(folder) as host:
        exact = host.evaluate("dev", file).scores["height"]
        assert [entry.source for entry in host.journal.submissions()] == ["evalai:1", "evalai:4"]
    assert server.board == [(4, {"mean_q": round(exact, 2)})]
    assert load_challenge(folder).teams["evalai-3"].title == "../team<script>"
    assert "height" not in server.received + ran.text
    assert TOKEN not in ran.text


def test_without_a_good_token_nothing_begins_and_none_is_shown(
    server: EvalAI, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = run_command(server, folder, monkeypatch, token="")
    assert (ran.code, "EVALAI_TOKEN" in ran.err, server.requests) == (2, True, [])
    ran = run_command(server, folder, monkeypatch, token="secret-but-wrong")
    assert (ran.code, "refused the token" in ran.err) == (7, True)
    assert "secret-but-wrong" not in ran.text + repr(account(server.url, token="secret-but-wrong"))
