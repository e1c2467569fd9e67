"""Imports go one way: a folder imports only from folders to its left. Lazy imports inside functions count too.

The core does not even name an extension, outside the documentation of the hooks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

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
