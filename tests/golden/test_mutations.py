"""What a change of the code makes stale: a table of changes, each made in a copy of the project.

Wording, layout, names and places change nothing. Numbers that change without a version are caught by the golden
numbers. A raised version, or other code of a plugin, makes exactly the records stale that it decides.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

PARTS = ("neuco_core", "neuco_tasks", "neuco_methods", "registry", "tests/golden", "pyproject.toml")
STALE = """
import json
from neuco_core.paths import registry_dir
from neuco_core.records.store import read_all
from neuco_core.runs.plan import stale_records
records = [record for record in read_all(registry_dir()) if record.ok]
stale = stale_records(records)
print(json.dumps([[record.method, record.metric, record.protocol, record.key in stale] for record in records]))
"""


class Cell(NamedTuple):
    method: str
    metric: str
    protocol: str


Edit = tuple[str, str, str]  # file, what is there (a pattern), what takes its place


def nobody(cell: Cell) -> bool:
    return False


def methods(*names: str) -> Callable[[Cell], bool]:
    return lambda cell: cell.method in names


GROUP = "ridge+splitter=group"
ALL_BUT_RANDOM = methods(
    *("autoencoder", "autoencoder_post", "autoencoder_pre", "averaging", "averaging_notebook", "band_statistics"),
    *("efficientnet", "efficientnet_pre", "mosaiks", "mosaiks_pre", "pca"),
)
# What is changed → the edits, which records are stale then, and which components the golden numbers accuse.
MUTATIONS: dict[str, tuple[list[Edit], Callable[[Cell], bool], tuple[str, ...]]] = {
    "a docstring of the toolkit": ([("neuco_core/encoders.py", "The part of the spectrum", "Part of it")], nobody, ()),
    "a comment in ridge": ([("neuco_core/scoring/probes/ridge.py", r"\n# Strengths", "\n# All strengths")], nobody, ()),
    "a function of ridge renamed": ([("neuco_core/scoring/probes/ridge.py", r"\b_solve\b", "_weights_of")], nobody, ()),
    "a constant's layout": (
        [
            (
                "neuco_methods/averaging/encoder.py",
                r'VARIANTS = \("paper", "notebook"\)',
                "VARIANTS = (\n    'paper',\n    'notebook',\n)",
            )
        ],
        nobody,
        (),
    ),
    "a docstring and a comment of a plugin": (
        [("neuco_methods/pca/encoder.py", r'^"""', '# A comment.\n"""Another docstring. ')],
        nobody,
        (),
    ),
    "words of a registration": (
        [("neuco_methods/random/__init__.py", "Random numbers", "Numbers that know nothing")],
        nobody,
        (),
    ),
    "a function of a plugin renamed": (
        [("neuco_methods/averaging/encoder.py", r"\bchannel_matrix\b", "mixing_matrix")],
        nobody,
        (),
    ),
    "the toolkit moved": (
        [
            ("neuco_core/encoders.py", "MOVE", "neuco_core/toolkit.py"),
            ("neuco_*/**/*.py", r"neuco_core\.encoders", "neuco_core.toolkit"),
        ],
        nobody,
        (),
    ),
    "a module of a plugin moved": (
        [
            ("neuco_methods/averaging/encoder.py", "MOVE", "neuco_methods/averaging/shrinking.py"),
            ("neuco_methods/averaging/__init__.py", r"averaging\.encoder", "averaging.shrinking"),
        ],
        nobody,
        (),
    ),
    "a constant of ridge": (
        [("neuco_core/scoring/probes/ridge.py", r"logspace\(-7, 4, 45\)", "logspace(-7, 4, 5)")],
        nobody,
        ("RidgeProbe",),
    ),
    "a constant of ridge, with its version": (
        [
            ("neuco_core/scoring/probes/ridge.py", r"logspace\(-7, 4, 45\)", "logspace(-7, 4, 5)"),
            ("neuco_core/scoring/probes/ridge.py", r"versioned\(2\)", "versioned(3)"),
        ],
        lambda cell: True,
        ("RidgeProbe",),
    ),
    "a constant of the linear probe": (
        [("neuco_core/scoring/kernel.py", r"np\.float32\(0\.999\)", "np.float32(0.99)")],
        nobody,
        ("LinearProbe",),
    ),
    "the linear probe's version": (
        [("neuco_core/scoring/probes/linear.py", r"versioned\(1\)", "versioned(2)")],
        nobody,  # all shipped records are of ridge
        ("LinearProbe",),
    ),
    "a constant of a metric": ([("neuco_core/scoring/metrics.py", r"> 0\.5", "> 0.6")], nobody, ("f1",)),
    "a metric's version": (
        [("neuco_core/scoring/metrics.py", r"versioned\(1\)\ndef f1\b", "versioned(2)\ndef f1")],
        lambda cell: cell.metric == "f1",
        ("f1",),
    ),
    "the strict R²'s version": (
        [("neuco_core/scoring/metrics.py", r"versioned\(1\)\ndef strict_r2\b", "versioned(2)\ndef strict_r2")],
        lambda cell: cell.metric == "r2",
        ("strict_r2",),
    ),
    "a constant of a splitter": (
        [("neuco_core/scoring/splits.py", r"math\.ceil", "math.floor")],
        nobody,
        ("shuffle", "group"),
    ),
    "a splitter's version": (
        [("neuco_core/scoring/splits.py", r"versioned\(1\)\ndef group\b", "versioned(2)\ndef group")],
        lambda cell: cell.protocol == GROUP,
        ("group",),
    ),
    "a constant of the toolkit": (
        [("neuco_core/encoders.py", r'"s2l1c/B01": \(1607\.345', '"s2l1c/B01": (1600.0')],
        nobody,
        ("fit_standardizer",),
    ),
    "the version of one tool": (
        [("neuco_core/encoders.py", r"versioned\(1\)\ndef region\b", "versioned(2)\ndef region")],
        methods("averaging", "averaging_notebook"),
        ("region",),
    ),
    "the version of a tool behind another one": (
        [("neuco_core/encoders.py", r"versioned\(1\)\n@dataclass", "versioned(2)\n@dataclass")],
        ALL_BUT_RANDOM,
        ("Standardizer",),
    ),
    "the version of a tool that most use": (
        [("neuco_core/encoders.py", r"versioned\(1\)\ndef encode_each\b", "versioned(2)\ndef encode_each")],
        ALL_BUT_RANDOM,
        ("encode_each",),
    ),
    "the scorer's version": (
        [("neuco_core/scoring/scorer.py", r"versioned\(1\)", "versioned(2)")],
        lambda cell: True,
        ("score",),
    ),
    "a constant in a plugin's second module": (
        [("neuco_methods/autoencoder/model.py", r"GRID = \d+", "GRID = 3")],
        methods("autoencoder", "autoencoder_post", "autoencoder_pre"),
        (),
    ),
    "a weight beside an encoder": (
        [("neuco_methods/pca/weights.bin", "NEW", "1.0")],
        methods("pca"),
        (),
    ),
}


@pytest.fixture(scope="module")
def project(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for part in PARTS:
        source, target = root / part, folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    # Python believes these by the hash of the source: the times of two edits within a second are the same.
    compiled = python(folder, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "neuco_core")
    assert compiled.returncode == 0, compiled.stdout
    return folder


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NEUCO_")}
    env = {**kept, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(folder / "numba")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=300
    )


def apply(folder: Path, edits: list[Edit]) -> Callable[[], None]:
    """Make the edits, and give back what takes them back."""
    undo: list[Callable[[], object]] = []
    for name, there, instead in edits:
        path = folder / name
        if there == "NEW":
            path.write_text(instead)
            undo.append(path.unlink)
        elif there == "MOVE":
            path.rename(folder / instead)
            undo.append(lambda path=path, other=folder / instead: other.rename(path))  # type: ignore[misc]
        else:
            changed = [one for one in folder.glob(name) if re.search(there, one.read_text())]
            assert changed, f"nothing in {name} looks like {there}"
            for one in changed:
                text = one.read_text()
                one.write_text(re.sub(there, instead.replace("\\", r"\\"), text))
                undo.append(lambda one=one, text=text: one.write_text(text))  # type: ignore[misc]
    return lambda: [step() for step in reversed(undo)] and None


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_change_makes_stale_what_it_decides_and_nothing_else(name: str, project: Path) -> None:
    edits, expected, accused = MUTATIONS[name]
    undo = apply(project, edits)
    try:
        done = python(project, "-c", STALE)
        assert done.returncode == 0, done.stderr
        cells = {Cell(*row[:3]): row[3] for row in json.loads(done.stdout)}
        assert len(cells) >= 12 * 3
        assert {cell for cell, stale in cells.items() if stale} == {cell for cell in cells if expected(cell)}
        if accused:
            golden = python(project, "-m", "tests.golden.numbers", *accused)
            assert golden.returncode == 1
            assert all(f"{component} " in golden.stdout for component in accused), golden.stdout + golden.stderr
    finally:
        undo()


def test_without_a_change_nothing_is_stale(project: Path) -> None:
    done = python(project, "-c", STALE)
    assert not any(row[3] for row in json.loads(done.stdout)), done.stderr
