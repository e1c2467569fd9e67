"""What ``neuco score`` prints: the plan, a line for each record, and the answer as a table, JSON or CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from neuco_core.cli.options import together
from neuco_core.cli.output import clean, echo_data, echo_json, json_text, only_data, say, table
from neuco_core.env import layers, registry_dir
from neuco_core.errors import UsageError
from neuco_core.fetch.links import vouched_by_user
from neuco_core.files import write_atomic
from neuco_core.records.model import Record
from neuco_core.records.store import find_record
from neuco_core.runs.plan import STATES, Plan, PlannedCell
from neuco_core.runs.preview import Preview
from neuco_core.scoring.quality import middle, odd_splits, ruled, split_count
from neuco_core.specs import Task, exact, to_json
from neuco_core.text import as_cell, counted, join_names

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


@dataclass(frozen=True)
class PlannedOutcome:
    """A planned cell and its record: just made, or read from the registry. There is none for what was not run."""

    cell: PlannedCell
    record: Record | None
    status: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        record = self.record
        return {
            **self.cell.to_json(),
            "status": self.status,
            "reason": self.reason,
            "record": record.to_json() if record else None,
            "median": middle(record.per_split) if record and record.ok else None,
            "baseline": baseline_check(self.cell.task, record) if record and record.ok else None,
        }


def outcomes(plan: Plan, made: Iterable[Record], registry: Path) -> list[PlannedOutcome]:
    """Every cell of a plan, in its order. A record that is served from the registry is read strictly."""
    new = {record.key: record for record in made}
    results = []
    for cell in plan.cells:
        key = cell.method.label, cell.task.label, plan.protocol.name
        record = new.get(key)
        if record is None and cell.state in ("cached", "failed"):
            record = find_record(registry, key)
        status, reason = (record.status, record.reason) if record else (cell.state, cell.reason)
        if record and record.failure:
            reason = f"{record.failure}: {reason}"
        results.append(PlannedOutcome(cell, record, status, reason))
    return results


def baseline_check(task: Task, record: Record) -> dict[str, Any] | None:
    """The task's expected score; whether it is met is said of its own method under its own protocol alone."""
    expected = task.baseline
    if expected is None:
        return None
    met = None
    same = (expected.method, expected.protocol) == (record.method, record.protocol)
    if same and record.mean is not None and math.isfinite(record.mean):
        met = abs(record.mean - expected.score) <= expected.tolerance
    facts = {name: getattr(expected, name) for name in ("method", "score", "tolerance", "protocol")}
    return {**facts, "met": met}


def verdict(results: Sequence[PlannedOutcome], asked: Collection[str] = ()) -> str:
    """Why the whole is a failure, or "": a task asked for by its id that has no score, or no score at all."""
    scored = {outcome.cell.task.label for outcome in results if outcome.status == "ok"}
    tasks = {outcome.cell.task.label: outcome.cell.task.id for outcome in results}
    missed = sorted(label for label in tasks.keys() - scored if {tasks[label], exact(label)} & set(asked))
    if missed:
        return f"{len(missed)} of the tasks asked for could not be scored: {', '.join(missed)}"
    return "" if scored else "nothing could be scored"


def describe_plans(plans: Sequence[Plan], *, as_json: bool) -> None:
    """What a run would do: counts by state with what each means, and the reasons."""
    cells = [cell for plan in plans for cell in plan.cells]
    if as_json:
        names = [plan.protocol.name for plan in plans]
        echo_json({"protocols": names, "counts": counts_by_state(plans), "cells": [cell.to_json() for cell in cells]})
        return
    counts = ", ".join(f"{count} {state}" for state, count in counts_by_state(plans).items())
    rules = " and ".join(plan.protocol.name for plan in plans)
    click.echo(f"{counted(len(cells), 'cell')} under {rules}: {counts}")
    for state, count in counts_by_state(plans).items():
        click.echo(f"  {count:6} {state:15} {STATES[state]}")
    for line in grouped((cell.state, cell.method.label, cell.task.label, cell.reason) for cell in cells):
        click.echo(line)


def describe(record: Record, reasons: set[tuple[str, str]] | None = None) -> str:
    """A line on a record that was just made; a reason that was ``told`` before is not told again."""
    name = "{} on {}".format(*record.key)
    if record.mean is not None:
        scores = f"{record.metric} {record.mean:.4f} ± {record.std:.4f}, Q {record.q:.2f}"
        return f"ok {name}: {scores}, {split_count(record.per_split)} splits"
    reason, gist = record.reason, (record.status, _gist(record.reason, record.key[1]))
    if reasons is not None and gist in reasons:
        reason = "as above"
    elif reasons is not None:
        reasons.add(gist)
    return clean(f"{record.status} {name}: {record.failure + ': ' if record.failure else ''}{reason}")


def _gist(reason: str, task: str) -> str:
    """A reason without its task, and without the path or address in it: these differ between tasks alike."""
    return re.sub(r" \([^()]*/[^()]*\)", "", reason).replace(task, "")


@dataclass(frozen=True)
class AnswerForm:
    """The form of the answer, table, json or csv, and the file that it is written to, if any."""

    form: str
    out: Path | None = None

    def write(self, text: str) -> None:
        if self.out is None:
            return
        try:
            write_atomic(self.out.absolute(), text.encode())
        except OSError as error:
            what = f"the answer cannot be written: {error.strerror or error}"
            raise UsageError(what, where=self.out, hint="Choose another --out; records are kept") from error
        click.echo(f"written: {self.out}", err=True)


def answer_form(
    form: str | None, as_json: bool, out: Path | None, suffixes: Mapping[str, str] = SUFFIXES
) -> AnswerForm:
    """Check the options before any work is done; where the answer is data, leave standard output to it alone."""
    if as_json and form not in (None, "json"):
        raise UsageError("--json and --format contradict each other", got=f"--format {form}")
    asked = "json" if as_json else form
    if out is None:
        if asked not in (None, "table"):
            only_data(click.get_current_context())
        return AnswerForm(asked or "table")
    by_suffix = suffixes.get(out.suffix.lower())
    if by_suffix is None or (asked or by_suffix) != by_suffix:
        endings = " or ".join(suffix for suffix, form in suffixes.items() if form == (asked or form))
        expected, got = f"a name that ends in {endings}", out.suffix or "no suffix"
        raise UsageError("bad --out", where=out, expected=expected, got=got)
    if not out.absolute().parent.is_dir():
        raise UsageError("no such folder", where=out.parent)
    return AnswerForm(by_suffix, out)


@dataclass(frozen=True)
class Answer:
    """What became of the cells of some plans. ``preview`` says how the scores are not those of records."""

    plans: Sequence[Plan]
    results: Sequence[PlannedOutcome]
    made: Sequence[Record]
    preview: Preview | None = None
    save: bool = False

    def give(self, form: AnswerForm) -> None:
        if form.out is None and form.form != "table":
            echo_data(self.text(form.form))
            return
        self._show()  # not the text of it: a terminal has its own width
        if form.out is not None:  # else its text would be made for nobody
            form.write(self.text(form.form))

    def text(self, form: str) -> str:
        if form == "json":
            answer: dict[str, Any] = {
                "protocols": [to_json(plan.protocol) for plan in self.plans],
                "counts": counts_by_state(self.plans),
                "cells": [outcome.to_json() for outcome in self.results],
            }
            if self.preview:
                answer["look"] = self.preview.to_json()
            return json_text(answer)
        buffer = io.StringIO()
        if form == "csv":
            rows = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
            rows.writeheader()
            for outcome in self.results:
                row = {**outcome.cell.to_json(), "status": outcome.status, "reason": clean(outcome.reason)}
                row = {name: row[name] for name in (*CELL, "reason")} | {"look": str(self.preview or "")}
                record = outcome.record
                if record is not None and record.ok:
                    row |= {name: getattr(record, name) for name in ("metric", "mean", "std", "q")}
                    row |= {"samples": record.samples.get("used"), "labels": record.samples.get("labels")}
                    row |= {"median": middle(record.per_split), "splits": split_count(record.per_split)}
                rows.writerow({name: as_cell(value) for name, value in row.items()})
            return buffer.getvalue()
        with redirect_stdout(buffer):
            self._show()
        return buffer.getvalue()

    def _show(self) -> None:
        """The scores as a table, then what has none and why, then where the numbers come from."""
        scored = [(outcome, outcome.record) for outcome in self.results if outcome.record and outcome.record.ok]
        if scored:
            _show_scores(scored, several_methods=len({o.cell.method.label for o in self.results}) > 1)
        for protocol in (plan.protocol for plan in self.plans):
            # As many splits as there are: a plugin's splitter makes as many as it likes.
            counts = sorted({len(record.per_split) for _, record in scored if record.protocol == protocol.name})
            if counts:
                splits = " or ".join(counted(count, "split") for count in counts)
                say(f"protocol {protocol.name}: {splits}, seed {protocol.seed}")
        gaps, served = [], []
        for o in self.results:
            names = o.cell.method.label, o.cell.task.label
            if o.status != "ok":
                gaps.append((o.status, *names, o.reason))
            if o.cell.state in ("stale", "cached"):
                served.append((o.cell.state, *names, o.cell.reason))
        for line in (*_remarks(scored), *grouped(gaps), *grouped(served)):
            say(line)
        if cached := counts_by_state(self.plans).get("cached"):
            say(f"{counted(cached, 'score')} from cache (`--fresh` to re-run)")
        if self.made:
            kept = self.save or any(record.registered for record in self.made)
            where = f", records in {layers(registry_dir())[0] / 'records'}" if kept else ""
            say(f"{sum(record.ok for record in self.made)} of {len(self.made)} scored now{where}")
        if self.preview:
            say(f"NOT the registered score: {self.preview}; nothing was recorded")


def _show_scores(scored: Sequence[tuple[PlannedOutcome, Record]], *, several_methods: bool) -> None:
    # A column that says the same in every row says nothing.
    same = set() if several_methods else {"method"}
    if len({record.protocol for _, record in scored}) == 1:
        same.add("protocol")
    rows = []
    for outcome, record in scored:
        used, labels = record.samples.get("used", 0), record.samples.get("labels", 0)
        baseline, check = "–", baseline_check(outcome.cell.task, record)
        if check:
            other = "" if check["protocol"] == record.protocol else "*"
            met = {True: " met", False: " NOT MET", None: f" ({check['method']}{other})"}[check["met"]]
            baseline = f"{check['score']:.4f}{met}"
        row = {
            "method": outcome.cell.method.label,
            "protocol": record.protocol,
            "task": outcome.cell.task.label,
            "metric": record.metric,
            "mean ± std": f"{record.mean:.4f} ± {record.std:.4f}",
            "median": f"{middle(record.per_split):.4f}",
            "Q": f"{record.q:.2f}",
            "splits": split_count(record.per_split),
            "samples": f"{used}" if used == labels else f"{used} of {labels}",
            "baseline": baseline,
        }
        rows.append({name: text for name, text in row.items() if name not in same})
    head = list(rows[0])
    numbers = [head.index(name) for name in ("mean ± std", "median", "Q", "splits", "samples")]
    # The score itself and Q go last.
    drop = [head.index(name) for name in ("samples", "metric", "splits", "median", "baseline")]
    click.echo(table(head, [[*row.values()] for row in rows], right=numbers, drop=drop))


def counts_by_state(plans: Sequence[Plan]) -> dict[str, int]:
    counts = Counter(cell.state for plan in plans for cell in plan.cells)
    return {state: counts[state] for state in STATES if counts[state]}


def grouped(cells: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """A line for each (state, reason), with the first (method, task) that it holds for and the number of others."""
    alike: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for state, method, task, reason in cells:
        if reason:
            # Where a method has nothing, the method says more than the dataset's name in the reason.
            what = method if state == "not-applicable" else _gist(reason, task)
            alike.setdefault((state, what), []).append((method, task, reason))
    lines = []
    for (state, _), ((method, task, reason), *others) in alike.items():
        more = f" and {len(others)} more" if others else ""
        lines.append(clean(f"{state} {method} on {task}{more}: {reason}"))
    return lines


def _remarks(scored: Sequence[tuple[PlannedOutcome, Record]]) -> Iterator[str]:
    """The mean Q of methods with several tasks, and what is odd about the numbers; each thing once."""
    scores: dict[tuple[str, str], list[float]] = {}  # those under several protocols are not brought together
    for _, record in scored:
        if record.q is not None:
            scores.setdefault((record.key[0], record.protocol), []).append(record.q)
    several = len({protocol for _, protocol in scores}) > 1
    for (method, protocol), values in scores.items():
        if len(values) > 1:
            under = f" under {protocol}" if several else ""
            yield f"mean Q of {method}: {sum(values) / len(values):.2f} over {counted(len(values), 'task')}{under}"
    expected = {o.cell.task.baseline for o, r in scored if o.cell.task.baseline}
    published = [b for b in expected if b.protocol not in {protocol for _, protocol in scores}]
    for protocol, source in sorted({(b.protocol, b.source) for b in published}):
        yield f"baselines with * are under {protocol}{f' ({source})' if source else ''}, not run here"
    # Test parts that have no score, or an odd one, are mostly the same for all methods.
    odd = [f"{r.key[1]}: {remark}" for _, r in scored for remark in odd_splits(r.splits, len(r.per_split))]
    yield from dict.fromkeys(odd)
    for _, record in scored:
        remark = ruled(record.per_split)
        if remark:
            yield f"{record.key[1]}, {record.key[0]}: a few splits rule the mean: {remark}"
    tasks = {o.cell.task.label: o.cell.task for o, _ in scored}
    by_voucher: dict[str, list[str]] = {}
    for label, task in tasks.items():
        by_voucher.setdefault(vouched_by_user(task), []).append(label)
    for how, labels in by_voucher.items():
        if how:
            yield f"labels {how}, not known to the registry: {join_names(labels)}"
    lost = {
        f"{record.key[1]}: {record.samples['lost']} of {record.samples['used']} samples"
        for _, record in scored
        if record.samples.get("lost")
    }
    for counts in sorted(lost):
        yield f"{counts} are in neither part of a split: too near to the tested ones (mean over the splits)"
    replaced = {o.cell.method.label: (record.samples.get("replaced_values", 0), o.cell.file) for o, record in scored}
    for name, (count, file) in replaced.items():
        if count:
            first = f" (the first: {file.first_replaced})" if file and file.first_replaced else ""
            lacks = f"{counted(count, 'value')} missing or not a number"
            yield f"{name}: {lacks}, counted as 0{first}; --strict refuses them"
