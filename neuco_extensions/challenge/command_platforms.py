"""``neuco challenge export|worker``: a challenge on EvalAI or Codabench."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Literal

import click

from neuco_core.cli.output import clean
from neuco_extensions.challenge.command_host import FOLDER, THREADS

TOKEN = "EVALAI_TOKEN"  # noqa: S105 - the name of a variable


@click.command()
@FOLDER
@click.option("--format", "platform", type=click.Choice(["evalai", "codabench"]), required=True, help="For whom.")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="A new folder.")
@click.option("--image", default="", help="For Codabench: a container image with neuco in it.")
def export(folder: Path, platform: Literal["evalai", "codabench"], out: Path, image: str) -> None:
    """Write what a platform needs to set the challenge up: dates, phases, quotas, the board; nothing that is hidden."""
    from neuco_extensions.challenge.export import export as write
    from neuco_extensions.challenge.rules import load_challenge

    files = write(load_challenge(folder), platform, out, image=image)
    click.echo(f"{files[0]} and {len(files) - 1} more files; put your own words into its pages and your own logo")
    if platform == "codabench":
        click.echo(f"Codabench scores with the labels: copy {folder} to {out / 'reference_data'} before you upload")


@click.command()
@FOLDER
@click.option("--queue", required=True, help="The name of the challenge's queue.")
@click.option("--challenge", "number", type=int, required=True, help="The challenge's number on EvalAI.")
@click.option(
    "--server", envvar="EVALAI_SERVER", default="https://eval.ai", show_default=True, help="The EvalAI server."
)
@click.option("--files", multiple=True, metavar="ORIGIN", help="Where else files of submissions may be; repeatable.")
@click.option("--once", is_flag=True, help="End when the queue is empty.")
@THREADS
def worker(
    folder: Path, queue: str, number: int, server: str, files: tuple[str, ...], once: bool, threads: int
) -> None:
    """Evaluate what teams submit on EvalAI. The token of a host is read from the variable EVALAI_TOKEN.

    Each submission is answered once, also if workers are killed or several run on this machine. They share DIR.
    """
    from neuco_extensions.challenge.evalai.account import FILES, Account
    from neuco_extensions.challenge.evalai.bridge import Bridge
    from neuco_extensions.challenge.evalai.worker import Worker

    with closing(Bridge(folder, threads=threads)) as bridge:
        limits = bridge.host.challenge.limits
        account = Account(
            server,
            queue,
            number,
            os.environ.get(TOKEN, ""),
            files=(FILES, *files),
            max_bytes=limits.bytes,
            hold=float(limits.tick),
        )
        private = bridge.host.challenge.private / "evalai"
        Worker(account, private, bridge, tell=lambda line: click.echo(clean(line))).run(once=once)
