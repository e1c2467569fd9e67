"""A server that misbehaves: each outcome, and that the cache holds nothing new after a failure."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import requests
from requests.adapters import HTTPAdapter

from neuco_core.errors import ChecksumError, DataError, FetchError, UsageError
from neuco_core.fetch.fetch import fetch
from neuco_core.fetch.transfer import CHUNK, Settings
from tests.fetch.helpers import BODY, files_below, remote
from tests.fetch.http_server import HALF, FileServer

FAILURES = [  # how the server behaves, what is raised, and how often it is asked
    ("truncated", FetchError, "the download stopped after 15"),
    ("stalls", FetchError, "sent nothing for 1 seconds"),
    ("silent", FetchError, "sent nothing for 1 seconds"),
    ("broken", FetchError, "the server failed (HTTP 500) (tried 2 times)"),
    ("wrong", ChecksumError, "expected sha256"),
    ("short", ChecksumError, f"expected {len(BODY)} bytes"),
    ("endless", ChecksumError, f"expected {len(BODY)} bytes"),
    ("huge", ChecksumError, "got 10000000000 or more"),
    ("missing", FetchError, "no such file (HTTP 404)"),
    ("forbidden", FetchError, "refused access (HTTP 403)"),
    ("circle", FetchError, "too many redirects"),
    ("escape", FetchError, "cannot be read"),
]
# What can be cured, and of which requests a part was asked for.
WHOLE, AGAIN = [False], [False, False]
SUCCESSES = {
    **{"good": WHOLE, "moved": AGAIN, "no-length": WHOLE, "compressed": WHOLE, "flaky": AGAIN, "busy": AGAIN},
    **{"honours-range": [False, True], "ignores-range": [False, True], "changed-between": [False, True]},
    # Parts that fit by length and by ETag: only the hash tells, and then one clean download must follow.
    "mixes-versions": [False, True, False],
    **{"wrong-part": [False, True, False], "no-more": [False, True, False]},
    # Part of a compressed stream says nothing about the place in the file.
    "compressed-cut": AGAIN,
}


@pytest.mark.parametrize(("behaviour", "kind", "message"), FAILURES)
def test_a_failure_is_named_and_leaves_nothing(
    server: FileServer,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: str,
    kind: type[Exception],
    message: str,
) -> None:
    monkeypatch.setenv("NEUCO_RETRIES", "1")
    if behaviour in ("stalls", "silent"):
        monkeypatch.setenv("NEUCO_TIMEOUT", "1")
    with pytest.raises(kind) as caught:
        fetch(remote(server.url(behaviour)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert server.url(behaviour) in str(caught.value)
    assert files_below(cache) == []
    transient = behaviour in ("truncated", "stalls", "silent", "broken")
    assert transient == (len(server.http.requests) == 2) or behaviour == "circle"
    monkeypatch.setenv("NEUCO_TIMEOUT", "20")
    server.http.files[f"/{behaviour}/x.csv"] = BODY
    assert fetch(remote(server.url(behaviour))).read_bytes() == BODY, "the same address, repaired"


@pytest.mark.parametrize(("behaviour", "parts"), SUCCESSES.items())
def test_what_can_be_cured_is_cured(server: FileServer, cache: Path, behaviour: str, parts: list[bool]) -> None:
    path = fetch(remote(server.url(behaviour)))
    assert path.read_bytes() == BODY
    assert files_below(cache) == [str(path.relative_to(cache))]
    headers = [headers for _, headers in server.http.requests]
    assert ["Range" in item for item in headers] == parts
    assert {item["Accept-Encoding"] for item in headers} == {"identity"}, "the hash is of the file as it is stored"
    if behaviour == "honours-range":
        start = int(headers[1]["Range"].removeprefix("bytes=").removesuffix("-"))
        assert HALF - CHUNK <= start <= HALF
        assert headers[1]["If-Range"] == '"v1"'
    assert fetch(remote(server.url(behaviour))) == path
    assert len(server.http.requests) == len(headers), "a file in the cache needs no server"


@pytest.mark.parametrize("behaviour", ["trickles", "trickles-headers"])
def test_a_server_that_sends_a_byte_now_and_then_does_not_keep_us_for_ever(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str
) -> None:
    monkeypatch.setenv("NEUCO_DEADLINE", "0.4")
    with pytest.raises(
        FetchError, match=r"slow: \d+ bytes in \d+ s.*expected 10000 bytes per s.*set NEUCO_DEADLINE or"
    ):
        fetch(remote(server.url(behaviour)))
    assert files_below(cache) == []
    path = fetch(remote(server.url(behaviour), mirrors=(server.url("steady"),)))
    assert path.read_bytes() == BODY, "a mirror has a deadline of its own, and one that is fast enough may go on"
    assert files_below(cache) == [str(path.relative_to(cache))]


def test_a_bad_line_does_not_use_up_the_patience_while_it_goes_forward(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEUCO_RETRIES", "1")
    assert fetch(remote(server.url("bad-line"))).read_bytes() == BODY
    assert server.count("bad-line") == 3, "one retry is allowed, and two were needed"


@pytest.mark.parametrize("behaviour", ["huge", "endless", "good"])
def test_the_size_limit_holds(server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str) -> None:
    """Also of a declared size, which is refused before any request."""
    declared = behaviour == "good"
    monkeypatch.setenv("NEUCO_MAX_BYTES", "1000" if declared else str(4 << 20))
    with pytest.raises(DataError, match=r"too large.*NEUCO_MAX_BYTES="):
        fetch(remote(server.url(behaviour), sized=declared))
    assert files_below(cache) == []
    assert len(server.http.requests) == (0 if declared else 1)


def test_mirrors_are_tried_in_order(server: FileServer, cache: Path) -> None:
    urls = [server.url(name) for name in ("missing", "wrong", "good", "other-name")]
    path = fetch(remote(urls[0], mirrors=tuple(urls[1:])))
    assert path.read_bytes() == BODY
    assert [path for path, _ in server.http.requests] == ["/missing/x.csv", "/wrong/x.csv", "/good/x.csv"]
    assert fetch(remote(urls[0], mirrors=tuple(urls[1:]))) == path, "what a mirror gave is found again"
    assert len(server.http.requests) == 3


def test_when_all_mirrors_fail_each_is_named(server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_RETRIES", "0")
    with FileServer() as closed:
        gone = closed.url("good")
    with pytest.raises(FetchError, match="none of the 4 addresses") as caught:
        fetch(remote(server.url("missing"), mirrors=(server.url("forbidden"), server.url("wrong"), gone)))
    for reason in ("HTTP 404", "HTTP 403", "expected sha256", "cannot be reached"):
        assert reason in str(caught.value)
    assert files_below(cache) == []


def test_a_password_is_not_printed(server: FileServer) -> None:
    url = server.url("missing").replace("http://", "http://me:secret@") + "?X-Amz-Signature=abc&versionId=7"
    with pytest.raises(FetchError) as caught:
        fetch(remote(url))
    assert "secret" not in str(caught.value)
    assert "Signature" not in str(caught.value)
    assert "versionId=7" in str(caught.value)


def test_hugging_face_addresses_become_pinned_resolve_addresses(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.base + "/")
    path = fetch(remote("hf://datasets/owner/name@0123abc/labels/a file.csv"))
    assert path.read_bytes() == BODY
    assert server.http.requests[0][0] == "/datasets/owner/name/resolve/0123abc/labels/a%20file.csv"
    for bad in ("datasets/owner/name/labels/x.csv", "name@1/x", "datasets/o/n@1/../x", "datasets/o/n@1/"):
        with pytest.raises(FetchError, match="expected hf://datasets/owner/name@revision/path"):
            fetch(remote(f"hf://{bad}"))


def test_a_progress_bar_only_when_asked_or_on_a_terminal(
    server: FileServer, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch(remote(server.url("good", "quiet.csv")))
    assert capsys.readouterr() == ("", "")
    fetch(remote(server.url("honours-range", "bar.csv")), progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "bar.csv" in err


@pytest.mark.parametrize(
    ("target", "requested"),
    [("http://a.example/x.csv?key=secret", 1), ("HTTP://b.example/", 1), ("//c.example/x.csv", 2), ("/y.csv", 2)],
)
def test_a_redirect_to_an_open_address_is_refused_before_it_is_followed(
    monkeypatch: pytest.MonkeyPatch, target: str, requested: int
) -> None:
    urls: list[str] = []

    def send(adapter: HTTPAdapter, request: requests.PreparedRequest, **_: object) -> requests.Response:
        urls.append(str(request.url))
        response = requests.Response()
        response.status_code, response.url = 302 if len(urls) == 1 else 404, urls[-1]
        response.request, response.raw = request, io.BytesIO()
        response.headers["Location"] = target
        return response

    monkeypatch.setattr(HTTPAdapter, "send", send)
    with pytest.raises(FetchError, match="insecure address" if requested == 1 else "no such file") as caught:
        fetch(remote("https://example.org/x.csv"))
    assert (len(urls), "secret" in str(caught.value)) == (requested, False)


@pytest.mark.parametrize(
    "setting", ["TIMEOUT=0", "TIMEOUT=nan", "DEADLINE=0", "MIN_SPEED=0", "RETRIES=-1", "MAX_BYTES=4GB"]
)
def test_a_setting_that_makes_no_sense_is_named(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, _, value = setting.partition("=")
    monkeypatch.setenv(f"NEUCO_{name}", value)
    with pytest.raises(UsageError, match=f"bad NEUCO_{name}; expected a number above .*got '{value}'"):
        Settings.from_environment()
