"""A bare "upstream" with a real task and real methods, and pull requests against it on real git: what each changes."""

from __future__ import annotations

import compileall
import functools
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from ci import sandbox
from ci.changed import Touched
from ci.git import check_out
from ci.plugin_sandbox import CODE, KERNELS, PluginData
from ci.sandbox import SandboxError
from ci.stub_tree import FUNCTIONS
from neuco_core.records.model import Record
from neuco_core.records.store import read_all
from neuco_core.specs import Dataset, Method, Task, to_json
from tests.contract.helpers import METHOD, TEST, write_good
from tests.parts import missing

ROOT = Path(__file__).resolve().parents[2]
KEPT = {
    "neuco_tasks": ("__init__.py", "digits"),
    "neuco_methods": ("__init__.py", "averaging", "random"),
}
SUITE = 'id = "small"\ntitle = "Small"\nprotocol = "ridge+k=5"\n\n[tasks]\ndigits_class = 1\n'
SUITES = {"small": SUITE}


WHO = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Contributor"), ("EMAIL", "contributor@example.org"))
}


def git(folder: Path, *args: str) -> str:
    """Run git as a person without any settings."""
    environment = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    command = ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise AssertionError(f"git {args}: {done.stderr}")
    return done.stdout


def need_bubblewrap() -> None:
    try:
        sandbox.protections()
    except SandboxError as error:
        missing("bubblewrap", str(error))


class Upstream:
    """A bare repository and a clone of its main branch."""

    def __init__(
        self,
        folder: Path,
        kept: Mapping[str, Sequence[str]] = KEPT,
        suites: Mapping[str, str] = SUITES,
        more: Callable[[Path], None] = lambda tree: None,
    ) -> None:
        """``kept`` are plugins of the project; ``more`` changes the files before they become main."""
        self.folder = folder
        self.bare = folder / "upstream.git"
        self.base = folder / "base"
        folder.mkdir(parents=True, exist_ok=True)
        _small_project(self.base, kept, suites)
        more(self.base)
        git(self.base, "init", "--quiet")
        self._commit(self.base, "Start")
        git(folder, "clone", "--quiet", "--bare", str(self.base), str(self.bare))
        git(self.base, "remote", "add", "origin", str(self.bare))
        git(self.base, "fetch", "--quiet", "origin")

    def pull_request(self, name: str, change: Callable[[Path], None]) -> Path:
        """A fork with one commit on a branch of its own."""
        fork = self.folder / f"fork-{name}"
        git(self.folder, "clone", "--quiet", str(self.bare), str(fork))
        git(fork, "switch", "--quiet", "-c", name)
        change(fork)
        self._commit(fork, name)
        return fork

    def merge(self, fork: Path) -> None:
        """Merge a pull request into upstream's main, as the web page would."""
        branch = git(fork, "branch", "--show-current").strip()
        git(self.base, "pull", "--quiet", "--ff-only", "origin", "main")
        git(self.base, "fetch", "--quiet", str(fork), branch)
        git(self.base, "merge", "--quiet", "--no-ff", "-m", f"Merge {branch}", "FETCH_HEAD")
        git(self.base, "push", "--quiet", "origin", "HEAD:main")

    def clone(self, name: str) -> Path:
        path = self.folder / name
        git(self.folder, "clone", "--quiet", str(self.bare), str(path))
        shutil.copytree(_bytecode(), path, dirs_exist_ok=True)
        return path

    def records(self, registry: str = "registry") -> list[Record]:
        with tempfile.TemporaryDirectory() as folder:
            tree = check_out(self.bare, "main", Path(folder), registry)
            return sorted(read_all(tree / registry), key=lambda record: record.key)

    def commit(self, message: str) -> None:
        self._commit(self.base, message)
        git(self.base, "push", "--quiet", "origin", "HEAD:main")

    def _commit(self, repo: Path, message: str) -> None:
        git(repo, "add", "--all")
        git(repo, "commit", "--quiet", "--allow-empty", "-m", message)


def _small_project(target: Path, kept: Mapping[str, Sequence[str]], suites: Mapping[str, str]) -> None:
    """The project with few plugins, so that a rehearsal takes seconds and not minutes."""
    ignore = shutil.ignore_patterns("__pycache__")
    for name in CODE:
        shutil.copytree(ROOT / name, target / name, ignore=ignore)
    for package, names in kept.items():
        (target / package).mkdir()
        for name in names:
            source = ROOT / package / name
            copy = shutil.copytree if source.is_dir() else shutil.copyfile
            copy(source, target / package / name, **({"ignore": ignore} if source.is_dir() else {}))  # type: ignore[operator]
    (target / "registry" / "suites").mkdir(parents=True)
    for name, text in suites.items():
        (target / "registry" / "suites" / f"{name}.toml").write_text(text)
    if (ROOT / "registry" / "schema").is_dir():
        shutil.copytree(ROOT / "registry" / "schema", target / "registry" / "schema")
    for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, target / name)
    (target / ".gitignore").write_text("__pycache__/\n")
    shutil.copytree(_bytecode(), target, dirs_exist_ok=True)
    for name, change in LIGHTER.items():
        if (target / name).parent.is_dir():
            for old, new in change.items():
                edit(target / name, old, new)
    if (target / "neuco_tasks/digits").is_dir():
        np.save(target / "neuco_tasks/digits/images.npy", load_digits().images.astype(np.uint8))


# 4 splits instead of 40, 32 numbers instead of 1,024, and images for which no sandbox must import scikit-learn.
LIGHTER = {
    "neuco_tasks/digits/__init__.py": {'protocol="ridge",\n        license': 'protocol="ridge+k=4",\n        license'},
    "neuco_tasks/digits/cubes.py": {
        "from functools": "from pathlib import Path\nfrom functools",
        "        from sklearn.datasets import load_digits\n": "",
        "load_digits().images.astype(np.uint8)": 'np.load(Path(__file__).with_name("images.npy"))',
    },
    "neuco_methods/random/__init__.py": {'"dim": 1024': '"dim": 32', "dim=1024": "dim=32"},
}


@functools.cache
def _bytecode() -> Path:
    """What Python makes of the core, believed by the hash of the source: each checkout would have it made again."""
    folder = Path(os.environ["NEUCO_CACHE"]).with_name("bytecode")
    for name in CODE:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(folder / name, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            path.unlink()
    return folder


def take_kernels(checkout: Path) -> None:
    """Give a checkout the kernels that are compiled here: ``neuco`` in it would compile them for 12 s."""
    for name in KERNELS:
        source, target = ROOT / name, (checkout / name).parent / "__pycache__"
        shutil.copystat(source, checkout / name)  # their compiler goes by the time of the file
        target.mkdir(exist_ok=True)
        for path in (source.parent / "__pycache__").glob(f"{source.stem}.*.nb[ic]"):
            shutil.copyfile(path, target / path.name)


def fresh_cache(folder: Path) -> str:
    """A cache of its own that holds nothing but the compiled kernels: they depend on nothing, and take 12 s."""
    folder.mkdir(parents=True)
    (folder / "kernel").symlink_to(Path(os.environ["NEUCO_CACHE"]) / "kernel")
    return str(folder)


def ci(base: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """``python -m ci`` with the code of a checkout."""
    kept = {name: value for name, value in os.environ.items() if name != "NEUCO_REGISTRY"}
    environment = {**kept, "PYTHONPATH": str(base), "GIT_CONFIG_GLOBAL": "/dev/null", **variables}
    command = [sys.executable, "-m", "ci", *args]
    return subprocess.run(command, cwd=base, capture_output=True, text=True, env={**environment, **WHO}, timeout=600)


def plugin_data(
    *specs: Dataset | Task | Method, folder: str = "neuco_methods/plain", how: str = "added", at: Path = Path()
) -> PluginData:
    """A plugin that registers these; its files are in ``at``, and what is made of it goes below."""
    rows = []
    for spec in specs:
        fields = {key: bool(value) if key in FUNCTIONS else value for key, value in to_json(spec).items()}
        rows.append({"noun": type(spec).__name__.lower(), "spec": fields, "code": "x"})
    tree, name = folder.split("/")
    return PluginData(Touched(tree, name, how), at, at / "made", rows=rows)


# Pull requests of the rehearsals: what each changes.
Change = Callable[[Path], None]


def task(fork: Path) -> None:
    """A good task with a dataset and labels of its own; its baseline is one of upstream's methods."""
    source = write_good(fork.parent / f"{fork.name}-source") / "neuco_tasks" / "good"
    shutil.copytree(source, fork / "neuco_tasks" / "good")
    init = fork / "neuco_tasks/good/__init__.py"
    edit(init, 'method="plain", score=0.84', 'method="averaging", score=0.84')
    # A function with the name of a module beside it is replaced by that module as soon as it is imported.
    edit(init, "def cubes():", "def open_cubes():")
    edit(init, "cubes=cubes", "cubes=open_cubes")


def method(fork: Path) -> None:
    folder = fork / "neuco_methods" / "plain"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(METHOD)
    (folder / "README.md").write_text("# plain\n\nThe pixels.\n")
    (folder / "test.py").write_text(TEST)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if old not in text:
        raise AssertionError(f"{old!r} is not in {path}")
    path.write_text(text.replace(old, new))


def with_encode(body: str) -> Change:
    """A method whose encoder first runs some code."""

    def change(fork: Path) -> None:
        method(fork)
        lines = "".join(f"        {line}\n" for line in body.splitlines())
        edit(fork / "neuco_methods/plain/__init__.py", "        return batch", f"{lines}        return batch")

    return change


def both(*changes: Change) -> Change:
    def change(fork: Path) -> None:
        for item in changes:
            item(fork)

    return change


def change_file(name: str, old: str, new: str) -> Change:
    return lambda fork: edit(fork / name, old, new)


def write_file(name: str, text: str) -> Change:
    def change(fork: Path) -> None:
        (fork / name).parent.mkdir(parents=True, exist_ok=True)
        (fork / name).write_text(text)

    return change


def link(name: str, target: str) -> Change:
    return lambda fork: (fork / name).symlink_to(target)


def remove(name: str) -> Change:
    return lambda fork: shutil.rmtree(fork / name)
