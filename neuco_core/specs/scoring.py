"""What content is scored and ranked with: metrics, probes, splitters, engines, kinds of boards, and suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from neuco_core import _validate as v
from neuco_core.specs.base import SCALARS, Spec, check_target
from neuco_core.specs.content import KINDS

ONE_LABEL = KINDS[:2]  # what a metric or probe is for that does not say


def _check_kinds(spec: Metric | Probe) -> None:
    for kind in spec.kinds:
        if kind not in KINDS:
            raise v.fail(spec, "kinds", kind, "some of " + ", ".join(KINDS))


@dataclass(frozen=True, kw_only=True)
class Metric(Spec):
    """``function(truth, prediction) -> float``; predictions of a classification are probabilities by class.

    For ``multilabel``, truth is 0 and 1, (n, labels), and a prediction above one half says that a label is there.
    """

    function: Callable[..., float] | str
    kinds: tuple[str, ...] = ONE_LABEL
    greater_is_better: bool = True
    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self, "function")
        v.freeze_strings(self, "kinds")
        _check_kinds(self)
        v.check_bool(self, "greater_is_better")
        for name in ("lower", "upper"):
            if getattr(self, name) is not None:
                v.check_number(self, name)


@dataclass(frozen=True, kw_only=True)
class Probe(Spec):
    """``factory(protocol) -> probe``; what a probe must offer is in ``neuco_core.scoring.probes``."""

    factory: Callable[..., Any] | str
    kinds: tuple[str, ...] = ONE_LABEL
    requires: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self, "factory")
        v.freeze_strings(self, "kinds")
        _check_kinds(self)
        v.freeze_strings(self, "requires")


@dataclass(frozen=True, kw_only=True)
class Splitter(Spec):
    """``function(n, protocol, groups) -> list of (train, test)`` index arrays.

    One that ``needs_split`` is given, in the place of groups, the part that the task names for each sample.
    """

    function: Callable[..., Any] | str
    needs_groups: bool = False
    needs_split: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self, "function")
        v.check_bool(self, "needs_groups", "needs_split")


@dataclass(frozen=True, kw_only=True)
class Engine(Spec):
    """``factory(address, jobs) -> engine``; what an engine must offer is ``EngineLike`` in ``neuco_core.runs.engine``.

    ``--engine ID`` gives no address (None), ``--engine ID://ADDRESS`` what stands behind the slashes.
    """

    factory: Callable[..., Any] | str

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self, "factory")


@dataclass(frozen=True, kw_only=True)
class BoardKind(Spec):
    """``rank(cells, **options) -> Ranked``: how the cells of a suite become a ranking (see ``neuco_core.boards``).

    ``options`` are the kind's options with their defaults; a suite, or whoever shows its board, may set others.
    """

    rank: Callable[..., Any] | str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self, "rank")
        v.freeze_mapping(self, "options", SCALARS)


@dataclass(frozen=True, kw_only=True)
class Suite(Spec):
    """A frozen list of task versions that are compared together; its board is of a ``kind``, with its ``options``.

    A ``living`` suite is not frozen: publishing writes it anew from what is registered.
    """

    tasks: Mapping[str, int]
    protocol: str = "neuco-2025"
    version: int = 1
    kind: str = "neuco"
    options: Mapping[str, Any] = field(default_factory=dict)
    living: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        v.freeze_mapping(self, "tasks", int)
        if not self.tasks:
            raise v.fail(self, "tasks", {}, "at least one task")
        for name, version in self.tasks.items():
            if not v.ID.fullmatch(name) or version < 1 or version is True:
                raise v.fail(self, "tasks", {name: version}, "task ids mapped to versions of at least 1")
        v.check_text(self, "protocol")
        v.check_int(self, "version", 1)
        v.check_id(self, "kind")
        v.freeze_mapping(self, "options", SCALARS)
        v.check_bool(self, "living")
