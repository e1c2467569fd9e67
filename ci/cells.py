"""Which cells a pull request asks for, and the data that they need, made in sandboxes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ci.boxes import Boxes, PluginData
from ci.embeddings import Store
from ci.encoding import Encoding, make_embeddings
from ci.extract import fetch_sources, make_cubes, make_labels
from neuco_core.errors import DataError, NeucoError
from neuco_core.fetch.transfer import TransientError
from neuco_core.protocol import DEFAULT_PROTOCOL
from neuco_core.specs import Dataset, Method, Suite, Task, versioned_id

AFTER_MERGE = "both are new: contributed encoders see only main's datasets, so it is scored after the merge"

CURES = {
    "encode": "Repair the encoder; if it needs what is not here, as a package or a network, contribute its embeddings "
    "as a file: `neuco new method NAME --embeddings FILE`",
}


@dataclass(frozen=True)
class Cell:
    """One method on one task under a protocol, with the plugins that they come from."""

    protocol: str
    method: Method
    task: Task
    methods: PluginData
    tasks: PluginData

    @property
    def pair(self) -> tuple[str, str]:
        return self.method.label, self.task.label


@dataclass
class Material:
    """The data of cells; ``missing`` says why a cell cannot be scored here, and whose fault that is.

    If the plugins are ``merged``, somebody has read them, and new encoders are run on new datasets too.
    """

    boxes: Boxes
    plugins: Sequence[PluginData]
    merged: bool = False
    store: Store = field(default_factory=lambda: Store({}))
    missing: dict[tuple[str, str], str] = field(default_factory=dict)
    _failed: dict[tuple[str, ...], str] = field(default_factory=dict)

    def gather(self, cells: Sequence[Cell]) -> list[Cell]:
        """Make labels, cubes and embeddings for the cells; gives those that can be scored."""
        scored = []
        for cell in cells:
            reason = self._why_not(cell)
            if reason:
                self.missing[cell.pair] = reason
            else:
                scored.append(cell)
        return scored

    def _why_not(self, cell: Cell) -> str:
        owner, dataset = self._dataset(cell.task.dataset)
        reason = self._once(cell.tasks, "labels", lambda: self._labels(cell.tasks, cell.task), cell.task.label)
        if reason or cell.method.files or dataset is None or dataset.cubes is None or owner is None:
            if cell.method.files:
                reason = reason or self._once(
                    cell.methods, "files", lambda: fetch_sources(cell.methods, [cell.method]), cell.method.label
                )
            return reason
        if not (self.merged or owner.kept or cell.methods.kept):
            return AFTER_MERGE
        if not applies(cell.method, dataset):
            return ""  # the scorer says so, in a record
        if self.store.supply(cell.methods, cell.method, owner, dataset):
            return ""  # no pixel is needed
        reason = self._once(owner, "cubes", lambda: make_cubes(self.boxes, owner, dataset), dataset.id)
        if reason:
            return reason
        job = Encoding(cell.methods, cell.method, dataset, owner.made / "cubes" / dataset.id)
        place = (cell.method.label, dataset.id)
        return self._once(cell.methods, "encode", lambda: make_embeddings(self.boxes, job), *place)

    def _labels(self, plugin: PluginData, task: Task) -> None:
        fetch_sources(plugin, [task])
        make_labels(self.boxes, plugin)

    def _dataset(self, name: str) -> tuple[PluginData | None, Dataset | None]:
        pairs = [(plugin, dataset) for plugin in self.plugins for dataset in plugin.datasets if dataset.id == name]
        return pairs[0] if pairs else (None, None)

    def _once(self, plugin: PluginData, step: str, make: Callable[[], object], *names: str) -> str:
        """Why a step failed, "" if it did not. A failure of a contributed plugin is a finding, once.

        Not if a server did not answer: that is nobody's fault, and another run may be luckier.
        """
        key = (step, *names)
        if key not in self._failed:
            try:
                make()
                self._failed[key] = ""
            except Exception as error:  # results of a stranger's code may be broken in any way
                words = str(error) if isinstance(error, NeucoError) else f"{type(error).__name__}: {error}"
                self._failed[key] = f"{' on '.join(names)}: {words}"
                if not (plugin.kept or isinstance(error, TransientError)):
                    plugin.say(step, "failed", self._failed[key], CURES.get(step, ""))
        return self._failed[key]


def applies(method: Method, dataset: Dataset) -> bool:
    from neuco_core.encode.encoder import check_bands

    try:
        check_bands(method, dataset.id, dataset.bands)
    except DataError:
        return False
    return True


def choose(plugins: Sequence[PluginData], suites: Sequence[Suite]) -> Iterator[Cell]:
    """The touched rows and columns under the protocol of each suite; of a task that is in none, under its dataset's."""
    tasks = [(task, plugin) for plugin in plugins for task in plugin.tasks]
    methods = [(method, plugin) for plugin in plugins for method in plugin.methods]
    newest = {method.id: method.version for method, _ in sorted(methods, key=lambda item: item[0].version)}
    members: dict[str, set[str]] = {}
    for suite in suites:
        members.setdefault(suite.protocol, set()).update(versioned_id(*item) for item in suite.tasks.items())
    compared = set().union(*members.values()) if members else set()
    usual = {dataset.id: dataset.protocol for plugin in plugins for dataset in plugin.datasets}
    for task, plugin in tasks:
        if not plugin.kept and task.label not in compared:
            members.setdefault(usual.get(task.dataset) or DEFAULT_PROTOCOL, set()).add(task.label)
    for protocol, names in members.items():
        for task, home in tasks:
            for method, plugin in methods:
                replaced = plugin.kept and method.version < newest[method.id]
                if task.label in names and not (home.kept and plugin.kept) and not replaced:
                    yield Cell(protocol, method, task, plugin, home)
