"""What plugins declare, as data: each is asked in a sandbox of its own, and ``registry/catalog.json`` keeps it.

``reconcile`` writes that file. Whoever judges a pull request takes it from main, so only what the pull request touches
is asked; an entry whose code is not main's is not used. In a tree in which every plugin is data (see ``ci.score``)
labels and embeddings meet: code that runs there imports no plugin of anybody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

from ci.changed import TREES
from ci.plugin_sandbox import CODE, PINS, PluginData, PluginSandbox
from ci.stub_tree import SPECS, read_json, read_rows, spec_of
from neuco_core.contract.checks.plugin import declared_sources, require_light
from neuco_core.errors import DataError, NeucoError
from neuco_core.files import dump, read_limited
from neuco_core.plugins.discovery import alike, heads
from neuco_core.text import join_names

CATALOG = "registry/catalog.json"
LARGEST = 50_000_000  # bytes of the catalogue
MOST_SPECS = 200  # of one plugin
Rows = list[dict[str, Any]]  # what a plugin declares


class CatalogEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a plugin declares, and the key of the code that said so."""

    key: str
    rows: Rows


class CatalogFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All plugins of main by their folders."""

    plugins: dict[str, CatalogEntry]
    schema: Literal[1] = 1


def describe(boxes: PluginSandbox, plugin: PluginData) -> None:
    """Ask a plugin what it registers. The answer is checked: it may speak only for itself."""
    try:
        out = boxes.inside(plugin, "describe", "describe", plugin.touched.tree, plugin.touched.name)
        if not plugin.kept:
            require_light(read_json(out / "imports.json"))
        _declare(plugin, read_rows(out / "describe.json"))
    except Exception as error:  # what comes out of a sandbox may be broken in any way
        plugin.problem = str(error) if isinstance(error, NeucoError) else f"{type(error).__name__}: {error}"
        plugin.say("import", "failed", plugin.problem, "Repair the plugin; `neuco check` shows the same")
        return
    if plugin.rows:
        names = ", ".join(f"{row['noun']} {row['spec']['id']}" for row in plugin.rows)
        plugin.say("import", "ok", f"registers {names}")
    else:
        plugin.say("import", "failed", "it registers nothing", "Yield at least one task or method from its hook")


def _declare(plugin: PluginData, rows: list[dict[str, Any]]) -> None:
    tree, name = plugin.touched.tree, plugin.touched.name
    if len(rows) > MOST_SPECS:
        raise DataError("it registers too much", expected=f"at most {MOST_SPECS} specs", got=len(rows))
    for row in rows:
        if row["noun"] not in SPECS:
            text = f"the plugin registers a {row['noun']}, which is code that takes part in scoring"
            raise DataError(text, hint="Propose it as a change to neuco_core, for a maintainer to review")
        spec = spec_of(row)
        if alike(name) not in heads(spec.id):
            raise DataError(f"{spec.id!r} is outside the plugin {name!r}")
        declared_sources(tree, name, spec)
    plugin.declare(rows)


def describe_all(boxes: PluginSandbox) -> list[PluginData]:
    """All plugins of ``boxes.base``, which is main; one that cannot be described has a ``problem``.

    So has one with an id that was another's when the catalogue was written: whoever had it keeps it.
    """
    entries, keys = _read_catalog(boxes.base), plugin_keys(boxes.base)
    plugins = [boxes.plugin(tree, name) for tree in TREES for name in boxes.folders[tree]]
    for plugin in plugins:
        entry = entries.get(plugin.touched.folder)
        rows = entry.rows if entry and entry.key == keys[plugin.touched.folder] else []
        try:
            # Where a dataset was not there, it may be here.
            if rows and not any((row.get("cubes") or {}).get("error") for row in rows):
                _declare(plugin, rows)
        except Exception:  # noqa: S110 - a damaged entry is made anew
            pass
        if not plugin.rows:
            describe(boxes, plugin)
    before = ids_by_plugin((folder, entry.rows) for folder, entry in entries.items())
    silent = {plugin.touched.folder for plugin in plugins if plugin.problem}  # their ids are not free
    for key, claims in ids_by_plugin((plugin.touched.folder, plugin.rows) for plugin in plugins).items():
        holders = {folder for _, folder in before.get(key, ())}
        folders = {folder for _, folder in claims} | holders & silent
        for plugin in plugins:
            if len(folders) > 1 and plugin.rows and plugin.touched.folder in folders - holders:
                others = join_names(sorted(folders - {plugin.touched.folder}))
                plugin.problem = f"it registers the {key[0]} {claims[0][0]!r}, and so does {others}"
                plugin.declare([])
    return plugins


def ids_by_plugin(rows_of: Iterable[tuple[str, Rows]]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """By noun and id in any spelling: the ids as they are written, each with the folder of its plugin."""
    homes: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for folder, rows in rows_of:
        for row in rows:
            name = row["spec"]["id"]
            # Several versions of an id may stand side by side.
            homes.setdefault((row["noun"], alike(name)), {})[name, folder] = None
    return {key: list(pairs) for key, pairs in homes.items()}


def _read_catalog(base: Path) -> dict[str, CatalogEntry]:
    """The entries of a tree's catalogue; none if it cannot be read, for then all of it is made anew."""
    try:
        entries = msgspec.json.decode(read_limited(base / CATALOG, LARGEST), type=CatalogFile).plugins
        ids_by_plugin((folder, entry.rows) for folder, entry in entries.items())  # that each row has one
    except (OSError, ValueError, NeucoError, LookupError, TypeError, AttributeError):
        return {}
    return entries


def catalog_bytes(plugins: Iterable[PluginData], base: Path) -> bytes:
    """The catalogue of what could be described; of others the last entry stays, which says what is theirs."""
    keys, before = plugin_keys(base), _read_catalog(base)
    entries = {}
    for plugin in plugins:
        folder = plugin.touched.folder
        if not plugin.problem:
            entries[folder] = CatalogEntry(keys[folder], plugin.rows)
        elif folder in before:
            entries[folder] = before[folder]
    return dump(msgspec.to_builtins(CatalogFile(entries)))


def plugin_keys(base: Path) -> dict[str, str]:
    """By folder, a digest of what its sandbox shows: the core, the plugin, and to a task the code of all plugins.

    So any change of a plugin's code has all tasks asked again, once, which takes seconds.
    """
    core = _digest([base / name for name in (*CODE, PINS)], base)
    code = {"neuco_tasks": _digest([base / tree for tree in TREES], base, ".py")}
    keys = {}
    for tree in TREES:
        for folder in (base / tree).glob("*/"):
            parts = core, _digest([folder], base), code.get(tree, "")
            keys[f"{tree}/{folder.name}"] = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return keys


def _digest(roots: Iterable[Path], base: Path, suffix: str = "") -> str:
    digest = hashlib.sha256()
    for root in roots:
        for path in sorted(root.rglob("*") if root.is_dir() else [root]):
            if path.is_file() and path.name.endswith(suffix) and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(base)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
