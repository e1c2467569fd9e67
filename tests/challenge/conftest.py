"""A sealed challenge for each test, and a server for each file of tests: all its limits are wide but that of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from neuco_extensions.challenge.host import Host
from tests.challenge.parts import embed, make_challenge
from tests.challenge.server import Server, open_challenge, serving

LIMIT = 60_000_000
QUOTA = {"per_day = 3\nin_all = 6": "per_day = 500\nin_all = 500", "bytes = 100_000": f"bytes = {LIMIT}"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_challenge(tmp_path / "c")


@pytest.fixture
def host(folder: Path) -> Iterator[Host]:
    with Host(folder) as made:
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = open_challenge(tmp_path_factory.mktemp("served"), QUOTA, teams=("alpha", "beta", "gamma"))
    with serving(folder, grace=20.0, stall=20.0) as running:
        yield running


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return embed(tmp_path_factory.mktemp("good") / "good.npz", 0.1).read_bytes()
