"""Where neuco's own files are."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """The root of the source checkout that neuco runs from, if it does."""
    root = PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() and (root / "registry").is_dir() else None


def registry_dir() -> Path:
    """The registry: ``NEUCO_REGISTRY``, else the checkout's, else the one inside the installed package."""
    chosen = os.environ.get("NEUCO_REGISTRY")
    if chosen:
        return Path(chosen)
    root = checkout()
    return root / "registry" if root else PACKAGE / "_registry"
