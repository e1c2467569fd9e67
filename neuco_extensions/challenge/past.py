"""How a board came about: dated tables of ranks and numbers, who moved from one to the next, and because of whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from neuco_core.boards.diff import Change
from neuco_core.boards.model import Part, read_part
from neuco_core.env import layers


class TeamRank(Part, frozen=True, array_like=True):
    """A rank, or none for who does not compete, and the number that stood beside it."""

    rank: int | None
    value: float


class Snapshot(Part, frozen=True):
    """A table as it was at a moment, by team; ``by`` are those who brought it about, if that is known."""

    at: str
    teams: dict[str, TeamRank]
    by: tuple[str, ...] = ()


class Version(Part, frozen=True, omit_defaults=True):
    """A table that differs from the one before; ``at`` is when it was, if that is known."""

    version: int
    ranks: dict[str, int]
    changes: tuple[Change, ...]
    at: str = ""

    @property
    def moved_others(self) -> bool:
        """Whether somebody moved who had done nothing."""
        return any("caused by others" in change.why for change in self.changes)


def replay(snapshots: Iterable[Snapshot]) -> tuple[Version, ...]:
    versions: list[Version] = []
    before: dict[str, TeamRank] = {}
    for snapshot in snapshots:
        changes = tuple(_told(before, snapshot))
        if changes:
            ranks = {name: team.rank for name, team in sorted(snapshot.teams.items()) if team.rank is not None}
            versions.append(Version(len(versions) + 1, ranks, changes, snapshot.at))
            before = snapshot.teams
    return tuple(versions)


def _told(before: Mapping[str, TeamRank], snapshot: Snapshot) -> Iterator[Change]:
    """Causes first: those who came, went, or have another number. Everybody else who moved did so because of them."""
    after = snapshot.teams
    new = [name for name in after if name not in before]
    gone = [name for name in before if name not in after]
    rescored = [name for name in after if name in before and after[name].value != before[name].value]
    for name in new:
        kind = "new-method" if after[name].rank else "rescored"  # who does not compete has no rank to be new at
        yield Change(kind, name, after=after[name].rank, why=f"{after[name].value:.3f}")
    for name in gone:
        if before[name].rank:
            yield Change("gone-method", name, before[name].rank)
    for name in rescored:
        why = f"{before[name].value:.3f} → {after[name].value:.3f}"
        yield Change("rescored", name, before[name].rank, after[name].rank, why)
    causes = {*new, *gone, *rescored, *snapshot.by}
    for name in after:
        if name not in before or after[name].rank == before[name].rank:
            continue
        if name in causes:
            why = "its own doing"
        else:
            why = f"caused by others: {', '.join(sorted(causes))}" if causes else "nobody's number changed"
        yield Change("moved", name, before[name].rank, after[name].rank, why)


class PublishedPast(Part, frozen=True, kw_only=True):
    """The tables that others published over time, by the phase of their challenge; only those that differ."""

    schema: Literal[1]
    source: str
    phases: dict[str, tuple[Snapshot, ...]]

    def versions(self) -> dict[str, tuple[Version, ...]]:
        return {phase: replay(snapshots) for phase, snapshots in self.phases.items()}


def read_past(registry: Path, name: str) -> PublishedPast | None:
    """The past of a published board, ``published/history/NAME.json``, if there is one."""
    paths = [layer / "published" / "history" / f"{name}.json" for layer in layers(registry)]
    path = next((path for path in paths if path.exists()), None)
    return read_part(path, PublishedPast, "a published history") if path else None
