"""A cache of its own for every test, and real servers on the loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fetch.http_server import FileServer
from tests.fetch.s3_server import S3Server


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no settings of the user's, little patience."""
    for name in (
        "NEUCO_OFFLINE",
        "NEUCO_MAX_BYTES",
        "NEUCO_RETRIES",
        "HF_ENDPOINT",
        "AWS_PROFILE",
        "AWS_ENDPOINT_URL_S3",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "ENDPOINT_URL"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    for proxy in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NEUCO_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("NEUCO_PINS", str(tmp_path / "pins.json"))
    monkeypatch.setenv("NEUCO_TIMEOUT", "20")
    monkeypatch.setenv("NEUCO_BACKOFF", "0.01")
    return tmp_path / "cache"


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as running:
        yield running


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server(tmp_path_factory.mktemp("s3")) as running:
        yield running
