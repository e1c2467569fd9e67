"""``neuco geobench tune``: search a probe's settings inside the training part, then repeat with several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli.options import choose, ids_of, prompt_interrupt, split_commas, task_options
from neuco_core.cli.output import clean, echo_json, json_option, table
from neuco_core.progress import show_progress

if TYPE_CHECKING:
    from neuco_core.runs.sources import Source
    from neuco_core.specs import Task
    from neuco_core.tables.labels import Labels
    from neuco_extensions.geobench.tune import Tuned


@click.command()
@click.option(
    "--method",
    "methods",
    multiple=True,
    required=True,
    callback=split_commas,
    shell_complete=ids_of("method"),
    metavar="ID|FILE",
    help="A method, or a file of embeddings; repeatable, or separated by commas.",
)
@task_options
@click.option("--protocol", default="neuco-strict", show_default=True, help="Whose probe is tuned.")
@click.option("--trials", type=click.IntRange(min=1), default=16, show_default=True, help="Settings that are tried.")
@click.option("--repeats", type=click.IntRange(min=2), default=5, show_default=True, help="Seeds of what was best.")
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Of the division and search.")
@click.option("--threads", type=click.IntRange(min=1), help="Splits trained side by side.")
@click.option("--engine", metavar="NAME", help="Run on this engine: local, dask, dask://HOST:PORT, or a plugin's.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Workers of the engine.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="A folder for the results."
)
@json_option
def tune(
    methods: Sequence[str],
    protocol: str,
    trials: int,
    repeats: int,
    seed: int,
    threads: int | None,
    engine: str | None,
    jobs: int,
    out: Path,
    as_json: bool,
    **selection: Any,
) -> None:
    """Find settings of a probe inside the training part, and repeat the best with several seeds on the test part.

    Every trial is kept in --out when it is done. After an interruption the same command goes on, and ends with the
    same numbers. The search never gets a row of the test part. On an engine a method on a task is one step, which is
    kept when it ends. `neuco geobench export --tuned` writes a submission.
    """
    from neuco_core.errors import ScoreError, UsageError
    from neuco_core.plugins.catalog import load_protocol
    from neuco_core.runs.engine import open_engine
    from neuco_core.runs.sources import MethodSource, open_source
    from neuco_core.studies.labels_for import gather, grouped
    from neuco_extensions.geobench.search import TuningPlan
    from neuco_extensions.geobench.tune import tune as run
    from neuco_extensions.geobench.tune import tune_on

    plan = TuningPlan(load_protocol(protocol), trials, repeats, seed)
    choice = choose(protocol=protocol, **selection)
    notes: list[str] = []
    work: list[tuple[Source, Task, Labels]] = []
    for text in methods:
        source = open_source(text)
        inputs = gather(choice.tasks, source, same_dataset=choice.same_dataset)
        notes += grouped((item.status, f"{source.name} on {item.task.label}", item.reason) for item in inputs)
        work += [(source, item.task, item.labels) for item in inputs if item.labels is not None]
    if not work:
        raise ScoreError("nothing can be tuned", got=notes[0] if notes else None)
    found: list[Tuned] = []
    with prompt_interrupt(), show_progress() as progress:

        def tell(tuned: Tuned) -> None:
            share = (len(tuned.trials) + len(tuned.repeats)) / (trials + repeats)
            if progress:
                progress((len(found) + share) / len(work), f"{tuned.method} on {tuned.task}")

        if engine:
            pairs = [(source.method, task) for source, task, _ in work if isinstance(source, MethodSource)]
            if len(pairs) < len(work):
                raise UsageError("an engine tunes registered methods only", hint="Leave out --engine for a file")
            for tuned in tune_on(open_engine(engine, jobs), pairs, plan, out, threads or 1):
                found.append(tuned)
                tell(tuned)
            found.sort(key=lambda own: (own.method, own.task))
        else:
            for source, task, labels in work:
                name = source.method.id if isinstance(source, MethodSource) else Path(source.name).stem
                file = out / name / f"{task.id}.json"
                found.append(
                    run(name, task, source.embeddings(task), labels, plan, out=file, threads=threads, told=tell)
                )
    _show(found, as_json)
    for note in notes:
        click.echo(clean(note), err=True)


def _show(found: Sequence[Tuned], as_json: bool) -> None:
    import msgspec

    if as_json:
        echo_json(msgspec.to_builtins(found))
        return
    from neuco_extensions.geobench.iqm import score

    rows = []
    for own in found:
        scores = [run.score for run in own.repeats]
        interval = score([scores])
        settings = ", ".join(f"{name} {value:.3g}" for name, value in own.best.settings.items())
        mean = sum(scores) / len(scores)
        between = f"{interval.low:.4f} to {interval.high:.4f}"
        rows.append([own.method, own.task, own.metric, f"{own.best.value:.4f}", f"{mean:.4f}", between, settings])
    heads = ("method", "task", "metric", "search", "test", "95 % over seeds", "settings")
    click.echo(table(heads, rows, right=(3, 4, 5)))
    first = found[0]
    click.echo(f"{len(first.trials)} trials inside the training part, {len(first.repeats)} seeds on the test part")
