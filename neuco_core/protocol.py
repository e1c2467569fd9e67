"""The rules of scoring, as frozen named values. Standard library only, like the other specs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from neuco_core import _validate as v
from neuco_core.errors import UnknownIdError, UsageError
from neuco_core.specs import SCALARS
from neuco_core.text import Brief

SHUFFLE = "shuffle"
DEFAULT_PROTOCOL = "neuco-2025"  # where neither a reader nor a suite nor a dataset names one


@dataclass(frozen=True, kw_only=True)
class Protocol(Brief):
    """The rules of scoring. A variant made by ``with_`` says so in its name: ``neuco-2025+k=50,lr=0.0001``.

    ``flat`` says what a test part without variance, or with one class only, is worth: what the metric gives for
    it (``as-metric``; for R² that is 0), or nothing (``leave-out``: the split has no score).
    """

    name: str
    probe: str = "linear"
    splitter: str = SHUFFLE
    k: int = 40
    test_size: float = 0.1
    seed: int = 42
    epochs: int = 20
    batch_size: int = 64
    lr: float = 1e-3
    weight_decay: float = 0.01
    select: str = "best-on-test"
    scale_on: str = "all"
    flat: str = "as-metric"
    standardize: bool = True
    normalize_labels: bool = True
    embedding_dim: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    description: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not v.is_text(self.name) or not re.fullmatch(r"[a-z0-9][a-z0-9_-]*(\+\S+)?", self.name):
            raise v.fail(self, "name", self.name, "an id, with '+field=value,…' behind it for a variant")
        v.check_id(self, "probe")
        v.check_id(self, "splitter")
        for name, least in (("k", 1), ("seed", 0), ("epochs", 1), ("batch_size", 1)):
            v.check_int(self, name, least)
        if self.seed >= 2**32:
            raise v.fail(self, "seed", self.seed, "a whole number below 2^32")
        v.check_number(self, "test_size", above=0, below=1)
        v.check_number(self, "lr", above=0)
        v.check_number(self, "weight_decay", least=0)
        v.check_choice(self, "select", ("best-on-test", "last"))
        v.check_choice(self, "scale_on", ("all", "train"))
        v.check_choice(self, "flat", ("as-metric", "leave-out"))
        v.check_bool(self, "standardize", "normalize_labels")
        v.check_int(self, "embedding_dim", 1, optional=True)
        v.freeze_mapping(self, "params", SCALARS)

    def with_(self, **changes: Any) -> Protocol:
        """A variant with some fields changed; what is no field of the protocol is a parameter of its probe."""
        own = {f.name for f in dataclasses.fields(self)} - {"name", "params", "description"}
        for name, value in changes.items():
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in ("name", "params", "description"):
                raise v.fail(self, name, value, "one of " + ", ".join(sorted(own)) + ", or a parameter of the probe")
        base, _, suffix = self.name.partition("+")
        changed = dict(item.split("=", 1) for item in suffix.split(",") if item)
        changed.update({name: _plain(value) for name, value in changes.items()})
        fields: dict[str, Any] = {name: value for name, value in changes.items() if name in own}
        fields["params"] = {**self.params, **{name: value for name, value in changes.items() if name not in own}}
        name = base + "+" + ",".join(f"{key}={changed[key]}" for key in sorted(changed)) if changed else base
        return dataclasses.replace(self, name=name, **fields)

    def splitter_for(self, own: str) -> str:
        """The splitter for a task that names its ``own``, or "" if it names none: random splits give way to it."""
        return own if own and self.splitter == SHUFFLE else self.splitter


def load_protocol(name: str) -> Protocol:
    """A protocol by name, or a variant of one: ``neuco-2025+k=50,lr=0.0001``."""
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
    annotation = next((str(f.type) for f in dataclasses.fields(Protocol) if f.name == key), "")
    if annotation == "str":
        return text
    for read in (_read_word, int, float):
        try:
            value = read(text)
        except ValueError:
            continue
        return float(value) if annotation == "float" and type(value) is int else value
    return text


def _read_word(text: str) -> bool | None:
    words = {"true": True, "false": False, "none": None}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


def _plain(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)


_PARITY = Protocol(
    name="neuco-2025",
    description="NeuCo-Bench's linear probe, number for number; the best epoch is chosen on the test part",
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
PROTOCOLS: Mapping[str, Protocol] = v.Frozen({p.name: p for p in (_PARITY, _STRICT, _RIDGE, _MLP, _MLP2, _SVM)})
