"""One sandbox for each plugin and step: what it sees, what it is asked, and what it may not see."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from ci import sandbox
from ci.changed import TREES, Touched
from ci.environments import INSTALLING, PACKAGES, install, with_packages
from ci.report import PluginReport, cut
from ci.sandbox import OUT, TREE, WARM, Limits
from ci.stub_tree import read_json, spec_of
from neuco_core.contract.contract import Finding, Status
from neuco_core.encode.requirements import FILE
from neuco_core.errors import DataError
from neuco_core.fetch.cache import cache_dir
from neuco_core.fetch.fetch import find_pin
from neuco_core.plugins.code_key import TESTS, WORDS
from neuco_core.specs import Dataset, Method, Task

CUBES, SAMPLES, COPY = "/cubes", "/samples", "/copy"  # exported cubes, shuffled ones; the local copy of a dataset
CODE = ("neuco_core", "neuco_extensions", "ci")  # main's own, which no plugin replaces
COMPILED = ("labels", "tests")  # the steps of a task that run main's compiled kernels
IN_EARNEST = ("encode", "tests")  # a description needs no packages: whoever lists methods has none of them either
OVER = "the time for the whole pull request is over (--deadline)"
SHARE, SHARE_OF_ALL = 0.1, 0.5  # of that time: what one plugin of main may take, and all of them together
PINS = "registry/pins.json"
KEPT = "kept"  # a plugin that the pull request does not touch
COMPILING = Limits(seconds=300)
KERNELS = ("neuco_core/scoring/kernel.py", "neuco_core/tables/csv_kernel.py")


@dataclass
class PluginData:
    """A plugin on its way from code to data. ``rows`` are what it declared, ``made`` is where its results go.

    ``left`` is how many seconds it may still take.
    """

    touched: Touched
    folder: Path
    made: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    fetched: dict[str, Path] = field(default_factory=dict)
    problem: str = ""
    left: float = math.inf
    datasets: list[Dataset] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    methods: list[Method] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.declare(self.rows)

    def declare(self, rows: list[dict[str, Any]]) -> None:
        """Take what the plugin registers; a row that is no spec is an error."""
        specs = [spec_of(row) for row in rows]
        self.rows = rows
        self.datasets = [spec for spec in specs if isinstance(spec, Dataset)]
        self.tasks = [spec for spec in specs if isinstance(spec, Task)]
        self.methods = [spec for spec in specs if isinstance(spec, Method)]

    @property
    def kept(self) -> bool:
        return self.touched.how == KEPT

    def ids(self, noun: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row["spec"]["id"] for row in self.rows if row["noun"] == noun))

    def result(self, kind: str, method: Method, dataset: Dataset) -> Path:
        """Where the array is that an encoder made of a dataset; ``kind`` is ``embeddings`` or ``disturbed``."""
        return self.made / kind / method.label / f"{dataset.id}.npy"

    def weights(self) -> dict[str, Path]:
        """Fetched weights of encoders by sha256: all that a method's sandbox sees of what was fetched."""
        pins = [find_pin(remote) for method in self.methods for remote in method.weights.values()]
        hashes = {pin.sha256 for pin in pins if pin}
        return {sha: path for sha, path in self.fetched.items() if sha in hashes}

    def say(self, check: str, status: Status, detail: str, cure: str = "") -> None:
        self.findings.append(Finding(check, self.touched.name, status, detail, cure))

    def report(self) -> PluginReport:
        tree, name, how = self.touched.tree, self.touched.name, self.touched.how
        # Whoever reads the report checks the words, also these two.
        return PluginReport(tree, name, how, self.ids("task"), self.ids("method"), cut(self.findings))  # type: ignore[arg-type]


class PluginSandbox:
    """Runs parts of plugins with the code of ``base``, each in a sandbox of its own.

    ``folders`` are those of all plugins, by tree and name; ``tell`` is given a line when something begins that may
    take long.
    """

    def __init__(
        self,
        base: Path,
        scratch: Path,
        limits: Limits,
        deadline: float = math.inf,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.base, self.scratch, self.limits, self.deadline = base, scratch, limits, deadline
        self.tell = tell
        whole = deadline - time.monotonic()
        self.budget, self.left_for_main = SHARE * whole, SHARE_OF_ALL * whole
        scratch.mkdir(parents=True, exist_ok=True)
        self._copies: dict[tuple[Path, bool, bool], Path] = {}
        self.folders: dict[str, dict[str, Path]] = {tree: plugin_folders(base / tree) for tree in TREES}

    def plugin(self, tree: str, name: str, how: str = KEPT) -> PluginData:
        made = self.scratch / "made" / how / tree / name
        return PluginData(Touched(tree, name, how), self.folders[tree][name], made, left=self.budget)

    def mounts(self, plugin: PluginData, step: str = "") -> dict[str, Path]:
        """What a plugin's sandbox sees: main's core, the plugin, and for a task the code (not the data) of the others.

        A method sees no task and no other method, so no labels and nobody else's results. The sources of mounts can be
        read inside: they are copies in folders with random names, which say neither what is run nor why; nor do times
        and modes of files. Where numbers are made there is neither card nor test: no code key holds them.
        """
        touched = plugin.touched
        whole = step in ("describe", "tests")
        parts = (*CODE, "registry", *(f"{tree}/__init__.py" for tree in TREES))
        mounts = {f"{TREE}/{name}": self._core() / name for name in parts}
        for tree in TREES if touched.tree == "neuco_tasks" else ():
            for name, folder in self.folders[tree].items():
                mounts[f"{TREE}/{tree}/{name}"] = self._copied(folder, whole, code_only=tree == touched.tree)
        mounts[f"{TREE}/{touched.folder}"] = self._copied(plugin.folder, whole)
        return mounts

    def _copied(self, folder: Path, whole: bool, *, code_only: bool = False) -> Path:
        """A copy of a plugin, made once; links stay links, so that none leads out of it."""

        def ignored(path: str, names: list[str]) -> list[str]:
            data = [name for name in names if not name.endswith(".py") and not (Path(path) / name).is_dir()]
            tests = TESTS if Path(path) == folder else ()
            words = [name for name in names if name in tests or WORDS.fullmatch(name)]
            return ["__pycache__", *(data if code_only else ()), *(() if whole else words)]

        key = folder, whole, code_only
        if key not in self._copies:
            copy = self._copies[key] = Path(tempfile.mkdtemp(dir=self.scratch)) / "plugin"
            shutil.copytree(folder, copy, symlinks=True, ignore=ignored, copy_function=shutil.copyfile)
            for path in (copy, *copy.rglob("*")):  # git's checkout and ours give them different ones
                os.utime(path, (0, 0), follow_symlinks=False)
        return self._copies[key]

    def within(self, limits: Limits, plugin: PluginData | None = None) -> Limits:
        """The limits of a step that begins now: none goes on beyond the deadline of the whole.

        Nor beyond what is left to a plugin of main: one that is slow takes no time from what is judged.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise DataError(OVER, hint="Make several pull requests, or make the plugin faster")
        if plugin is not None and plugin.kept:
            left = min(left, plugin.left, self.left_for_main)
            if left <= 0:
                expected = f"at most {self.budget:.0f} s for each plugin of main"
                what, hint = f"no time is left for {plugin.touched.folder}", "Run it again with a longer --deadline"
                raise DataError(what, expected=expected, hint=hint)
        return replace(limits, seconds=min(limits.seconds, left))

    @contextlib.contextmanager
    def timed(self, plugin: PluginData) -> Iterator[None]:
        """What is done for a plugin of main takes of its time."""
        start = time.monotonic()
        try:
            yield
        finally:
            if plugin.kept:
                taken = time.monotonic() - start
                plugin.left -= taken
                self.left_for_main -= taken

    def _core(self) -> Path:
        core = self.scratch / "core"
        if not core.exists():
            copy_main(self.base, core, ("registry/suites", PINS))
        return core

    def warm(self) -> dict[str, Path]:
        """The compiled kernels, for a step that may need them."""
        return {WARM: warm_folder(self._core(), self.within(COMPILING), self.tell)}

    def run(self, plugin: PluginData, step: str, *arguments: str, **read: Path) -> tuple[sandbox.Ran, Path]:
        """Run Python on a plugin; ``read`` are further folders that it sees, by their place without the slash."""
        out = self.scratch / "out" / plugin.touched.how / plugin.touched.folder / step
        self.tell(f"{plugin.touched.folder}: {step}")
        mounts = {**self.mounts(plugin, step), **{f"/{name}": path for name, path in read.items()}}
        is_method = plugin.touched.tree == "neuco_methods"
        mounts |= in_cache(plugin.weights() if is_method else plugin.fetched)
        lock = plugin.folder / FILE
        if is_method and step.startswith(IN_EARNEST) and lock.is_file():
            self.tell(f"{plugin.touched.folder}: packages")
            with self.timed(plugin):
                mounts[PACKAGES] = install(lock, self.within(INSTALLING, plugin).seconds)
            arguments = with_packages(arguments)
        if not is_method and step.startswith(COMPILED):
            mounts |= self.warm()
        limits = self.within(self.limits, plugin)
        with self.timed(plugin):
            ran = sandbox.run(arguments, read=mounts, out=out, limits=limits, hide_labels=is_method)
        return ran, out

    def inside(self, plugin: PluginData, step: str, *arguments: str, **read: Path) -> Path:
        """Run a command of ``ci.inside``; if it fails, the error says how."""
        ran, out = self.run(plugin, step, "-m", "ci.inside", OUT, *arguments, **read)
        if ran.ok:
            return out
        if ran.status != "failed":
            self.within(self.limits, plugin)
            raise DataError(f"{arguments[0]}: stopped at the limit of {ran.status}", expected=limit(ran, self.limits))
        try:
            reason = str(read_json(out / "error.json")["error"])
        except (DataError, KeyError, TypeError):
            reason = f"ended with code {ran.code}: {' '.join(ran.output.split())[-300:]}"
        raise DataError(reason)


def limit(ran: sandbox.Ran, limits: Limits) -> str:
    """The limit that a run was stopped at, in words."""
    texts = {
        "timeout": f"{limits.seconds:g} s",
        "memory": f"{limits.memory >> 20} MB",
        "processes": f"{limits.processes} processes",
        "files": f"{limits.files} files and {limits.written >> 20} MB",
    }
    return f"at most {texts[ran.status]}"


def in_cache(files: Mapping[str, Path]) -> dict[str, Path]:
    """Files that were fetched and verified outside, by sha256, in the place where the sandbox looks for them."""
    return {f"/tmp/cache/sha256/{sha[:2]}/{sha}": path.parent for sha, path in files.items()}  # noqa: S108


def plugin_folders(tree: Path) -> dict[str, Path]:
    """The plugins of a tree by name."""
    paths = sorted(tree.iterdir()) if tree.is_dir() else []
    return {path.name: path for path in paths if (path / "__init__.py").is_file() and not path.is_symlink()}


def copy_main(base: Path, target: Path, registry: Iterable[str]) -> None:
    """Copy main's code, with what Python has compiled of it, and parts of its registry, but no plugin."""
    compiled = shutil.ignore_patterns("*.nb[ic]")
    for name in (*CODE, *registry):
        if (base / name).is_dir():
            shutil.copytree(base / name, target / name, symlinks=True, ignore=compiled)
        elif (base / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(base / name, target / name)
    for package in TREES:
        (target / package).mkdir(parents=True)
        (target / package / "__init__.py").touch()
    for name in KERNELS:
        # Their compiler goes by the time of a file, and every checkout gives it another: without, what was compiled
        # once would not serve every checkout with the same text.
        if (target / name).is_file():
            os.utime(target / name, (0, 0))


def warm_folder(core: Path, limits: Limits, tell: Callable[[str], None]) -> Path:
    """The compiled kernels of scorer and reader, made once: in each sandbox it would take ten seconds again.

    They are compiled in a sandbox that holds main's core and nothing else: no contributed code has a hand in it.
    """
    sources = [(core / name).read_bytes() for name in KERNELS]
    facts = (*sources, metadata.version("numba"), sys.version, platform.processor())
    key = hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
    folder = cache_dir() / "kernel" / key
    if not folder.is_dir():
        tell("compiling main's code")
        out = folder.with_name(f"{key}-{os.getpid()}")
        arguments = ("-m", "ci.inside", OUT, "warm")
        ran = sandbox.run(arguments, read={TREE: core}, out=out, limits=limits)
        if not ran.ok:
            raise DataError(f"the kernel cannot be compiled: {ran.status}: {ran.output[-300:]}")
        try:
            out.rename(folder)
        except OSError:  # somebody else was faster
            shutil.rmtree(out)
    return folder
