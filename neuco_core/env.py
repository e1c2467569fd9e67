"""What neuco runs in: variables of the environment, the machine, installed packages, and where its own files are."""

from __future__ import annotations

import os
import re
from importlib import metadata
from pathlib import Path

from neuco_core.errors import UsageError

PACKAGE = Path(__file__).resolve().parent
ON, OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def switched_on(variable: str) -> bool:
    """Whether a variable is switched on; a word that is not a boolean is refused."""
    word = os.environ.get(variable, "")
    text = word.strip().lower()
    if text not in ON + OFF:
        expected, hint = "1/true/yes/on or 0/false/no/off", f"Correct or unset {variable}"
        raise UsageError("not a boolean", where=variable, expected=expected, got=repr(word), hint=hint)
    return text in ON


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def installed_version(package: str) -> str:
    """The version of an installed package, or ""."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def requirement_name(requirement: str) -> str:
    """The name of the package that a requirement such as ``Timm[all]>=1.0`` is about, in its one normal form."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~;@\[(]", requirement.strip(), maxsplit=1)[0]).lower()


def how_to_install(extra: str) -> str:
    """The command that brings an extra of neuco, by the names of its packages: neuco itself may be on no index."""
    of_extra = re.compile(rf"(.*?)\s*;.*extra == ['\"]{extra}['\"]")
    try:
        lines = metadata.requires("neuco") or ()
    except metadata.PackageNotFoundError:  # on the path, and not installed
        lines = ()
    packages = [match[1] for match in map(of_extra.match, lines) if match]
    return "pip install " + " ".join(f"'{name}'" for name in packages or [f"neuco[{extra}]"])


def show_in_debug(error: BaseException) -> None:
    """Print the traceback of an error that ends as a line in a table, if ``neuco --debug`` asked for it."""
    if switched_on("NEUCO_DEBUG"):
        import traceback

        traceback.print_exception(error)


def checkout() -> Path | None:
    """The root of the source checkout that neuco runs from, if it does."""
    return PACKAGE.parent if is_checkout(PACKAGE.parent) else None


def is_checkout(root: Path) -> bool:
    return (root / "pyproject.toml").is_file() and (root / "registry").is_dir()


def registry_dir() -> Path:
    """The registry that is written to: ``NEUCO_REGISTRY``, else the checkout's, else the user's own."""
    chosen = os.environ.get("NEUCO_REGISTRY")
    if chosen:
        return Path(chosen)
    root = checkout()
    return root / "registry" if root else user_registry()


def require_registry() -> Path:
    """The registry, which must be there if the user has named it: an empty list would look like an answer."""
    registry = registry_dir()
    if os.environ.get("NEUCO_REGISTRY") and not registry.is_dir():
        wrong = "is not a folder" if registry.exists() else "does not exist"
        raise UsageError(f"NEUCO_REGISTRY is set to {registry}, which {wrong}", hint="Correct or unset it")
    return registry


def user_registry() -> Path:
    """The registry of this user, which lies over the one inside the installed package."""
    import platformdirs

    return platformdirs.user_data_path("neuco", appauthor=False) / "registry"


def layers(registry: Path, top: Path | None = None) -> tuple[Path, ...]:
    """A registry and those that show through where it has nothing; the last one came with neuco.

    Scores and boards are written to the first one. In a checkout git does not see it, since only main writes these.
    ``top`` leaves out what lies above that one.
    """
    registries: tuple[Path, ...] = (registry,)
    if not os.environ.get("NEUCO_REGISTRY"):
        root, shipped = checkout(), PACKAGE / "_registry"
        if root and registry == root / "registry":
            registries = (root / ".neuco", registry)
        elif shipped.is_dir() and registry == user_registry():
            registries = (registry, shipped)
    return registries[registries.index(top) :] if top else registries
