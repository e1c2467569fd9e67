"""The cache: many processes at once, one that is killed in the middle, and a disk that is full or read-only."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from neuco_core.fetch.cache import leftovers
from neuco_core.fetch.fetch import fetch
from neuco_core.files import write_atomic
from tests.fetch.helpers import BODY, files_below, remote
from tests.fetch.http_server import FileServer
from tests.parts import missing

FETCH = """
import sys
from neuco_core.errors import DataError
from neuco_core.fetch import cache, fetch
from neuco_core.specs import Remote
try:
    print(fetch.fetch(Remote(sys.argv[1], sha256=sys.argv[2])), flush=True)
except DataError as error:
    print("refused:", error, cache.entries(), cache.leftovers())
"""


def start(url: str) -> subprocess.Popen[str]:
    digest = remote(url).sha256 or ""
    command = [sys.executable, "-c", FETCH, url, digest]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_eight_processes_all_get_the_file_and_download_it_once(server: FileServer, cache: Path) -> None:
    running = [start(server.url("slow")) for _ in range(8)]
    assert server.http.halfway.wait(60), "one of them downloads; the others come while it does"
    server.http.released.set()
    outputs = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * 8, outputs
    assert len({out for out, _ in outputs}) == 1
    assert Path(outputs[0][0].strip()).read_bytes() == BODY
    assert server.count("slow") == 1
    assert files_below(cache) == [str(Path(outputs[0][0].strip()).relative_to(cache))]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_in_the_middle_of_a_download(server: FileServer, cache: Path, how: signal.Signals) -> None:
    process = start(server.url("slow"))
    assert server.http.halfway.wait(60)
    while not any(path.stat().st_size for path in leftovers()):
        assert process.poll() is None
    process.send_signal(how)
    process.communicate(timeout=60)
    assert all(name.startswith("tmp/") for name in files_below(cache)), "nothing under a final name"
    if how == signal.SIGINT:
        assert files_below(cache) == [], "interrupted by the user"
    server.http.released.set()
    assert fetch(remote(server.url("slow"))).read_bytes() == BODY


def test_an_atomic_write_replaces_the_whole_file_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new folder" / "x.json"
    write_atomic(path, b"first")
    write_atomic(path, b"second")
    assert path.read_bytes() == b"second"
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode, "others may read it"

    def fail(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, b"third")
    assert files_below(tmp_path / "new folder") == ["x.json"]
    assert path.read_bytes() == b"second"


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


def test_a_full_cache_is_named_with_what_to_do_and_holds_no_part(server: FileServer, cache: Path) -> None:
    cache.mkdir()
    output = mounted(server.url("good"), "--size", len(BODY) // 2, "--tmpfs", cache)
    assert output.startswith("refused: ")
    assert f"({cache}/tmp/fetch-" in output
    assert "cannot be written: No space left on device (" in output
    assert output.endswith("[] []")


@pytest.mark.parametrize("inside", ["", "tmp", "sha256"])
def test_a_read_only_cache_is_named_with_what_to_do(server: FileServer, cache: Path, inside: str) -> None:
    place = cache / inside
    place.mkdir(parents=True)
    output = mounted(server.url("good"), "--ro-bind", place, place)
    assert output.startswith("refused: ")
    assert f"({place}" in output
    assert "cannot be written: " in output
    assert "set NEUCO_CACHE" in output
    assert files_below(cache) == []


def test_a_read_only_cache_serves_what_it_holds_and_does_not_serve_what_is_damaged(
    server: FileServer, cache: Path
) -> None:
    path = mounted(server.url("good"))
    assert mounted(server.url("good"), "--ro-bind", cache, cache) == path
    Path(path).write_bytes(BODY[:-1])
    output = mounted(server.url("good"), "--ro-bind", cache, cache)
    assert output.startswith("refused: cannot be written: Read-only file system")
