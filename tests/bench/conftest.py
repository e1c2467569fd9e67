"""The parity case as files and as an installed plugin, and a way to run the command line."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuco_core.tables.embeddings import write_embeddings
from tests.bench.helpers import SHARED
from tests.installed import install
from tests.scoring.parity import make_case

# Real data that lies beside the project on some machines: an extra, not a part of the project.
collect_ignore = [] if SHARED.is_dir() else ["test_shared.py"]

CONFIG = """\
k_folds: 8
epochs: 12
batch_size: 64
learning_rate: 0.01
standardize_embeddings: true
normalize_labels: true
embedding_dim: null
enable_plots: false
output_fold_results: true
"""
PLUGIN = """\
from neuco_core import Baseline, Dataset, Remote, Task, hookimpl


@hookimpl
def neuco_datasets():
    yield Dataset(id="parity", title="Parity case", synthetic=True)


@hookimpl
def neuco_tasks():
    for name, kind, url, sha256, size, baseline in {tasks!r}:
        expected = Baseline(**baseline) if baseline else None
        source = Remote(url, sha256=sha256, size=size)
        yield Task(id=name, dataset="parity", kind=kind, source=source, baseline=expected, tags=("parity",))
    unpinned = Remote("https://example.invalid/unpinned.csv")
    yield Task(id="parity_unpinned", dataset="parity", kind="regression", source=unpinned)
"""


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``embeddings.csv``, ``labels/`` and ``config.yaml``."""
    folder = tmp_path_factory.mktemp("parity")
    embeddings, tasks = make_case()
    write_embeddings(embeddings, folder / "embeddings.csv")
    (folder / "labels").mkdir()
    for name, labels in tasks.items():
        suffix = "cls" if labels.kind == "classification" else "regr"
        rows = [f"{sample},{value:.10g}" for sample, value in zip(labels.ids, labels.values.tolist(), strict=True)]
        (folder / "labels" / f"{name}__{suffix}.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    (folder / "config.yaml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="session")
def site(case: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for sys.path with an installed package that registers the case's tasks."""
    folder = tmp_path_factory.mktemp("site")
    tasks = []
    for path in sorted((case / "labels").glob("*.csv")):
        name, _, suffix = path.stem.partition("__")
        kind = "classification" if suffix == "cls" else "regression"
        data = path.read_bytes()
        tasks.append((f"parity_{name}", kind, path.as_uri(), hashlib.sha256(data).hexdigest(), len(data), None))
    tasks[0] = (*tasks[0][:5], {"method": "parity_mean", "score": 0.5, "tolerance": 0.01})
    install(folder, "neuco_parity", PLUGIN.format(tasks=tasks), "datasets", "tasks")
    return folder


@pytest.fixture
def parity_tasks(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The case's tasks, registered in this process for one test."""
    from neuco_core.plugins.catalog import catalog

    monkeypatch.syspath_prepend(str(site))
    catalog.cache_clear()
    yield site
    sys.modules.pop("neuco_parity", None)


@pytest.fixture(autouse=True)
def private_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache, and none needs the network."""
    root = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("NEUCO_CACHE", str(root / "cache"))
    monkeypatch.setenv("NEUCO_CONFIG", str(root / "config"))
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    registry = root / "own-registry"
    if not registry.exists():
        shutil.copytree(Path(__file__).resolve().parents[2] / "registry" / "suites", registry / "suites")
    monkeypatch.setenv("NEUCO_REGISTRY", str(registry))
