"""``neuco compare``: is one method better than another, or is it the luck of the splits?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from neuco_core.cli.options import choose, prompt_interrupt, protocol_options, task_options
from neuco_core.cli.output import clean, echo_json, json_option, say, table, warn
from neuco_core.errors import ScoreError
from neuco_core.files import jsonable
from neuco_core.progress import show_progress
from neuco_core.protocol import Protocol
from neuco_core.runs.files import ALLOW
from neuco_core.scoring.leaks import columns_used, replaced_values
from neuco_core.scoring.quality import ruled
from neuco_core.scoring.splits import cut_groups
from neuco_core.specs import to_json
from neuco_core.studies.compare import Pair, compare_tasks, problem
from neuco_core.studies.sources import FileSource, grouped, open_source
from neuco_core.text import counted, join_names

TEST = "corrected resampled t-test"


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@task_options
@protocol_options
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of the interval and of the verdict.",
)
@click.option("--strict", is_flag=True, help="Refuse a file with missing values instead of reading them as 0.")
@click.option(ALLOW, is_flag=True, help="Compare a file although a column of it is the label of a task.")
@json_option
def compare(
    a: str,
    b: str,
    threads: int | None,
    confidence: float,
    strict: bool,
    allow_labels: bool,
    as_json: bool,
    **selection: Any,
) -> None:
    """Compare A with B, each a method's id or a file of embeddings, task by task.

    Both are scored on the same splits of the samples that both have. The test is Nadeau and Bengio's corrected
    resampled t-test, which allows for overlapping splits; "p (Holm)" also accounts for testing several tasks.
    """
    choice = choose(**selection)
    sources = open_source(a, strict=strict), open_source(b, strict=strict)
    for source in sources:
        if isinstance(source, FileSource):
            click.echo(clean(f"{source.name}: {columns_used(source.read())}"), err=True)
            if replaced := replaced_values(source.read()):
                warn(f"{source.name}: {replaced}; --strict refuses them")
    with prompt_interrupt(), show_progress() as progress:
        pairs = compare_tasks(
            *sources,
            choice.groups,
            confidence=confidence,
            threads=threads,
            progress=progress,
            same_dataset=choice.same_dataset,
            allow_labels=allow_labels,
        )
    compared = {pair.task for pair in pairs if pair.status == "ok"}
    for warning in cut_groups((t, rules) for rules, tasks in choice.groups for t in tasks if t.label in compared):
        warn(warning)
    _show(pairs, (sources[0].name, sources[1].name), [used for used, _ in choice.groups], confidence, as_json)
    reason = problem(pairs, choice.asked)
    if reason:
        raise ScoreError(reason)


def _show(
    pairs: Sequence[Pair], names: tuple[str, str], protocols: Sequence[Protocol], confidence: float, as_json: bool
) -> None:
    if as_json:
        head = {"a": names[0], "b": names[1], "protocols": to_json(list(protocols)), "test": TEST}
        echo_json(jsonable({**head, "tasks": [pair.to_json() for pair in pairs]}))
        return
    rows = []
    for pair in pairs:
        test, a, b = pair.test, pair.a, pair.b
        if test and a and b:
            won = (test.a_higher, test.b_higher) if pair.greater_is_better else (test.b_higher, test.a_higher)
            between, interval = f"{test.difference:+.4f}", f"{test.low:+.4f} to {test.high:+.4f}"
            chances = f"{test.p:.3g}", f"{pair.p_holm:.3g}", pair.verdict(1 - confidence)
            used, labelled = a.samples["used"], a.samples["labels"]
            samples = f"{used}" if used == labelled else f"{used} of {labelled}"
            row = (
                pair.task,
                a.metric,
                samples,
                f"{a.mean:.4f}",
                f"{b.mean:.4f}",
                between,
                interval,
                f"{won[0]}:{won[1]}",
            )
            rows.append((*row, *chances))
    if rows:
        percent = f"{100 * confidence:g} %"
        columns = ("task", "metric", "samples", "A", "B", "A − B", percent, "splits A:B", "p", "p (Holm)", "")
        say(f"A = {names[0]}, B = {names[1]}")
        click.echo(table(columns, rows, right=range(2, 10), drop=(7, 1, 8, 2, 4, 3)))
        for protocol in protocols:
            scored = [pair for pair in pairs if pair.a and pair.a.protocol == protocol]
            counts = sorted({pair.test.splits + pair.test.left_out for pair in scored if pair.test})
            names_of = f" ({join_names([pair.task for pair in scored])})" if len(protocols) > 1 else ""
            if scored:
                splits = " or ".join(counted(n, "split") for n in counts)
                say(f"protocol {protocol.name}{names_of}: {splits}; {TEST} (Nadeau and Bengio 2003)")
        for pair in pairs:
            for warning in pair.warnings:
                warn(warning)
            for name, one in zip(names, (pair.a, pair.b), strict=True):
                if one and (remark := ruled(one.per_split)):
                    say(f"{pair.task}, {name}: a few splits rule the mean: {remark}")
            if pair.test and pair.test.left_out:
                whole = pair.test.splits + pair.test.left_out
                say(f"{pair.task}: {pair.test.left_out} of {whole} splits have no score of both and are left out")
    for line in grouped((pair.status, pair.task, pair.reason) for pair in pairs):
        say(line)
