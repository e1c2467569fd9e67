"""What a board by capabilities shows beside its ranking: cells, tasks, a ranking for each, and both aggregations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from neuco_core.boards.cells import BoardMethod, Cells
from neuco_core.boards.formatting import rankings_by_column
from neuco_core.boards.model import (
    RANDOM,
    SCORE,
    STD,
    BoardCell,
    BoardTask,
    Column,
    Interval,
    Section,
    Value,
    number,
)
from neuco_core.text import counted
from neuco_extensions.geobench.board_scores import CapabilityRanks, CapabilityScores, interval_of, places
from neuco_extensions.geobench.iqm import iqm, official_replicates

if TYPE_CHECKING:
    from neuco_core.site.page_data import PageData

IQM = Column("iqm", "Normalised", "Interquartile mean of the normalised scores of the runs", "higher")
CELL_COLUMNS = (SCORE, STD, IQM)
SPREAD = Column("spread", "Spread", "Standard deviation of the normalised scores over the methods")
ENDS = (
    Column("low", "Becomes 0", "The score that is normalised to 0"),
    Column("high", "Becomes 1", "The score that is normalised to 1"),
)
METHOD = Column("method", "Method", format="method")
BEST = Column("best", "P(first)", "How often the method is first on a plausible board", "higher", 0, "percent")
OTHER = {"pooled": "mean of IQMs", "mean": "pooled IQM"}


def cells_of(computed: CapabilityScores, cells: Cells, method: BoardMethod) -> dict[str, BoardCell]:
    shown = cells.shown(method)
    for task in cells.tasks:
        key = method.id, task.id
        if key in computed.values:
            intervals = {IQM.key: computed.intervals[key]} if key in computed.intervals else {}
            values = {IQM.key: number(iqm(computed.values[key]), RANDOM)}
            shown[task.id] = cells.cell(*key).shown(values=values, intervals=intervals)
    return shown


def tasks_of(computed: CapabilityScores, cells: Cells) -> tuple[BoardTask, ...]:
    tasks = []
    for task in cells.tasks:
        values: dict[str, float | None] = {}
        means = [iqm(scores) for (_, other), scores in computed.values.items() if other == task.id]
        if len(means) > 1:
            values[SPREAD.key] = number(np.std(means))
        if computed.normaliser and task.id in computed.normaliser.ends:
            values |= zip((column.key for column in ENDS), computed.normaliser.ends[task.id], strict=True)
        tasks.append(replace(task, values=values))
    return tuple(tasks)


def sections(
    computed: CapabilityScores, keys: Mapping[str, str], first: str, ranks: Mapping[str, CapabilityRanks]
) -> tuple[Section, ...]:
    parts = [_ranking(computed, key, name, ranks[key]) for key, name in keys.items()]
    if len(ranks[first].places) > 1:
        ranked = [method for name in ranks[first].places for method in computed.methods if method.id == name]
        # The draws of the leaderboard run through a whole submission, so it must be known.
        if all("submission" in method.facts for method in ranked):
            parts.append(_published(computed, keys, first, ranked))
        parts.append(_disagree(computed, keys))
        by_method = (METHOD, *(Column(key, name, format="rank") for key, name in keys.items()))
        rows: list[tuple[Any, ...]] = [
            (method.id, *(ranks[key].places.get(method.id) for key in keys)) for method in computed.methods
        ]
        rows.sort(key=lambda row: (row[1] is None, row[1] or 0, row[0]))
        parts.append(Section("Ranks by capability", by_method, tuple(rows), about="robustness"))
    columns = (
        Column("capability", "Capability", format="text"),
        Column("count", "Tasks", digits=0, format="integer"),
        Column("tasks", "Which", format="text"),
    )
    tasks = {name: computed.capabilities[key] for key, name in keys.items()}
    which = tuple((name, len(inside), ", ".join(inside)) for name, inside in tasks.items())
    return (*parts, Section("Capabilities", columns, which, about="tasks"))


def _ranking(computed: CapabilityScores, key: str, name: str, ranks: CapabilityRanks) -> Section:
    """The ranking by one capability, and that by the other aggregation beside it.

    Pooled, a task on which a method is far out is cut off as a whole; in a mean of IQMs each counts the same.
    """
    scores, other_scores = computed.scores[key], computed.others[key]
    other = OTHER[computed.aggregation]
    columns = (
        METHOD,
        Column("rank", "Rank", format="integer"),
        Column("ranks", "Ranks", "Ranks that are plausible", format="range"),
        Column(key, name, "Score", "higher"),
        Column("interval", "Interval", "Interval of the score"),
        BEST,
        Column("alike", "Alike", "Methods that share a letter are statistically indistinguishable", format="text"),
        Column("other", other[0].upper() + other[1:], "Score by the other aggregation", "higher"),
        Column("other_rank", "Its rank", f"Rank by the {other}", format="integer"),
    )
    other_places = places(other_scores)
    rows: list[tuple[Value, ...]] = []
    for method, place in ranks.places.items():
        plausible = Interval(*ranks.ranks[method]) if method in ranks.ranks else None
        best = number(ranks.best[method], RANDOM) if method in ranks.best else None
        first = method, place, plausible, number(scores[method].value, RANDOM), interval_of(scores[method]), best
        last = number(other_scores[method].value, RANDOM), other_places[method]
        # A letter for each group that the method is in; after z come aa, bb, ...
        groups = [i for i, group in enumerate(ranks.groups or ()) if method in group]
        letters = "".join(ascii_lowercase[i % 26] * (1 + i // 26) for i in groups)
        rows.append((*first, letters, *last))
    tasks = computed.capabilities[key]
    moved = sum(place != other_places[method] for method, place in ranks.places.items())
    lead = (
        f"{counted(len(tasks), 'task')}: {', '.join(tasks)}. By the {other}, {moved} of {counted(len(rows), 'method')} "
        f"{'has' if moved == 1 else 'have'} another rank."
    )
    return Section(name, columns, tuple(rows), f"No method has a score on all tasks of {name}.", lead, "column")


def _disagree(computed: CapabilityScores, keys: Mapping[str, str]) -> Section:
    """By capability: the pairs that the aggregations order differently, and who moves farthest."""
    columns = (
        Column("capability", "Capability", format="text"),
        Column("pairs", "Pairs reversed", "Pairs of methods in another order", "lower", 0, "integer"),
        Column("moved", "Methods moved", "Methods with another rank", "lower", 0, "integer"),
        Column("farthest", "Farthest", "Rank by this aggregation → by the other", format="moves"),
    )
    rows: list[tuple[Value, ...]] = []
    for key, name in keys.items():
        scores, others = computed.scores[key], computed.others[key]
        pairs = sum(
            (scores[a].value - scores[b].value) * (others[a].value - others[b].value) < 0
            for a, b in combinations(scores, 2)
        )
        before, after = places(scores), places(others)
        moved = {method: (rank, after[method]) for method, rank in before.items() if rank != after[method]}
        most = max((abs(one - other) for one, other in moved.values()), default=0)
        farthest = {method: (one, other) for method, (one, other) in moved.items() if abs(one - other) == most}
        if moved:
            rows.append((name, pairs, len(moved), farthest))
    empty = "Both aggregations order the methods alike, for every capability."
    return Section(f"Where the {OTHER[computed.aggregation]} disagrees", columns, tuple(rows), empty)


def _published(
    computed: CapabilityScores, keys: Mapping[str, str], first: str, ranked: Sequence[BoardMethod]
) -> Section:
    """What the leaderboard prints, ± included, beside ours."""
    tasks = computed.capabilities[first]
    theirs: dict[str, np.ndarray] = {}
    for name in sorted({str(method.facts["submission"]) for method in computed.methods}):
        members = [method.id for method in computed.methods if method.facts.get("submission") == name]
        inside = {(m, t): v.tolist() for (m, t), v in computed.values.items() if m in members and t in tasks}
        theirs |= official_replicates(inside)
    columns = (
        METHOD,
        Column("official", "Published", "Score as the leaderboard prints it", "higher"),
        Column("official_error", "Published ±", "Spread of 100 resamples divided by 10", "lower", 4),
        Column("score", "Score", "Pooled IQM, as here", "higher"),
        Column("error", "Standard error", "Spread of the resamples", "lower", 4),
    )
    pooled = (computed.scores if computed.aggregation == "pooled" else computed.others)[first]
    rows: list[tuple[Value, ...]] = []
    for name in (method.id for method in ranked):
        drawn, ours = theirs[name], pooled[name]
        printed = number(drawn.mean()), number(drawn.std(ddof=1) / np.sqrt(len(drawn)))
        rows.append((name, *printed, number(ours.value, RANDOM), number(ours.error, RANDOM)))
    lead = "The published ± tells how well 100 resamples give their own mean; the error of the score is ten times that."
    return Section(f"{keys[first]} as published and here", columns, tuple(rows), lead=lead)


def capabilities(page: PageData) -> dict[str, Any] | None:
    """What the template needs of each capability: its rows with score and interval, and the ends of the bars' scale."""
    rankings: list[dict[str, Any]] = []
    for key, part in rankings_by_column(page.board).items():
        at = [column.key for column in part.columns].index(key)
        rows = []
        for row in part.rows:
            interval = next((value for value in row[at:] if isinstance(value, Interval)), None)
            rows.append((row, row[at], interval))
        ends = [value for _, value, _ in rows if isinstance(value, int | float)]
        ends += [end for *_, interval in rows if interval for end in (interval.low, interval.high) if end is not None]
        scale = min(ends, default=0.0), max(ends, default=0.0)
        rankings.append({"key": key, "part": part, "at": at, "rows": rows, "ends": scale})
    return {"rankings": rankings} if rankings else None
