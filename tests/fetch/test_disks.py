"""A cache that is really full or really read-only: bubblewrap mounts one, which needs no rights."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fetch.helpers import BODY, files_below, remote
from tests.fetch.http_server import FileServer
from tests.parts import missing

FETCH = """
import sys
from neuco_core.errors import DataError
from neuco_core.fetch import cache, fetch
from neuco_core.specs import Remote
try:
    print(fetch.fetch(Remote(sys.argv[1], sha256=sys.argv[2])))
except DataError as error:
    print("refused:", error, cache.entries(), cache.leftovers())
"""


def mounted(url: str, *mounts: object) -> str:
    """What a fetch says where the mounts are."""
    if shutil.which("bwrap") is None:
        missing("bubblewrap", "not installed")
    command = ["bwrap", "--dev-bind", "/", "/", *map(str, mounts), sys.executable, "-c", FETCH]
    done = subprocess.run([*command, url, str(remote(url).sha256)], capture_output=True, text=True, check=False)
    if done.stderr.startswith("bwrap:"):
        missing("bubblewrap", "cannot mount", done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def _made(cache: Path) -> None:
    cache.mkdir()


def test_a_full_cache_is_named_with_what_to_do_and_holds_no_part(server: FileServer, cache: Path) -> None:
    said = mounted(server.url("good"), "--size", len(BODY) // 2, "--tmpfs", cache)
    assert said.startswith(f"refused: {cache}/tmp/fetch-")
    assert ": cannot be written: No space left on device. Free some space, or set NEUCO_CACHE" in said
    assert said.endswith("[] []")


@pytest.mark.parametrize("inside", ["", "tmp", "sha256"])
def test_a_read_only_cache_is_named_with_what_to_do(server: FileServer, cache: Path, inside: str) -> None:
    place = cache / inside
    place.mkdir(exist_ok=True)
    said = mounted(server.url("good"), "--ro-bind", place, place)
    assert said.startswith(f"refused: {place}")
    assert "cannot be written: " in said
    assert "set NEUCO_CACHE" in said
    assert files_below(cache) == []


def test_a_read_only_cache_serves_what_it_holds_and_does_not_serve_what_is_damaged(
    server: FileServer, cache: Path
) -> None:
    path = mounted(server.url("good"))
    assert mounted(server.url("good"), "--ro-bind", cache, cache) == path
    Path(path).write_bytes(BODY[:-1])
    said = mounted(server.url("good"), "--ro-bind", cache, cache)
    assert said.startswith(f"refused: {Path(path).parent}: cannot be written: Read-only file system")
