"""Options that the scoring commands share: which tasks, which protocol, and a progress bar."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import click

from neuco_core.cli.complete import ids_of
from neuco_core.protocol import DEFAULT_PROTOCOL

if TYPE_CHECKING:
    from neuco_core.protocol import Protocol
    from neuco_core.specs import Task
    from neuco_core.studies.inputs import Progress

F = TypeVar("F", bound=Callable[..., Any])
PATTERN = "*?["
GRACE = 0.4  # seconds


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


task_options = together(
    click.option(
        "--task",
        "tasks",
        multiple=True,
        metavar="ID|GLOB",
        shell_complete=ids_of("task"),
        help="Only these tasks; repeatable.",
    ),
    click.option("--suite", shell_complete=ids_of("suite"), help="Only the tasks of this suite."),
    click.option("--kind", help="Only tasks of this kind: regression, classification or multilabel."),
    click.option("--tag", "tags", multiple=True, help="Only tasks with this tag; repeatable."),
    click.option("--dataset", shell_complete=ids_of("dataset"), help="Only tasks of this dataset."),
)
protocol_options = together(
    click.option("--protocol", help="How to score: see `neuco protocols`. [default: the suite's or the dataset's]"),
    click.option("--k", type=click.IntRange(min=1), help="Number of splits."),
    click.option("--epochs", type=click.IntRange(min=1), help="Epochs of training."),
    click.option("--lr", type=click.FloatRange(min=0, min_open=True), help="Learning rate."),
    click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of splits and training."),
    click.option("--threads", type=click.IntRange(min=1), help="Splits trained side by side."),
)


def choose_tasks(
    tasks: Sequence[str], suite: str | None, kind: str | None, tags: Sequence[str], dataset: str | None
) -> list[Task]:
    """The tasks for which all the conditions hold."""
    from neuco_core.errors import UsageError
    from neuco_core.plugins.catalog import list_tasks

    chosen = list_tasks(*tasks, kind=kind, tag=tags, dataset=dataset, suite=suite)
    if not chosen:
        raise UsageError("no task fits all the conditions", hint="See `neuco tasks`")
    return chosen


def exact_ids(tasks: Sequence[str]) -> frozenset[str]:
    """The tasks that were asked for by id, not by a pattern: these must be scored, not skipped."""
    return frozenset(name for name in tasks if not any(mark in name for mark in PATTERN))


def by_protocol(
    tasks: Sequence[Task], name: str | None, suite: str | None, **changes: Any
) -> list[tuple[Protocol, list[Task]]]:
    """The tasks with how to score them: as named, or as the suite, or as their dataset says, changed by options."""
    from neuco_core.errors import SpecError, UsageError
    from neuco_core.plugins.catalog import load_protocol, load_suite, task_protocol

    groups: dict[str, tuple[Protocol, list[Task]]] = {}
    try:
        named = load_protocol(name or load_suite(str(suite)).protocol) if name or suite else None
        for task in tasks:
            protocol = named or task_protocol(task)
            given = {key: new for key, new in changes.items() if new is not None and getattr(protocol, key) != new}
            protocol = protocol.with_(**given) if given else protocol
            groups.setdefault(protocol.name, (protocol, []))[1].append(task)
    except SpecError as error:  # a wrong value on the command line, not a broken plugin
        raise UsageError(str(error)) from error
    return [groups[key] for key in sorted(groups)]


class Choice(NamedTuple):
    """What was chosen by options; ``asked`` are the tasks named by id, ``same_dataset`` says that one was implied."""

    tasks: list[Task]
    protocol: Protocol
    asked: frozenset[str]
    same_dataset: bool


def choose(
    tasks: Sequence[str],
    suite: str | None,
    kind: str | None,
    tags: Sequence[str],
    dataset: str | None,
    protocol: str | None,
    **changes: Any,
) -> Choice:
    """Tasks and protocol from the values of ``task_options`` and ``protocol_options``.

    There is one protocol for all: ``neuco-2025`` if the tasks' datasets name several.
    """
    chosen, asked = choose_tasks(tasks, suite, kind, tags, dataset), exact_ids(tasks)
    groups = by_protocol(chosen, protocol, suite, **changes)
    if len(groups) > 1:
        groups = by_protocol(chosen, DEFAULT_PROTOCOL, None, **changes)
    return Choice(chosen, groups[0][0], asked, dataset is not None or bool(asked))


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """A bar on the terminal (stderr) with the time left; none if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    form = "{desc:30.30} {percentage:3.0f} %|{bar}| {elapsed} so far, {remaining} left"
    with tqdm(total=1.0, bar_format=form, file=sys.stderr, leave=False) as bar:

        def show(share: float, name: str) -> None:
            bar.set_description_str(name, refresh=False)
            bar.update(min(share, 1.0) - bar.n)

        yield show


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
    os.write(2, b"\nneuco: interrupted\n")
    os._exit(130)
