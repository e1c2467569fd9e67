"""mini must be the same on a processor without the vector instructions of this one."""

from __future__ import annotations

import pytest

from tests.command import python

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
    done = python("-c", PROGRAM, env=env)
    assert (done.code, len(done.out)) == (0, 65), done.err
    return done.out


def test_vector_instructions_do_not_change_a_bit() -> None:
    from numpy._core import _multiarray_umath as umath

    present = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
    if not present:
        # Justified: numpy was built for, or runs on, a processor without any, so there is nothing to switch off.
        pytest.skip("numpy uses no optional instructions here")
    assert run() == run(NPY_DISABLE_CPU_FEATURES=" ".join(present))
