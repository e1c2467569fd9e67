"""The folder of a run, as NeuCo-Bench lays it out; every file is complete or absent."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from neuco_core.errors import UsageError
from neuco_core.files import write_atomic
from neuco_core.jsonio import jsonable

SUMMARY = "results_summary.json"


def check_name(name: str, option: str) -> str:
    """Refuse a name that would leave its folder or hide in it."""
    if not name or name.startswith(".") or "/" in name or "\\" in name or not name.isprintable():
        raise UsageError(f"bad {option}", expected="a name for a folder, without / and without a leading dot", got=name)
    return name


def make_run_folder(output_dir: Path, phase: str, method: str, now: datetime) -> Path:
    """``<output_dir>/<phase>/<method>_<timestamp>/``; a second run in the same second gets a number."""
    stem = f"{method}_{now:%Y%m%d_%H%M%S}"
    for number in range(1, 1000):
        folder = output_dir / phase / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if folder.is_dir():
                continue
            raise UsageError("a file is in the way of the results", where=folder) from None
        except OSError as error:
            raise UsageError("cannot create the run's folder", where=folder, got=error.strerror) from error
        return folder
    raise UsageError("too many runs of this name in this second", where=output_dir / phase / stem)


def write_json(path: Path, value: Any) -> None:
    """Write JSON that is the same every time: sorted keys, no NaN (null instead), a newline at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(jsonable(value), allow_nan=False, ensure_ascii=False, indent=2, sort_keys=True, default=str)
    write_atomic(path, (text + "\n").encode())
