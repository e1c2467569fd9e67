"""The rules of scoring, as frozen named values."""

# No `from __future__ import annotations`: the types of fields are read when a protocol is made (see ``fields``).
import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from neuco_core.errors import UnknownIdError, UsageError
from neuco_core.fields import Checked, Count, Flag, Frozen, Id, Params, Share, Text, bounds, choice, wrong

SHUFFLE = "shuffle"
DEFAULT_PROTOCOL = "neuco-2025"  # where neither a reader nor a suite nor a dataset names one
_NAME = "an id, with '+field=value,…' behind it for a variant"
Name = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9_-]*(\+[^\s\ud800-\udfff]+)?\Z", description=_NAME)]


@dataclass(frozen=True, kw_only=True)
class Protocol(Checked):
    """The rules of scoring. A variant made by ``with_`` says so in its name: ``neuco-2025+k=50,lr=0.0001``.

    Attributes:
        probe: The model that is trained.
        splitter: How samples are divided: ``shuffle``, ``group`` or ``fixed``.
        k: The number of splits.
        test_size: The share of the test part.
        seed: Of splits, initial weights and batches.
        epochs: Of training, as are ``batch_size``, ``lr`` and ``weight_decay``; probes in closed form ignore them.
        select: Which epoch counts: ``best-on-test`` or ``last``.
        scale_on: Which samples scaling is learned from: ``all``, or those of the training part (``train``).
        flat: What a test part without variance, or with one class only, is worth: what the metric gives for it
            (``as-metric``; for R² that is 0), or nothing (``leave-out``: the split has no score).
        standardize: Whether embeddings are scaled.
        normalize_labels: Whether labels of a regression are scaled to [0, 1].
        embedding_dim: Shorter embeddings are padded with zeros to this size.
        params: Parameters of the probe.
    """

    name: Name
    probe: Id = "linear"
    splitter: Id = SHUFFLE
    k: Count = 40
    test_size: Annotated[float, bounds(gt=0, lt=1)] = 0.1
    seed: Annotated[int, Meta(ge=0, lt=2**32, description="a whole number of at least 0 and below 2^32")] = 42
    epochs: Count = 20
    batch_size: Count = 64
    lr: Annotated[float, bounds(gt=0)] = 1e-3
    weight_decay: Share = 0.01
    select: Annotated[str, choice(("best-on-test", "last"))] = "best-on-test"
    scale_on: Annotated[str, choice(("all", "train"))] = "all"
    flat: Annotated[str, choice(("as-metric", "leave-out"))] = "as-metric"
    standardize: Flag = True
    normalize_labels: Flag = True
    embedding_dim: Count | None = None
    params: Params = field(default_factory=dict)
    description: Text = field(default="", compare=False)

    def with_(self, **changes: Any) -> "Protocol":
        """A variant with some fields changed; what is no field of the protocol is a parameter of its probe."""
        rules = {f.name for f in dataclasses.fields(self)} - {"name", "params", "description"}
        for name, value in changes.items():
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in ("name", "params", "description"):
                raise wrong(self, name, value, "one of " + ", ".join(sorted(rules)) + ", or a parameter of the probe")
        base, _, suffix = self.name.partition("+")
        changed = dict(item.split("=", 1) for item in suffix.split(",") if item)
        changed.update({name: str(value) for name, value in changes.items()})
        fields: dict[str, Any] = {name: value for name, value in changes.items() if name in rules}
        fields["params"] = {**self.params, **{name: value for name, value in changes.items() if name not in rules}}
        name = base + "+" + ",".join(f"{key}={changed[key]}" for key in sorted(changed)) if changed else base
        return dataclasses.replace(self, name=name, **fields)

    def splitter_for(self, of_task: str) -> str:
        """The splitter for a task that names one, or "" if it names none: random splits give way to it."""
        return of_task if of_task and self.splitter == SHUFFLE else self.splitter


def load_protocol(name: str) -> Protocol:
    """A protocol by name, or a variant of one: ``neuco-2025+k=50,lr=0.0001``."""
    if not isinstance(name, str):
        raise UsageError("a protocol is named by its id", expected="text", got=type(name).__name__)
    base, _, suffix = name.partition("+")
    if base not in PROTOCOLS:
        raise UnknownIdError("protocol", base, PROTOCOLS)
    changes: dict[str, Any] = {}
    for item in filter(None, suffix.split(",")):
        key, equals, text = item.partition("=")
        if not equals or key in changes:
            raise UsageError(
                "bad protocol variant", where=name, expected="field=value, each field once", got=repr(item)
            )
        changes[key] = _parse(key, text)
    return PROTOCOLS[base].with_(**changes) if changes else PROTOCOLS[base]


def _parse(key: str, text: str) -> Any:
    """What a field's text stands for; a parameter of a probe is a number or truth value if it reads as one."""
    kinds = {f.name: f.type for f in dataclasses.fields(Protocol)}
    try:
        text = "null" if text.lower() == "none" else text
        return msgspec.convert(text, kinds.get(key, bool | int | float), strict=False)
    except msgspec.ValidationError:
        return text  # the field refuses it by name


_PARITY = Protocol(
    name="neuco-2025",
    description="NeuCo-Bench's linear probe; the best epoch is chosen on the test part",
)
_STRICT = Protocol(
    name="neuco-strict",
    select="last",
    scale_on="train",
    flat="leave-out",
    params={"sigmoid": "always"},
    description="the same probe after its last epoch; all scaling is learned from the training part",
)
_RIDGE = dataclasses.replace(
    _STRICT,
    name="ridge",
    probe="ridge",
    standardize=False,
    params={},
    description="ridge regression in closed form, its strength chosen inside the training part",
)
_SVM = dataclasses.replace(
    _RIDGE,
    name="svm",
    probe="svm",
    description="a support vector machine with a polynomial kernel, tuned inside the training part",
)
_MLP = dataclasses.replace(
    _STRICT,
    name="mlp-1",
    probe="mlp",
    params={"layers": 1, "width": 256},
    description="a network with one hidden layer",
)
_MLP2 = dataclasses.replace(
    _MLP, name="mlp-2", params={"layers": 2, "width": 256}, description="a network with two hidden layers"
)


_SHOTS = "labels of each class, or in all of a regression; logistic or ridge"
# The rules of ridge with another probe, whose id begins the name.
_OTHERS = (
    dataclasses.replace(_RIDGE, name=name, probe=name.partition("-")[0], params=params, description=description)
    for name, description, params in (
        ("knn", "the mean label of the five nearest training samples by cosine", {}),
        ("logistic", "logistic regression, its strength chosen inside the training part; for classes", {}),
        ("shots-1", "one label of each class, or one in all of a regression; logistic or ridge", {"shots": 1}),
        ("shots-5", f"5 {_SHOTS}", {"shots": 5}),
        ("shots-10", f"10 {_SHOTS}", {"shots": 10}),
        ("shots-20", f"20 {_SHOTS}", {"shots": 20}),
        ("retrieval", "tested samples look for their class in the training part: mean average precision", {}),
        ("clustering", "k-means, as many clusters as classes: v-measure", {}),
    )
)
_ALL = (_PARITY, _STRICT, _RIDGE, _MLP, _MLP2, _SVM, *_OTHERS)
PROTOCOLS: Mapping[str, Protocol] = Frozen({p.name: p for p in _ALL})
