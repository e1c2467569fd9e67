"""What an engine and its workers tell each other: steps to do, and results. Each is a line of JSON.

A step is one of four: ``Embed`` (make embeddings), ``ScoreCell`` (score them on a task), ``EncodeShard`` (encode some
samples) and ``Call`` (run a function of an extension). So an extension has the same workers, limits and engines as
``neuco score``, and the core need not know it::

    def triple(call: CallContext, number: int) -> dict[str, int]:      # in my_extension/work.py
        return {"result": 3 * number}

    steps = [Call("my_extension.work:triple", {"number": n}, label=f"triple {n}") for n in range(10)]
    for step, result in open_engine("local", jobs=2).run([Group(tuple(steps))], default_limits(2)):
        if isinstance(result, Returned):
            print(step.label, result.value)
        else:                                                          # Failed or Skipped
            print(step.label, result.reason)

The steps of a ``Group`` are handed out in order, and results come when they end. With ``Group(steps, embed)`` the
embeddings are made once, before the steps; a function has them from ``call.embeddings()``, and labels from
``call.labels(task)``. What is not known beforehand, such as a queue, is a generator of groups: it is asked whenever a
worker is idle, and yields None while there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from neuco_core.encode.encoding import BATCH
from neuco_core.records.model import Scores

if TYPE_CHECKING:
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels


class Embed(msgspec.Struct, frozen=True, tag=True):
    """Make a method's embeddings of a dataset, or read those of a ``file`` that no plugin registers.

    Of a file ``method`` is only a name, ``strict`` refuses missing values, and ``dim`` is the dimension that its
    protocol asks for. ``fresh`` embeddings are made in this run and not taken from the cache; ``known`` are their
    hashes in records. ``shared`` is a folder that the workers of a run share.
    """

    method: str
    dataset: str
    file: str = ""
    sha256: str = ""
    strict: bool = False
    dim: int | None = None
    fresh: bool = False
    known: tuple[str, ...] = ()
    shared: str = ""
    threads: int = 1
    batch_size: int = BATCH

    @property
    def label(self) -> str:
        return f"{self.method} on {self.dataset}"


class ScoreCell(msgspec.Struct, frozen=True, tag=True):
    """Score embeddings on a task; whichever worker does it makes them, or reads what another one made."""

    embed: Embed
    task: str
    protocol: str

    @property
    def label(self) -> str:
        return f"{self.embed.method} on {self.task}"


class EncodeShard(msgspec.Struct, frozen=True, tag=True):
    """Encode the samples from ``start`` to ``stop``; ``key`` names the data and code that they must come from."""

    method: str
    dataset: str
    params: dict[str, Any]
    key: str
    start: int
    stop: int
    batch_size: int = BATCH
    device: str = "cpu"

    @property
    def label(self) -> str:
        return f"{self.method} on {self.dataset}"


class Call(msgspec.Struct, frozen=True, tag=True):
    """Run ``function`` (``"module:name"``), as ``function(context, **arguments)``.

    Arguments and what it returns are plain JSON; an error that it raises is a ``Failed``. ``label`` names it for
    people. Where ``embed`` is given, a worker that holds these embeddings is preferred.
    """

    function: str
    arguments: dict[str, Any] = {}
    label: str = ""
    embed: Embed | None = None
    threads: int = 1


Step: TypeAlias = Embed | ScoreCell | EncodeShard | Call


class CallContext(NamedTuple):
    """What a worker has for a ``Call``; embeddings and labels are kept for the next one."""

    embeddings: Callable[[], Embeddings]
    labels: Callable[[str], Labels]
    threads: int
    progress: Callable[[int, int], None]


class Embedded(msgspec.Struct, frozen=True, tag=True):
    """``encoding`` is what it took (samples, seconds, memory), and on which device and with which packages."""

    dim: int
    encoding: dict[str, Any] = {}
    provenance: dict[str, Any] = {}


class Scored(msgspec.Struct, frozen=True, tag=True):
    """A score, as its record has it, with the hashes of what it is of."""

    labels: str
    embeddings: str
    dim: int
    per_split: Scores
    metrics: dict[str, Scores] = {}
    samples: dict[str, int] = {}
    splits: dict[str, int] = {}
    settings: dict[str, Scores] = {}
    provenance: dict[str, Any] = {}


class Encoded(msgspec.Struct, frozen=True, tag=True):
    """The rows of a shard (float32), the hash of its ids and rows, and how many bytes were read for it."""

    rows: bytes
    dim: int
    sha256: str
    read: int
    provenance: dict[str, Any] = {}


class Returned(msgspec.Struct, frozen=True, tag=True):
    """What the function of a ``Call`` returned."""

    value: Any
    provenance: dict[str, Any] = {}


class Failed(msgspec.Struct, frozen=True, tag=True):
    """``kind`` is one of crash, timeout, memory, method, data, dependency."""

    kind: str
    reason: str
    provenance: dict[str, Any] = {}


class Skipped(msgspec.Struct, frozen=True, tag=True):
    """It cannot be done here. What only this ``machine`` lacks says nothing about the method, and is not recorded."""

    reason: str
    machine: bool = False
    provenance: dict[str, Any] = {}


Result: TypeAlias = Embedded | Scored | Encoded | Returned | Failed | Skipped


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker has imported what it needs; from now on its seconds count."""


class StepShare(msgspec.Struct, frozen=True, tag=True):
    """How much of the step is done, from 0 to 1."""

    share: float


class Warned(msgspec.Struct, frozen=True, tag=True):
    """What neuco warns of in a worker: nobody reads the worker's own output."""

    text: str


Report: TypeAlias = Ready | StepShare | Warned | Result
encode = msgspec.json.Encoder().encode
_steps: msgspec.json.Decoder[Step] = msgspec.json.Decoder(Step)
_results: msgspec.json.Decoder[Result] = msgspec.json.Decoder(Result)
_reports: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)
decode_step, decode_result, decode_report = _steps.decode, _results.decode, _reports.decode


@dataclass(frozen=True)
class Group:
    """Steps that share embeddings, which are made first; or, without ``embed``, that need nothing of each other."""

    steps: tuple[Step, ...]
    embed: Embed | None = None
