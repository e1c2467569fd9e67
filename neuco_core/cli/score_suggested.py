"""``neuco score --suggested``: of the tasks that are asked for, those that tell most about the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli.score_show import counts_by_state
from neuco_core.errors import UsageError

if TYPE_CHECKING:
    from neuco_core.capabilities.own import Scored
    from neuco_core.runs.plan import Plan
    from neuco_core.specs import Method

suggested_option = click.option(
    "--suggested",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of these tasks only the N that tell most about the others; see `neuco capabilities suggest`.",
)


def cut_to_suggested(plans: Sequence[Plan], methods: Sequence[Method], given: Mapping[str, Any]) -> list[Plan]:
    """The plans with only the tasks that are suggested, which are told. If nothing is left to run, as they are."""
    from neuco_core.capabilities.own import suggested

    if given["files"] or given["params"] or given["limit"] or len(methods) != 1:
        got = ", ".join([*(method.label for method in methods[:5]), *map(str, given["files"])])
        hint = "Name one method; --param and --limit leave no record"
        raise UsageError("--suggested is for one --method as it is registered", got=got, hint=hint)
    name = methods[0].label
    cut, found = suggested(plans, _scores(given["suite"]), given["suggested"])
    if not found:
        states = ", ".join(f"{count} {state}" for state, count in counts_by_state(plans).items())
        click.echo(f"nothing is left to suggest for {name}: {states}", err=True)
        return list(plans)
    for one in found:
        between = f"predicted {one.predicted:.3f}, 95 % interval {one.low:.3f} to {one.high:.3f}"
        click.echo(f"suggested for {name}: {one.task}, {between}", err=True)
    return cut


def _scores(suite: str | None) -> Iterator[Scored]:
    """Of the records that count. Where they are not at hand, the board of the suite has what is needed."""
    from neuco_core.boards.current import current
    from neuco_core.boards.store import stored_board
    from neuco_core.capabilities.own import of_board, of_records
    from neuco_core.paths import registry_dir
    from neuco_core.records.packs import PacksAwayError

    try:
        now = current(registry_dir())
    except PacksAwayError:
        if not suite:
            raise
        return of_board(stored_board(registry_dir(), suite))
    return of_records(record for record in now.records if record.key not in now.stale)
