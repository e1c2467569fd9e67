"""The end of a challenge: not before its phases are over, and nothing comes in after it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from neuco_core.errors import UsageError
from neuco_extensions.challenge.audit import audit
from neuco_extensions.challenge.close import close
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import RefusedError
from tests.challenge.parts import DEV, TEST, embed, make_challenge


def test_nothing_is_entered_after_the_close(tmp_path: Path) -> None:
    folder = make_challenge(tmp_path / "c")
    early, late = embed(tmp_path / "early.npz", 0.5, 1), embed(tmp_path / "late.npz", 0.1, 2)
    with Host(folder) as host:
        first = host.submit("alpha", "dev", early, now=DEV, source="evalai:1")
        with pytest.raises(UsageError, match="phase test is not over"):
            close(host, now=TEST)
        with pytest.raises(UsageError, match="Run: neuco challenge evaluate"):
            close(host)
        host.work_all()
        close(host)
        with pytest.raises(RefusedError) as refused:
            host.submit("beta", "dev", late, now=DEV + timedelta(hours=1))
        assert refused.value.code == "closed"
        assert host.submit("alpha", "dev", early, now=DEV).chain == first.chain  # it is known
        assert host.submit("alpha", "dev", late, source="evalai:1").chain == first.chain
        assert len(host.journal.submissions()) == 1
    assert len([path for path in (folder / "private/files").rglob("*") if path.is_file()]) == 1
    assert all(own.ok for own in audit(folder))
