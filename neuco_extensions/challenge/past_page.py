"""The past of a challenge's board as a tab of its page: a line for each team, and who moved because of whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from neuco_core.site.page_data import PageData
from neuco_extensions.challenge.past import Version, read_past


@dataclass(frozen=True)
class ChallengePage(PageData):
    """The page of a challenge's own board; ``past`` are the versions of the board by phase."""

    past: Mapping[str, Sequence[Version]] = field(default_factory=dict)


def history_of_page(page: PageData) -> dict[str, Any] | None:
    """What the tab shows: the past of a challenge's own board, or of one that others have published."""
    past, source = page.past if isinstance(page, ChallengePage) else {}, ""
    published = read_past(page.registry, page.id) if page.published and page.registry else None
    if published is not None:
        past, source = published.versions(), published.source
    return {"past": {phase: Past(versions) for phase, versions in past.items()}, "source": source} if past else None


class Past:
    """A line for each method from version to version of a board; the first rank is on top."""

    HIGH, LEFT, RIGHT = 18.0, 24.0, 190.0

    def __init__(self, history: Sequence[Version]) -> None:
        self.history = history
        self.names = sorted({name for version in history for name in version.ranks})
        self.lowest = max((rank for version in history for rank in version.ranks.values()), default=1)
        self.step = max(3.0, 700 / max(len(history), 1))
        # Methods that share their last rank stand side by side.
        self.beside: dict[str, int] = {}
        last = [(name, history[-1].ranks[name]) for name in self.names if name in history[-1].ranks]
        for index, (name, rank) in enumerate(last):
            self.beside[name] = sum(other == rank for _, other in last[:index])

    def points(self, name: str) -> list[tuple[float, float]]:
        at = [(n, version.ranks[name]) for n, version in enumerate(self.history) if name in version.ranks]
        return [(self.LEFT + self.step * n, self.HIGH * rank) for n, rank in at]
