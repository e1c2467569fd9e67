"""``neuco challenge serve``: the web server of a challenge."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from neuco_extensions.challenge.command_host import FOLDER


@click.command()
@FOLDER
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Evaluations side by side; with 0 run `neuco challenge evaluate` beside it.",
)
@click.option("--engine", default="local", show_default=True, help="local, dask (here), or dask://host:port.")
@click.option("--uploads", type=click.IntRange(min=1), default=32, show_default=True, help="The most at once.")
@click.option("--proxy", metavar="ADDRESS", default="", help="Believe the X-Forwarded headers of this proxy.")
def serve(folder: Path, host: str, port: int, workers: int, engine: str, uploads: int, proxy: str) -> None:
    """Let teams upload embeddings, see their own state and the board, at a web address.

    Put a proxy that speaks TLS before it: tokens must not travel in the clear. Ends at Ctrl-C or SIGTERM; all that was
    accepted is on disk, also after kill -9.
    """
    from neuco_extensions.challenge.serve import serve as run
    from neuco_extensions.challenge.web.pace import Pace

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")

    def ready(address: str) -> None:
        click.echo(f"serving at {address}")
        sys.stdout.flush()

    pace = Pace(uploads=uploads)
    run(folder, host=host, port=port, workers=workers, engine=engine, proxy=proxy, pace=pace, ready=ready)
