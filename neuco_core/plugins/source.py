"""Plugins run from their source: never from bytecode or machine code that an earlier process left behind.

A ``.pyc`` file is believed if two numbers in it match the source's time and size, and numba's cache looks at one file
of several. So what they hold may be older than the source, or forged, while the key of the code is made from the
source. Code of plugins is therefore compiled anew in every process, and numba keeps its machine code in a folder that
begins empty and ends with the process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from pathlib import Path, PurePath
from types import CodeType, ModuleType
from typing import Any

# Trusted as the interpreter is, if they lie beside this one: the kernel takes 12 s to compile.
OWN = ("neuco_core", "neuco_extensions")
FOLDER = Path(__file__).resolve().parents[2]
NUMBA = "NUMBA_CACHE_DIR"
INSTALLED = {"site-packages", "dist-packages"}  # only pip writes there, and compiles what it wrote


class SourceLoader(SourceFileLoader):
    """Compiles a module from its source; reads and writes no bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class SourceFinder(MetaPathFinder):
    """Finds what the other finders do, and lets plugins' modules be loaded from source.

    These are modules below ``roots`` and, beside a plugin that is a single file, the other single files. With
    ``everywhere``, also all that lies outside of the folders into which packages are installed: what people edit.
    """

    def __init__(self) -> None:
        self.roots: set[str] = set()
        self.folders: set[PurePath] = set()
        self.everywhere = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        root = name.partition(".")[0]
        if root == OWN[0] or root in sys.stdlib_module_names:
            return None
        others: Iterable[Any] = (item for item in sys.meta_path if item is not self and hasattr(item, "find_spec"))
        specs: Iterator[ModuleSpec | None] = (item.find_spec(name, path, target) for item in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None or spec.origin is None or not self._is_plugins(root, spec):
            return spec
        if root in self.roots and name == root and spec.submodule_search_locations is None:
            self.folders.add(PurePath(spec.origin).parent)
        if isinstance(spec.loader, SourcelessFileLoader):
            text = f"{name} is compiled and has no source; expected a .py file"
            raise ImportError(text, name=name, path=spec.origin)  # noqa: TRY004 - no module can be had
        if type(spec.loader) is SourceFileLoader:  # others, such as pytest's, know what they do
            spec.loader = SourceLoader(name, spec.origin)
        return spec

    def _is_plugins(self, root: str, spec: ModuleSpec) -> bool:
        origin = str(spec.origin)
        if root in OWN and FOLDER / root in PurePath(origin).parents:
            return False
        if root in self.roots:
            return True
        if "." not in spec.name and spec.submodule_search_locations is None and PurePath(origin).parent in self.folders:
            return True
        return self.everywhere and not INSTALLED & set(PurePath(origin).parts)


_finder = SourceFinder()


def run_from_source(modules: Iterable[str] = (), *, everywhere: bool = False) -> None:
    """Load these modules, those below them and beside them from source from now on."""
    _finder.roots |= {module.partition(":")[0].partition(".")[0] for module in modules}
    _finder.everywhere |= everywhere
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


# The folder that numba had before it was given to plugins; empty outside of ``compiled_apart``.
_own_folder: list[str] = []


@contextmanager
def compiled_apart(folder: str = "") -> Iterator[None]:
    """Let numba keep what it compiles of plugins in a new ``folder``, which who names it removes; else in our own."""
    if _own_folder:
        yield
        return
    _own_folder.append(os.environ.get(NUMBA, ""))
    try:
        with _numba_folder(folder or _own_scratch()):
            yield
    finally:
        _own_folder.clear()


def new_scratch() -> str:
    """A folder that is not made yet, since few plugins use numba; nobody can guess its name and be there first."""
    import tempfile

    return str(PurePath(tempfile.gettempdir(), f"neuco-{os.urandom(16).hex()}"))


@cache
def _own_scratch() -> str:
    import atexit
    import shutil

    folder = new_scratch()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def compiled_here() -> Iterator[None]:
    """Let numba use its lasting cache, for neuco's own code."""
    if not _own_folder:
        yield
        return
    with _numba_folder(_own_folder[0]):
        yield


@contextmanager
def _numba_folder(folder: str) -> Iterator[None]:
    before = os.environ.get(NUMBA)
    _set(folder)
    try:
        yield
    finally:
        _set(before)


def _set(folder: str | None) -> None:
    """Numba reads the variable when it is imported, and again before it compiles."""
    if folder:
        os.environ[NUMBA] = folder
    else:
        os.environ.pop(NUMBA, None)
    if (config := getattr(sys.modules.get("numba"), "config", None)) is not None:
        config.CACHE_DIR = folder or ""
