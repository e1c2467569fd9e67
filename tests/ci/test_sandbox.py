"""Both engines, each held to what it promises."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from ci import sandbox
from ci.sandbox import Limits, Ran, SandboxError
from tests.parts import missing

LIMITS = Limits(seconds=60, memory=600 << 20, processes=20, file_size=1 << 20, written=3 << 20, files=200)


@pytest.fixture(params=["bubblewrap", "trust"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "bubblewrap":
        need_bubblewrap()
    return str(request.param)


@pytest.fixture
def bubblewrap() -> str:
    need_bubblewrap()
    return "bubblewrap"


def need_bubblewrap() -> None:
    try:
        sandbox.protections()
    except SandboxError as error:
        missing("bubblewrap", str(error))


def run(kind: str, tmp_path: Path, code: str, limits: Limits = LIMITS, **more: bool) -> tuple[Ran, Path]:
    tree = tmp_path / "tree"
    tree.mkdir(exist_ok=True)
    (tree / "file.txt").write_text("as it was")
    arguments = ("-c", textwrap.dedent(code))
    ran = sandbox.run(arguments, read={"/tree": tree}, out=tmp_path / "out", limits=limits, kind=kind, **more)
    assert ran.engine == kind
    return ran, tmp_path / "out"


def test_code_runs_and_its_files_come_out(kind: str, tmp_path: Path) -> None:
    code = "import sys, pathlib\nprint(open('file.txt').read())\npathlib.Path(sys.argv[1], 'x').write_text('y')"
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file.txt").write_text("hello")
    ran = sandbox.run(("-c", code, "/out"), read={"/tree": tree}, out=tmp_path / "out", kind=kind)
    assert (ran.status, ran.output, (tmp_path / "out" / "x").read_text()) == ("ok", "hello\n", "y")


def test_a_failure_is_one(kind: str, tmp_path: Path) -> None:
    ran, _ = run(kind, tmp_path, "raise SystemExit(7)")
    assert (ran.status, ran.code) == ("failed", 7)


def test_no_network(bubblewrap: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ran, _ = run(bubblewrap, tmp_path, f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=5)")
    assert ran.status == "failed"
    assert "refused" in ran.output or "unreachable" in ran.output


def test_no_secrets_in_the_environment(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY", "NEUCO_REGISTRY"):
        monkeypatch.setenv(name, "cheese")
    ran, _ = run(kind, tmp_path, "import os\nprint(os.environ)")
    assert (ran.status, "cheese" in ran.output) == ("ok", False)


def test_the_tree_stays_as_it_was(kind: str, tmp_path: Path) -> None:
    run(kind, tmp_path, "open('file.txt', 'w').write('spoilt')")
    assert (tmp_path / "tree" / "file.txt").read_text() == "as it was"


@pytest.mark.parametrize("place", ["/tree/x", "/x", "/usr/x", "/dev/x", "/etc/x", "/proc/sys/kernel/hostname"])
def test_nothing_can_be_written_but_tmp_and_out(bubblewrap: str, tmp_path: Path, place: str) -> None:
    ran, _ = run(bubblewrap, tmp_path, f"open({place!r}, 'w')")
    assert ran.status == "failed"
    assert "Read-only" in ran.output or "denied" in ran.output or "No such file" in ran.output


def interpreters_below(folder: str) -> list[str]:
    """The interpreter is in reach wherever it is: of the folder that it lies in one name is seen, and no more."""
    prefixes = (Path(prefix) for prefix in (sys.prefix, sys.base_prefix))
    return sorted({path.relative_to(folder).parts[0] for path in prefixes if path.is_relative_to(folder)})


def test_tmp_is_private(bubblewrap: str, tmp_path: Path) -> None:
    with_name = tmp_path / "ours"
    with_name.touch()
    code = (
        "import os, tempfile\nprint(sorted(os.listdir('/tmp')))\nopen('/tmp/theirs', 'w')\nprint(tempfile.gettempdir())"
    )
    ran, _ = run(bubblewrap, tmp_path, code)
    assert ran.output == f"{interpreters_below('/tmp')}\n/tmp\n"
    assert not Path("/tmp/theirs").exists()


def test_the_temporary_folder_goes_with_the_run(kind: str, tmp_path: Path) -> None:
    ran, _ = run(kind, tmp_path, "import tempfile\nprint(tempfile.mkstemp()[1])")
    assert (ran.status, Path(ran.output.strip()).exists()) == ("ok", False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "tree"]


def test_our_files_and_processes_are_out_of_sight(bubblewrap: str, tmp_path: Path) -> None:
    code = f"""
    import os
    print(os.path.exists({str(tmp_path)!r}), os.path.exists({str(Path(__file__))!r}), os.path.exists('/var/log'))
    print([sorted(os.listdir(place)) if os.path.exists(place) else [] for place in ('/home', '/root')])
    print(sorted(int(name) for name in os.listdir('/proc') if name.isdigit())[-1] < 20, os.getppid())
    """
    ran, _ = run(bubblewrap, tmp_path, code)
    homes = [interpreters_below(place) for place in ("/home", "/root")]
    assert ran.output == f"False False False\n{homes}\nTrue 1\n"


def test_time(kind: str, tmp_path: Path) -> None:
    ran, _ = run(kind, tmp_path, "import time\ntime.sleep(600)", Limits(seconds=1))
    assert ran.status == "timeout"


def test_memory(kind: str, tmp_path: Path) -> None:
    ran, _ = run(kind, tmp_path, "hoard = []\nwhile True:\n    hoard.append(bytearray(b'x') * (1 << 24))")
    assert ran.status == "memory"


def test_processes(kind: str, tmp_path: Path) -> None:
    ran, _ = run(
        kind, tmp_path, "import os, time\nfor _ in range(100):\n    os.fork() or time.sleep(60)\ntime.sleep(60)"
    )
    assert ran.status == "processes"


def test_the_size_of_a_file(kind: str, tmp_path: Path) -> None:
    code = "import sys\nopen(sys.argv[1] + '/big', 'wb').write(b'x' * (1 << 22))"
    ran = sandbox.run(("-c", code, "/out"), read={}, out=tmp_path / "out", limits=LIMITS, kind=kind)
    assert (ran.status, "File too large" in ran.output) == ("failed", True)


MANY = "import sys, time\nfor i in range({count}):\n    open(f'{{sys.argv[1]}}/{{i}}', 'wb').write(b'x' * {size})\n"


@pytest.mark.parametrize(("count", "size"), [(500, 1), (10, 1 << 19)])
def test_the_number_and_the_sum_of_files(kind: str, tmp_path: Path, count: int, size: int) -> None:
    arguments = ("-c", MANY.format(count=count, size=size), "/out")
    ran = sandbox.run(arguments, read={}, out=tmp_path / "out", limits=LIMITS, kind=kind)
    assert (ran.status == "files" or "No space left" in ran.output, ran.ok) == (True, False)


ODD = {
    "a link": "os.symlink('/etc/passwd', out + '/x')",
    "a pipe": "os.mkfifo(out + '/x')",
    "a socket": "socket.socket(socket.AF_UNIX).bind(out + '/x')",
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("folder", ["", "/deep/er"])
def test_only_plain_files_come_out(kind: str, tmp_path: Path, odd: str, folder: str) -> None:
    code = f"import os, socket, sys\nout = sys.argv[1] + '{folder}'\nos.makedirs(out, exist_ok=True)\nos.chdir(out)\n"
    code += ODD[odd].replace("out + '/x'", "'x'")
    ran = sandbox.run(("-c", code, "/out"), read={}, out=tmp_path / "out", kind=kind)
    assert (ran.status, odd in ran.output, list((tmp_path / "out").iterdir())) == ("failed", True, [])


def test_folders_nested_without_end_are_refused(kind: str, tmp_path: Path) -> None:
    code = "import os, sys\nos.chdir(sys.argv[1])\nfor _ in range(1500):\n    os.mkdir('x')\n    os.chdir('x')"
    ran = sandbox.run(("-c", code, "/out"), read={}, out=tmp_path / "out", kind=kind)
    assert (ran.status, "nested" in ran.output, list((tmp_path / "out").iterdir())) == ("failed", True, [])


ORPHAN = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
time.sleep(0.3)
"""


def test_orphans_are_ended(kind: str, tmp_path: Path) -> None:
    before = set(psutil.pids())
    ran, _ = run(kind, tmp_path, ORPHAN)
    assert ran.status == "ok"
    until = time.monotonic() + 60  # for a busy kernel: what is not ended sleeps ten times as long
    while _sleepers(before) and time.monotonic() < until:
        time.sleep(0.05)
    assert _sleepers(before) == []


def _sleepers(before: set[int]) -> list[list[str]]:
    new = [process for process in map(_process, set(psutil.pids()) - before) if process]
    return [process for process in new if "time.sleep(600)" in " ".join(process)]


def _process(pid: int) -> list[str]:
    try:
        return list(psutil.Process(pid).cmdline())
    except psutil.Error:
        return []


def test_what_is_printed_without_end_is_cut(kind: str, tmp_path: Path) -> None:
    ran, _ = run(kind, tmp_path, "print('x' * 500_000)\nprint('end')")
    assert len(ran.output) <= sandbox.KEPT
    assert ran.output.endswith("end\n")


def test_a_run_in_another_thread_does_not_disturb(kind: str, tmp_path: Path) -> None:
    """The limits of one run are not those of another."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(run(kind, tmp_path / "a", "print(1)")[0].status)),
        threading.Thread(target=lambda: found.append(run(kind, tmp_path / "b", "print(1)")[0].status)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["ok", "ok"]


ORDINARY = """
import sys
from pathlib import Path
from ci import sandbox
ran = sandbox.run(("-c", "print(open('/out/x', 'w').write('y'))"), read={}, out=Path(sys.argv[1]) / "out")
print(ran.status, ran.engine, ran.output, (Path(sys.argv[1]) / "out" / "x").read_text())
"""


# Justified: only root can become somebody else, and there is nothing else to show here.
@pytest.mark.skipif(os.getuid() != 0, reason="all the other tests run as an ordinary user already")
def test_an_ordinary_user_can_use_it(bubblewrap: str, root: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 65534, 65534)
        packages = f"{root}{os.pathsep}{Path(pytest.__file__).parents[1]}"
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": packages}
        for python in (sys.executable, "/usr/bin/python3"):  # root's own interpreter may be out of others' reach
            command = [python, "-c", ORDINARY, folder]
            who = {"user": 65534, "group": 65534, "extra_groups": ()}
            with contextlib.suppress(OSError):
                done = subprocess.run(command, env=variables, cwd="/", capture_output=True, text=True, **who)
                assert (done.stdout, done.stderr) == ("ok bubblewrap 1\n y\n", "")
                return
    missing("interpreter", f"others cannot run {sys.executable}")
