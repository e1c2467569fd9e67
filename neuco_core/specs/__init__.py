"""The nouns, as frozen values that are checked when they are made.

Only msgspec is imported: plugins are imported to list them, and listing must stay quick. Whatever needs
numpy or the network (``Task.labels``, ``Method.embeddings``, ``Dataset.open``) imports it when it is called.
"""

from neuco_core.specs.base import Content, Origin, Remote, Spec, exact, resolve, to_json, versioned_id
from neuco_core.specs.content import (
    DEFAULT_METRIC,
    FITTED,
    KINDS,
    LONGEST_DATASET,
    PARTS,
    Baseline,
    Dataset,
    Method,
    Task,
)
from neuco_core.specs.uses import (
    ONE_LABEL,
    BoardKind,
    CellSource,
    Check,
    Command,
    Engine,
    Metric,
    Panel,
    Probe,
    PublishedSource,
    Splitter,
    Suite,
)

__all__ = [
    "DEFAULT_METRIC",
    "FITTED",
    "KINDS",
    "LONGEST_DATASET",
    "ONE_LABEL",
    "PARTS",
    "Baseline",
    "BoardKind",
    "CellSource",
    "Check",
    "Command",
    "Content",
    "Dataset",
    "Engine",
    "Method",
    "Metric",
    "Origin",
    "Panel",
    "Probe",
    "PublishedSource",
    "Remote",
    "Spec",
    "Splitter",
    "Suite",
    "Task",
    "exact",
    "resolve",
    "to_json",
    "versioned_id",
]
