"""What ``neuco score`` prints: the plan, a line for each record, the table of scores and the reasons for gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from neuco_core.cli.output import clean, echo_json, say, table
from neuco_core.text import common_prefix, counted

if TYPE_CHECKING:
    from neuco_core.records.model import Record
    from neuco_core.runs.plan import Plan
    from neuco_core.runs.run import PlannedOutcome
    from neuco_core.runs.sources import EmbeddingsFile


def describe_plans(plans: Sequence[Plan], *, as_json: bool) -> None:
    """What a run would do: counts by state with what each means, and the reasons."""
    from neuco_core.runs.plan import STATES

    cells = [cell for plan in plans for cell in plan.cells]
    if as_json:
        names = [plan.protocol.name for plan in plans]
        echo_json({"protocols": names, "counts": counts_by_state(plans), "cells": [cell.to_json() for cell in cells]})
        return
    click.echo(_counts(plans))
    for state, count in counts_by_state(plans).items():
        click.echo(f"  {count:6} {state:15} {STATES[state]}")
    for line in grouped((cell.state, cell.method.label, cell.task.label, cell.reason) for cell in cells):
        click.echo(line)


def tell_columns(file: EmbeddingsFile) -> None:
    """Which columns of a file are taken for values, and which of them seem to hold the labels."""
    click.echo(clean(f"{file.path.name}: {file.columns}"), err=True)
    for sentence in file.warnings:
        click.echo(clean(f"neuco: warning: {file.path.name}: {sentence}"), err=True)


def describe(record: Record) -> str:
    name = "{} on {}".format(*record.key)
    if record.mean is not None:
        from neuco_core.scoring.quality import split_count

        told = f"{record.metric} {record.mean:.4f} ± {record.std:.4f}, Q {record.q:.2f}"
        return f"ok {name}: {told}, {split_count(record.per_split)} splits"
    return clean(f"{record.status} {name}: {record.failure + ': ' if record.failure else ''}{record.reason}")


def show(plans: Sequence[Plan], results: Sequence[PlannedOutcome], made: Sequence[Record], *, save: bool) -> None:
    """The scores as a table, then what has none and why, then where the numbers come from."""
    from neuco_core.paths import registry_dir

    scored = [(o, o.record) for o in results if o.record is not None and o.record.ok]
    used = {record.protocol for _, record in scored}
    # A column that says the same in every row says nothing.
    first = {"method": len({o.cell.method.label for o in results}) > 1, "protocol": len(used) > 1}
    rows = [[o.cell.method.label] * first["method"] + [r.protocol] * first["protocol"] + _row(o, r) for o, r in scored]
    if rows:
        head = [name for name, shown in first.items() if shown]
        numbers = range(len(head) + 2, len(head) + 7)
        columns = ("task", "metric", "mean ± std", "median", "Q", "splits", "samples", "baseline")
        # The score itself and Q go last.
        drop = [len(head) + columns.index(name) for name in ("samples", "metric", "splits", "median", "baseline")]
        prefix = common_prefix([outcome.cell.task.label for outcome, _ in scored])
        click.echo(table([*head, *columns], rows, right=numbers, drop=drop, prefix=prefix))
    for protocol in (plan.protocol for plan in plans):
        if protocol.name in used:
            # As many as there are: a plugin's splitter makes as many as it likes.
            counts = sorted({len(record.per_split) for _, record in scored if record.protocol == protocol.name})
            splits = " or ".join(counted(count, "split") for count in counts)
            say(f"protocol {protocol.name}: {splits}, seed {protocol.seed}")
    records = [record for _, record in scored]
    for line in (*_mean_q(records), *_odd(records), *_replaced(results)):
        say(line)
    gaps = [(o.status, o.cell.method.label, o.cell.task.label, o.reason) for o in results if o.status != "ok"]
    told = [
        (o.cell.state, o.cell.method.label, o.cell.task.label, o.cell.reason)
        for o in results
        if o.cell.state in ("stale", "cached")
    ]
    for line in (*grouped(gaps), *grouped(told), *_sources(plans, made, str(registry_dir() / "records"), save)):
        say(line)


def _sources(plans: Sequence[Plan], made: Sequence[Record], folder: str, save: bool) -> Iterator[str]:
    yield _counts(plans)
    if counts_by_state(plans).get("cached"):
        yield f"cached: served from {folder}, no change found since; --fresh runs them again"
    if made:
        kept = save or any(record.registered for record in made)
        yield f"{sum(record.ok for record in made)} of {len(made)} scored now" + f", records in {folder}" * kept


def counts_by_state(plans: Sequence[Plan]) -> dict[str, int]:
    from neuco_core.runs.plan import STATES

    counts = {state: sum(plan.counts.get(state, 0) for plan in plans) for state in STATES}
    return {state: count for state, count in counts.items() if count}


def _counts(plans: Sequence[Plan]) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in counts_by_state(plans).items())
    names = " and ".join(plan.protocol.name for plan in plans)
    return f"{counted(sum(len(plan.cells) for plan in plans), 'cell')} under {names}: {counts}"


def grouped(cells: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """A line for each (state, reason), with the first (method, task) that it holds for and the number of others."""
    alike: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for state, method, task, reason in cells:
        if reason:
            # Where a method has nothing, the method says more than the dataset's name in the reason.
            # What begins with an address, and names its task, is the same of all tasks of a dataset.
            what = method if state == "not-applicable" else reason.rpartition("://")[2].partition(": ")[2] or reason
            what = what.replace(task, "")
            alike.setdefault((state, what), []).append((method, task, reason))
    lines = []
    for (state, _), ((method, task, reason), *others) in alike.items():
        more = f" and {len(others)} more" if others else ""
        lines.append(clean(f"{state} {method} on {task}{more}: {reason}"))
    return lines


def _mean_q(records: Sequence[Record]) -> Iterator[str]:
    """Of each method with several tasks; scores under several protocols are not brought together."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in records:
        if record.q is not None:
            found.setdefault((record.key[0], record.protocol), []).append(record.q)
    several = len({protocol for _, protocol in found}) > 1
    for (method, protocol), own in found.items():
        if len(own) > 1:
            told = f"{sum(own) / len(own):.2f} over {counted(len(own), 'task')}"
            yield f"mean Q of {method}: {told}" + f" under {protocol}" * several


def _odd(records: Sequence[Record]) -> list[str]:
    """Test parts that have no score, or an odd one; they are mostly the same for all methods, so each is told once."""
    from neuco_core.scoring.quality import odd_splits, ruled

    lines = [f"{r.key[1]}: {words}" for r in records for words in odd_splits(r.splits, len(r.per_split))]
    wild = [("{}, {}: a few splits rule the mean: ".format(*r.key[1::-1]), ruled(r.per_split)) for r in records]
    return [*dict.fromkeys(lines), *(name + words for name, words in wild if words)]


def _replaced(results: Sequence[PlannedOutcome]) -> list[str]:
    """Values that were missing or no numbers, and so count as 0, once for each method."""
    counts = {
        o.cell.method.label: o.record.samples.get("replaced_values", 0) for o in results if o.record and o.record.ok
    }
    return [
        f"{name}: {count} values are missing or not numbers and count as 0; --strict refuses them"
        for name, count in counts.items()
        if count
    ]


def _row(outcome: PlannedOutcome, record: Record) -> list[str]:
    from neuco_core.scoring.quality import middle, split_count

    used, labels = record.samples.get("used", 0), record.samples.get("labels", 0)
    samples = f"{used}" if used == labels else f"{used} of {labels}"
    score, center = f"{record.mean:.4f} ± {record.std:.4f}", f"{middle(record.per_split):.4f}"
    about = [split_count(record.per_split), samples, _baseline(outcome, record)]
    return [outcome.cell.task.label, record.metric, score, center, f"{record.q:.2f}", *about]


def _baseline(outcome: PlannedOutcome, record: Record) -> str:
    from neuco_core.runs.run import baseline_check

    check = baseline_check(outcome.cell.task, record)
    if check is None:
        return "–"
    said = {True: " met", False: " NOT MET", None: f" ({check['method']})"}[check["met"]]
    return f"{check['score']:.4f} ± {check['tolerance']:.4f}{said}"
