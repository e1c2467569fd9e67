"""What ``neuco score`` prints: the plan, a line for each record, the table of scores and the reasons for gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from neuco_core.cli.output import clean, echo_json, table

if TYPE_CHECKING:
    from neuco_core.records.model import Record
    from neuco_core.runs.outcomes import Outcome
    from neuco_core.runs.plan import Plan


def describe_plan(plan: Plan, *, as_json: bool) -> None:
    """What a run would do: counts by state with what each means, and the reasons."""
    from neuco_core.runs.plan import STATES

    if as_json:
        echo_json(plan.to_json())
        return
    click.echo(_counts(plan))
    for state, count in plan.counts.items():
        click.echo(f"  {count:6} {state:15} {STATES[state]}")
    for line in grouped((cell.state, cell.method.id, cell.task.id, cell.reason) for cell in plan.cells):
        click.echo(line)


def describe(record: Record) -> str:
    name = f"{record.method} on {record.task}"
    if record.mean is not None:
        return f"ok {name}: {record.metric} {record.mean:.4f} ± {record.std:.4f}, Q {record.q:.2f}"
    return clean(f"{record.status} {name}: {record.failure + ': ' if record.failure else ''}{record.reason}")


def show(plan: Plan, results: Sequence[Outcome], made: Sequence[Record], *, save: bool, as_json: bool) -> None:
    """The scores as a table, then what has none and why, then where the numbers come from."""
    from neuco_core.paths import registry_dir
    from neuco_core.specs import to_json

    protocol = plan.protocol
    if as_json:
        cells = [outcome.to_json() for outcome in results]
        echo_json({"protocol": to_json(protocol), "counts": plan.counts, "cells": cells})
        return
    several = len({cell.method.id for cell in plan.cells}) > 1
    rows = [[o.cell.method.id] * several + _row(o, o.record) for o in results if o.record is not None and o.record.ok]
    if rows:
        head = ["method"] * several + ["task", "metric", "mean ± std", "Q", "samples", "baseline"]
        click.echo(table(head, rows, right=(several + 2, several + 3, several + 4)))
        click.echo(f"protocol {protocol.name}: {protocol.k} splits, seed {protocol.seed}")
    for line in _replaced(results):
        click.echo(line)
    gaps = [(o.status, o.cell.method.id, o.cell.task.id, o.reason) for o in results if o.status != "ok"]
    stale = [("stale", o.cell.method.id, o.cell.task.id, o.cell.reason) for o in results if o.cell.state == "stale"]
    for line in (*grouped(gaps), *grouped(stale), *_sources(plan, made, str(registry_dir() / "results"), save)):
        click.echo(line)


def _sources(plan: Plan, made: Sequence[Record], folder: str, save: bool) -> Iterator[str]:
    yield _counts(plan)
    if plan.counts.get("cached"):
        yield f"cached: served from {folder}, nothing changed since; --fresh runs them again"
    if made:
        kept = save or any(record.registered for record in made)
        yield f"{sum(record.ok for record in made)} of {len(made)} scored now" + f", records in {folder}" * kept


def _counts(plan: Plan) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in plan.counts.items())
    return f"{len(plan.cells)} cells under {plan.protocol.name}: {counts}"


def grouped(cells: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """A line for each (state, reason), with the first (method, task) that it holds for and the number of others."""
    alike: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for state, method, task, reason in cells:
        if reason:
            # Where a method has nothing, the method says more than the dataset's name in the reason.
            what = method if state == "not-applicable" else reason
            alike.setdefault((state, what), []).append((method, task, reason))
    lines = []
    for (state, _), ((method, task, reason), *others) in alike.items():
        more = f" and {len(others)} more" if others else ""
        lines.append(clean(f"{state} {method} on {task}{more}: {reason}"))
    return lines


def _replaced(results: Sequence[Outcome]) -> list[str]:
    """Values that were missing or no numbers, and so count as 0, once for each method."""
    counts = {o.cell.method.id: o.record.samples.get("replaced_values", 0) for o in results if o.record and o.record.ok}
    return [
        f"{name}: {count} values are missing or not numbers and count as 0; --strict refuses them"
        for name, count in counts.items()
        if count
    ]


def _row(outcome: Outcome, record: Record) -> list[str]:
    used, labels = record.samples.get("used", 0), record.samples.get("labels", 0)
    samples = f"{used}" if used == labels else f"{used} of {labels}"
    score = f"{record.mean:.4f} ± {record.std:.4f}"
    return [record.task, record.metric, score, f"{record.q:.2f}", samples, _baseline(outcome, record)]


def _baseline(outcome: Outcome, record: Record) -> str:
    from neuco_core.runs.outcomes import baseline_check

    check = baseline_check(outcome.cell.task, record)
    if check is None:
        return "–"
    said = {True: " met", False: " NOT MET", None: f" ({check['method']}, {check['protocol']})"}[check["met"]]
    return f"{check['score']:.4f} ± {check['tolerance']:.4f}{said}"
