"""The sandbox is held to what it promises."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from ci import sandbox
from ci.__main__ import sandbox_warnings
from ci.sandbox import Limits, Ran, SandboxError, take
from ci.sandbox.limits import cgroup_parent
from tests.ci.helpers import ROOT, need_bubblewrap
from tests.parts import missing

LIMITS = Limits(seconds=60, memory=600 << 20, processes=20, file_size=1 << 20, written=3 << 20, files=200)


@pytest.fixture(autouse=True, scope="module")
def bubblewrap() -> None:
    need_bubblewrap()


def run(tmp_path: Path, code: str, limits: Limits = LIMITS) -> Ran:
    """Run code where ``file.txt`` is in the tree, and the folder of results is the argument."""
    tree = tmp_path / "tree"
    tree.mkdir(exist_ok=True)
    (tree / "file.txt").write_text("as it was")
    command = ("-c", f"import os, sys, time\n{textwrap.dedent(code)}", "/out")
    return sandbox.run(command, read={"/tree": tree}, out=tmp_path / "out", limits=limits)


def put_first(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A ``bwrap`` that is found before the machine's own."""
    (folder / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_without_bubblewrap_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=r"not on the PATH\. Install it"):
        sandbox.run(("-c", "print(1)"), read={}, out=tmp_path / "out")


def test_a_bubblewrap_that_does_not_work_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_first(tmp_path, monkeypatch, "echo no namespaces for you >&2\nexit 1")
    with pytest.raises(SandboxError, match=r"does not work here: no namespaces for you .*Install it"):
        sandbox.run(("-c", "print(1)"), read={}, out=tmp_path / "out")


def test_an_old_bubblewrap_will_do_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = 'case "$*" in *--disable-userns*) echo unknown option >&2; exit 1;; esac'
    put_first(tmp_path, monkeypatch, f'{refuse}\nexec {shutil.which("bwrap")} "$@"')
    assert run(tmp_path, "print(1)").ok
    assert sandbox.protections()["no nested user namespaces"] is False
    (warning,) = sandbox_warnings()
    assert (warning.status, warning.detail) == ("warning", "bubblewrap lacks here: no nested user namespaces")


ORDERLY = """
import pathlib, tempfile
pathlib.Path(sys.argv[1], "x").write_text(open("file.txt").read())
print("cheese" in str(os.environ), tempfile.mkstemp()[1])
try:
    open("file.txt", "w").write("spoilt")
except OSError:
    pass
print("x" * 500_000)
raise SystemExit(7)
"""


def test_files_come_out_and_nothing_else_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY", "NEUCO_REGISTRY"):
        monkeypatch.setenv(name, "cheese")
    ran = run(tmp_path, ORDERLY)
    assert (ran.status, ran.code, len(ran.output) <= sandbox.KEPT) == ("failed", 7, True)
    assert (tmp_path / "out" / "x").read_text() == "as it was"
    assert (tmp_path / "tree" / "file.txt").read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "tree"]
    ran = run(tmp_path, ORDERLY.replace("500_000", "5"))
    secret, temporary = ran.output.split()[:2]
    assert (secret, Path(temporary).exists()) == ("False", False)


PROBE = """
import socket, tempfile
for place in ("/tree/x", "/x", "/usr/x", "/dev/x", "/etc/x", "/proc/sys/kernel/hostname"):
    try:
        open(place, "w")
        print(place, "can be written")
    except OSError as error:
        assert any(message in str(error) for message in ("Read-only", "denied", "No such file")), error
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=5)
    print("there is a network")
except OSError as error:
    assert "refused" in str(error) or "unreachable" in str(error), error
print(sorted(os.listdir("/tmp")), tempfile.gettempdir())
open("/tmp/theirs", "w")
print([place for place in {ours!r} if os.path.exists(place)])
print([sorted(os.listdir(place)) if os.path.exists(place) else [] for place in ("/home", "/root")])
print(sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[-1] < 20, os.getppid())
print(os.listdir("/proc/self/fd"))
print(sorted(name for name in os.environ if "NEUCO" in name or "CI" in name))
"""


def interpreters_below(folder: str) -> list[str]:
    """The interpreter is in reach wherever it is: of the folder that it lies in one name is seen, and no more."""
    prefixes = (Path(prefix) for prefix in (sys.prefix, sys.base_prefix))
    return sorted({path.relative_to(folder).parts[0] for path in prefixes if path.is_relative_to(folder)})


def test_nothing_of_ours_is_in_reach(tmp_path: Path) -> None:
    """Nor does the environment tell that this is CI."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = [str(tmp_path), __file__, "/var/log"]
        ran = run(tmp_path, PROBE.format(port=server.getsockname()[1], ours=ours))
    homes = [interpreters_below(place) for place in ("/home", "/root")]
    assert ran.output.splitlines() == [
        f"{interpreters_below('/tmp')} /tmp",
        "[]",
        f"{homes}",
        "True 1",
        "['0', '1', '2', '3']",  # the last is the folder that is being listed
        "['NEUCO_CACHE']",
    ]
    assert not Path("/tmp/theirs").exists()


MANY = "for i in range({}):\n    open(f'{{sys.argv[1]}}/{{i}}', 'wb').write(b'x' * {})\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("time.sleep(600)", "timeout"),
        ("hoard = []\nwhile True:\n    hoard.append(bytearray(b'x') * (1 << 24))", "memory"),
        ("for _ in range(100):\n    os.fork() or time.sleep(60)\ntime.sleep(60)", "processes"),
        ("open(sys.argv[1] + '/big', 'wb').write(b'x' * (1 << 22))", "File too large"),
        (MANY.format(500, 1), "files"),
        (MANY.format(10, 1 << 19), "files"),
    ],
)
def test_a_limit_ends_a_run(tmp_path: Path, code: str, status: str) -> None:
    limits = Limits(seconds=1) if status == "timeout" else LIMITS
    ran = run(tmp_path, code, limits)
    full = status == "files" and "No space left" in ran.output
    assert not ran.ok
    assert ran.status == status or status in ran.output or full, ran


def taken(folder: Path, out: Path) -> tuple[bool, str]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return take([descriptor], out, Limits(files=200, written=1 << 20))
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("deep", ["", "deep/er"])
@pytest.mark.parametrize("odd", ["a link", "a pipe", "a socket"])
def test_only_plain_files_are_taken(odd: str, deep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out = tmp_path / "results" / deep, tmp_path / "out"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    (folder / "plain").touch()
    assert taken(tmp_path / "results", out) == (False, "")
    assert (out / deep / "plain").is_file()
    if odd == "a link":
        (folder / "x").symlink_to("/etc/passwd")
    elif odd == "a pipe":
        os.mkfifo("x")
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("x")
    _, message = taken(tmp_path / "results", out)
    assert (odd in message, list(out.iterdir())) == (True, [])


ODD = """
os.chdir(sys.argv[1])
{}
os.mkfifo("x")
"""
NESTED = "for _ in range(1500):\n    os.mkdir('x')\n    os.chdir('x')"


@pytest.mark.parametrize(("code", "message"), [("", "a pipe"), (NESTED, "nested")])
def test_odd_results_make_a_run_fail(tmp_path: Path, code: str, message: str) -> None:
    ran = run(tmp_path, ODD.format(code), Limits())
    assert (ran.status, message in ran.output, list((tmp_path / "out").iterdir())) == ("failed", True, [])


ORPHAN = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
time.sleep(0.3)
"""


def sleepers() -> set[int]:
    pids = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if "time.sleep(600)" in " ".join(process.cmdline()):
                pids.add(process.pid)
    return pids


def test_orphans_are_ended(tmp_path: Path) -> None:
    before = sleepers()
    assert run(tmp_path, ORPHAN).status == "ok"
    until = time.monotonic() + 60  # for a busy kernel: what is not ended sleeps ten times as long
    while sleepers() - before and time.monotonic() < until:
        time.sleep(0.05)
    assert sleepers() <= before


ORDINARY = """
import sys
from pathlib import Path
from ci import sandbox
from ci.__main__ import sandbox_warnings
ran = sandbox.run(("-c", "print(open('/out/x', 'w').write('y'))"), read={}, out=Path(sys.argv[1]) / "out")
print(ran.status, ran.output, (Path(sys.argv[1]) / "out" / "x").read_text())
"""


# Justified: only root can become somebody else, and there is nothing else to show here.
@pytest.mark.skipif(os.getuid() != 0, reason="all the other tests run as an ordinary user already")
def test_an_ordinary_user_can_use_it(root: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 65534, 65534)
        packages = f"{root}{os.pathsep}{Path(pytest.__file__).parents[1]}"
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": packages}
        for python in (sys.executable, "/usr/bin/python3"):  # root's own interpreter may be out of others' reach
            command = [python, "-c", ORDINARY, folder]
            who = {"user": 65534, "group": 65534, "extra_groups": ()}
            with contextlib.suppress(OSError):
                done = subprocess.run(command, env=variables, cwd="/", capture_output=True, text=True, **who)
                assert (done.stdout, done.stderr) == ("ok 1\n y\n", "")
                return
    missing("interpreter", f"others cannot run {sys.executable}")


INIT = """#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs tmp /mnt
mount -t cgroup2 group /sys/fs/cgroup
echo "+memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/us; echo $$ >/sys/fs/cgroup/us/cgroup.procs
cd {root} && TMPDIR=/mnt PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 {python} {script} /mnt
echo o >/proc/sysrq-trigger; sleep 60
"""
# Nobody looks for three seconds, so that only the kernel can be quick enough.
SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from ci import sandbox
from ci.sandbox import Limits
from ci.sandbox.limits import cgroup_parent
sys.modules['ci.sandbox.limits'].ROUND = 3
hoard = "hoard = [bytearray(b'x') * (8 << 20) for _ in range(12)]"
forks = "import os, time\\nfor _ in range(50):\\n    os.fork() or (time.sleep(9), os._exit(0))"
for code in ("print(1)", hoard, forks):
    limits = Limits(seconds=60, memory=64 << 20, processes=8)
    ran = sandbox.run(("-c", code + "\\nprint('done')"), read={{}}, out=Path(sys.argv[1]) / "out", limits=limits)
    print("ran:", ran.status, "done" in ran.output)
print("left:", len(list(cgroup_parent().glob("neuco-*"))))
"""


def test_a_control_group_holds_memory_and_processes(tmp_path: Path) -> None:
    script, init = tmp_path / "script.py", tmp_path / "init"
    script.write_text(SCRIPT.format(root=str(ROOT)))
    init.write_text(INIT.format(root=ROOT, python=sys.executable, script=script))
    init.chmod(0o755)
    command = [sys.executable, str(script), str(tmp_path)]
    if cgroup_parent() is None:
        kernel = shutil.which("linux.uml")
        if kernel is None:
            # Justified: ordinary users of most machines have no right to control groups, and CI is one of them.
            pytest.skip("no right to make control groups here, and no User Mode Linux")
        command = [kernel, "mem=1500M", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}", "con=null"]
        command += ["con0=null,fd:1", "quiet", f"uml_dir={tmp_path}"]
    done = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200)
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith(("ran:", "left:"))]
    assert lines == ["ran: ok True", "ran: memory False", "ran: processes False", "left: 0"], done.stdout + done.stderr
