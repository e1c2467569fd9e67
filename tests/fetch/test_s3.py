"""Against a real S3 server: versions, credentials, what is missing, a server that dies half-way, uploads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neuco_core.errors import ChecksumError, FetchError, NeucoError, OfflineError, UsageError
from neuco_core.fetch.fetch import fetch
from neuco_core.fetch.transfer import Sink
from neuco_core.fetch.upload import upload
from tests.fetch.helpers import BODY, files_below, remote, sha256
from tests.fetch.s3_server import KEY, SECRET, S3Server

FIRST, SECOND = b"id,label\na,1\nb,2\n", b"id,label\na,1\nb,3\n"


@pytest.fixture
def anonymous(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    monkeypatch.setenv("NEUCO_RETRIES", "1")
    return s3


@pytest.fixture
def owner(anonymous: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return anonymous


@pytest.fixture(scope="module")
def public(s3: S3Server) -> str:
    return s3.bucket("public-versions")


@pytest.fixture(scope="module")
def private(s3: S3Server) -> str:
    return s3.bucket("private-versions", public=False)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "my labels.csv"
    path.write_bytes(FIRST)
    return path


def test_put_twice_and_load_the_first_version_by_its_id(anonymous: S3Server, public: str) -> None:
    first = anonymous.put(public, "twice.csv", FIRST)
    second = anonymous.put(public, "twice.csv", SECOND)
    assert first
    assert first != second
    assert fetch(remote(f"s3://{public}/twice.csv?versionId={first}", FIRST)).read_bytes() == FIRST
    assert fetch(remote(f"s3://{public}/twice.csv?versionId={second}", SECOND)).read_bytes() == SECOND
    assert fetch(remote(f"s3://{public}/twice.csv", SECOND)).read_bytes() == SECOND
    with pytest.raises(ChecksumError, match="expected sha256"):
        fetch(remote(f"s3://{public}/twice.csv?versionId={second}", FIRST + b" ", sized=False))


def test_a_private_object_needs_credentials(anonymous: S3Server, private: str, monkeypatch: pytest.MonkeyPatch) -> None:
    anonymous.put(private, "mine.csv", FIRST)
    wanted = remote(f"s3://{private}/mine.csv", FIRST)
    with pytest.raises(FetchError, match="refused access"):
        fetch(wanted)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert fetch(wanted).read_bytes() == FIRST


def test_each_failure_has_its_own_plain_message(
    owner: S3Server, public: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.put(public, "there.csv", FIRST)
    there, version = f"s3://{public}/there.csv", "0" * 32
    cases = [
        (KEY, SECRET, "s3://no-such-bucket/there.csv", "there is no bucket 'no-such-bucket'"),
        (KEY, SECRET, f"s3://{public}/not-there.csv", "the bucket has no object 'not-there.csv'"),
        (KEY, SECRET, f"{there}?versionId={version}", f"the object has no version '{version}'"),
        (KEY, "wrong", there, "the S3 server does not accept your credentials (SignatureDoesNotMatch)"),
        ("nobody", "wrong", there, "the S3 server does not accept your credentials (InvalidAccessKeyId)"),
    ]
    for key, secret, url, message in cases:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
        with pytest.raises(FetchError) as caught:
            fetch(remote(url, FIRST))
        assert (caught.value.where, caught.value.what) == (url, message)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(FetchError, match=r"the S3 server cannot be reached \(tried 2 times\)"):
        fetch(remote(there, FIRST))
    assert files_below(cache) == []


@pytest.mark.parametrize("times", [1, 9])
def test_a_broken_transfer_goes_on_where_it_stopped_and_is_given_up_at_last(
    anonymous: S3Server, public: str, cache: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """A real server, and a reader whose line breaks after the first megabyte."""
    anonymous.put(public, "resumed.bin", BODY)
    write, start, starts, broken = Sink.write, Sink.start, [], []

    def breaking(self: Sink, chunk: bytes) -> int:
        if self.received > 1_000_000 and len(broken) < times:
            broken.append(self.received)
            raise ConnectionResetError
        return write(self, chunk)

    def watched(self: Sink, **parts: Any) -> None:
        starts.append(parts["offset"])
        start(self, **parts)

    monkeypatch.setattr(Sink, "write", breaking)
    monkeypatch.setattr(Sink, "start", watched)
    wanted = remote(f"s3://{public}/resumed.bin")
    if times == 1:
        assert fetch(wanted).read_bytes() == BODY
    else:
        with pytest.raises(FetchError, match=r"stopped after \d+ bytes: the connection .* was lost.*tried 2 times"):
            fetch(wanted)
        assert files_below(cache) == []
    assert starts == [0, broken[0]]


def test_an_upload_is_verified_by_the_server_readable_by_others_and_stays(
    owner: S3Server, public: str, labels: Path
) -> None:
    stored = upload(labels, f"s3://{public}/tasks/mine/")
    assert stored.version
    assert stored.confirmed
    assert stored.remote.url == f"s3://{public}/tasks/mine/my%20labels.csv?versionId={stored.version}"
    assert stored.declaration == f'Remote("{stored.remote.url}", sha256="{sha256(FIRST)}", size={len(FIRST)})'
    labels.write_bytes(SECOND)
    second = upload(labels, f"s3://{public}/tasks/mine/")
    assert fetch(stored.remote).read_bytes() == FIRST
    assert fetch(second.remote).read_bytes() == SECOND


def test_an_upload_that_others_cannot_read_says_so(owner: S3Server, private: str, labels: Path) -> None:
    with pytest.raises(FetchError, match=r"stored, but others cannot read it.*policy allow s3:GetObject"):
        upload(labels, f"s3://{private}/mine/")


def test_an_upload_never_destroys_what_is_there(owner: S3Server, labels: Path) -> None:
    bucket = owner.bucket("no-versions", versions=False)
    stored = upload(labels, f"s3://{bucket}/x.csv")
    assert stored.version == ""
    labels.write_bytes(SECOND)
    with pytest.raises(UsageError, match="has this object and keeps no versions"):
        upload(labels, f"s3://{bucket}/x.csv")
    assert fetch(stored.remote).read_bytes() == FIRST


def test_bytes_that_change_on_the_way_are_refused_by_the_server(
    owner: S3Server, public: str, labels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checksum is declared from other bytes than are sent, as if a bit had flipped in between."""
    monkeypatch.setattr("neuco_core.fetch.upload.hash_file", lambda path: sha256(SECOND))
    with pytest.raises(ChecksumError, match="the server received different bytes"):
        upload(labels, f"s3://{public}/flipped.csv")


def test_an_upload_without_rights(anonymous: S3Server, public: str, labels: Path) -> None:
    with pytest.raises(FetchError, match="the upload failed: the S3 server refused access"):
        upload(labels, f"s3://{public}/x.csv")


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("https://example.org/x", UsageError, "bad target"),
        ("hf://datasets/o/n", UsageError, "uploads to Hugging Face are not ours to make.*hf upload OWNER/NAME"),
        ("s3://", FetchError, "expected s3://bucket"),
        ("s3:///key", FetchError, "expected s3://bucket"),
    ],
)
def test_bad_targets(labels: Path, target: str, error: type[NeucoError], message: str) -> None:
    with pytest.raises(error, match=message):
        upload(labels, target)


def test_no_upload_when_offline(labels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    with pytest.raises(OfflineError):
        upload(labels, "s3://bucket/")
