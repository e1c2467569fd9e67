"""The plugin manual: every hook that a plugin may implement.

A plugin is a module: a directory in ``neuco_tasks/``, ``neuco_methods/`` or ``neuco_extensions/``, or what an
installed package's entry point names. It implements hooks with ``@hookimpl``; each yields frozen specs. Heavy imports
go inside functions. An id is the plugin's name, or begins with it and ``_`` or ``-``: ``load_task("soil_ph")`` imports
only ``soil_ph`` and ``soil``. Directories of tasks and methods bring content, extensions bring uses of it: commands,
checks, engines, kinds of boards and what their pages show.

Entry-point groups: ``neuco.datasets``, ``neuco.tasks``, ``neuco.methods``, ``neuco.metrics``, ``neuco.probes``,
``neuco.splitters``, ``neuco.engines``, ``neuco.boards``, ``neuco.commands``, ``neuco.checks``, ``neuco.panels``,
``neuco.published``, ``neuco.cells``, ``neuco.columns``, ``neuco.coders``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from neuco_core import specs

F = TypeVar("F", bound=Callable[..., object])


def hookimpl(function: F) -> F:
    """Mark a function of a plugin as its implementation of the hook that has the function's name."""
    function.implements_hook = True  # type: ignore[attr-defined]
    return function


def neuco_datasets() -> Iterable[specs.Dataset]:  # type: ignore[empty-body]
    """Yield the datasets of this plugin.

    @hookimpl
    def neuco_datasets():
        yield Dataset(id="soil", title="Soil profiles", license="CC-BY-4.0")
    """


def neuco_tasks() -> Iterable[specs.Task]:  # type: ignore[empty-body]
    """Yield the tasks of this plugin.

    @hookimpl
    def neuco_tasks():
        source = Remote("https://example.org/ph.csv")  # `neuco data package` prints the line with its sha256
        yield Task(id="soil_ph", dataset="soil", kind="regression", metric="r2", unit="pH", source=source)
    """


def neuco_methods() -> Iterable[specs.Method]:  # type: ignore[empty-body]
    """Yield the methods of this plugin.

    @hookimpl
    def neuco_methods():
        class Mean:
            def encode(self, batch):
                return batch.values.mean(axis=(1, 3, 4))

        yield Method(id="soil_mean", encoder=Mean, title="Mean of each band")
    """


def neuco_metrics() -> Iterable[specs.Metric]:  # type: ignore[empty-body]
    """Yield metrics that a task may name (``metric="soil_bias"``).

    ``function(truth, prediction)`` gets, for a regression, both in the labels' unit; for a classification, class
    numbers and probabilities (n, classes); for multilabel, 0 and 1 and predictions, both (n, labels).

    @hookimpl
    def neuco_metrics():
        yield Metric(id="soil_bias", function=lambda y, p: abs(float((p - y).mean())), greater_is_better=False)
    """


def neuco_probes() -> Iterable[specs.Probe]:  # type: ignore[empty-body]
    """Yield probes that a protocol may name: ``ridge+probe=soil_knn,neighbors=3`` has the rules of ``ridge`` otherwise.

    A probe has ``fit(split) -> Fit``, see ``neuco_core.scoring.probes``; ``EstimatorProbe`` wraps scikit-learn's
    estimators. Start from ``neuco-strict`` for a probe that is trained in epochs and wants standardised inputs.
    ``kinds`` may add ``multilabel``.

    @hookimpl
    def neuco_probes():
        def knn(protocol):
            from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
            from neuco_core.scoring.probes import EstimatorProbe, parameters
            n = parameters(protocol, neighbors=5)["neighbors"]
            return EstimatorProbe(lambda: KNeighborsRegressor(n), lambda: KNeighborsClassifier(n))

        yield Probe(id="soil_knn", factory=knn)
    """


def neuco_splitters() -> Iterable[specs.Splitter]:  # type: ignore[empty-body]
    """Yield ways to split samples into training and test sets: ``ridge+splitter=soil_halves``, or of one task.

    ``function(n, protocol, groups)`` returns the (training, test) indices of every split; ``groups`` has one value per
    sample if the task has a ``group_column``.

    @hookimpl
    def neuco_splitters():
        def halves(n, protocol, groups=None):
            return [(range(0, n, 2), range(1, n, 2))]

        yield Splitter(id="soil_halves", function=halves)
    """


def neuco_engines() -> Iterable[specs.Engine]:  # type: ignore[empty-body]
    """Yield engines that run the cells of ``neuco score --engine ID``.

    @hookimpl
    def neuco_engines():
        def serial(address, jobs):
            from neuco_core.runs.engine import LocalEngine
            return LocalEngine(jobs=1)

        yield Engine(id="soil_serial", factory=serial)
    """


def neuco_boards() -> Iterable[specs.BoardKind]:  # type: ignore[empty-body]
    """Yield kinds of boards that a suite may name.

    @hookimpl
    def neuco_boards():
        yield BoardKind(id="soil_mean", rank=lambda cells: cells.ranked_by("Mean score", cells.means()))
    """


def neuco_commands() -> Iterable[specs.Command]:  # type: ignore[empty-body]
    """Yield commands for the ``neuco`` command line; one that is named by a string is imported when it is run.

    @hookimpl
    def neuco_commands():
        hello = click.Command("soil", callback=lambda: click.echo("soil!"))
        yield Command(id="soil", title="Say hello", command=hello)  # or command="soil.cli:hello"
    """


def neuco_checks() -> Iterable[specs.Check]:  # type: ignore[empty-body]
    """Yield checks for ``neuco check``, for every plugin's ``test.py`` and for continuous integration.

    @hookimpl
    def neuco_checks():
        def unit(subject):
            from neuco_core.contract.contract import Warn
            if not subject.spec.unit:
                raise Warn("no unit")
            return subject.spec.unit

        yield Check(id="soil_unit", noun="task", asks="a unit", reason="numbers need one", cure="set unit=", run=unit)
    """


def neuco_panels() -> Iterable[specs.Panel]:  # type: ignore[empty-body]
    """Yield tabs of a board's page, or sections of the pages of its methods and tasks.

    @hookimpl
    def neuco_panels():
        def count(page):
            return {"tasks": len(page.board.tasks)} if page.board.tasks else None

        yield Panel(id="soil", title="Soil", data=count, template="<p>{{ tasks }} tasks</p>")  # or "soil:panel.html"
    """


def neuco_published() -> Iterable[specs.PublishedSource]:  # type: ignore[empty-body]
    """Yield sources of boards that others have published; they are marked so and never mixed with ours.

    @hookimpl
    def neuco_published():
        def boards(registry):
            from neuco_core.boards.published import read_published
            return [read_published(path) for path in sorted((registry / "soil").glob("*.json"))]

        yield PublishedSource(id="soil", boards=boards)
    """


def neuco_cells() -> Iterable[specs.CellSource]:  # type: ignore[empty-body]
    """Yield sources of values for the empty cells of a board: they are marked, shown on request and never ranked.

    @hookimpl
    def neuco_cells():
        def half(board):
            from neuco_core.boards.model import BoardCell, ExtraCells
            rows, tasks = board.shown, board.tasks
            empty = [(row.method, task.id) for row in rows for task in tasks if board.score(row, task.id) is None]
            guess = BoardCell({board.cell_columns[0].key: 0.5}, {}, "estimated", "")
            return ExtraCells(dict.fromkeys(empty, guess), "A guess.")

        yield CellSource(id="soil", fill=half)
    """


def neuco_columns() -> Iterable[specs.ColumnSource]:  # type: ignore[empty-body]
    """Yield sources of columns that stand behind those of a board's kind, are stored with it and never rank.

    @hookimpl
    def neuco_columns():
        def splits(board, cells):
            from neuco_core.boards.model import Column
            least = {row.method: min(cell.splits for cell in row.cells.values()) for row in board.ranked}
            yield Column("soil_splits", "Fewest splits", format="integer"), least, {}  # no intervals

        yield ColumnSource(id="soil", columns=splits)
    """


def neuco_coders() -> Iterable[specs.Coder]:  # type: ignore[empty-body]
    """Yield ways to store embeddings in fewer bytes, each with a way back.

    @hookimpl
    def neuco_coders():
        class Tenths:
            def encode(self, values):
                return (10 * values).round().clip(-128, 127).astype("int8")

            def decode(self, codes):
                return codes / 10

        yield Coder(id="soil_tenths", factory=lambda setting: Tenths())
    """
