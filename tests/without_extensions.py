"""The core by itself: a copy of the tree in which there is no ``neuco_extensions``, for its commands and its tests.

``python -m tests.without_extensions`` runs the quick tests of the core's folders there (``make test-core``); arguments
are for pytest. Tests of the core that use an extension say so: ``@pytest.mark.extensions``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.registry import ROOT, copy_registry

FOLDERS = ("benchmarks", "ci", "docs", "examples", "neuco", "neuco_core", "neuco_methods", "neuco_tasks", "tests")
CORE = "boards cli contract cubes encode fetch plugins records runs scoring site studies tables"
# A tree that is installed as editable is on Python's path whatever the folder is.
HIDE = f"import sys\nsys.path[:] = [entry for entry in sys.path if entry != {str(ROOT)!r}]\n"


def copy_core(target: Path) -> Path:
    """A copy to be put in front of the Python path; the checkout is not seen from it."""
    # The methods of one folder are made by an extension.
    left_out = shutil.ignore_patterns("__pycache__", "torchgeo")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, target / name, ignore=left_out)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copyfile(path, target / path.name)
    copy_registry(target / "registry")
    (target / "sitecustomize.py").write_text(HIDE)
    return target


def main(args: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_core(Path(folder) / "core")
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not extensions", *args]
        tests = [] if any(arg.startswith("tests/") for arg in args) else [f"tests/{name}" for name in CORE.split()]
        return subprocess.run([*command, *tests], cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
