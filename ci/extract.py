"""From an untrusted plugin to data: whatever imports the plugin runs inside the sandbox."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci import contributed, sandbox
from ci.changed import TREES, Touched
from ci.collect import read_array, read_table
from ci.inside import export_cubes
from ci.overlay import NOUNS, own_sources, read_json, rebuild
from ci.report import PluginReport
from ci.sandbox import OUT, TREE, Limits
from neuco_core.contract.contract import Finding, Status
from neuco_core.errors import DataError, NeucoError
from neuco_core.plugins.catalog import list_datasets
from neuco_core.plugins.discovery import inside
from neuco_core.specs import Method, Remote, Task, to_json

BATCHES = (64, 5)  # an encoder must give the same for both


@dataclass
class Contribution:
    """A touched plugin on its way from code to data."""

    touched: Touched
    folder: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    loaders: dict[str, dict[str, Any]] = field(default_factory=dict)
    fetched: dict[str, Path] = field(default_factory=dict)

    def ids(self, noun: str) -> tuple[str, ...]:
        return tuple(row["spec"]["id"] for row in self.rows if row["noun"] == noun)

    def say(self, check: str, status: Status, detail: str, cure: str = "") -> None:
        self.findings.append(Finding(check, self.touched.name, status, detail, cure))

    def report(self) -> PluginReport:
        tree, name, how = self.touched.tree, self.touched.name, self.touched.how
        # Whoever reads the report checks the words, also these two.
        return PluginReport(tree, name, how, self.ids("task"), self.ids("method"), tuple(self.findings))  # type: ignore[arg-type]


class Extractor:
    """Takes plugins of ``head`` apart with the code of ``base``."""

    def __init__(self, base: Path, head: Path, scratch: Path, limits: Limits, kind: str) -> None:
        self.base, self.head, self.scratch, self.limits, self.kind = base, head, scratch, limits, kind
        self.cubes = scratch / "cubes"
        self.cubes.mkdir()

    def look_at(self, plugin: Contribution) -> None:
        """Describe, load and test one plugin; errors become findings."""
        try:
            self._describe(plugin)
            self._files(plugin)
            if plugin.touched.tree == "neuco_tasks":
                self._labels(plugin)
                self._cubes(plugin)
        except Exception as error:  # what comes out of the sandbox may be broken in any way
            plugin.rows = []
            cure = "Repair the plugin; `neuco check` shows the same on your machine"
            plugin.say("import", "failed", _words(error), cure)
        self._tests(plugin)

    def _tree(self, plugin: Contribution) -> Path:
        """What the sandbox may see. A method sees no task, and so no labels; a task sees the tasks and its own data."""
        tree = self.scratch / "trees" / f"{plugin.touched.tree}-{plugin.touched.name}"
        if tree.exists():
            return tree
        tree.mkdir(parents=True)
        for name in ("neuco_core", "ci"):
            shutil.copytree(self.base / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for package in TREES:
            (tree / package).mkdir()
            (tree / package / "__init__.py").touch()
        if plugin.touched.tree == "neuco_tasks":
            _copy_plugins(self.head / "neuco_tasks", tree / "neuco_tasks")
            _copy_plugins(self.base / "neuco_methods", tree / "neuco_methods")
        else:
            _copy_plugins(self.head / "neuco_methods", tree / "neuco_methods", only=plugin.touched.name)
        shutil.copytree(self.base / "registry" / "suites", tree / "registry" / "suites")
        return tree

    def _sandbox(
        self, plugin: Contribution, name: str, *arguments: str, cubes: bool = False
    ) -> tuple[sandbox.Ran, Path]:
        out = self.scratch / "out" / plugin.touched.folder / name
        read = {TREE: self._tree(plugin), **({"/cubes": self.cubes} if cubes else {})}
        hide = plugin.touched.tree == "neuco_methods"
        if not hide:
            read |= {f"/tmp/cache/sha256/{sha[:2]}/{sha}": path.parent for sha, path in plugin.fetched.items()}  # noqa: S108
        ran = sandbox.run(arguments, read=read, out=out, limits=self.limits, kind=self.kind, hide_labels=hide)
        return ran, out

    def _inside(self, plugin: Contribution, name: str, *arguments: str, cubes: bool = False) -> Path:
        """Run a command of ``ci.inside``; if it fails, the error says how."""
        ran, out = self._sandbox(plugin, name, "-m", "ci.inside", OUT, *arguments, cubes=cubes)
        if ran.ok:
            return out
        if ran.status != "failed":
            words = {
                "timeout": f"{self.limits.seconds:g} s",
                "memory": f"{self.limits.memory >> 20} MB",
                "processes": f"{self.limits.processes} processes",
                "files": f"{self.limits.files} files and {self.limits.written >> 20} MB",
            }[ran.status]
            raise DataError(f"{arguments[0]}: stopped at the limit of {ran.status}", expected=f"at most {words}")
        try:
            reason = str(read_json(out / "error.json")["error"])
        except (DataError, KeyError, TypeError):
            reason = f"ended with code {ran.code}: {' '.join(ran.output.split())[-300:]}"
        raise DataError(reason)

    def _describe(self, plugin: Contribution) -> None:
        out = self._inside(plugin, "describe", "describe", plugin.touched.tree, plugin.touched.name)
        rows = read_json(out / "describe.json")
        for row in rows:
            if row["noun"] not in NOUNS:
                text = f"the plugin registers a {row['noun']}, which is code that takes part in scoring"
                raise DataError(text, hint="Propose it as a change to neuco_core, for a maintainer to review")
            spec = rebuild(row["noun"], row["spec"])
            if not inside(spec.id, plugin.touched.name):
                raise DataError(f"{spec.id!r} is outside the plugin {plugin.touched.name!r}")
        plugin.rows = rows
        names = ", ".join(f"{row['noun']} {row['spec']['id']}" for row in rows)
        plugin.say("import", "ok", f"registers {names}")

    def _files(self, plugin: Contribution) -> None:
        """Fetch what the plugin declares, outside the sandbox, where there is a network and we check the sha256."""
        from neuco_core.fetch.fetch import fetch

        for row in plugin.rows:
            for remote in own_sources(plugin.touched.tree, plugin.touched.name, row):
                if not remote.url.startswith("pkg://") and remote.sha256:
                    plugin.fetched[remote.sha256] = fetch(remote)

    def _labels(self, plugin: Contribution) -> None:
        """Labels that the plugin's loaders make: twice, and both must be equal."""
        loaded = [row for row in plugin.rows if row["noun"] == "task" and row["spec"]["loader"]]
        if not loaded:
            return
        first, second = (
            self._inside(plugin, f"labels{i}", "labels", "neuco_tasks", plugin.touched.name) for i in (1, 2)
        )
        for row in loaded:
            name = row["spec"]["id"]
            data = read_table(first / f"{name}.csv")
            if data != read_table(second / f"{name}.csv"):
                raise DataError(f"the loader of {name} gives different labels the second time")
            digest = hashlib.sha256(data).hexdigest()
            task = rebuild("task", row["spec"])
            if not isinstance(task, Task):
                raise DataError(f"{name} is not a task")
            words = {"content": task.source.sha256, "columns": task.columns, "group": task.group_column}
            plugin.loaders[name] = {**words, "code": row["loader_code"]}
            columns = [f"column{i}" for i in range(len(task.columns))]
            source = to_json(Remote(f"pkg://neuco_tasks.{plugin.touched.name}/_{name}.csv", digest, len(data)))
            row["spec"] |= {"source": source, "columns": columns, "loader": None}
            row["spec"]["group_column"] = "group" if task.group_column else None

    def _cubes(self, plugin: Contribution) -> None:
        if any(row["noun"] == "dataset" and row["spec"]["cubes"] for row in plugin.rows):
            self._inside(plugin, "cubes", "cubes", "neuco_tasks", plugin.touched.name)

    def _tests(self, plugin: Contribution) -> None:
        """The plugin's own tests."""
        test = f"{TREE}/{plugin.touched.folder}/test.py"
        if not (plugin.folder / "test.py").is_file():
            plugin.say("tests", "failed", "there is no test.py", "Write one; `neuco new` does")
            return
        ran, out = self._sandbox(plugin, "tests", *contributed.arguments([test]))
        plugin.say("tests", *contributed.judge(ran, out))

    def encode(self, plugins: Sequence[Contribution]) -> None:
        """Run touched encoders on the cubes of every dataset, and turn the methods into files of embeddings."""
        datasets = self._datasets(plugins)
        for plugin in plugins:
            for row in plugin.rows:
                if row["noun"] == "method" and not row["spec"]["files"]:
                    try:
                        row["spec"] |= self._embeddings(plugin, row["spec"], datasets)
                    except Exception as error:
                        row["broken"] = True
                        plugin.say("encode", "failed", f"{row['spec']['id']}: {_words(error)}")
            plugin.rows = [row for row in plugin.rows if not row.get("broken")]

    def _datasets(self, plugins: Sequence[Contribution]) -> dict[str, tuple[str, ...]]:
        """Export the cubes that encoders need; those of touched datasets exist already. Returns bands by dataset."""
        encoders = any(
            row["noun"] == "method" and not row["spec"]["files"] for plugin in plugins for row in plugin.rows
        )
        touched = {plugin.touched.name for plugin in plugins if plugin.touched.tree == "neuco_tasks"}
        bands: dict[str, tuple[str, ...]] = {}
        for dataset in list_datasets() if encoders else ():
            origin = Path(dataset.origin.source).name if dataset.origin else ""
            if dataset.cubes is not None and origin not in touched:
                try:
                    export_cubes(dataset.cubes(), self.cubes, dataset.id)
                except NeucoError:
                    continue  # not on this machine; its cells are skipped with the reason
                bands[dataset.id] = dataset.bands
        for plugin in plugins:
            out = self.scratch / "out" / plugin.touched.folder / "cubes"
            for name in plugin.ids("dataset") if encoders and out.is_dir() else ():
                shutil.copyfile(out / f"{name}.npy", self.cubes / f"{name}.npy")
                shutil.copyfile(out / f"{name}.json", self.cubes / f"{name}.json")
                bands[name] = tuple(read_json(out / f"{name}.json")["bands"])
        return bands

    def _embeddings(
        self, plugin: Contribution, spec: Mapping[str, Any], datasets: Mapping[str, tuple[str, ...]]
    ) -> dict[str, Any]:
        import numpy as np

        from neuco_core.tables.embeddings import make_embeddings, write_embeddings

        method = rebuild("method", spec)
        if not isinstance(method, Method):
            raise DataError("not a method")
        files = {}
        for dataset, bands in datasets.items():
            if not _applies(method, bands):
                continue
            values = []
            ids = read_json(self.cubes / f"{dataset}.json")["ids"]
            for batch in BATCHES:
                place = f"encode-{method.id}-{dataset}-{batch}"
                out = self._inside(
                    plugin, place, "encode", plugin.touched.name, method.id, dataset, str(batch), cubes=True
                )
                if not (out / f"{dataset}.npy").is_file():
                    raise DataError("the encoder wrote no embeddings", where=dataset)
                values.append(read_array(out / f"{dataset}.npy", len(ids)))
            first, second = values
            if first.shape != second.shape or not np.allclose(first, second, rtol=1e-4, atol=1e-5):
                raise DataError(f"different numbers for {dataset} with a different batch size")
            path = self.scratch / "embeddings" / f"{method.id}-{dataset}.npz"
            path.parent.mkdir(exist_ok=True)
            write_embeddings(make_embeddings(ids, first, where=f"{method.id} on {dataset}"), path)
            data = path.read_bytes()
            files[dataset] = to_json(Remote(path.as_uri(), hashlib.sha256(data).hexdigest(), len(data)))
        if not files:
            raise DataError("the method can be run on no dataset here")
        plugin.say("method-deterministic", "ok", f"{method.id}: the same for batches of {BATCHES[0]} and {BATCHES[1]}")
        return {"files": files, "encoder": None}


def _copy_plugins(source: Path, target: Path, only: str | None = None) -> None:
    for path in sorted(source.iterdir()):
        if path.is_dir() and not path.is_symlink() and path.name != "__pycache__" and only in (None, path.name):
            shutil.copytree(path, target / path.name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))


def _applies(method: Method, bands: tuple[str, ...]) -> bool:
    modalities = {band.partition("/")[0] for band in bands}
    return all(name in bands or name in modalities for name in method.bands)


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, NeucoError) else f"{type(error).__name__}: {error}"
