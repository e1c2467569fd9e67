"""A small installed package with tasks and a suite, for the tests of the commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neuco_core.plugins.catalog import catalog
from tests.fetch.helpers import sha256

PH = b"id,label,extra\n" + b"".join(b"s%d,%d.5,x\n" % (i, i) for i in range(30)) + b"s98,,x\n"
CLAY = b"id,label\n" + b"".join(b"s%d,%d\n" % (i, i % 2) for i in range(20))
VECTORS = b"id,0,1\n" + b"".join(b"s%d,%d,1\n" % (i, i) for i in range(30))
PH_URL = "hf://datasets/lab/soil@0123abc/labels/ph.csv"

MODULE = """
from neuco_core import Dataset, Method, Remote, Task, hookimpl

@hookimpl
def neuco_datasets():
    yield Dataset(id="soil", title="Soil")

@hookimpl
def neuco_tasks():
    yield Task(id="soil_ph", dataset="soil", kind="regression", source=Remote({ph!r}))
    clay = Remote({clay!r}, sha256={clay_sha!r}, size={clay_size})
    yield Task(id="soil_clay", dataset="soil", kind="classification", source=clay)

@hookimpl
def neuco_methods():
    yield Method(id="soil_file", files={{"soil": Remote({vectors!r}, sha256={vectors_sha!r})}}, dim=2)
    yield Method(id="soil_encoder", encoder=dict, dim=2)
"""


def install(folder: Path, base: str) -> None:
    """Write the package, its metadata and a registry with a suite; ``base`` is the server of the pinned files."""
    values = {
        "ph": PH_URL,
        "clay": f"{base}/static/clay.csv",
        "clay_sha": sha256(CLAY),
        "clay_size": len(CLAY),
        "vectors": f"{base}/static/vectors.csv",
        "vectors_sha": sha256(VECTORS),
    }
    (folder / "neuco_soil.py").write_text(MODULE.format(**values))
    info = folder / "neuco_soil-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: neuco-soil\nVersion: 1.0\n")
    groups = ("datasets", "tasks", "methods")
    (info / "entry_points.txt").write_text("".join(f"[neuco.{group}]\nsoil = neuco_soil\n" for group in groups))
    suites = folder / "registry" / "suites"
    suites.mkdir(parents=True)
    (suites / "soil-1.toml").write_text('id = "soil-1"\n[tasks]\nsoil_ph = 1\nsoil_clay = 1\n')


@contextmanager
def installed(folder: Path, base: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package, in this process."""
    folder.mkdir()
    install(folder, base)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("NEUCO_REGISTRY", str(folder / "registry"))
    monkeypatch.setenv("HF_ENDPOINT", base)
    catalog.cache_clear()
    yield
    sys.modules.pop("neuco_soil", None)
    catalog.cache_clear()
