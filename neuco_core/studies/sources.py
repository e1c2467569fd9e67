"""Where the embeddings of a study come from: a registered method, or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from neuco_core.encode.run import AS_USUAL, EncodeOptions, method_embeddings, why_not
from neuco_core.plugins.catalog import load_method
from neuco_core.specs import Method, Task
from neuco_core.tables.embeddings import Embeddings, read_embeddings
from neuco_core.tables.labels import Labels


class MethodSource:
    """A registered method. The embeddings of the last dataset are kept: tasks come dataset by dataset."""

    def __init__(self, method: Method, options: EncodeOptions = AS_USUAL) -> None:
        self.method = method
        self.name = method.label
        self._options = options
        self._last: tuple[str, Embeddings] | None = None

    def describe(self) -> dict[str, Any]:
        """What goes into the JSON."""
        return {"method": self.method.id, "version": self.method.version}

    def why_not(self, task: Task, labels: Labels | None) -> str:
        """Why this source has nothing for a task, known without fetching or computing anything; "" if it has."""
        return why_not(self.method, task.dataset)

    def embeddings(self, task: Task) -> Embeddings:
        if self._last is None or self._last[0] != task.dataset:
            self._last = task.dataset, method_embeddings(self.method, task.dataset, {}, self._options)
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
        embeddings = self.read()
        return {"file": self.path.name, "sha256": embeddings.sha256, "replaced": dict(embeddings.replaced)}

    def read(self) -> Embeddings:
        if self._embeddings is None:
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


Source: TypeAlias = MethodSource | FileSource


def open_source(text: str, *, strict: bool = False, options: EncodeOptions = AS_USUAL) -> Source:
    """A method by its id, or a file by its path; an id has no dot and no slash, so the two cannot be confused."""
    if "." in text or "/" in text:
        return FileSource(Path(text).expanduser(), strict=strict)
    return MethodSource(load_method(text), options)
