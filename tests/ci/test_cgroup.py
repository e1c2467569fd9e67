"""Limits that the kernel holds by itself, in a control group: here, or in a kernel of our own where we may make none.

That kernel is User Mode Linux (the package user-mode-linux): it runs as a program, on this machine's files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.sandbox.limits import cgroup_parent
from tests.ci.helpers import ROOT
from tests.ci.test_sandbox import need_bubblewrap

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
    need_bubblewrap()
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
