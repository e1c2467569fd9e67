"""Compile the kernels of scorer and reader once, for every sandbox: in each of them it would take ten seconds again.

It is compiled in a sandbox that holds main's core and nothing else, so that no contributed code has a hand in it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from ci import sandbox
from ci.sandbox import OUT, TREE, Limits
from neuco_core.errors import DataError
from neuco_core.fetch.cache import cache_dir

KERNELS = ("neuco_core/scoring/kernel.py", "neuco_core/tables/csv_kernel.py")
COMPILED = (*KERNELS, "neuco_core/plugins/compiled.py")  # with what says how
PROTOCOL = "neuco-2025+epochs=1,k=2"
SAMPLES = 60


def copy_code(source: Path, target: Path) -> None:
    """Copy ``neuco_core`` or ``ci`` of main for sandboxes, which cannot write: with what Python has compiled of it."""
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("*.nb[ic]"))
    forget_times(target.parent)


def forget_times(tree: Path) -> None:
    """The compiler of the kernels goes by the time of their files, and every checkout gives them another.

    Without, what was compiled once serves every checkout with the same text.
    """
    for name in KERNELS:
        if (tree / name).is_file():
            os.utime(tree / name, (0, 0))


def warm_folder(core: Path, tell: Callable[[str], None]) -> Path:
    """The compiled kernel of a tree, made if it is not there yet."""
    facts = (
        *((core / name).read_bytes() for name in KERNELS),
        metadata.version("numba"),
        sys.version,
        platform.processor(),
    )
    key = hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
    place = cache_dir() / "kernel" / key
    if not place.is_dir():
        tell("compiling main's code")
        out = place.with_name(f"{key}-{os.getpid()}")
        limits = Limits(seconds=300)
        ran = sandbox.run(("-m", "ci.warm", OUT), read={TREE: core}, out=out, limits=limits, kind="bubblewrap")
        if not ran.ok:
            raise DataError(f"the kernel cannot be compiled: {ran.status}: {ran.output[-300:]}")
        try:
            out.rename(place)
        except OSError:  # somebody else was faster
            shutil.rmtree(out)
    return place


def main(out: str) -> int:
    """In the sandbox: score something small of each kind, and keep what was compiled for it."""
    import numpy as np

    from neuco_core.scoring.scorer import score
    from neuco_core.scoring.warm import compile_all
    from neuco_core.tables.embeddings import make_embeddings
    from neuco_core.tables.labels import labels_from_table

    compile_all()
    ids = [f"s{number}" for number in range(SAMPLES)]
    values = np.random.default_rng(0).standard_normal((SAMPLES, 4)).astype(np.float32)
    for kind, labels in (("regression", values[:, 0].tolist()), ("classification", [i % 2 for i in range(SAMPLES)])):
        score(make_embeddings(ids, values), labels_from_table({"id": ids, "label": labels}, kind), PROTOCOL)
    compiled = Path(os.environ["NUMBA_CACHE_DIR"])
    if compiled.is_dir():
        shutil.copytree(compiled, out, dirs_exist_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
