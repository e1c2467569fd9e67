"""A server for each file of tests: all limits are wide but that of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.challenge.parts import embed
from tests.challenge.server import Server, open_challenge, serving

LIMIT = 60_000_000
QUOTA = {"per_day = 3\nin_all = 6": "per_day = 500\nin_all = 500", "bytes = 100_000": f"bytes = {LIMIT}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = open_challenge(tmp_path_factory.mktemp("served"), QUOTA, teams=("alpha", "beta", "gamma"))
    with serving(folder, grace=20.0, stall=20.0) as found:
        yield found


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return embed(tmp_path_factory.mktemp("good") / "good.npz", 0.1).read_bytes()
