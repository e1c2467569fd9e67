"""The nouns, as frozen values that are checked when they are made.

Only msgspec is imported: plugins are imported to list them, and listing must stay quick. Whatever needs numpy or the
network (``Task.labels``, ``Method.embeddings``, ``Dataset.open``) imports it when it is called.

Functions of what content is scored, ranked, run and shown with may be given by name, ``"package.module:function"``:
then listing a plugin imports nothing of it.
"""

# No `from __future__ import annotations`: the types of fields are read when a spec is made (see ``fields``).
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from neuco_core.fields import (
    FUNCTION,
    Checked,
    Count,
    Flag,
    Function,
    Id,
    Names,
    Number,
    OptionalId,
    Params,
    Sha256,
    Share,
    Size,
    Target,
    Text,
    bounds,
    choice,
    wrong,
)

if TYPE_CHECKING:
    import xarray

    from neuco_core.cubes.cubes import CubeSource
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

PUBLISHED = ("https", "hf", "s3")  # where the files of a contributed plugin may lie, besides its own folder
SCHEMES = ("https", "http", "hf", "s3", "file", "pkg")


@dataclass(frozen=True)
class Origin:
    """Where a spec came from; stamped by the plugin manager, never by the plugin."""

    plugin: str
    source: str
    distribution: str = ""
    version: str = ""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} ({self.source})" if self.distribution else self.source


@dataclass(frozen=True, kw_only=True)
class Spec(Checked):
    """What every registered noun has: an id, words for people, and where it came from."""

    id: Id
    title: Text = ""
    description: Text = field(default="", repr=False)  # long texts would hide what a spec is
    origin: Origin | None = field(default=None, compare=False, repr=False)
    version = 1  # only content and suites have others


@dataclass(frozen=True, kw_only=True)
class Content(Spec):
    """A spec that brings content of its own: it has a version, rights, tags."""

    version: Count = 1
    license: Text = ""
    citation: Text = field(default="", repr=False)
    tags: Names = ()

    @property
    def label(self) -> str:
        """The name in keys and tables: ``x@2``, and of version 1 the id alone."""
        return versioned_id(self.id, self.version)


def versioned_id(spec_id: str, version: int) -> str:
    return spec_id if version == 1 else f"{spec_id}@{version}"


def exact(label: str) -> str:
    """A label for a look-up: of version 1, too, since the id alone would give the newest."""
    return label if "@" in label else f"{label}@1"


@dataclass(frozen=True)
class Remote(Checked):
    """A file somewhere, and the sha256 that says which file it is.

    Attributes:
        url: ``https://``, ``http://``, ``hf://datasets/owner/name@revision/path``, ``s3://bucket/key`` (with
            ``?versionId=…``), ``file:///path``, or ``pkg://package/path`` for a file inside a Python package.
        sha256: None means that nobody has verified it yet ("unpinned"): it can be listed, not loaded.
        size: in bytes; no more is ever downloaded.
        mirrors: further addresses of the same bytes.
    """

    url: Text
    sha256: Sha256 | None = None
    size: Size | None = None
    mirrors: Names = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for url in self.urls:
            try:
                known = urlsplit(url).scheme in SCHEMES
            except ValueError:
                known = False
            if not known or not url.partition("://")[2]:
                raise wrong(self, "url", url, "an address that starts with " + ", ".join(f"{s}://" for s in SCHEMES))

    @property
    def pinned(self) -> bool:
        return self.sha256 is not None

    @property
    def urls(self) -> tuple[str, ...]:
        """The address and its mirrors, in the order they are tried."""
        return (self.url, *self.mirrors)


def resolve(target: Callable[..., Any] | str) -> Any:
    """What a name such as ``"package.module:function"`` stands for; a function stands for itself."""
    if not isinstance(target, str):
        return target
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def to_json(value: object) -> Any:
    """A spec as plain JSON values; a function is shown by its name."""
    return msgspec.to_builtins(value, enc_hook=_shown)


def _shown(function: Any) -> str:
    return f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', type(function).__name__)}"


KINDS = ("regression", "classification", "multilabel")
PARTS = ("train", "test")  # what a task's split column says
FITTED = "self"  # in Method.pretraining: it learns from the samples that it encodes, without their labels
# Of Method.tolerance: half-precision networks need up to a hundredth; more is another embedding.
LARGEST_TOLERANCE = 0.02
LARGEST_SPREAD = 0.1  # of a mean score between machines; numbers that move farther are worth nothing
LONGEST_DATASET = 60  # of the 64 characters of an id
Files = Annotated[Mapping[str, Remote], Meta(description="a mapping: strings mapped to Remote")]
DEFAULT_METRIC = {"regression": "r2", "classification": "f1", "multilabel": "average_precision"}


@dataclass(frozen=True, kw_only=True)
class Baseline(Checked):
    """The score that a known method should reach: the mean over the splits, and the tolerance."""

    method: Id
    score: Number
    tolerance: Share
    protocol: Text = "neuco-2025"
    source: Text = ""


@dataclass(frozen=True, kw_only=True)
class Dataset(Content):
    """A set of samples with their images.

    Attributes:
        bands: named ``modality/BAND``.
        seasons: the names of the images of a sample.
        cubes: opens the images; called when they are read.
        archives: the files that ``cubes`` reads, so that continuous integration can fetch and verify them.
        synthetic: whether the images are made up.
        protocol: how its tasks are scored unless a suite or a reader says otherwise; ``neuco-2025`` if empty.
        related: datasets that may share samples with it; boards mark methods that were trained on one of them.
        footprint: the width of a sample on the ground in metres, 0 if not known.
        no_positions: why nobody knows where its samples are; else a file ``positions.csv`` in the plugin's folder says.
    """

    bands: Names = ()
    seasons: Names = ()
    cubes: Annotated[Callable[[], "CubeSource"], FUNCTION] | None = None
    archives: Annotated[tuple[Remote, ...], Meta(description="a tuple of Remote")] = ()
    synthetic: Flag = False
    protocol: Text = ""
    related: Names = ()
    footprint: Annotated[float, bounds(ge=0)] = 0.0
    no_positions: Text = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.id) > LONGEST_DATASET:
            raise wrong(self, "id", self.id, f"at most {LONGEST_DATASET} characters: its living suite is all-ID")
        if self.archives and self.cubes is None:
            raise wrong(self, "archives", self.archives, "cubes= beside them, which opens them")

    def ids(self) -> tuple[str, ...]:
        """The ids of all samples, without reading any."""
        from neuco_core.cubes.cubes import source_of

        return tuple(source_of(self).ids())

    def __len__(self) -> int:
        return len(self.ids())

    def __bool__(self) -> bool:
        return True  # also one whose samples are not here to be counted

    def open(self, sample_id: str) -> "xarray.DataArray":
        """One sample as (season, band, y, x) with named seasons, bands and modalities."""
        from neuco_core.cubes.cubes import open_sample, source_of

        return open_sample(source_of(self), sample_id)

    def __iter__(self) -> Iterator["xarray.DataArray"]:
        from neuco_core.cubes.cubes import open_sample, source_of

        source = source_of(self)
        return (open_sample(source, name) for name in source.ids())


@dataclass(frozen=True, kw_only=True)
class Task(Content):
    """Labels for samples of a dataset, and how a prediction of them is scored.

    Attributes:
        dataset: the id of the dataset.
        kind: ``regression``, ``classification`` or ``multilabel`` (a column of 0 and 1 for each label).
        source: the file of labels.
        metric: the id of a metric; by default ``r2``, ``f1`` or ``average_precision``.
        unit: of the labels of a regression.
        columns: the columns that hold the labels.
        group_column: the column with the group of each sample.
        split_column: the column with the words ``train`` and ``test``, which are the one split.
        splitter: what takes the place of ``shuffle`` in every protocol: ``group`` keeps the samples of a group
            together; ``fixed`` follows from a ``split_column``.
        loader: reads a source that is no CSV file: a function of its path that returns columns.
        baseline: the score that a known method should reach.
        control: whether no method should do well on it; it is never ranked.
    """

    dataset: Id
    kind: Annotated[str, choice(KINDS)]
    source: Remote
    metric: OptionalId = ""
    unit: Text = ""
    columns: Names = ("label",)
    group_column: Text | None = None
    split_column: Text | None = None
    splitter: OptionalId = ""
    loader: Function | None = None
    baseline: Baseline | None = None
    control: Flag = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "metric", self.metric or DEFAULT_METRIC[self.kind])
        object.__setattr__(self, "splitter", self.splitter or ("fixed" if self.split_column else ""))
        if not self.columns:
            raise wrong(self, "columns", self.columns, "at least one label column")
        if (self.splitter == "fixed") != bool(self.split_column):
            raise wrong(self, "splitter", self.splitter, "fixed with a split_column, and only then")
        if self.splitter == "group" and not self.group_column:
            raise wrong(self, "splitter", self.splitter, "a group_column beside it")

    def labels(self) -> "Labels":
        """Fetch, verify and read the labels."""
        from neuco_core.tables.labels import load_labels

        return load_labels(self)


@dataclass(frozen=True, kw_only=True)
class Method(Content):
    """Where embeddings come from: ``files`` or an ``encoder``.

    Attributes:
        files: files of embeddings by the id of their dataset.
        encoder: called with ``params`` and ``weights``, it returns an object with ``encode(batch)`` and, if it learns,
            ``fit(cubes)``.
        params: the arguments of the encoder with their defaults.
        bands: what the encoder needs, and all that it is given; empty means every band.
        seasons: the same for seasons.
        requires: packages, as ``pip`` knows them.
        weights: files whose paths the encoder is given, each as the argument of its name.
        dim: how many numbers a row has.
        baseline: whether it is there to be beaten.
        uses_positions: its encoder has ``encode(positions)`` and sees where samples are, and no images; it is for every
            dataset with positions that ``files`` does not have.
        uses_ids: whether its numbers depend on the names of samples, which those of any other method must not.
        machine_spread: for a method that trains on the fly, how far a mean score may differ on another processor.
        tolerance: how far batch size, order and repetition may move a value, as a part of the spread of the
            embeddings: 0 is bit for bit, a network in batches needs about 1e-4.
        pretraining: the data that it was trained on, by the id of a dataset or its usual name; ``()`` for none,
            ``"self"`` for the samples that it encodes, None if not known. This and what follows changes no score.
        n_parameters: how many learned numbers are used.
        preprocessing: what happens to an image first.
    """

    files: Files = field(default_factory=dict)
    encoder: Function | None = None
    params: Params = field(default_factory=dict)
    bands: Names = ()
    seasons: Names = ()
    requires: Names = ()
    weights: Files = field(default_factory=dict)
    dim: Count | None = None
    baseline: Flag = False
    uses_ids: Flag = False
    uses_positions: Flag = False
    machine_spread: Annotated[float, bounds(ge=0, le=LARGEST_SPREAD)] = 0.0
    tolerance: Annotated[float, bounds(ge=0, lt=LARGEST_TOLERANCE)] = 0.0
    pretraining: Names | None = None
    n_parameters: Size | None = None
    preprocessing: Text = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.files) == bool(self.encoder) and not (self.encoder and self.uses_positions):
            raise wrong(self, "files", dict(self.files), "either files or an encoder, and not both")
        if self.weights and (self.files or not all(name.isidentifier() for name in self.weights)):
            raise wrong(self, "weights", dict(self.weights), "files of an encoder, by the names of its arguments")
        if not self.weights.keys().isdisjoint(self.params):
            raise wrong(self, "weights", dict(self.weights), "other names than those of params")

    @property
    def sees_images(self) -> bool:
        return self.encoder is not None and not self.uses_positions

    def embeddings(self, dataset: str, **params: Any) -> "Embeddings":
        """The embeddings of a dataset: read from the verified file, or made by the encoder and cached."""
        from neuco_core.encode.run import method_embeddings

        return method_embeddings(self, dataset, params)


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
    """``factory(protocol) -> probe``; what a probe must offer is in ``neuco_core.scoring.probes``.

    A probe that predicts no labels, such as a retrieval, names the ``metric`` that takes the place of the task's.
    ``made_of(protocol)`` is the key of what else decides its numbers, such as another plugin's code. One that learns
    in ``epochs`` uses the protocol's fields on epochs, batches and learning rate.
    """

    factory: Target
    epochs: Flag = False
    kinds: Kinds = ONE_LABEL
    metric: OptionalId = ""
    requires: Names = ()
    made_of: Target | None = None


@dataclass(frozen=True, kw_only=True)
class Coder(Spec):
    """``factory(setting) -> coder``: embeddings in fewer bytes, and back; ``setting`` is the text behind ``ID=``.

    A coder has ``encode(values) -> codes``, from float32 (n, dim) to an array whose bytes are what is stored, and
    ``decode(codes)``. It may have ``fit(values)``, which is called first, with training samples alone; ``shared``, the
    arrays that the decoder needs besides; and ``width(dim)``, if fewer dimensions come back.
    """

    factory: Target


@dataclass(frozen=True, kw_only=True)
class Splitter(Spec):
    """``function(n, protocol, groups) -> list of (train, test)`` index arrays.

    One that ``needs_split`` is given, in the place of groups, the part that the task names for each sample. One that
    ``needs_positions`` is called with a fourth argument, ``Positions``. ``params`` are its own parameters with their
    defaults: a protocol may set them, as in ``ridge+splitter=blocks,size=50km``, and has them in its ``params``.
    """

    function: Target
    needs_groups: Flag = False
    needs_split: Flag = False
    needs_positions: Flag = False
    params: Params = field(default_factory=dict)


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
    ``cells(records, suite, stale)`` makes the cells where those of the suite's own protocol are not enough.
    """

    rank: Target
    cells: Target | None = None
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


@dataclass(frozen=True, kw_only=True)
class ColumnSource(Spec):
    """``columns(board, cells)`` yields columns for a board, each with its values and intervals by method.

    ``cells`` are those of the board's tasks under each protocol on record, the board's own first.
    """

    columns: Target
