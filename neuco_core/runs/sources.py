"""Where the embeddings of a score come from: a registered method, or a file that is no plugin at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from neuco_core.errors import DataError, NeucoError

if TYPE_CHECKING:
    from neuco_core.specs import Method, Task
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels


class Source(Protocol):
    """A name for people, and embeddings for a task."""

    name: str

    def describe(self) -> dict[str, Any]:
        """What goes into the JSON."""
        ...

    def why_not(self, task: Task, labels: Labels | None) -> str:
        """Why this source has nothing for a task, known without fetching or computing anything; "" if it has."""
        ...

    def embeddings(self, task: Task) -> Embeddings: ...


class MethodSource:
    """A registered method. The embeddings of the last dataset are kept: tasks come dataset by dataset.

    ``options`` are those of ``method_embeddings``.
    """

    def __init__(self, method: Method, **options: Any) -> None:
        self.method = method
        self.name = method.label
        self._options = options
        self._last: tuple[str, Embeddings] | None = None

    def describe(self) -> dict[str, Any]:
        return {"method": self.method.id, "version": self.method.version}

    def why_not(self, task: Task, labels: Labels | None) -> str:
        if self.method.files:
            return "" if task.dataset in self.method.files else f"{self.name} has no file for dataset {task.dataset}"
        from neuco_core.encode.encoder import check_bands
        from neuco_core.plugins.catalog import load_dataset

        dataset = load_dataset(task.dataset)
        if dataset.cubes is None:
            return f"dataset {dataset.id} has no cubes to encode"
        try:
            if dataset.bands:
                check_bands(self.method, dataset.id, dataset.bands)
        except DataError as error:
            return str(error)
        return ""

    def embeddings(self, task: Task) -> Embeddings:
        if self._last is None or self._last[0] != task.dataset:
            from neuco_core.encode.run import method_embeddings

            self._last = task.dataset, method_embeddings(self.method, task.dataset, {}, **self._options)
        return self._last[1]


class FileSource:
    """A file of embeddings, read once; it has something for every task whose ids it holds.

    ``made`` are embeddings that are in memory already: then the path is only a name.
    """

    def __init__(self, path: Path, *, name: str = "", strict: bool = False, made: Embeddings | None = None) -> None:
        self.path = path
        self.name = name or path.name
        self._strict = strict
        self._embeddings = made
        self._ids = frozenset(made.ids if made else ())

    def describe(self) -> dict[str, Any]:
        found = self.read()
        return {"file": self.path.name, "sha256": found.sha256, "replaced": dict(found.replaced)}

    def read(self) -> Embeddings:
        if self._embeddings is None:
            from neuco_core.tables.embeddings import read_embeddings

            self._embeddings = read_embeddings(self.path, strict=self._strict)
            self._ids = frozenset(self._embeddings.ids)
        return self._embeddings

    def why_not(self, task: Task, labels: Labels | None) -> str:
        if labels is None or self.matches(labels):
            return ""
        return f"no id of {self.name} has a label in it"

    def matches(self, labels: Labels) -> int:
        """How many labelled samples the file holds."""
        self.read()
        return sum(name in self._ids for name in labels.ids)

    def embeddings(self, task: Task) -> Embeddings:
        return self.read()

    def check_dataset(self, tasks: Sequence[Task], labels: Mapping[str, Labels | NeucoError]) -> None:
        """Refuse to guess: ids such as 0, 1, 2 fit several datasets, and a score on the wrong one says nothing."""
        from neuco_core.runs.files import only_dataset
        from neuco_core.tables.labels import Labels

        known = {name: own for name, own in labels.items() if isinstance(own, Labels)}
        only_dataset(self.path, tasks, {name: self.matches(own) for name, own in known.items()})


def examples(own: Collection[str], labelled: Collection[str]) -> str:
    """An id of either side, where they share none: mostly it is a suffix or a prefix."""
    return f"ids such as {next(iter(own), '')!r}, and the task has {next(iter(labelled), '')!r}"


def open_source(text: str, *, strict: bool = False, **options: Any) -> Source:
    """A method by its id, or a file by its path; an id has no dot and no slash, so the two cannot be confused.

    ``options`` are those of ``method_embeddings``.
    """
    if "." in text or "/" in text:
        return FileSource(Path(text).expanduser(), strict=strict)
    from neuco_core.plugins.catalog import load_method

    return MethodSource(load_method(text), **options)
