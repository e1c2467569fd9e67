"""A challenge whose labels are in a private bucket, against a real S3 server: nothing of them lies in its folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuco_extensions.challenge.audit import CHECKS, audit
from neuco_extensions.challenge.close import close
from neuco_extensions.challenge.evaluate import PhaseError
from neuco_extensions.challenge.host import Host
from tests.challenge.parts import DEV, TEST, embed, make_challenge
from tests.fetch.helpers import own_settings
from tests.fetch.s3_server import KEY, SECRET, S3Server


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server(tmp_path_factory.mktemp("s3")) as running:
        yield running


def use(s3: S3Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of the hosts, who may read the bucket, with an empty cache."""
    own_settings(cache, monkeypatch)
    for name, value in {"ENDPOINT_URL": s3.endpoint, "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("NEUCO_RETRIES", "0")


@pytest.mark.slow
def test_labels_in_a_bucket(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(s3, tmp_path / "host", monkeypatch)
    bucket, changes = s3.bucket("hidden-labels", versions=False, public=False), {}
    here = make_challenge(tmp_path / "here")
    for name in ("height", "water"):
        data = (here / f"private/labels/{name}.csv").read_bytes()
        s3.put(bucket, f"2026/{name}.csv", data)
        pinned = f'labels = "s3://{bucket}/2026/{name}.csv"\nsha256 = "{hashlib.sha256(data).hexdigest()}"'
        changes[f'labels = "private/labels/{name}.csv"'] = pinned
    folder, file = make_challenge(tmp_path / "there", changes), embed(tmp_path / "a.npz", 0.5)
    for path in (folder / "private/labels").iterdir():
        path.unlink()
    assert bucket not in "".join(path.read_text() for path in (folder / "public").iterdir())

    for own in (here, folder):
        with Host(own) as host:
            for phase, now in {"dev": DEV, "test": TEST}.items():
                host.submit("alpha", phase, file, now=now)
    with monkeypatch.context() as other:  # without the right to read the bucket a submission waits, and fails not
        other.setenv("NEUCO_CACHE", str(tmp_path / "empty"))
        other.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with Host(folder) as host:
            with pytest.raises(PhaseError, match=rf"the labels of phase dev cannot be had: s3://{bucket}/2026/height"):
                host.work()
            assert [(own.state, own.attempts) for own in host.journal.submissions()] == [("received", 0)] * 2
    with Host(here) as host, Host(folder) as remote:
        assert host.work_all() == remote.work_all() == 2
        scores = [own.scores for own in host.journal.submissions()]
        assert [own.scores for own in remote.journal.submissions()] == scores
        close(remote)

    use(s3, tmp_path / "auditor", monkeypatch)
    assert [(own.name, own.wrong) for own in audit(folder)] == [(name, "") for name in CHECKS]
    s3.put(bucket, "2026/water.csv", data.replace(b",1\n", b",0\n", 1))
    use(s3, tmp_path / "later", monkeypatch)
    with Host(folder) as host, pytest.raises(PhaseError, match="not the declared file"):
        host.hidden("test")
