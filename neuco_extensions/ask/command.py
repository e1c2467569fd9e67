"""``neuco ask-author``: settings and scores of a method as a message, to be sent to the author of its model."""

from __future__ import annotations

import click

from neuco_core.boards.model import TRUST, Board
from neuco_core.boards.store import current
from neuco_core.cli.options import ids_of
from neuco_core.env import registry_dir
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import load_method
from neuco_core.specs import Method

QUESTION = """\
Subject: Is {title} used as it was meant to be?

Dear authors of {title},

neuco scores embeddings of Earth observation, and {label} is on its boards. Before its scores are marked as
"{confirmed}", we ask you to look at how your model is used:

{settings}

These are its scores (metric by task, mean over the splits, and Q):

{scores}

1. Are weights, units, statistics, order of bands, resizing and pooling what you intend?
2. Are the scores in the range that you expect?
3. May we link to your answer?

Run it yourself:  neuco score --method {label} --suite {suite}
If something is wrong, tell us what, and the scores are withdrawn until it is mended.
"""


@click.command("ask-author")
@click.argument("method", shell_complete=ids_of("method"))
def ask_author(method: str) -> None:
    """Print the question to the author of METHOD's model, with its settings and its scores on record.

    A maintainer who has the answer adds the method to registry/confirmed.json on main, with a link to it.
    """
    spec = load_method(method)
    now = current(registry_dir())
    suites = {(record.protocol, record.task) for record in now.records if record.method == spec.id and record.ok}
    boards = [now.board(suite) for suite in now.choose() if {(suite.protocol, task) for task in suite.tasks} & suites]
    lines = [line for board in boards for line in _scores(board, spec)]
    if not lines:
        hint = f"Score it first: `neuco score --method {spec.label}`"
        raise DataError(f"there are no scores of {spec.label} to ask about", hint=hint)
    click.echo(
        QUESTION.format(
            title=spec.title or spec.id,
            label=spec.label,
            confirmed=TRUST["confirmed"][1],
            settings="\n".join(f"  {name}: {value}" for name, value in _settings(spec)),
            scores="\n".join(lines),
            suite=boards[0].about.id,
        ),
        nl=False,
    )


def _settings(spec: Method) -> list[tuple[str, object]]:
    files = {f"weights {name}": f"{remote.url} (sha256 {remote.sha256})" for name, remote in spec.weights.items()}
    facts = {"preprocessing": spec.preprocessing, "bands": " ".join(spec.bands), "packages": ", ".join(spec.requires)}
    made = {"embeddings": "from files, " + ", ".join(sorted(spec.files))} if spec.files else {}
    return [(name, value) for name, value in {**files, **made, **spec.params, **facts}.items() if value != ""]


def _scores(board: Board, spec: Method) -> list[str]:
    """The scores of the method on a board, line by line, with how each came about."""
    lines = []
    for row in board.rows:
        if (row.method, row.version) == (spec.id, spec.version):
            for task in board.tasks:
                mean, q = row.value(task.id, "score"), row.value(task.id, "q")
                if mean is not None:
                    known = f"{task.metric} {mean:.3f}" + ("" if q is None else f", Q {q:.1f}")
                    lines.append(f"  {board.about.id}: {task.id}: {known} ({TRUST[row.cells[task.id].trust][1]})")
    return lines
