"""Compile neuco's kernels before anybody waits for them: ``python -m neuco_core.scoring.warm``.

What is compiled is kept beside the code, or in the user's cache folder if that place cannot be written; where neither
can, every process compiles for itself.
"""

from __future__ import annotations

from typing import Any


def kernels() -> dict[str, Any]:
    """The functions whose machine code is kept, by what they are for."""
    from neuco_core.scoring import kernel
    from neuco_core.tables import csv_kernel

    return {"probe": kernel.fit, "csv": csv_kernel.read_rows}


def compile_all() -> None:
    """Compile what is not compiled yet; an earlier process may have done it."""
    from neuco_core.scoring import kernel
    from neuco_core.tables import csv_kernel

    kernel.warm()
    csv_kernel.warm()


if __name__ == "__main__":
    compile_all()
