"""The outcome of a cell: its score, or what an error means for it.

Whatever scores a method on a task asks ``outcome_of`` about errors, so that one fault has one status and one reason
wherever it is met; a search that scores settings inside one cell calls ``score`` itself.
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuco_core.env import show_in_debug
from neuco_core.errors import (
    DataError,
    DependencyError,
    NeucoError,
    NotApplicableError,
    OfflineError,
    PluginError,
    UnpinnedError,
)
from neuco_core.protocol import Protocol
from neuco_core.scoring.scorer import Score, score
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels

DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO))
DENIED = frozenset((errno.EACCES, errno.EPERM))


@dataclass(frozen=True)
class CellOutcome:
    """A score, or why there is none.

    ``status`` is ok, skipped (nobody's fault: data that are not pinned, no network, this machine's disk),
    not-applicable (the protocol is not for this kind of task) or failed; then ``failure`` is one of data, dependency,
    memory and method. ``machine`` says that another machine may be able to. ``reason`` may name this machine's
    folders; ``error`` is what was raised.
    """

    status: str
    score: Score | None = None
    embeddings_sha256: str = ""
    labels_sha256: str = ""
    dim: int = 0
    failure: str = ""
    reason: str = ""
    machine: bool = False
    error: Exception | None = field(default=None, repr=False, compare=False)

    def require(self) -> Score:
        """The score; without one the error is raised again."""
        if self.score is None:
            raise self.error or DataError(self.reason)
        return self.score


def score_cell(embeddings: Embeddings, labels: Labels, protocol: Protocol | str, **options: Any) -> CellOutcome:
    """Join, score with the options of ``score``, and turn whatever is raised into an outcome."""
    try:
        result = score(embeddings, labels, protocol, **options)
    except Exception as error:  # metrics and probes may be a stranger's code
        show_in_debug(error)
        return outcome_of(error)
    return CellOutcome("ok", result, embeddings.sha256, labels.sha256, embeddings.dim)


def outcome_of(error: Exception) -> CellOutcome:
    """What an error means for a cell."""
    if _is_machines(error):
        return CellOutcome("skipped", reason=f"this machine cannot: {error}", machine=True, error=error)
    if isinstance(error, UnpinnedError | OfflineError):
        return CellOutcome("skipped", reason=str(error), error=error)
    reason = str(error)
    if isinstance(error, NotApplicableError):
        return CellOutcome("not-applicable", reason=reason, error=error)
    if isinstance(error, MemoryError):
        failure, reason = "memory", "not enough memory"
    elif any(isinstance(cause, DependencyError | ModuleNotFoundError) for cause in _causes(error)):
        failure = "dependency"
    elif isinstance(error, NeucoError):
        failure = "method" if isinstance(error, PluginError) else "data"
    else:
        last = traceback.extract_tb(error.__traceback__)[-1]
        failure, reason = "method", f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
    return CellOutcome("failed", failure=failure, reason=reason, error=error)


def _is_machines(error: BaseException) -> bool:
    """Whether a disk that is full or cannot be written is behind an error, whoever met it.

    A file that may not be used is the machine's fault if neuco wanted it; a plugin may have asked for anything.
    """
    codes = DISK | DENIED if isinstance(error, DataError) else DISK
    return any(isinstance(cause, OSError) and cause.errno in codes for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what is behind it: a plugin's error comes as one of neuco's."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__
