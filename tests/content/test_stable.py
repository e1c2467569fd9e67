"""mini must be the same on a processor without the vector instructions of this one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import hashlib
from neuco_tasks.mini.cubes import cube
from neuco_tasks.mini.labels import label_text
digest = hashlib.sha256(label_text("heatisland").encode())
for index in range(0, 1200, 100):
    digest.update(cube(index).tobytes())
print(digest.hexdigest())
"""


def run(**env: str) -> str:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_vector_instructions_do_not_change_a_bit() -> None:
    from numpy._core import _multiarray_umath as umath

    present = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
    if not present:
        # Justified: numpy was built for, or runs on, a processor without any, so there is nothing to switch off.
        pytest.skip("numpy uses no optional instructions here")
    assert run() == run(NPY_DISABLE_CPU_FEATURES=" ".join(present))
