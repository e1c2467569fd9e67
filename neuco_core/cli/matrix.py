"""``neuco score --all``: every method on every task, into the registry. The options that it adds to ``neuco score``."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

import click

from neuco_core.cli.output import clean, echo_json
from neuco_core.cli.score_again import MANNER, resume_command, retry_command

if TYPE_CHECKING:
    from neuco_core.records.model import Record
    from neuco_core.runs.plan import Plan, PlannedCell
    from neuco_core.runs.steps import Engine, Limits

F = TypeVar("F", bound=Callable[..., Any])
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
NAMED = 20  # failures that the last line names one by one


def _bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A size such as 500MB or 4G."""
    if value is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", value, re.IGNORECASE)
    if not found or not float(found[1]):
        raise click.BadParameter(f"{value!r} is no size; write 4GB or 500MB", ctx, param)
    return int(float(found[1]) * UNITS[found[2].lower()])


def _seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise click.BadParameter(f"{value:g} is no number of seconds above 0", ctx, param)
    return value


OPTIONS = (
    click.option(
        "--all",
        "everything",
        is_flag=True,
        help="Score every method (or those of --method) on every task chosen, and save the records in the registry.",
    ),
    click.option("--retry", is_flag=True, help="With --all: also run again what failed before."),
    click.option(
        "--engine", default="local", show_default=True, help="With --all: local, dask (here) or dask://host:port."
    ),
    click.option("--jobs", type=click.IntRange(min=1), help="With --all: worker processes. [default: one per core]"),
    click.option(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        callback=_seconds,
        help="With --all: of each step, which is one score, or making a method's embeddings of one dataset."
        " [default: 3600 for a score, 86400 for embeddings]",
    ),
    click.option(
        "--embed-time-limit",
        type=float,
        metavar="SECONDS",
        callback=_seconds,
        help="With --all: of making embeddings, where that may take longer than a score. [default: --time-limit]",
    ),
    click.option(
        "--memory-limit",
        metavar="SIZE",
        callback=_bytes,
        help="With --all: of one worker and the processes that it starts, as 4GB."
        " [default: its share of 80 % of the machine]",
    ),
)


def matrix_options(command: F) -> F:
    """Add ``--all`` and what belongs to it; with it the matrix is run instead of the command."""

    @functools.wraps(command)
    def either(*, everything: bool, **given: Any) -> Any:
        if everything:
            return score_all(**given)
        own = {name: given.pop(name) for name in ("retry", *MANNER)}
        if any(value for name, value in own.items() if name != "engine") or own["engine"] != "local":
            raise click.UsageError(f"--retry, {', '.join(MANNER.values())} need --all")
        return command(**given)

    for option in reversed(OPTIONS):
        either = option(either)
    return either  # type: ignore[return-value]


def score_all(**given: Any) -> None:
    """Plan, run, and end with an error that names what failed. ``given`` are the options, as click has them."""
    from neuco_core.env import available_cores
    from neuco_core.paths import registry_dir
    from neuco_core.runs.engines import open_engine
    from neuco_core.runs.matrix import default_limits
    from neuco_core.runs.steps import EngineError

    if given["files"] or given["strict"] or given["threads"]:
        raise click.UsageError("--embeddings, --strict and --threads do not go together with --all")
    count = given["jobs"] or available_cores()
    engine = open_engine(given["engine"], count)  # before the plan: a wrong name costs no time
    limits = default_limits(count, given["time_limit"], given["memory_limit"], given["embed_time_limit"])
    plan, as_json = _plan(given), given["as_json"]
    if not as_json:
        click.echo(describe_plan(plan))
    records: list[Record] = []
    if not given["dry_run"]:
        try:
            _run(plan, engine, limits, records)
        except EngineError as error:
            command = resume_command(given, plan.protocol.name)
            error.hint += f"{'. Then go' if error.hint else 'Go'} on with: {command}"
            raise
    if as_json:
        echo_json({**plan.to_json(), "records": [record.to_json() for record in records]})
    if not given["dry_run"]:
        if not as_json:
            click.echo(f"{sum(record.ok for record in records)} scored, records in {registry_dir() / 'results'}")
        _end(plan, records, given)


def _plan(given: Mapping[str, Any]) -> Plan:
    from neuco_core.cli.options import choose_protocol, choose_tasks
    from neuco_core.paths import registry_dir
    from neuco_core.plugins.catalog import list_methods
    from neuco_core.runs.plan import make_plan

    chosen = choose_tasks(given["tasks"], given["suite"], given["kind"], given["tags"], given["dataset"])
    settings = {name: given[name] for name in ("k", "epochs", "lr", "seed")}
    rules = choose_protocol(given["protocol"], given["suite"], **settings)
    return make_plan(list_methods(*given["methods"]), chosen, rules, registry_dir(), retry=given["retry"])


def _run(plan: Plan, engine: Engine, limits: Limits, records: list[Record]) -> None:
    """Run the plan and tell of each record, which is then in ``records``, too."""
    from neuco_core.paths import registry_dir
    from neuco_core.runs.matrix import run_matrix

    # Closed at once when interrupted, so that the workers end before the last word is said.
    with closing(run_matrix(plan, registry_dir(), engine, limits)) as results:
        for record in results:
            records.append(record)
            click.echo(f"[{len(records)}/{len(plan.work)}] {describe(record)}", err=True)


def describe_plan(plan: Plan) -> str:
    """Counts by state; and each reason with its number of cells and the first of them."""
    from neuco_core.runs.plan import STATES

    head = f"{len(plan.cells)} cells under {plan.protocol.name}"
    lines = [f"  {count:6} {state:15} {STATES[state]}" for state, count in plan.counts.items()]
    alike: dict[tuple[str, str], list[PlannedCell]] = {}
    for cell in plan.cells:
        if cell.reason:
            # Where a method has nothing, the method says more than the dataset's name in the reason.
            what = cell.method.id if cell.state == "not-applicable" else cell.reason
            alike.setdefault((cell.state, what), []).append(cell)
    for (state, _), (first, *others) in alike.items():
        more = f" and {len(others)} more" if others else ""
        lines.append(f"{state} {first.method.id} on {first.task.id}{more}: {first.reason}")
    return "\n".join(map(clean, [head, *lines]))


def describe(record: Record) -> str:
    name = f"{record.method} on {record.task}"
    if record.mean is not None:
        return f"ok {name}: {record.metric} {record.mean:.4f} ± {record.std:.4f}, Q {record.q:.2f}"
    return clean(f"{record.status} {name}: {record.failure + ': ' if record.failure else ''}{record.reason}")


def _end(plan: Plan, records: Sequence[Record], given: Mapping[str, Any]) -> None:
    """No evidence is no success: what failed earlier and was not tried again counts too."""
    from neuco_core.errors import ScoreError

    failed = [(r.method, r.task, str(r.failure)) for r in records if r.status == "failed"]
    failed += [(c.method.id, c.task.id, str(c.head and c.head.failure)) for c in plan.cells if c.state == "failed"]
    if not failed:
        return
    names = [f"{method} on {task} ({kind})" for method, task, kind in failed]
    shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    command = retry_command(given, plan.protocol.name, [(method, task) for method, task, _ in failed])
    raise ScoreError(f"{len(failed)} of {len(plan.cells)} cells failed: {shown}", hint=f"Try again: {command}")
