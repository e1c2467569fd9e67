"""No file takes more memory than the rules give it: a small one that unpacks to a large one fails in fixed words."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from neuco_extensions.challenge import memory
from neuco_extensions.challenge.audit import audit
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.outcome import MESSAGES
from tests.challenge.parts import DEV, IDS, embed, make_challenge

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts all memory of a process")


def test_a_bound_ends_with_its_block() -> None:
    with memory.bounded(64 << 20):
        assert np.ones(1 << 20).sum() == 1 << 20
        for _ in range(3):
            with pytest.raises(MemoryError):
                np.empty(256 << 20, dtype=np.uint8)
    assert len(np.empty(256 << 20, dtype=np.uint8)) == 256 << 20


def test_a_bound_that_the_process_has_already_is_not_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory._lower(100, -1) == 100
    assert memory._lower(100, 90) == 90


def test_a_file_that_unpacks_to_more_fails_in_fixed_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file gives the same answer in the audit, and the worker goes on with the next one."""
    monkeypatch.setattr(memory, "FREE", 48 << 20)
    small = tmp_path / "bomb.npz"  # 60 MB, which malloc never takes from memory that was used before
    np.savez_compressed(small, ids=np.array(IDS), values=np.zeros((15_000_000, 4), dtype=np.uint8))
    with Host(make_challenge(tmp_path / "c")) as host:
        host.submit("alpha", "dev", small, now=DEV)
        host.submit("alpha", "dev", embed(tmp_path / "good.npz", 0.5), now=DEV)
        assert host.work_all() == 2
        bad, good = host.journal.submissions()
        assert (bad.state, bad.code, bad.attempts) == ("failed", "failed", 1)
        assert "memory" in bad.detail
        assert host.answer(bad.id, "alpha")["message"] == MESSAGES["failed"]
        assert good.state == "scored"
    assert all(own.ok for own in audit(tmp_path / "c"))
