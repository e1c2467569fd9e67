"""What plugins bring: datasets, tasks with their labels, and methods that make embeddings."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from neuco_core.fields import (
    FUNCTION,
    Count,
    Flag,
    Function,
    Id,
    Names,
    Number,
    OptionalId,
    Params,
    Share,
    Size,
    Text,
    bounds,
    check_fields,
    choice,
    wrong,
)
from neuco_core.specs.base import Content, Remote

if TYPE_CHECKING:
    import xarray

    from neuco_core.cubes.cubes import CubeSource
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

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
class Baseline:
    """The score that a known method should reach: the mean over the splits, and the tolerance."""

    method: Id
    score: Number
    tolerance: Share
    protocol: Text = "neuco-2025"
    source: Text = ""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class Dataset(Content):
    """A set of samples with their inputs. ``bands`` are named ``modality/BAND``; ``cubes`` opens the inputs.

    ``protocol`` is how its tasks are scored unless a suite or a reader says otherwise (``neuco-2025`` if empty): the
    one by which their baselines were measured. ``related`` names datasets that may share samples with it: a method
    that was trained on one of them is marked on boards, as one that was trained on the dataset itself.
    ``archives`` are the files that ``cubes`` reads, so that continuous integration can fetch and verify them.
    """

    bands: Names = ()
    seasons: Names = ()
    cubes: Annotated[Callable[[], "CubeSource"], FUNCTION] | None = None
    archives: Annotated[tuple[Remote, ...], Meta(description="a tuple of Remote")] = ()
    synthetic: Flag = False
    protocol: Text = ""
    related: Names = ()

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

    A ``multilabel`` task has a column of 0 and 1 for each label. ``splitter`` takes the place of ``shuffle`` in every
    protocol: ``group`` keeps the samples of a group (``group_column``) together; ``fixed``, which a ``split_column``
    implies, is the one split that the words ``train`` and ``test`` in that column say.
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
    """Where embeddings come from: ``files`` by dataset id, or an ``encoder`` that is run on cubes.

    ``encoder`` is called with ``params`` and gives an object with ``encode(batch)`` and, if it learns, ``fit(cubes)``.
    ``bands`` and ``seasons`` are what the encoder needs, and all that it is given (everything if empty); ``requires``
    are packages, as ``pip`` knows them; ``weights`` are files that it is given as paths, each as the argument of its
    name. ``uses_ids`` declares that its numbers depend on the names of samples, which those of any other method must
    not. ``tolerance`` is how far batch size, order and repetition may move a value, as a part of the spread of the
    embeddings: 0 is bit for bit, a network in batches needs about 1e-4.

    ``machine_spread`` declares that it is trained when it is run, so that another processor, which rounds differently,
    ends elsewhere: how far a mean score may then be from the recorded one.

    The last four are facts for readers and change no score; what is not known stays ``None``, or empty.
    ``pretraining`` names the data that it was trained on, by the id of a dataset here or by its usual name: ``()`` for
    none, ``"self"`` for the samples that it encodes. ``n_parameters`` counts what was learned and is used;
    ``confirmed`` says whether the model's author has confirmed this implementation.
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
    machine_spread: Annotated[float, bounds(ge=0, le=LARGEST_SPREAD)] = 0.0
    tolerance: Annotated[float, bounds(ge=0, lt=LARGEST_TOLERANCE)] = 0.0
    pretraining: Names | None = None
    n_parameters: Size | None = None
    preprocessing: Text = ""
    confirmed: Flag | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.files) == bool(self.encoder):
            raise wrong(self, "files", dict(self.files), "either files or an encoder, and not both")
        if self.weights and (self.files or not all(name.isidentifier() for name in self.weights)):
            raise wrong(self, "weights", dict(self.weights), "files of an encoder, by the names of its arguments")
        if not self.weights.keys().isdisjoint(self.params):
            raise wrong(self, "weights", dict(self.weights), "other names than those of params")

    @property
    def exact(self) -> bool:
        """Whether its embeddings are the same bit for bit, whatever the batches."""
        return self.tolerance == 0

    def embeddings(self, dataset: str, **params: Any) -> "Embeddings":
        """The embeddings of a dataset: read from the verified file, or made by the encoder and cached."""
        from neuco_core.encode.run import method_embeddings

        return method_embeddings(self, dataset, params)
