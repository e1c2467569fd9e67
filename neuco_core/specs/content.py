"""What plugins bring: datasets, tasks with their labels, and methods that make embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neuco_core import _validate as v
from neuco_core.specs.base import SCALARS, Content, Remote

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
DEFAULT_METRIC = {"regression": "r2", "classification": "f1", "multilabel": "average_precision"}


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The score that a known method should reach: the mean over the splits, and the tolerance."""

    method: str
    score: float
    tolerance: float
    protocol: str = "neuco-2025"
    source: str = ""

    def __post_init__(self) -> None:
        v.check_id(self, "method")
        v.check_number(self, "score")
        v.check_number(self, "tolerance", least=0)
        v.check_text(self, "protocol", "source")


@dataclass(frozen=True, kw_only=True)
class Dataset(Content):
    """A set of samples with their inputs. ``bands`` are named ``modality/BAND``; ``cubes`` opens the inputs.

    ``protocol`` is how its tasks are scored unless a suite or a reader says otherwise (``neuco-2025`` if empty): the
    one by which their baselines were measured. ``related`` names datasets that may share samples with it: a method
    that was trained on one of them is marked on boards, as one that was trained on the dataset itself.
    ``archives`` are the files that ``cubes`` reads, so that continuous integration can fetch and verify them.
    """

    bands: tuple[str, ...] = ()
    seasons: tuple[str, ...] = ()
    cubes: Callable[[], CubeSource] | None = None
    archives: tuple[Remote, ...] = ()
    synthetic: bool = False
    protocol: str = ""
    related: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.id) > LONGEST_DATASET:
            raise v.fail(self, "id", self.id, f"at most {LONGEST_DATASET} characters: its living suite is all-ID")
        v.freeze_strings(self, "bands")
        v.freeze_strings(self, "seasons")
        v.check_callable(self, "cubes")
        if not isinstance(self.archives, tuple) or not all(isinstance(item, Remote) for item in self.archives):
            raise v.fail(self, "archives", self.archives, "a tuple of Remote")
        if self.archives and self.cubes is None:
            raise v.fail(self, "archives", self.archives, "cubes= beside them, which opens them")
        v.check_bool(self, "synthetic")
        v.check_text(self, "protocol")
        v.freeze_strings(self, "related")

    def ids(self) -> tuple[str, ...]:
        """The ids of all samples, without reading any."""
        from neuco_core.cubes.cubes import source_of

        return tuple(source_of(self).ids())

    def __len__(self) -> int:
        return len(self.ids())

    def __bool__(self) -> bool:
        return True  # also one whose samples are not here to be counted

    def open(self, sample_id: str) -> xarray.DataArray:
        """One sample as (season, band, y, x) with named seasons, bands and modalities."""
        from neuco_core.cubes.cubes import open_sample, source_of

        return open_sample(source_of(self), sample_id)

    def __iter__(self) -> Iterator[xarray.DataArray]:
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

    dataset: str
    kind: str
    source: Remote
    metric: str = ""
    unit: str = ""
    columns: tuple[str, ...] = ("label",)
    group_column: str | None = None
    split_column: str | None = None
    splitter: str = ""
    loader: Callable[..., Any] | None = None
    baseline: Baseline | None = None
    control: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        v.check_id(self, "dataset")
        v.check_choice(self, "kind", KINDS)
        v.check_instance(self, "source", Remote)
        v.set_field(self, "metric", self.metric or DEFAULT_METRIC[self.kind])
        v.check_id(self, "metric")
        v.check_text(self, "unit")
        v.freeze_strings(self, "columns")
        if not self.columns:
            raise v.fail(self, "columns", self.columns, "at least one label column")
        v.check_instance(self, "group_column", str, optional=True)
        v.check_instance(self, "split_column", str, optional=True)
        v.set_field(self, "splitter", self.splitter or ("fixed" if self.split_column else ""))
        if self.splitter:
            v.check_id(self, "splitter")
        if (self.splitter == "fixed") != bool(self.split_column):
            raise v.fail(self, "splitter", self.splitter, "fixed with a split_column, and only then")
        if self.splitter == "group" and not self.group_column:
            raise v.fail(self, "splitter", self.splitter, "a group_column beside it")
        v.check_callable(self, "loader")
        v.check_instance(self, "baseline", Baseline, optional=True)
        v.check_bool(self, "control")

    def labels(self) -> Labels:
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

    files: Mapping[str, Remote] = field(default_factory=dict)
    encoder: Callable[..., Any] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    bands: tuple[str, ...] = ()
    seasons: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    weights: Mapping[str, Remote] = field(default_factory=dict)
    dim: int | None = None
    baseline: bool = False
    uses_ids: bool = False
    machine_spread: float = 0.0
    tolerance: float = 0.0
    pretraining: tuple[str, ...] | None = None
    n_parameters: int | None = None
    preprocessing: str = ""
    confirmed: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        v.freeze_mapping(self, "files", Remote)
        v.check_callable(self, "encoder")
        if bool(self.files) == bool(self.encoder):
            raise v.fail(self, "files", dict(self.files), "either files or an encoder, and not both")
        v.freeze_mapping(self, "params", SCALARS)
        v.freeze_strings(self, "bands")
        v.freeze_strings(self, "seasons")
        v.freeze_strings(self, "requires")
        v.freeze_mapping(self, "weights", Remote)
        if self.weights and (self.files or not all(name.isidentifier() for name in self.weights)):
            raise v.fail(self, "weights", dict(self.weights), "files of an encoder, by the names of its arguments")
        if not self.weights.keys().isdisjoint(self.params):
            raise v.fail(self, "weights", dict(self.weights), "other names than those of params")
        v.check_int(self, "dim", 1, optional=True)
        v.check_bool(self, "baseline")
        v.check_bool(self, "uses_ids")
        v.check_number(self, "machine_spread", least=0)
        if self.machine_spread > LARGEST_SPREAD:
            raise v.fail(self, "machine_spread", self.machine_spread, f"at most {LARGEST_SPREAD}")
        v.check_number(self, "tolerance", least=0, below=LARGEST_TOLERANCE)
        if self.pretraining is not None:
            v.freeze_strings(self, "pretraining")
        v.check_int(self, "n_parameters", 0, optional=True)
        v.check_text(self, "preprocessing")
        v.check_instance(self, "confirmed", bool, optional=True)

    @property
    def exact(self) -> bool:
        """Whether its embeddings are the same bit for bit, whatever the batches."""
        return self.tolerance == 0

    def embeddings(self, dataset: str, **params: Any) -> Embeddings:
        """The embeddings of a dataset: read from the verified file, or made by the encoder and cached."""
        from neuco_core.encode.run import method_embeddings

        return method_embeddings(self, dataset, params)
