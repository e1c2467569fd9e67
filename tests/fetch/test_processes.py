"""Many processes at once, and one that is killed in the middle."""

from __future__ import annotations

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

FETCH = """
import sys
from neuco_core.specs import Remote
from neuco_core.fetch.fetch import fetch
print(fetch(Remote(sys.argv[1], sha256=sys.argv[2])), flush=True)
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


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed_in_the_middle_of_a_download(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:

    process = start(server.url("slow"))
    assert server.http.halfway.wait(60)
    while not any(path.stat().st_size for path in leftovers()):
        assert process.poll() is None
    process.send_signal(how)
    process.communicate(timeout=60)
    assert not [name for name in files_below(cache) if name.startswith("sha256/")]
    assert all(name.startswith("tmp/") for name in files_below(cache))
    server.http.released.set()
    assert fetch(remote(server.url("slow"))).read_bytes() == BODY


def test_interrupted_by_the_user_leaves_nothing(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    process = start(server.url("slow"))
    assert server.http.halfway.wait(60)
    while not any(path.stat().st_size for path in leftovers()):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert files_below(cache) == []


def test_an_atomic_write_replaces_the_whole_file_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new folder" / "x.json"
    write_atomic(path, b"first")
    write_atomic(path, b"second")
    assert path.read_bytes() == b"second"

    def fail(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, b"third")
    assert files_below(tmp_path / "new folder") == ["x.json"]
    assert path.read_bytes() == b"second"


def test_an_atomic_write_leaves_a_file_that_others_may_read(tmp_path: Path) -> None:
    plain, atomic = tmp_path / "plain", tmp_path / "atomic"
    plain.write_bytes(b"")
    write_atomic(atomic, b"")
    assert atomic.stat().st_mode == plain.stat().st_mode
