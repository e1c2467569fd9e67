"""What commands share: completion of ids, options for tasks, protocols and engines, and a prompt interrupt."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, NoReturn, TypeVar

import click

from neuco_core.errors import UsageError
from neuco_core.plugins.catalog import PATTERN, catalog, protocols_for
from neuco_core.protocol import Protocol
from neuco_core.specs import Task

F = TypeVar("F", bound=Callable[..., Any])
GRACE = 0.4  # seconds


def ids_of(*nouns: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """A completer for the ids of some nouns, e.g. ``ids_of("task", "method")``."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        ids: set[str] = set()
        for noun in nouns:
            if noun == "suite":
                ids.update(catalog().survey_suites()[0])
            elif "@" in incomplete:
                ids.update(catalog().plugins.versions(noun, incomplete))
            else:
                ids.update(catalog().plugins.collect(noun)[0])
        return sorted(name for name in ids if name.startswith(incomplete))

    return complete


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def split_commas(ctx: click.Context, param: click.Parameter, value: str | Sequence[str]) -> tuple[str, ...]:
    """``--task a,b`` is ``--task a --task b``: no id has a comma."""
    texts = [value] if isinstance(value, str) else value
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


selection_options = together(
    click.option("--suite", shell_complete=ids_of("suite"), help="Only the tasks of this suite."),
    click.option("--kind", help="Only tasks of this kind: regression, classification or multilabel."),
    click.option("--tag", "tags", multiple=True, help="Only tasks with this tag; repeatable."),
    click.option("--dataset", shell_complete=ids_of("dataset"), help="Only tasks of this dataset."),
)
task_options = together(
    click.option(
        "--task",
        "tasks",
        multiple=True,
        metavar="ID|GLOB",
        callback=split_commas,
        shell_complete=ids_of("task"),
        help="Only these tasks; repeatable, or separated by commas.",
    ),
    selection_options,
)
column_options = together(
    click.option(
        "--column",
        "columns",
        multiple=True,
        default=["label"],
        show_default=True,
        metavar="NAME",
        help="A label column; repeatable.",
    ),
    click.option("--id-column", default="id", show_default=True, metavar="NAME", help="The column with the ids."),
    click.option("--group-column", metavar="NAME", help="Samples of one group are never on both sides of a split."),
    click.option("--split-column", metavar="NAME", help="A fixed split: the words train and test."),
)
protocol_options = together(
    click.option("--protocol", help="How to score: see `neuco protocols`. [default: the suite's or the dataset's]"),
    click.option("--k", type=click.IntRange(min=1), help="Number of splits."),
    click.option("--epochs", type=click.IntRange(min=1), help="Epochs of training."),
    click.option("--lr", type=click.FloatRange(min=0, min_open=True), help="Learning rate."),
    click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of splits and training."),
    click.option("--threads", type=click.IntRange(min=1), help="Splits trained side by side."),
)
jobs_option = click.option("--jobs", type=click.IntRange(min=1), help="Worker processes. [default: one per core]")
batch_option = click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="Samples encoded at once, at most; the numbers are the same.",
)
engine_option = click.option(
    "--engine", default="local", show_default=True, help="local, or another registered engine: ID or ID://ADDRESS."
)
param_option = click.option(
    "--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the method; repeatable."
)


def parse_params(texts: Sequence[str]) -> dict[str, str | int | float | bool]:
    """``NAME=VALUE`` pairs; a value that looks like an integer, a number, true or false becomes one."""
    params: dict[str, str | int | float | bool] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError("bad --param", expected="NAME=VALUE", got=repr(text))
        if name in params:
            raise UsageError(f"--param {name} is given twice")
        params[name] = value == "true" if value in ("true", "false") else value
        for kind in (float, int):
            with suppress(ValueError):
                params[name] = kind(value)
    return params


class Choice(NamedTuple):
    """What was chosen by options: the tasks by how they are scored.

    ``asked`` are the tasks named by id, not by a pattern: these must be scored, not skipped. ``same_dataset`` says that
    one was implied.
    """

    groups: list[tuple[Protocol, list[Task]]]
    asked: frozenset[str]
    suite: str | None
    same_dataset: bool

    @property
    def tasks(self) -> list[Task]:
        return [task for _, tasks in self.groups for task in tasks]


def choose(
    tasks: Sequence[str],
    suite: str | None,
    kind: str | None,
    tags: Sequence[str],
    dataset: str | None,
    protocol: str | None,
    **changes: Any,
) -> Choice:
    """Tasks and protocols from the values of ``task_options`` and ``protocol_options``."""
    chosen = catalog().tasks(*tasks, kind=kind, tag=tags, dataset=dataset, suite=suite)
    if not chosen:
        raise UsageError("no task fits all the conditions", hint="See `neuco tasks`")
    asked = frozenset(name for name in tasks if not any(mark in name for mark in PATTERN))
    same_dataset = dataset is not None or bool(asked)
    return Choice(protocols_for(chosen, protocol, suite, **changes), asked, suite, same_dataset)


@contextmanager
def prompt_interrupt() -> Iterator[None]:
    """Make Ctrl-C quick: Python would wait for the splits being trained, more than a second each on a busy machine.

    The interrupt itself is the usual one and removes a half-written file. After that nothing more is written, so the
    process may end without its threads.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(signum: int, frame: object) -> NoReturn:
        timer = threading.Timer(GRACE, _end)
        timer.daemon = True
        timer.start()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end() -> NoReturn:
    show_cursor = b"\x1b[?25h" if os.isatty(2) else b""  # a progress bar hides it
    os.write(2, show_cursor + b"\nneuco: interrupted\n")
    os._exit(130)
