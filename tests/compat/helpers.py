"""Runs the command line in this process and gives back what a shell would see."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

from neuco_core.cli import main

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=lambda name: (_ for _ in ()).throw(AssertionError(name)))


def neuco(*args: object) -> Ran:
    """``neuco ARGS``, with its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(arg) for arg in args])
        except SystemExit as end:
            code = int(end.code or 0)
    return Ran(code, out.getvalue(), err.getvalue())


def bench(case: Path, output: Path, *more: object, config: str = "config.yaml") -> Ran:
    """``neuco bench`` on the parity case."""
    inputs = ("--annotation_path", case / "labels", "--submission_file", case / "embeddings.csv")
    return neuco("bench", *inputs, "--config", case / config, "--output_dir", output, *more)


def only(folder: Path) -> Path:
    """The one thing in a folder."""
    (found,) = folder.iterdir()
    return found
