"""How the code of plugins runs: whatever it raises or ends is an error with the plugin's name, and always from source.

The first is for plugins that are broken. One that means harm can still end the process, e.g. from C: where its author
is not trusted, it runs in the sandbox of ``ci``.

From source: never from bytecode or machine code that an earlier process left behind. A ``.pyc`` file is believed if
two numbers in it match the source's time and size, and numba's cache looks at one file of several. So what they hold
may be older than the source, or forged, while the key of the code is made from the source. Code of plugins is
therefore compiled anew in every process, and numba keeps its machine code in a folder that begins empty and ends with
the process.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from pathlib import Path, PurePath
from types import CodeType, FrameType, ModuleType
from typing import Any, NoReturn

# Trusted as the interpreter is, if they lie beside this one: the kernel takes 12 s to compile.
OWN = ("neuco_core", "neuco_extensions")
FOLDER = Path(__file__).resolve().parents[2]
NUMBA = "NUMBA_CACHE_DIR"
INSTALLED = {"site-packages", "dist-packages"}  # only pip writes there, and compiles what it wrote


class Interrupted(KeyboardInterrupt):
    """The user's interrupt. A plain ``KeyboardInterrupt`` out of plugin code was raised by that code itself."""


@contextmanager
def plugin_code() -> Iterator[None]:
    """Run code of a plugin: what it prints goes to stderr, since stdout may be JSON that a program reads from us.

    ``os._exit`` raises: a command that ends without a word and with exit code 0 looks like a success.
    """
    leave, here = os._exit, (threading.get_ident(), os.getpid())
    # Python allows handlers in the main thread only; in others no signal raises anything.
    main = threading.current_thread() is threading.main_thread()
    telling = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    modules = (os, sys.modules[os.name])  # os takes the function over from posix or nt

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise Interrupted

    def refuse(status: int) -> NoReturn:
        if here != (threading.get_ident(), os.getpid()):
            leave(status)  # the child of a fork, or a thread that watches over this process
        raise RuntimeError(f"it calls os._exit({status}), which would end the whole process")

    try:
        if telling:
            signal.signal(signal.SIGINT, interrupt)
        for module in modules:
            module._exit = refuse  # type: ignore[attr-defined]
        with redirect_stdout(sys.stderr):
            yield
    finally:
        for module in modules:
            module._exit = leave  # type: ignore[attr-defined]
        if telling:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if os.getpid() != here[1]:
            leave(1)  # a fork that was left running would go on as a second neuco


class SourceLoader(SourceFileLoader):
    """Compiles a module from its source; reads and writes no bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


@dataclass(eq=False)
class SourceFinder(MetaPathFinder):
    """Finds what the other finders do, and lets plugins' modules be loaded from source.

    These are modules below ``roots`` and, beside a plugin that is a single file, the other single files. With
    ``everywhere``, also all that lies outside of the folders into which packages are installed: what people edit.
    """

    roots: set[str] = field(default_factory=set)
    folders: set[PurePath] = field(default_factory=set)
    everywhere: bool = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        root = name.partition(".")[0]
        if root == OWN[0] or root in sys.stdlib_module_names:
            return None
        others: Iterable[Any] = (item for item in sys.meta_path if item is not self and hasattr(item, "find_spec"))
        specs: Iterator[ModuleSpec | None] = (item.find_spec(name, path, target) for item in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None or spec.origin is None:
            return spec
        file = PurePath(spec.origin)
        if root in OWN and FOLDER / root in file.parents:
            return spec
        lone = name == root and spec.submodule_search_locations is None
        if root in self.roots and lone:
            self.folders.add(file.parent)
        beside = lone and file.parent in self.folders
        if not (root in self.roots or beside or (self.everywhere and INSTALLED.isdisjoint(file.parts))):
            return spec
        if isinstance(spec.loader, SourcelessFileLoader):
            text = f"{name} is compiled and has no source; expected a .py file"
            raise ImportError(text, name=name, path=spec.origin)  # noqa: TRY004 - no module can be had
        if type(spec.loader) is SourceFileLoader:  # others, such as pytest's, know what they do
            spec.loader = SourceLoader(name, spec.origin)
        return spec


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
        _use_folder(folder or _own_scratch())
        yield
    finally:
        _use_folder(_own_folder.pop())


def new_scratch() -> str:
    """A folder that is not made yet, since few plugins use numba; nobody can guess its name and be there first."""
    return str(PurePath(tempfile.gettempdir(), f"neuco-{os.urandom(16).hex()}"))


@cache
def _own_scratch() -> str:
    folder = new_scratch()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def compiled_here() -> Iterator[None]:
    """Let numba use its lasting cache, for neuco's own code."""
    if not _own_folder:
        yield
        return
    apart = os.environ.get(NUMBA, "")
    _use_folder(_own_folder[0])
    try:
        yield
    finally:
        _use_folder(apart)


def _use_folder(folder: str) -> None:
    """Numba reads the variable when it is imported, and again before it compiles."""
    if folder:
        os.environ[NUMBA] = folder
    else:
        os.environ.pop(NUMBA, None)
    if (config := getattr(sys.modules.get("numba"), "config", None)) is not None:
        config.CACHE_DIR = folder
