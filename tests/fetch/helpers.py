"""Small things that the tests of fetching share."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from neuco_core.fetch.cache import LOCK
from neuco_core.specs import Remote

# About 3 MiB that do not repeat, so that a part in the wrong place is noticed.
BODY = b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(100_000))
UNSET = "NEUCO_OFFLINE NEUCO_MAX_BYTES NEUCO_RETRIES NEUCO_DEADLINE NEUCO_MIN_SPEED HF_ENDPOINT AWS_PROFILE"
UNSET += " AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN"
UNSET += " http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY"


def own_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, no settings of the user's, little patience."""
    for name in UNSET.split():
        monkeypatch.delenv(name, raising=False)
    settings = {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": folder / "no-credentials",
        "AWS_CONFIG_FILE": folder / "no-config",
        "NEUCO_CACHE": folder / "cache",
        "NEUCO_CONFIG": folder / "config",
        "NEUCO_PINS": folder / "pins.json",
        "NEUCO_TIMEOUT": "20",
        "NEUCO_BACKOFF": "0.01",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def remote(url: str, data: bytes = BODY, *, sized: bool = True, mirrors: tuple[str, ...] = ()) -> Remote:
    return Remote(url, sha256=sha256(data), size=len(data) if sized else None, mirrors=mirrors)


def files_below(folder: Path) -> list[str]:
    """Every file in the cache but locks, so that a test can say that there is nothing new."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != LOCK)
    return sorted(str(path.relative_to(folder)) for path in files)
