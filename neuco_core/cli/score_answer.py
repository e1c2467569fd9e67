"""The answer of ``neuco score`` in the form that was asked for: a table for people, JSON or CSV for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from neuco_core.cli.options import together
from neuco_core.cli.output import clean, echo_data, json_text, only_data, say
from neuco_core.cli.score_show import counts_by_state, show

if TYPE_CHECKING:
    from neuco_core.records.model import Record
    from neuco_core.runs.plan import Plan
    from neuco_core.runs.preview import Preview
    from neuco_core.runs.run import PlannedOutcome

F = TypeVar("F", bound=Callable[..., Any])
SUFFIXES = {".json": "json", ".csv": "csv", ".txt": "table"}
CELL = ("method", "task", "protocol", "status")
SCORE = ("metric", "mean", "std", "median", "q", "splits", "samples", "labels")
COLUMNS = (*CELL, *SCORE, "reason", "look")

answer_options = together(
    click.option(
        "--format", "form", type=click.Choice(["table", "json", "csv"]), help="What to print. [default: table]"
    ),
    click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
    click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write it to this .json, .csv or .txt file, too; the table is printed all the same.",
    ),
)


def choose_form(given: Mapping[str, Any]) -> str:
    """The form of the answer, and stdout for it alone if it is data; a file is looked at before any work is done."""
    from neuco_core.errors import UsageError

    asked, out = "json" if given["as_json"] else given["form"], given["out"]
    if given["as_json"] and given["form"] not in (None, "json"):
        raise UsageError("--json and --format contradict each other", got=f"--format {given['form']}")
    if out is None:
        form = asked or "table"
        if form != "table":
            only_data(click.get_current_context())
        return form
    known = SUFFIXES.get(out.suffix.lower())
    if known is None or (asked or known) != known:
        expected = " or ".join(suffix for suffix, form in SUFFIXES.items() if form == (asked or form))
        raise UsageError(
            "bad --out", where=out, expected=f"a name that ends in {expected}", got=out.suffix or "no suffix"
        )
    if not out.absolute().parent.is_dir():
        raise UsageError("no such folder", where=out.parent)
    return known


@dataclass(frozen=True)
class Answer:
    """What became of the cells of some plans. ``look`` says how the scores are not those of records."""

    plans: Sequence[Plan]
    results: Sequence[PlannedOutcome]
    made: Sequence[Record]
    look: Preview
    save: bool = False

    def give(self, form: str, out: Path | None) -> None:
        if out is None and form != "table":
            echo_data(self.text(form))
            return
        self._show()  # not the text of it: a terminal has its own width
        if out is not None:
            _write(out, self.text(form))

    def text(self, form: str) -> str:
        if form == "json":
            return self._json()
        buffer = io.StringIO()
        if form == "csv":
            rows = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
            rows.writeheader()
            rows.writerows(map(self._row, self.results))
            return buffer.getvalue()
        with redirect_stdout(buffer):
            self._show()
        return buffer.getvalue()

    def _show(self) -> None:
        show(self.plans, self.results, self.made, save=self.save)
        if self.look:
            say(f"NOT the registered score: {self.look}; nothing was recorded")

    def _json(self) -> str:
        from neuco_core.specs import to_json

        protocols = [to_json(plan.protocol) for plan in self.plans]
        answer: dict[str, Any] = {"protocols": protocols, "counts": counts_by_state(self.plans)}
        looked = {"look": self.look.to_json()} if self.look else {}
        return json_text(answer | looked | {"cells": [outcome.to_json() for outcome in self.results]})

    def _row(self, outcome: PlannedOutcome) -> dict[str, Any]:
        from neuco_core.scoring.quality import middle, split_count

        cell = {**outcome.cell.to_json(), "status": outcome.status}
        row = {name: cell[name] for name in CELL} | {"reason": clean(outcome.reason), "look": str(self.look)}
        record = outcome.record
        if record is None or not record.ok:
            return row
        numbers = {name: getattr(record, name) for name in ("metric", "mean", "std", "q")}
        samples = {"samples": record.samples.get("used"), "labels": record.samples.get("labels")}
        middles = {"median": middle(record.per_split), "splits": split_count(record.per_split)}
        return row | numbers | samples | middles


def _write(path: Path, text: str) -> None:
    from neuco_core.errors import UsageError
    from neuco_core.files import write_atomic

    try:
        write_atomic(path.absolute(), text.encode())
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"the answer cannot be written: {reason}", where=path, hint="The records are kept") from error
    click.echo(f"written: {path}", err=True)
