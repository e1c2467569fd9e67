"""What content is scored, ranked, run and shown with: metrics, probes, splitters, engines, boards, commands, panels.

Functions may be given by name, ``"package.module:function"``: then listing a plugin imports nothing of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from neuco_core.fields import Count, Flag, Id, Names, Number, Params, Target, Text, choice
from neuco_core.specs.base import Spec
from neuco_core.specs.content import KINDS

ONE_LABEL = KINDS[:2]  # what a metric or probe is for that does not say
PLACES = ("board", "method", "task")
Kinds = Annotated[tuple[Annotated[str, choice(KINDS)], ...], Meta(description="some of " + ", ".join(KINDS))]
_VERSIONS = "a mapping with at least one task: task ids mapped to versions of at least 1"
Versions = Annotated[Mapping[Id, Count], Meta(min_length=1, description=_VERSIONS)]


@dataclass(frozen=True, kw_only=True)
class Metric(Spec):
    """``function(truth, prediction) -> float``; predictions of a classification are probabilities by class.

    For ``multilabel``, truth is 0 and 1, (n, labels), and a prediction above one half says that a label is there.
    """

    function: Target
    kinds: Kinds = ONE_LABEL
    greater_is_better: Flag = True
    lower: Number | None = None
    upper: Number | None = None


@dataclass(frozen=True, kw_only=True)
class Probe(Spec):
    """``factory(protocol) -> probe``; what a probe must offer is in ``neuco_core.scoring.probes``."""

    factory: Target
    kinds: Kinds = ONE_LABEL
    requires: Names = ()


@dataclass(frozen=True, kw_only=True)
class Splitter(Spec):
    """``function(n, protocol, groups) -> list of (train, test)`` index arrays.

    One that ``needs_split`` is given, in the place of groups, the part that the task names for each sample.
    """

    function: Target
    needs_groups: Flag = False
    needs_split: Flag = False


@dataclass(frozen=True, kw_only=True)
class Engine(Spec):
    """``factory(address, jobs) -> engine``; what an engine must offer is ``EngineLike`` in ``neuco_core.runs.engine``.

    ``--engine ID`` gives no address (None), ``--engine ID://ADDRESS`` what stands behind the slashes.
    """

    factory: Target


@dataclass(frozen=True, kw_only=True)
class BoardKind(Spec):
    """``rank(cells, **options) -> Ranked``: how the cells of a suite become a ranking (see ``neuco_core.boards``).

    ``options`` are the kind's options with their defaults; a suite, or whoever shows its board, may set others.
    """

    rank: Target
    options: Params = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Suite(Spec):
    """A frozen list of task versions that are compared together; its board is of a ``kind``, with its ``options``.

    A ``living`` suite is not frozen: the catalogue makes it of all tasks of a dataset.
    """

    tasks: Versions
    protocol: Text = "neuco-2025"
    version: Count = 1
    kind: Id = "neuco"
    options: Params = field(default_factory=dict)
    living: Flag = False


@dataclass(frozen=True, kw_only=True)
class Command(Spec):
    """A command of ``neuco``: a click command, or its name. ``title`` is its line in ``neuco --help``."""

    command: Target


@dataclass(frozen=True, kw_only=True)
class Check(Spec):
    """One point of the contract: what it ``asks``, why, and what to do if it is broken.

    ``run(subject)`` returns a few words, or raises (see ``neuco_core.contract.contract``). ``noun`` is what it looks
    at: a task, a method, a dataset, or something else that ``find(name)`` finds by what a user names; it returns an
    object with ``noun`` and ``id``, or ``None``.
    """

    noun: Id
    asks: Text
    reason: Text
    cure: Text
    run: Target
    find: Target | None = None
    essential: Flag = True


@dataclass(frozen=True, kw_only=True)
class Panel(Spec):
    """A tab of a board's page, or a section of the page of a method or a task, as ``about`` says.

    ``data(page)`` gets what the board's pages show (``neuco_core.site.page_data.PageData``), and the id of the method
    or task as second argument. It returns what the ``template`` needs, or ``None``: then nothing is shown. A template
    is jinja2, a file of the package as ``"package:file.html"`` or its text; all values are escaped, and ``ui`` has
    the site's macros.
    """

    data: Target
    template: Text
    about: Annotated[str, choice(PLACES)] = "board"


@dataclass(frozen=True, kw_only=True)
class PublishedSource(Spec):
    """``boards(registry)`` returns boards that others have published, each with its source; none is an empty list."""

    boards: Target


@dataclass(frozen=True, kw_only=True)
class CellSource(Spec):
    """``fill(board)`` returns ``ExtraCells``: values for empty cells of a board, marked, and never ranked."""

    fill: Target
