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
    """The registry that is written to: ``NEUCO_REGISTRY``, else the checkout's, else the user's own."""
    chosen = os.environ.get("NEUCO_REGISTRY")
    if chosen:
        return Path(chosen)
    root = checkout()
    return root / "registry" if root else user_registry()


def user_registry() -> Path:
    """The registry of this user, which lies over the one inside the installed package."""
    import platformdirs

    return platformdirs.user_data_path("neuco", appauthor=False) / "registry"


def layers(registry: Path) -> tuple[Path, ...]:
    """A registry and those that show through where it has nothing; the last one came with neuco."""
    shipped = PACKAGE / "_registry"
    overlaid = shipped.is_dir() and not os.environ.get("NEUCO_REGISTRY") and registry == user_registry()
    return (registry, shipped) if overlaid else (registry,)
