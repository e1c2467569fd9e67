"""``neuco challenge serve``: the web server of a challenge."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from neuco_core.cli.challenge_host import FOLDER


@click.command()
@FOLDER
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Processes that evaluate; with 0 run `neuco challenge evaluate` beside it.",
)
@click.option("--uploads", type=click.IntRange(min=1), default=32, show_default=True, help="The most at once.")
@click.option("--proxy", metavar="ADDRESS", default="", help="Believe the X-Forwarded headers of this proxy.")
def serve(folder: Path, host: str, port: int, workers: int, uploads: int, proxy: str) -> None:
    """Let teams upload embeddings, see their own state and the board, at a web address.

    Put a proxy that speaks TLS before it: tokens must not travel in the clear. Ends at Ctrl-C or SIGTERM; all that was
    accepted is on disk, also after kill -9.
    """
    from neuco_core.challenge.serve import serve as run
    from neuco_core.challenge.web.pace import Pace

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")

    def ready(address: str) -> None:
        click.echo(f"serving at {address}")
        sys.stdout.flush()

    run(folder, host=host, port=port, workers=workers, proxy=proxy, pace=Pace(uploads=uploads), ready=ready)
