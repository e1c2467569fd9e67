"""A module as an installed package, for a folder on the Python path."""

from __future__ import annotations

import textwrap
from pathlib import Path


def install(folder: Path, module: str, source: str, *groups: str, name: str = "") -> None:
    """Write the module, and entry points of it in these groups: ``tasks`` is ``neuco.tasks``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{module}.py").write_text(textwrap.dedent(source))
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    name = name or module.removeprefix("neuco_")
    (info / "entry_points.txt").write_text("".join(f"[neuco.{group}]\n{name} = {module}\n" for group in groups))
