"""Imports go one way: a folder imports only from folders to its left, and lazy imports inside functions count too.

The core does not even name an extension; public names are lazy, names mean one thing, and ruff finds nothing.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import neuco
import neuco_core
from tests.command import python

BASE = "errors env text files figures progress versions fields specs protocol hookspecs builtin __init__"
LAYERS = [
    BASE.split(),
    ["plugins"],
    ["fetch"],
    ["tables", "cubes"],
    ["encoders", "encode"],
    ["scoring"],
    ["records"],
    ["runs"],
    ["boards"],
    ["site"],
    ["studies"],
    ["contract", "testing", "pytest_plugin"],
    ["cli"],
]
RANK = {name: number for number, layer in enumerate(LAYERS) for name in layer}
# Conveniences on the nouns themselves, e.g. ``Task.labels()``, and the lazy public names: they lead up on purpose.
UPWARDS = {"specs", "__init__"}


def imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (
            (node.lineno, name) for name in names if name.startswith(("neuco_core.", "neuco_extensions.", "ci."))
        )


def violations(package: Path) -> list[str]:
    broken = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package).with_suffix("").parts
        layer = inside[0]
        for line, name in imports(path):
            top, below = name.split(".")[:2]
            target = below if top == "neuco_core" else top
            if target not in RANK and name.count(".") == 1:
                continue  # a public name of the package itself, such as Task
            if layer not in UPWARDS and RANK.get(target, len(LAYERS)) > RANK[layer]:
                broken.append(f"{'/'.join(inside)}.py:{line} imports {name}: {layer} may not know {target}")
    return broken


def test_imports_go_one_way(root: Path) -> None:
    assert violations(root / "neuco_core") == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("scoring/quality.py", "from neuco_core.boards.stats.ranking import rank"),
        ("records/score_array.py", "def later():\n    import neuco_core.runs.plan"),
        ("text.py", "from neuco_core.cli import output"),
        ("boards/build.py", "from ci.report import Report"),
        ("boards/build.py", "from neuco_extensions.geobench.iqm import score"),
    ],
)
def test_an_import_against_the_direction_is_seen(tmp_path: Path, file: str, line: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(line + "\n")
    (violation,) = violations(tmp_path)
    assert violation.startswith(file.replace(".py", ".py:"))


def mentions(root: Path) -> list[str]:
    """Lines of the core that name an extension: its package, its command, or a name that means nothing else."""
    names = "|".join(path.name for path in (root / "neuco_extensions").iterdir() if (path / "__init__.py").is_file())
    pattern = re.compile(rf"neuco_extensions[./]({names})|\bneuco ({names})\b|\bgeo-?bench|\bdask\b|\bevalai\b", re.I)
    texts = [
        path for path in (root / "neuco_core").rglob("*") if path.suffix in (".py", ".html", ".js", ".css", ".txt")
    ]
    return [
        f"{path}:{number}: {line.strip()}"
        for path in sorted(texts)
        if path.name != "hookspecs.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def test_the_core_names_no_extension(root: Path) -> None:
    assert len(list((root / "neuco_extensions").glob("*/__init__.py"))) > 5
    assert mentions(root) == []


def test_the_files_that_the_architecture_names_are_there(root: Path) -> None:
    page = (root / "docs/maintain/architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+(?:/[\w.]*|\.py|\.html))`", page))
    folders = [root, root / "neuco_core", root / "neuco_core/scoring"]  # of one step the page names only the last part
    assert len(named) > 30
    assert [name for name in sorted(named) if not any((folder / name).exists() for folder in folders)] == []


# Modules that import others of neuco where they are used, and why.
LAZY = {
    "neuco_core/__init__.py": "public names are imported when they are used",
    "neuco_core/specs.py": "specs are listed without numpy; their conveniences lead up",
    "neuco_core/pytest_plugin.py": "pytest loads it wherever neuco is installed",
    "neuco_core/testing.py": "an encoder can be tried without pytest and the contract",
    "neuco_core/tables/embeddings.py": "Parquet, and files of others, are rarely read",
    "neuco_core/tables/embeddings_csv.py": "numba takes longer to import than most files to read",
    "neuco_core/cubes/pictures.py": "the site draws without reading cubes",
    "neuco_core/cubes/published.py": "an archive imports it, too",
    "neuco_core/cubes/archive.py": "the network is for archives at an address",
    "neuco_core/records/fingerprint.py": "records are read without the network's libraries",
    "neuco_core/studies/evaluate.py": "matplotlib is for plots",
    "neuco_core/studies/sources.py": "a table in memory needs no reader",
    "neuco_core/fetch/fetch.py": "pins are read to list tasks, which the catalogue then imports",
    "neuco_core/fetch/transfer.py": "each transport imports its library",
    "neuco_core/encode/coverage.py": "most datasets have cubes and need no catalogue",
    "neuco_core/scoring/warm.py": "compiles what it imports",
    "neuco_core/scoring/probes/linear.py": "numba compiles what it imports",
    "neuco_core/cli/leaderboard.py": "only the site and plots need templates and figures",
    "neuco_core/cli/score.py": "what downloads is for labels that are missing",
    "neuco_core/cli/data.py": "most of its commands read no table and no cube",
    "neuco_core/cli/show.py": "pictures",
    "neuco_extensions/challenge/command.py": "a web server",
    "neuco_extensions/dask/engine.py": "dask is optional",
    "neuco_extensions/models/libraries.py": "torch",
    "neuco_extensions/models/torchgeo.py": "torch",
}


def modules(root: Path, *packages: str) -> Iterator[tuple[str, ast.Module]]:
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            yield path.relative_to(root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_one_class_name_is_used_for_one_class(root: Path) -> None:
    homes: dict[str, list[str]] = {}
    for path, tree in modules(root, "neuco_core", "neuco_extensions", "ci"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_what_is_imported_inside_a_function_has_its_reason(root: Path) -> None:
    lazy = set()
    for path, tree in modules(root, "neuco_core", "neuco_extensions"):
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [node.module for node in ast.walk(function) if isinstance(node, ast.ImportFrom)]
                lazy |= {path for name in names if name and name.startswith("neuco")}
    assert lazy <= set(LAZY)


def test_neuco_has_the_public_names_of_the_core() -> None:
    assert neuco.__all__ == neuco_core.__all__
    assert all(getattr(neuco, name) is getattr(neuco_core, name) for name in neuco.__all__)
    assert {*neuco.__all__, "__version__"} <= set(dir(neuco))
    assert neuco.__version__ == neuco_core.__version__


def test_neuco_has_no_other_name() -> None:
    with pytest.raises(AttributeError, match="module 'neuco' has no attribute 'load_taks'"):
        _ = neuco.load_taks  # type: ignore[attr-defined]


def test_importing_neuco_imports_nothing_heavy() -> None:
    done = python("-c", "import neuco, sys; print([m for m in ('numpy', 'click', 'msgspec') if m in sys.modules])")
    assert done.out == "[]\n"


def test_tasks_are_listed_in_a_few_times_what_their_two_libraries_take_to_import() -> None:
    """In 4.4 to 5.0 times on a busy machine; the rest of six is for the noise of the measurement."""

    def seconds(*args: str) -> float:
        """Of processor time, so that whoever else uses the machine counts little; the least of five."""
        usage = "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime)"
        code = f"import resource, subprocess; subprocess.run({[sys.executable, *args]!r}, stdout=-3); {usage}"
        return min(float(python("-c", code).out) for _ in range(5))

    least = seconds("-c", "import click, msgspec")
    assert seconds("-m", "neuco_core.cli", "tasks") <= 6 * least


@pytest.mark.parametrize("command", [("check",), ("format", "--check")])
def test_ruff_finds_nothing(command: tuple[str, ...], root: Path) -> None:
    done = python("-m", "ruff", *command, ".", cwd=root)
    assert done.code == 0, done.text
