"""What a team has left is what the journal will accept, and tells nothing before the answers do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import RefusedError, Submission, stamp
from neuco_extensions.challenge.quota import left
from tests.challenge.parts import DEV, embed, make_challenge

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(make_challenge(tmp_path / "c", {"dim = 16": "dim = 16\nfailed_per_day = 2\ntick = 3600"}))


def evaluated(host: Host) -> list[Submission]:
    """The submissions, as if each had been evaluated a minute after its receipt."""
    host.work_all()
    return [own._replace(finished=stamp(DEV + timedelta(minutes=1))) for own in host.journal.submissions()]


def test_the_journal_accepts_as_many_as_are_left(host: Host, tmp_path: Path) -> None:
    for number, (day, today, in_all) in enumerate(((0, 3, 6), (0, 2, 5), (0, 1, 4), (1, 3, 3), (1, 2, 2), (1, 1, 1))):
        now = DEV + day * DAY
        own = host.journal.submissions(team="alpha")
        assert left(host.challenge, own, now=now)["dev"] == {"today": today, "in_all": in_all}
        host.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.5, number), now=now)
        if today == 1:
            with pytest.raises(RefusedError):
                host.submit("alpha", "dev", embed(tmp_path / "a.npz", 0.5, 99), now=now)
    own = host.journal.submissions(team="alpha")
    assert left(host.challenge, own, now=DEV + 2 * DAY)["dev"] == {"today": 0, "in_all": 0}
    assert left(host.challenge, own, now=DEV)["test"] == {"today": 3, "in_all": 3}
    host.close()


def test_a_file_that_cannot_be_read_is_given_back_with_its_answer(host: Host) -> None:
    host.submit("alpha", "dev", [b"no embeddings"], now=DEV)
    own = evaluated(host)
    assert own[0].code == "format"
    assert left(host.challenge, own, now=DEV + HOUR)["dev"] == {"today": 2, "in_all": 5}
    assert left(host.challenge, own, now=DEV + 2 * HOUR)["dev"] == {"today": 3, "in_all": 6}
    host.submit("alpha", "dev", [b"again"], now=DEV)
    own = evaluated(host)
    with pytest.raises(RefusedError):
        host.submit("alpha", "dev", [b"and again"], now=DEV)
    assert left(host.challenge, own, now=DEV + 2 * HOUR)["dev"] == {"today": 0, "in_all": 6}
    assert left(host.challenge, own, now=DEV + DAY)["dev"] == {"today": 3, "in_all": 6}
    host.close()
