"""Which files in the cache are still used, and by what."""

from __future__ import annotations

import time
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path

from neuco_core.fetch.cache import LOCK, cache_dir, entries, leftovers, tidy
from neuco_core.fetch.pins import find_pin

MADE = ("encoded", "cubes", "gathered")  # folders of what is made anew when it is missing
QUIET = 3600.0  # seconds without a write after which a download counts as dead


def users() -> dict[str, list[str]]:
    """The tasks, methods and datasets that use a file, by its sha256."""
    from neuco_core.plugins.catalog import catalog
    from neuco_core.specs import Dataset, Method, Task

    specs = [spec for plugin in catalog().plugins.survey()[0] for _, spec in plugin.specs]  # in all their versions
    sources = [(task.label, task.source) for task in specs if isinstance(task, Task)]
    methods = [spec for spec in specs if isinstance(spec, Method)]
    sources += [(m.label, remote) for m in methods for remote in (*m.files.values(), *m.weights.values())]
    sources += [(d.label, remote) for d in specs if isinstance(d, Dataset) for remote in d.archives]
    sources.sort(key=itemgetter(0))
    names: dict[str, list[str]] = {}
    for name, remote in sources:
        pin = find_pin(remote)
        if pin is not None:
            names.setdefault(pin.sha256, []).append(name)
    return names


def made_here() -> dict[str, int]:
    """Bytes of what encoders made and of cubes that were drawn, by folder of the cache."""
    sizes = {name: sum(path.stat().st_size for path in _made(name)) for name in MADE}
    return {name: size for name, size in sizes.items() if size}


def _made(name: str) -> list[Path]:
    return [path for path in sorted((cache_dir() / name).rglob("*")) if path.is_file()]


def prunable(*, everything: bool = False) -> list[Path]:
    """What can be removed: files that nobody declares, and leftovers; or everything that neuco put there."""
    used = {} if everything else users()
    unused = [item.path for item in entries() if item.sha256 not in used]
    dead = [path for path in leftovers() if time.time() - path.stat().st_mtime > QUIET]
    made = [path for name in MADE if everything for path in _made(name)]
    locks = sorted((cache_dir() / "sha256").glob(f"*/{LOCK}")) if everything else []
    return [*unused, *dead, *made, *locks]


def remove(paths: Iterable[Path]) -> None:
    """Remove files, and the folders of the cache that are then empty."""
    root = cache_dir()
    for path in paths:
        path.unlink(missing_ok=True)
        for folder in path.relative_to(root).parents:
            tidy(root / folder)
