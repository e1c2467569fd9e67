"""How long does listing take, against importing click and msgspec alone; and what does one more plugin cost?

    python benchmarks/plugins.py [--plugins 1000] [--repeat 7]

Prints ratios of medians of CPU time in one run, each in processes of its own: other work on the machine hardly counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = """\
from neuco_core import Remote, Task, hookimpl


@hookimpl
def neuco_tasks():
    yield Task(id="{name}", dataset="any", kind="regression", source=Remote("https://example.org/{name}.csv"))
"""


def make_packages(folder: Path, count: int) -> list[str]:
    """Installed distributions ``plugin0000`` and so on, each with one task; the folder goes on the Python path."""
    names = [f"plugin{i:04d}" for i in range(count)]
    for name in names:
        (folder / f"{name}.py").write_text(SOURCE.format(name=name))
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[neuco.tasks]\n{name} = {name}\n")
    return names


def median_seconds(command: list[str], repeat: int, folder: Path | None = None) -> float:
    environment = {**os.environ, **({"PYTHONPATH": str(folder)} if folder else {})}
    times = []
    for _ in range(repeat + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(times[1:])  # the first run writes the byte code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugins", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    listing = [sys.executable, "-m", "neuco_core.cli", "tasks"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_packages(folder, options.plugins)
        load = "from neuco_core import load_task; load_task('plugin0000')"
        rows = {
            "import click, msgspec": ([sys.executable, "-c", "import click, msgspec"], None),
            "neuco --help": ([sys.executable, "-m", "neuco_core.cli", "--help"], None),
            "neuco tasks": (listing, None),
            f"neuco tasks, {options.plugins} packages more": (listing, folder),
            f"load_task, {options.plugins} packages more": ([sys.executable, "-c", load], folder),
        }
        seconds = {what: median_seconds(command, options.repeat, path) for what, (command, path) in rows.items()}
    base = seconds["import click, msgspec"]
    for what, value in seconds.items():
        print(f"{what:<36} {value * 1000:8.1f} ms  {value / base:6.2f} ×")
    _, _, few, many, _ = seconds.values()
    print(f"{'one more plugin':<36} {(many - few) / options.plugins * 1000:8.3f} ms")


if __name__ == "__main__":
    main()
