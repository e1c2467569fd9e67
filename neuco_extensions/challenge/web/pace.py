"""How much the server takes at once, and from whom: numbers, buckets that refill, and places for uploads."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

MOST_KEYS = 10_000  # addresses that are remembered; the ones that were not seen for longest are forgotten first


class Often(NamedTuple):
    """``burst`` at once, and after that ``rate`` a second."""

    burst: float
    rate: float


REQUESTS, ASKED_BY_TEAM, FAILURES = Often(240, 4.0), Often(120, 2.0), Often(20, 0.2)


@dataclass(frozen=True)
class Pace:
    """The bounds of a server. ``requests`` counts all that an address asks, ``failures`` its wrong tokens.

    An upload may pause for ``stall`` seconds. After ``grace`` seconds it must have come with ``slowest`` bytes a second
    on average, and after ``deadline`` seconds it must be over. Within one upload nothing else bounds its time.
    """

    uploads: int = 32
    uploads_of_team: int = 4
    connections: int = 1000
    stall: float = 30.0
    grace: float = 30.0
    slowest: float = 50_000.0
    deadline: float = 10_800.0
    headers: float = 10.0
    requests: Often = REQUESTS
    asked_by_team: Often = ASKED_BY_TEAM
    failures: Often = FAILURES


class Buckets:
    """A bucket for each key, which empties by one with each ``take`` and refills with time."""

    def __init__(self, often: Often, clock: Callable[[], float] = time.monotonic) -> None:
        self._often, self._clock = often, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str) -> float:
        """Seconds until the key has one again; 0 if it has. Nothing is taken."""
        return max(0.0, (1.0 - self._now(key)) / self._often.rate)

    def take(self, key: str) -> float:
        """The same, and one is taken if it is there."""
        level = self._now(key)
        if level < 1.0:
            return (1.0 - level) / self._often.rate
        self._left[key] = (level - 1.0, self._clock())
        self._left.move_to_end(key)
        if len(self._left) > MOST_KEYS:
            self._left.popitem(last=False)
        return 0.0

    def _now(self, key: str) -> float:
        level, at = self._left.get(key, (self._often.burst, 0.0))
        return min(self._often.burst, level + (self._clock() - at) * self._often.rate)


class FullError(Exception):
    """No place is free; ``of_team`` if the team has them."""

    def __init__(self, *, of_team: bool) -> None:
        super().__init__("no place is free")
        self.of_team = of_team


class Places:
    """The uploads that run now, in all and by team. For one event loop."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._teams: Counter[str] = Counter()

    @contextmanager
    def one(self, team: str) -> Iterator[None]:
        if self._teams[team] >= self._pace.uploads_of_team:
            raise FullError(of_team=True)
        if self._teams.total() >= self._pace.uploads:
            raise FullError(of_team=False)
        self._teams[team] += 1
        try:
            yield
        finally:
            self._teams[team] -= 1


def address_key(address: str) -> str:
    """What counts as one address. One customer has 2^64 of IPv6, so these are counted by their network."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv6Address):
        mapped = parsed.ipv4_mapped
        return str(mapped) if mapped else f"{int(parsed) >> 64:x}/64"
    return str(parsed)
