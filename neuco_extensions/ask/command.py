"""``neuco ask-author``: settings and scores of a method as a message, to be sent to the author of its model."""

from __future__ import annotations

import click

from neuco_core.boards.cells import record_cell
from neuco_core.boards.model import TRUST
from neuco_core.boards.store import current
from neuco_core.cli.options import ids_of
from neuco_core.env import registry_dir
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import load_method
from neuco_core.text import one_line

QUESTION = """\
Subject: Is "{title}" used as it was meant to be?

Dear authors,

neuco scores embeddings of Earth observation, and your model is on its boards
as {label}. Before its scores are marked as "{confirmed}",
we ask you to look at how it is used:

{settings}

These are its scores (the mean over the splits, and Q):

{scores}

1. Are weights, units, statistics, order of bands, resizing and pooling what you intend?
2. Are the scores in the range that you expect?
3. May we link to your answer?

Run it yourself:  neuco verify {label}
If something is wrong, tell us what: the scores are withdrawn until it is mended.
"""


@click.command("ask-author")
@click.argument("method", shell_complete=ids_of("method"))
def ask_author(method: str) -> None:
    """Print the question to the author of METHOD's model, with its settings and its scores on record.

    A maintainer who has the answer adds the method to registry/confirmed.json on main, with a link to it.
    """
    spec, now = load_method(method), current(registry_dir())
    on_boards = {(suite.protocol, task) for suite in now.suites.values() for task in suite.tasks}
    scores = []
    for record in [record for record in now.records if record.ok and not now.why_stale(record)]:
        is_shown = (record.protocol, record.task) in on_boards
        if is_shown and (record.method, record.method_version) == (spec.id, spec.version):
            cell = record_cell(record)
            value = f"{record.metric} {cell.mean:.3f}, Q {cell.q:.1f} ({TRUST[cell.trust][1]})"
            scores.append(f"  {record.task}, {record.protocol}: {value}")
    if not scores:
        hint = f"Score it first: `neuco score --method {spec.label}`"
        raise DataError(f"there are no scores of {spec.label} to ask about", hint=hint)
    settings = {f"weights {name}": f"{remote.url} (sha256 {remote.sha256})" for name, remote in spec.weights.items()}
    if spec.files:
        settings["embeddings"] = "from files, " + ", ".join(sorted(spec.files))
    settings |= {name: str(value) for name, value in spec.params.items()}
    settings |= {"preprocessing": spec.preprocessing, "bands": " ".join(spec.bands)}
    settings["packages"] = ", ".join(spec.requires)
    click.echo(
        QUESTION.format(
            title=one_line(spec.title or spec.id),
            label=spec.label,
            confirmed=TRUST["confirmed"][1],
            settings="\n".join(f"  {name}: {one_line(str(value))}" for name, value in settings.items() if value),
            scores="\n".join(scores),
        ),
        nl=False,
    )
