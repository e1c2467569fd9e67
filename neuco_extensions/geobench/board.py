"""A board by capabilities, as GEO-Bench has it: pooled interquartile means of seeds, with honest error bars.

A capability is a set of tasks. The score of a method is the interquartile mean of its normalised scores on all of them,
seeds pooled; ``neuco_extensions.geobench.iqm`` computes it with its standard error and its interval.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from neuco_core.boards.cells import BoardMethod, Cells
from neuco_core.boards.model import RANDOM, BoardRow, Column, Interval, Ranked, Uncertainty, number
from neuco_core.boards.stats.uncertainty import LEVEL, SEED
from neuco_core.errors import NeucoError, UnknownIdError, UsageError
from neuco_core.plugins.catalog import load_task
from neuco_extensions.geobench.board_scores import CapabilityRanks, CapabilityScores, compute, interval_of, rank
from neuco_extensions.geobench.board_sections import (
    BEST,
    CELL_COLUMNS,
    ENDS,
    SPREAD,
    cells_of,
    sections,
    tasks_of,
)
from neuco_extensions.geobench.facts import CAPABILITIES
from neuco_extensions.geobench.iqm import load_normaliser

OVERALL = "Overall"
NOT_CAPABILITIES = ("control",)
AGGREGATIONS = {
    "pooled": "interquartile mean of the scores of all runs, the tasks of a capability pooled",
    "mean": "mean over the tasks of a capability of the interquartile mean of scores",
}
HOW = (
    "bootstrap over the runs of each task, 2000 resamples in which every run is drawn equally often; the interval of a "
    "score is Student's with Satterthwaite's degrees of freedom and the spread of smoothed resamples, which have the "
    "variance of the runs and, of splits, what they share; an interval of ranks unites those of the resamples with the "
    "places that pairs leave open; groups judge all pairs at once"
)


def _why_not(method: BoardMethod, tuning: str, decoder: str, smallest: int, largest: int) -> str | None:
    """Why the reader does not want to see a method, or ``None``; one whose facts are not known is left out, too."""
    facts = method.facts
    if tuning != "all" and facts.get("tuning") != tuning:
        return f"not {tuning}"
    if decoder != "all" and decoder not in str(facts.get("decoder", "")).split(", "):
        return f"no decoder {decoder}"
    if smallest or largest:
        size = facts.get("n_parameters")
        if not isinstance(size, int | float):
            return "number of parameters not known"
        if size < smallest * 1e6 or (largest and size > largest * 1e6):
            return "number of parameters out of range"
    return None


def rank_cells(
    cells: Cells,
    *,
    scheme: str = "tags",
    normaliser: str = "none",
    by: str = "",
    aggregation: str = "pooled",
    tuning: str = "all",
    decoder: str = "all",
    smallest: int = 0,
    largest: int = 0,
    replicates: int = 2000,
) -> Ranked:
    """Rank by one capability, the first of the scheme if none is named; the others stand beside it."""
    if aggregation not in AGGREGATIONS:
        raise UsageError("no such aggregation", expected=f"one of {', '.join(AGGREGATIONS)}", got=aggregation)
    if replicates < 100:
        raise UsageError("too few replicates", expected="at least 100", got=replicates)
    capabilities = _capabilities(cells, scheme)
    keys = {slug(name): name for name in capabilities}
    first = by or next(iter(keys))
    if first not in keys:
        raise UnknownIdError("capability", first, keys, f"Known are {', '.join(keys)}")
    keys = {first: keys[first], **keys}
    reasons = {method.id: _why_not(method, tuning, decoder, smallest, largest) for method in cells.methods}
    shown = [] if tuning == "all" else [tuning]
    shown += [] if decoder == "all" else [f"decoder {decoder}"]
    shown += [f"at least {smallest} M parameters"] if smallest else []
    shown += [f"at most {largest} M parameters"] if largest else []
    only = f"; only {', '.join(shown)}" if shown else ""
    pool = [method for method in cells.methods if reasons[method.id] is None]
    ends = load_normaliser(normaliser) if normaliser != "none" else None
    scale = f"normalised by {ends.id}, not clipped" if ends else "scores as they are"
    rule = f"{keys[first]}: {AGGREGATIONS[aggregation]} ({scale}); ties share the better rank{only}"
    tasks = {key: capabilities[name] for key, name in keys.items()}
    computed = compute(cells, pool, tasks, ends, replicates, aggregation)
    ranks = {key: rank(scores) for key, scores in computed.scores.items()}
    ranking = ranks[first]
    methods = {method.id: method for method in computed.methods}
    order = [*ranking.places, *(name for name in methods if name not in ranking.places)]
    columns = [
        Column(key, name, f"Score on {len(tasks[key])} tasks: {', '.join(tasks[key])}", "higher")
        for key, name in keys.items()
    ]
    return Ranked(
        columns=(BEST, *columns),
        rows=tuple(_row(computed, cells, methods[name], ranking) for name in order),
        rule=rule,
        tasks=tasks_of(computed, cells),
        cell_columns=CELL_COLUMNS,
        task_columns=(SPREAD, *ENDS) if ends else (SPREAD,),
        groups=ranking.groups,
        uncertainty=Uncertainty(LEVEL, HOW, replicates, SEED) if ranking.ranks else None,
        sections=sections(computed, keys, first, ranks),
        profile="iqm",
        notes=tuple(_notes(ranking, reasons, pool)),
    )


def slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _capabilities(cells: Cells, scheme: str) -> dict[str, tuple[str, ...]]:
    """By capability: its tasks. Tags that all tasks share tell nothing; what is overall holds every task."""
    names = tuple(task.id for task in cells.tasks)
    if scheme == "geobench-2":
        return {**{name: tasks for name, tasks in CAPABILITIES.items() if set(tasks) <= set(names)}, OVERALL: names}
    if scheme != "tags":
        raise UsageError("no such scheme of capabilities", expected="geobench-2 or tags", got=scheme)
    tagged: dict[str, list[str]] = {}
    for task in cells.tasks:
        with suppress(NeucoError):  # a task that is not registered here has no tags
            for tag in load_task(f"{task.id}@{task.version}").tags:
                tagged.setdefault(tag, []).append(task.id)
    kept = {tag: tuple(tasks) for tag, tasks in sorted(tagged.items()) if len(tasks) < len(names)}
    return {OVERALL: names, **{tag: tasks for tag, tasks in kept.items() if tag not in NOT_CAPABILITIES}}


def _notes(ranking: CapabilityRanks, reasons: Mapping[str, str | None], pool: Sequence[BoardMethod]) -> Iterable[str]:
    # Nobody is left out unasked; what a reader would compare for the same must be said.
    tuned = Counter(str(method.facts["tuning"]) for method in pool if "tuning" in method.facts)
    if len(tuned) > 1:
        counts = " and ".join(f"{count} {way}" for way, count in sorted(tuned.items()))
        yield f"Mixed: {counts} backbones are ranked together; the option tuning ranks those of one kind alone."
    for reason in sorted({reason for reason in reasons.values() if reason}):
        left_out = [name for name, other in reasons.items() if other == reason]
        yield f"Left out by the reader's choice, {reason}: {', '.join(left_out)}"
    if ranking.places and not ranking.ranks:
        yield "No intervals: they need at least two runs of a method on every task."
    elif unknown := [name for name in ranking.places if name not in ranking.ranks]:
        yield f"No interval, since the runs do not vary: {', '.join(unknown)}"


def _row(computed: CapabilityScores, cells: Cells, method: BoardMethod, ranking: CapabilityRanks) -> BoardRow:
    values: dict[str, float | None] = {}
    intervals: dict[str, Interval] = {}
    if method.id in ranking.ranks:
        values["best"] = number(ranking.best[method.id], RANDOM)
        intervals["rank"] = Interval(*ranking.ranks[method.id])
    for key, scores in computed.scores.items():
        if method.id in scores:
            values[key] = number(scores[method.id].value, RANDOM)
            if interval := interval_of(scores[method.id]):
                intervals[key] = interval
    shown = cells_of(computed, cells, method)
    return method.row(ranking.places.get(method.id), shown, values=values, intervals=intervals)
