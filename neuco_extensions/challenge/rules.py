"""The rules of a challenge: ``challenge.toml`` as frozen types, read strictly.

The file is the hosts': it names the hidden tasks. What teams may read of it is ``Challenge.public``.
"""

from __future__ import annotations

import hashlib
import hmac
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from neuco_core.errors import DataError, NeucoError, SpecError, UnknownIdError
from neuco_core.fetch.cache import hash_file
from neuco_core.fields import Id, Sha256
from neuco_core.files import jsonable, read_limited, read_strictly
from neuco_core.plugins.catalog import load_task
from neuco_core.protocol import DEFAULT_PROTOCOL, load_protocol
from neuco_core.specs import Remote, Task
from neuco_core.text import join_names

RULES = "challenge.toml"
REVEAL = "reveal.json"  # written when the challenge is closed
AMENDMENTS = "amendments.json"  # deadlines that were extended after the seal
LARGEST_RULES = 4_000_000  # bytes: thousands of teams
LARGEST_IDS = 1_000_000_000
ZONED = "a time with its zone, such as 2025-01-10T12:00:00Z"
TEAM_ID = r"[a-z0-9][a-z0-9_-]{0,39}"
TeamId = Annotated[str, Meta(pattern=rf"^{TEAM_ID}\Z")]
Moment = Annotated[datetime, Meta(tz=True)]
Positive = Annotated[int, Meta(ge=1, le=2**53)]
Words = Annotated[str, Meta(min_length=1, max_length=200)]


class RulesPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all parts of the rules have in common."""


class TaskRule(RulesPart, frozen=True):
    """A hidden task: a file of labels below the challenge's folder, or an address (``s3://``, ``pkg://``, …).

    An address needs the ``sha256`` of its file; that of a file in the folder is taken when the challenge is sealed.
    """

    labels: str
    sha256: Sha256 | None = None
    kind: Literal["regression", "classification", "multilabel"] = "regression"
    metric: str = ""
    columns: tuple[str, ...] = ("label",)
    group_column: str | None = None


class Team(RulesPart, frozen=True):
    """``token`` is the sha256 of the team's token, which nobody stores. A ``host`` is shown and does not compete."""

    title: Words
    token: Sha256
    host: bool = False


class Phase(RulesPart, frozen=True):
    """A part of the challenge, with tasks and quotas of its own.

    ``ids`` is a file with the ids that every submission must have, one a line; ``used``, if it is given, a secret one
    with those that count. Ids that are not used, or have no label in any task, are decoys: asked for, and never looked
    at. ``k`` splits are drawn with a secret seed that all submissions share. Up to
    ``failed_probes`` of them may lack a score.

    Of a team's public submissions the ``ranked`` one counts for its rank, which is made by ``rank_by``; ``mean_q`` says
    which one's mean Q is shown. Only teams with a score in all phases ``after`` which this one comes are ranked.
    ``visible`` says whether there is a board before the end.

    With the ladder, a new mean Q is told only if it beats the team's best by one paired standard error and by ``step``:
    0.1 is twice what drawing other splits changed in 2025. Below ``floor`` all numbers are told as the floor.
    """

    start: Moment
    end: Moment
    tasks: Annotated[tuple[Id, ...], Meta(min_length=1)]
    ids: str
    used: str | None = None
    k: Annotated[int, Meta(ge=2, le=10_000)] = 40
    protocol: str = DEFAULT_PROTOCOL
    per_day: Positive = 10
    in_all: Positive = 100
    feedback: Literal["ladder", "rounded", "none"] = "ladder"
    digits: Annotated[int, Meta(ge=0, le=6)] = 2
    step: Annotated[float, Meta(ge=0)] = 0.1
    floor: float = -10.0
    visible: bool = True
    ranked: Literal["last", "best"] = "last"
    mean_q: Literal["last", "best"] = "best"
    rank_by: Literal["weighted", "mean_q"] = "weighted"
    after: tuple[Id, ...] = ()
    failed_probes: Annotated[int, Meta(ge=0)] = 3

    def open_at(self, moment: datetime) -> bool:
        return self.start <= moment < self.end


class ChallengeLimits(RulesPart, frozen=True):
    """``bytes`` of a file and ``dim`` of its embeddings; ``attempts`` of workers that die of one submission.

    ``failed_per_day`` bounds the files that cannot be read, which no quota counts. Answers become visible at whole
    multiples of ``tick`` seconds.
    """

    bytes: Positive = 500_000_000
    dim: Positive = 1024
    attempts: Positive = 3
    failed_per_day: Positive = 20
    tick: Annotated[int, Meta(ge=1, le=86_400)] = 60


class Amendment(RulesPart, frozen=True):
    """A later ``end`` of a phase, made after the seal. The journal had so many submissions as it ``follows``."""

    number: Positive
    follows: Annotated[int, Meta(ge=0)]
    phase: Id
    old_end: Moment
    end: Moment
    made: Moment
    chain: Sha256


class Challenge(RulesPart, frozen=True):
    """``folder`` is where the file lies; it is no part of the rules."""

    id: Id
    title: Words
    dataset: Id
    phases: Annotated[dict[Id, Phase], Meta(min_length=1)]
    tasks: dict[Id, TaskRule] = field(default_factory=dict)
    teams: dict[TeamId, Team] = field(default_factory=dict)
    limits: ChallengeLimits = field(default_factory=ChallengeLimits)
    folder: str = ""

    @property
    def private(self) -> Path:
        """Where labels, secrets, the journal, submissions and records are."""
        return Path(self.folder, "private")

    @property
    def published(self) -> Path:
        """Where everything lies that anybody may read."""
        return Path(self.folder, "public")

    def phase(self, name: str) -> Phase:
        if name not in self.phases:
            raise UnknownIdError("phase", name, self.phases)
        return self.phases[name]

    def team(self, name: str) -> Team:
        if name not in self.teams:
            raise UnknownIdError("team", name, self.teams)
        return self.teams[name]

    def require(self, *, phase: str | None = None, team: str | None = None) -> None:
        """Raise ``UnknownIdError`` for a phase or a team that the rules do not have."""
        if phase is not None:
            self.phase(phase)
        if team is not None:
            self.team(team)

    def team_of(self, token: str) -> str | None:
        """The team that a token is of. All teams are compared, whichever it is, each in constant time."""
        digest, owner = token_hash(token), None
        for name, team in self.teams.items():
            if hmac.compare_digest(digest, team.token):
                owner = name
        return owner

    def ids(self, phase: str) -> tuple[str, ...]:
        """The ids that every submission of a phase must have."""
        return read_ids(Path(self.folder, self.phase(phase).ids))

    def used(self, phase: str) -> frozenset[str]:
        """The ids that count in a phase, if they have a label."""
        rules = self.phase(phase)
        return frozenset(read_ids(Path(self.folder, rules.used or rules.ids)))

    def task(self, name: str) -> Task:
        """A hidden task: as ``tasks`` has it, or else one of an installed (private) package."""
        rule = self.tasks.get(name)
        if rule is None:
            try:
                return load_task(name)
            except UnknownIdError as error:
                hint = f"It is neither in [tasks] of {RULES} nor in an installed package"
                raise UnknownIdError("hidden task", name, self.tasks, hint=hint) from error
        if "://" in rule.labels:
            source = Remote(rule.labels, rule.sha256)
        else:
            path = Path(self.folder, rule.labels).absolute()
            try:
                source = Remote(path.as_uri(), rule.sha256 or hash_file(path))
            except OSError as error:
                raise DataError(f"the labels cannot be read: {error.strerror}", where=path) from error
        return Task(
            id=name,
            dataset=self.dataset,
            source=source,
            kind=rule.kind,
            metric=rule.metric,
            columns=rule.columns,
            group_column=rule.group_column,
        )

    def amended(self, amendments: Iterable[Amendment]) -> Challenge:
        """The challenge with the deadlines that these give it."""
        phases = dict(self.phases)
        for amendment in amendments:
            phases[amendment.phase] = replace(self.phase(amendment.phase), end=amendment.end)
        return replace(self, phases=phases)

    def rules(self) -> dict[str, Any]:
        """What the file says, but for the teams, who may join later. A field that it does not name may yet be added to
        neuco without breaking a seal."""
        values = tomllib.loads(read_limited(Path(self.folder, RULES), LARGEST_RULES).decode())
        return {name: msgspec.to_builtins(value) for name, value in values.items() if name != "teams"}

    def public(self) -> dict[str, Any]:
        """What teams may know: of the tasks their number, of other teams their names."""
        plain: dict[str, Any] = jsonable(msgspec.to_builtins(self))
        for phase in plain["phases"].values():
            phase["tasks"] = len(phase["tasks"])
            del phase["used"]
        del plain["tasks"], plain["folder"]
        plain["teams"] = {name: team.title for name, team in self.teams.items()}
        return plain


PARTS: dict[str, type[Struct]] = {"limits": ChallengeLimits, "phases": Phase, "tasks": TaskRule, "teams": Team}


def read_ids(path: Path) -> tuple[str, ...]:
    """The ids in a file, one a line."""
    try:
        lines = read_limited(path, LARGEST_IDS).decode("utf-8-sig").splitlines()  # some editors put a mark at the start
    except OSError as error:
        raise DataError(f"the ids cannot be read: {error.strerror}", where=path) from error
    except UnicodeDecodeError as error:
        raise DataError("the ids cannot be read", where=path, expected="UTF-8", got=error.reason) from error
    ids = tuple(line.strip() for line in lines if line.strip())
    expected = "one id a line, each once"
    if not ids:
        raise DataError("no ids", where=path, expected=expected, got="an empty file")
    if ids[0].lower() == "id":
        raise DataError("a header", where=path, expected=expected, got=f"a first line {ids[0]!r}")
    if twice := [name for name, count in Counter(ids).items() if count > 1]:
        raise DataError("bad ids", where=path, expected=expected, got=f"{join_names(twice, 3)} more than once")
    return ids


def token_hash(token: str) -> str:
    """Tokens are 32 random bytes (``setup.add_team``), so that no slow hash is needed."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def load_challenge(folder: str | Path) -> Challenge:
    """Read the rules in a folder, with the deadlines that were extended since they were sealed."""
    challenge = load_rules(folder)
    path = challenge.published / AMENDMENTS
    amendments: tuple[Amendment, ...] = ()
    if path.exists():
        amendments = read_strictly(path, tuple[Amendment, ...], "a list of amendments", most=LARGEST_RULES)
    return challenge.amended(amendments)


def load_rules(folder: str | Path) -> Challenge:
    """Read the rules in a folder as they were sealed; every fault says where it is and what was expected."""
    path = Path(folder, RULES)
    try:
        values = tomllib.loads(read_limited(path, LARGEST_RULES).decode())
    except FileNotFoundError as error:
        hint = f"Make a challenge with: neuco challenge init {folder}"
        raise DataError(f"no {RULES}", where=folder, hint=hint) from error
    except (OSError, ValueError, RecursionError) as error:
        raise SpecError(f"not TOML: {error}", where=path) from error
    if "folder" in values:
        raise SpecError("unknown field 'folder'", where=path)
    try:
        challenge = msgspec.convert({**values, "folder": str(Path(folder).absolute())}, Challenge)
    except msgspec.ValidationError as error:
        raise _explained(error, values, path) from error
    if faults := list(_faults(challenge)):
        raise SpecError("; ".join(faults), where=path, hint="See docs/ref/challenge.md")
    return challenge


def _explained(error: msgspec.ValidationError, values: Mapping[str, Any], path: Path) -> SpecError:
    """The fault with its place by name, and what would have been right as far as the types can tell."""
    message, field_path = _message_and_path(error)
    part, inside, _ = field_path.partition("[...]")
    kind = PARTS.get(part.partition(".")[0], Challenge)
    if inside and part in PARTS:  # msgspec does not say which entry of a table it is: look for the first
        for name, entry in values[part].items():
            try:
                msgspec.convert(entry, kind)
            except msgspec.ValidationError as first:
                message, inner = _message_and_path(first)
                field_path = f"{part}.{name}.{inner}".rstrip(".")
                break
    expected, advice = None, ""
    field = field_path.rpartition(".")[2]
    if "unknown field" in message:
        close = get_close_matches(message.split("`")[1], kind.__struct_fields__, n=1)
        advice = f"Did you mean {close[0]!r}? " if close else ""
    elif "enum" in message:
        expected = " or ".join(map(repr, get_args(get_type_hints(kind).get(field)))) or None
    elif field in ("start", "end"):
        expected = ZONED
    where = f"{path}, {field_path}" if field_path else path
    return SpecError(message, where=where, expected=expected, hint=f"{advice}See docs/ref/challenge.md")


def _message_and_path(error: msgspec.ValidationError) -> tuple[str, str]:
    message, _, field_path = str(error).partition(" - at `$")
    return message, field_path.rstrip("`").lstrip(".")


def _faults(challenge: Challenge) -> Iterator[str]:
    """What no single field can say."""
    for name, phase in challenge.phases.items():
        if phase.start >= phase.end:
            yield f"phase {name} ends before it starts"
        if phase.visible and phase.feedback == "none":
            yield f"phase {name} has a visible board and no feedback: the board would tell; set visible = false"
        if phase.in_all < phase.per_day:
            yield f"phase {name}: per_day is {phase.per_day}, more than in_all, {phase.in_all}"
        if twice := {task for task in phase.tasks if phase.tasks.count(task) > 1}:
            yield f"phase {name} has {', '.join(sorted(twice))} twice"
        for other in phase.after:
            if other not in challenge.phases or challenge.phases[other].end > phase.start:
                yield f"phase {name} is after {other}, which is no phase that ends before it starts"
        try:
            protocol = load_protocol(phase.protocol)
        except NeucoError as error:
            yield f"phase {name}: {error}"
        else:
            if {"k", "seed"} & {part.partition("=")[0] for part in protocol.name.partition("+")[2].split(",")}:
                yield f"phase {name}: k stands in the rules, and the seed is secret; neither belongs into protocol"
    for name, rule in challenge.tasks.items():
        if "://" in rule.labels and rule.sha256 is None:
            yield f"task {name}: labels at an address need their sha256"
        try:
            Task(id=name, dataset=challenge.dataset, kind=rule.kind, metric=rule.metric, source=Remote("file:///x"))
        except NeucoError as error:
            yield f"task {name}: {error}"
    tokens = [team.token for team in challenge.teams.values()]
    if len(set(tokens)) < len(tokens):
        yield "two teams have the same token"
