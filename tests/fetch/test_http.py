"""A server that misbehaves: each outcome, and that the cache holds nothing new after a failure."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from neuco_core.errors import ChecksumError, DataError, FetchError, UsageError
from neuco_core.fetch.fetch import fetch, file_name
from neuco_core.fetch.http import accept, read_http
from neuco_core.fetch.transfer import CHUNK, Settings, Sink
from tests.fetch.helpers import BODY, files_below, remote
from tests.fetch.http_server import HALF, FileServer

FAILURES = [
    ("truncated", FetchError, "the download stopped after 15"),
    ("stalls", FetchError, "sent nothing for 1 seconds"),
    ("silent", FetchError, "sent nothing for 1 seconds"),
    ("broken", FetchError, "the server failed (HTTP 500)"),
    ("wrong", ChecksumError, "expected sha256"),
    ("short", ChecksumError, f"expected {len(BODY)} bytes"),
    ("endless", ChecksumError, f"expected {len(BODY)} bytes"),
    ("huge", ChecksumError, "got 10000000000 or more"),
    ("missing", FetchError, "no such file (HTTP 404)"),
    ("forbidden", FetchError, "refused access (HTTP 403)"),
    ("circle", FetchError, "too many redirects"),
    ("escape", FetchError, "cannot be read"),
]
SUCCESSES = ["good", "flaky", "busy", "moved", "no-length", "compressed", "honours-range", "ignores-range"]
SUCCESSES += ["changed-between", "mixes-versions", "wrong-part", "no-more"]


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
    monkeypatch.setenv("NEUCO_TIMEOUT", "20")
    assert fetch(remote(server.url("good"))).read_bytes() == BODY


@pytest.mark.parametrize("behaviour", SUCCESSES)
def test_what_can_be_cured_is_cured(server: FileServer, cache: Path, behaviour: str) -> None:
    path = fetch(remote(server.url(behaviour)))
    assert path.read_bytes() == BODY
    assert files_below(cache) == [str(path.relative_to(cache))]
    before = len(server.http.requests)
    assert fetch(remote(server.url(behaviour))) == path
    assert len(server.http.requests) == before, "a file in the cache needs no server"


@pytest.mark.parametrize("behaviour", ["trickles", "trickles-headers"])
def test_a_server_that_sends_a_byte_now_and_then_does_not_keep_us_for_ever(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str
) -> None:
    monkeypatch.setenv("NEUCO_DEADLINE", "0.4")
    with pytest.raises(
        FetchError, match=r"too slow: \d+ bytes in 0 seconds; expected 10000 bytes per second"
    ) as caught:
        fetch(remote(server.url(behaviour)))
    assert "set NEUCO_DEADLINE or NEUCO_MIN_SPEED" in str(caught.value)
    assert files_below(cache) == []
    path = fetch(remote(server.url(behaviour), mirrors=(server.url("steady"),)))
    assert path.read_bytes() == BODY, "a mirror has a deadline of its own, and one that is fast enough may go on"
    assert files_below(cache) == [str(path.relative_to(cache))]


def test_the_same_address_works_again_when_the_server_is_repaired(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEUCO_RETRIES", "0")
    with pytest.raises(FetchError):
        fetch(remote(server.url("heals")))
    assert files_below(cache) == []
    server.http.healthy = True
    assert fetch(remote(server.url("heals"))).read_bytes() == BODY


def test_a_broken_download_goes_on_where_it_stopped(server: FileServer) -> None:
    fetch(remote(server.url("honours-range")))
    first, second = (headers for _, headers in server.http.requests)
    assert "Range" not in first
    start = int(second["Range"].removeprefix("bytes=").removesuffix("-"))
    assert HALF - CHUNK <= start <= HALF
    assert second["If-Range"] == '"v1"'


def test_the_file_is_asked_for_as_it_is_stored(server: FileServer) -> None:
    fetch(remote(server.url("good")))
    assert server.http.requests[0][1]["Accept-Encoding"] == "identity"


def test_a_compressed_answer_is_not_continued(server: FileServer) -> None:
    """Part of a compressed stream says nothing about the place in the file, so it is begun anew."""
    assert fetch(remote(server.url("compressed-cut"))).read_bytes() == BODY
    assert ["Range" in headers for _, headers in server.http.requests] == [False, False]


def test_a_bad_line_does_not_use_up_the_patience_while_it_goes_forward(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEUCO_RETRIES", "1")
    assert fetch(remote(server.url("bad-line"))).read_bytes() == BODY
    assert server.count("bad-line") == 3, "one retry is allowed, and two were needed"


def test_parts_of_two_versions_are_replaced_by_a_whole_file(server: FileServer) -> None:
    """The parts fit by length and by ETag, only the hash tells; then one clean download must follow."""
    fetch(remote(server.url("mixes-versions")))
    assert ["Range" in headers for _, headers in server.http.requests] == [False, True, False]


def test_a_missing_file_is_not_asked_for_again(server: FileServer) -> None:
    with pytest.raises(FetchError):
        fetch(remote(server.url("missing")))
    assert server.count("missing") == 1


def test_retries_are_counted(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_RETRIES", "2")
    with pytest.raises(FetchError, match=r"tried 3 times"):
        fetch(remote(server.url("broken")))
    assert server.count("broken") == 3


@pytest.mark.parametrize("behaviour", ["huge", "endless"])
def test_the_size_limit_holds_without_a_declared_size(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str
) -> None:
    monkeypatch.setenv("NEUCO_MAX_BYTES", str(4 << 20))
    with pytest.raises(DataError, match=r"too large.*NEUCO_MAX_BYTES="):
        fetch(remote(server.url(behaviour), sized=False))
    assert files_below(cache) == []


def test_a_declared_size_above_the_limit_is_refused_before_any_request(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEUCO_MAX_BYTES", "1000")
    with pytest.raises(DataError, match="too large"):
        fetch(remote(server.url("good")))
    assert server.http.requests == []


def test_mirrors_are_tried_in_order(server: FileServer, cache: Path) -> None:
    urls = [server.url(name) for name in ("missing", "wrong", "good", "other-name")]
    path = fetch(remote(urls[0], mirrors=tuple(urls[1:])))
    assert path.read_bytes() == BODY
    assert [path for path, _ in server.http.requests] == ["/missing/x.csv", "/wrong/x.csv", "/good/x.csv"]


def test_what_a_mirror_gave_is_found_again(server: FileServer) -> None:
    declared = remote(server.url("missing", "first.csv"), mirrors=(server.url("good", "second.csv"),))
    path = fetch(declared)
    before = len(server.http.requests)
    assert fetch(declared) == path
    assert len(server.http.requests) == before


def test_when_all_mirrors_fail_each_is_named(server: FileServer, cache: Path) -> None:
    with pytest.raises(FetchError) as caught:
        fetch(remote(server.url("missing"), mirrors=(server.url("forbidden"), server.url("wrong"))))
    text = str(caught.value)
    assert "none of the 3 addresses" in text
    assert "HTTP 404" in text
    assert "HTTP 403" in text
    assert "expected sha256" in text
    assert files_below(cache) == []


def test_no_server_at_all(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FileServer() as closed:
        url = closed.url("good")
    monkeypatch.setenv("NEUCO_RETRIES", "0")
    with pytest.raises(FetchError, match=r"cannot be reached.*Check the network"):
        fetch(remote(url))
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
    assert path.name == "a_file.csv"
    assert server.http.requests[0][0] == "/datasets/owner/name/resolve/0123abc/labels/a%20file.csv"


@pytest.mark.parametrize(
    "url",
    ["hf://datasets/owner/name/labels/x.csv", "hf://name@1/x", "hf://datasets/o/n@1/../x", "hf://datasets/o/n@1/"],
)
def test_hugging_face_addresses_need_a_revision_and_a_path(url: str) -> None:
    with pytest.raises(FetchError, match="expected hf://datasets/owner/name@revision/path"):
        fetch(remote(url))


def test_a_progress_bar_only_when_asked_or_on_a_terminal(
    server: FileServer, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch(remote(server.url("good", "quiet.csv")))
    assert capsys.readouterr() == ("", "")
    fetch(remote(server.url("honours-range", "bar.csv")), progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "bar.csv" in err


def test_a_redirect_from_a_secure_to_an_open_address_is_refused(tmp_path: Path) -> None:
    """What requests hands over after it has followed the redirect; no byte of the body is taken."""
    import requests

    response = requests.Response()
    response.status_code, response.url = 200, "http://example.org/x.csv"
    url = "https://example.org/x.csv"
    with closing(Sink(tmp_path / "x", url, size=None, limit=10)) as sink, pytest.raises(FetchError, match="insecure"):
        accept(response, url, sink)


def test_a_full_disk_is_named(server: FileServer) -> None:
    settings = Settings(retries=0)
    full = Sink(Path("/dev/full"), server.url("good"), size=None, limit=1 << 30)
    with closing(full), pytest.raises(DataError, match=r"cannot be written: No space left.*NEUCO_CACHE"):
        read_http(server.url("good"), full, settings)


def test_a_cache_that_cannot_be_made_is_named(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_CACHE", "/dev/null/cache")
    with pytest.raises(DataError, match=r"/dev/null/cache.*Set NEUCO_CACHE"):
        fetch(remote(server.url("good")))
    assert server.http.requests == []


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://h/a/x.csv?token=1", "x.csv"),
        ("https://h/", "file"),
        ("https://h/..", "file"),
        ("https://h/a%2Fb%00c.csv", "b_c.csv"),
        ("https://h/" + "é" * 200 + ".csv", "_" * 116 + ".csv"),
        ("s3://bucket/k/.hidden", "hidden"),
    ],
)
def test_a_file_name_is_safe_whatever_the_address(url: str, name: str) -> None:
    assert file_name(url) == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NEUCO_TIMEOUT", "0"),
        ("NEUCO_DEADLINE", "0"),
        ("NEUCO_MIN_SPEED", "0"),
        ("NEUCO_RETRIES", "-1"),
        ("NEUCO_MAX_BYTES", "4GB"),
        ("NEUCO_TIMEOUT", "nan"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=f"bad {name}; expected a number above .*got '{value}'"):
        Settings.from_environment()
