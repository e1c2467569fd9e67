"""A small installed package with tasks and a suite, for the tests of the commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neuco_core.plugins.catalog import catalog
from tests.fetch.helpers import sha256
from tests.installed import install

PH = b"id,label,extra\n" + b"".join(b"s%d,%d.5,x\n" % (i, i) for i in range(30)) + b"s98,,x\n"
CLAY = b"id,label\n" + b"".join(b"s%d,%d\n" % (i, i % 2) for i in range(20))
VECTORS = b"id,0,1\n" + b"".join(b"s%d,%d,1\n" % (i, i) for i in range(30))

MODULE = f"""
from neuco_core import Dataset, Method, Remote, Task, hookimpl

@hookimpl
def neuco_datasets():
    yield Dataset(id="soil", title="Soil")

@hookimpl
def neuco_tasks():
    ph = Remote("hf://datasets/lab/soil@0123abc/labels/ph.csv")
    yield Task(id="soil_ph", dataset="soil", kind="regression", source=ph)
    clay = Remote("BASE/static/clay.csv", sha256="{sha256(CLAY)}", size={len(CLAY)})
    yield Task(id="soil_clay", dataset="soil", kind="classification", source=clay)

@hookimpl
def neuco_methods():
    vectors = Remote("BASE/static/vectors.csv", sha256="{sha256(VECTORS)}")
    yield Method(id="soil_file", files={{"soil": vectors}}, dim=2)
    yield Method(id="soil_encoder", encoder=dict, dim=2)
"""


@contextmanager
def installed(folder: Path, base: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package in this process, and a registry with a suite; ``base`` is the server of the pinned files."""
    install(folder, "neuco_soil", MODULE.replace("BASE", base), "datasets", "tasks", "methods")
    suites = folder / "registry" / "suites"
    suites.mkdir(parents=True)
    (suites / "soil-1.toml").write_text('id = "soil-1"\n[tasks]\nsoil_ph = 1\nsoil_clay = 1\n')
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("NEUCO_REGISTRY", str(folder / "registry"))
    monkeypatch.setenv("HF_ENDPOINT", base)
    catalog.cache_clear()
    yield
    sys.modules.pop("neuco_soil", None)
    catalog.cache_clear()
