"""A copy of the committed registry, without what else lies there, such as records of somebody's own method."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def copy_registry(target: Path) -> Path:
    """Copy the tracked files of ``registry/``; outside of git, as from a source distribution, all of them."""
    command = ["git", "ls-files", "-z", "registry"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    names = [name for name in listed.stdout.split("\0") if name]
    if listed.returncode or not names:
        shutil.copytree(ROOT / "registry", target)
        return target
    for name in names:
        source, copy = ROOT / name, target / Path(name).relative_to("registry")
        if source.exists():  # a removal that is not committed yet
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
    return target
