"""``neuco models``: the networks of TorchGeo that a method can name."""

from __future__ import annotations

import click

from neuco_core.cli.output import echo_json, json_option, table
from neuco_core.specs import to_json
from neuco_extensions.models.torchgeo import table as known_weights


@click.command()
@json_option
def models(as_json: bool) -> None:
    """List TorchGeo's networks for Sentinel-1 and Sentinel-2, and whether their weights can be run on cubes."""
    rows = known_weights().values()
    if as_json:
        echo_json([to_json(row) for row in rows])
        return
    cells = [(row.weights, row.model, str(len(row.bands)), row.lacking or "yes") for row in rows]
    click.echo(table(("weights", "network", "bands", "runs on cubes"), cells, right={2}))
