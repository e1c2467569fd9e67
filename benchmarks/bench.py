"""``neuco bench`` from the start of the process to the results on disk, beside a loop as NeuCo-Bench's, in one run.

    python benchmarks/bench.py [--rows 13260] [--dim 1024] [--splits 40] [--epochs 20] [--repeat 3] [--clone]

Writes random embeddings (CSV) and eight label files of the paper's sizes to a temporary folder and runs the command in
a process of its own, with a new cache: once when the CSV file is new to it, and again when there is a binary copy. Wall
clock, CPU seconds and peak memory are as the operating system counted them; of ``--repeat`` runs the least time counts,
and the most memory.

NeuCo-Bench itself is not part of neuco. With ``--upstream`` and a checkout of it (tried with the code of commit
222a6a0; what it imports must be installed: torch, torchmetrics, pandas, scikit-learn, scikit-optimize, matplotlib,
tqdm, PyYAML), its own command runs on the same files, in turns with ours, and their scores are compared
(``benchmarks/upstream.py``):

    python benchmarks/bench.py --upstream FOLDER [--upstream-splits 1 5] [--repeat 2]

Without it, a loop does what NeuCo-Bench does: pandas reads the CSV file, and DataLoaders feed one linear layer, batch
by batch, with torchmetrics after every epoch (``benchmarks/probe.py``). The whole takes minutes, so one split of every
task is trained for 5 epochs and scaled up: the cost per split and epoch is constant. It runs with as many threads as
torch takes by itself and on one; whichever is better counts. What NeuCo-Bench does besides (plots, JSON files) is not
counted, so the ratio is rather too small.

With ``--clone`` also the first run in a new clone of this repository: what set-up compiles, and what a run without it
waits for.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from upstream import report_upstream
from workload import ROOT, TASKS, Usage, least, options, run, spend, write_workload

# Where the time of each part is spent: a module, a function of it, and the part.
PARTS = (
    ("neuco_core.scoring.kernel", "warm", "loading the compiled kernels"),
    ("neuco_core.tables.csv_kernel", "warm", "loading the compiled kernels"),
    ("neuco_core.tables.embeddings", "read_embeddings", "reading the embeddings"),
    ("neuco_extensions.bench.run", "read_task_labels", "reading the labels"),
    ("neuco_core.scoring.scorer", "score", "training and judging"),
    ("neuco_extensions.bench.run", "_write_task", "writing the results"),
)


class InTurn:
    """An executor whose work is done at once, so that what a part costs is told from what runs beside it."""

    def __init__(self, count: int) -> None:
        pass

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *args: Any, **given: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*args, **given))
        return done


def stage_parts(folder: Path) -> dict[str, dict[str, float]]:
    """CPU and wall-clock seconds of each part of one run in this process; parts inside of others count once."""
    spent: dict[str, dict[str, float]] = {}
    inside: list[dict[str, float]] = []

    @contextmanager
    def part(name: str) -> Iterator[None]:
        below = {"wall": 0.0, "cpu": 0.0}
        inside.append(below)
        start = {"wall": time.perf_counter(), "cpu": time.process_time()}
        try:
            yield
        finally:
            took = {"wall": time.perf_counter() - start["wall"], "cpu": time.process_time() - start["cpu"]}
            inside.pop()
            own = spent.setdefault(name, {"wall": 0.0, "cpu": 0.0})
            for key, value in took.items():
                own[key] += value - below[key]
                if inside:
                    inside[-1][key] += value

    with part("everything else"):
        with part("imports"):
            from importlib import import_module

            from neuco_core.cli import main as command

            modules = [import_module(name) for name, _, _ in PARTS]
        for module, (_, name, about) in zip(modules, PARTS, strict=True):
            setattr(module, name, timed(getattr(module, name), about, part))
        import_module("neuco_extensions.bench.run").ThreadPoolExecutor = InTurn  # type: ignore[attr-defined]
        sys.argv = ["neuco", "bench", *options(folder)]
        try:
            command()
        except SystemExit as error:
            if error.code:
                raise
    return spent


def timed(function: Callable[..., Any], name: str, part: Callable[[str], Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **options: Any) -> Any:
        with part(name):
            return function(*args, **options)

    return wrapper


def stage_before(folder: Path) -> dict[str, dict[str, float]]:
    """What NeuCo-Bench does before it trains: imports, and pandas reads the files."""
    start, cpu = time.perf_counter(), time.process_time()
    import pandas as pd
    import sklearn.model_selection
    import torch
    import torchmetrics

    tables = [pd.read_csv(path) for path in sorted((folder / "labels").glob("*.csv"))]
    values = pd.read_csv(folder / "embeddings.csv").drop(columns="id").to_numpy(dtype=np.float32)
    print(len(values), len(tables), torch.__version__, torchmetrics.__version__, sklearn.__version__)
    return {"before": {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}}


def stage(name: str, folder: Path, cache: Path, env: Mapping[str, str] | None = None) -> dict[str, dict[str, float]]:
    command = [sys.executable, __file__, "--stage", name, "--folder", str(folder)]
    settings = {**os.environ, **(env or {}), "NEUCO_CACHE": str(cache)}
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=settings, cwd=ROOT)
    found: dict[str, dict[str, float]] = json.loads((folder / f"{name}.json").read_text())
    return found


def loop(folder: Path, cache: Path, given: argparse.Namespace) -> Usage:
    """The loop over DataLoaders, scaled to the whole, with imports and reading before it."""
    before, training = [], []
    for threads in ({}, {"OMP_NUM_THREADS": "1"}):
        for _ in range(given.repeat):
            used = stage("before", folder, cache, threads)["before"]
            before.append(Usage(used["wall"], used["cpu"]))
            command = [sys.executable, str(ROOT / "benchmarks" / "probe.py"), "--stage", "loaders"]
            command += [f"--{name}={getattr(given, name)}" for name in ("dim", "splits", "epochs")]
            env = {**os.environ, **threads}
            found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, env=env).stdout)
            training.append(Usage(found["wall"] / found["share"], found["cpu"] / found["share"], found["memory"]))
    first, rest = least(before), least(training)
    return Usage(first.wall + rest.wall, first.cpu + rest.cpu, rest.peak_mb)


def describe(folder: Path, given: argparse.Namespace) -> None:
    size = (folder / "embeddings.csv").stat().st_size / 1e6
    labels = sum(min(size, given.rows) for size in TASKS.values())
    print(f"{given.rows} × {given.dim} values ({size:.0f} MB of CSV), {len(TASKS)} tasks, {labels} labels,")
    print(f"{given.splits} splits, {given.epochs} epochs; load of the machine {os.getloadavg()[0]:.1f}")
    width = 60 if given.upstream else 44
    print(f"{'':{width}} {'wall s':>8} {'CPU s':>8} {'peak MB':>8}")


def report(folder: Path, cache: Path, given: argparse.Namespace) -> None:
    describe(folder, given)
    new = [run(folder, cache / f"new-{number}") for number in range(given.repeat)]
    runs = {"neuco bench, a CSV file that is new to it": least(new)}
    for threads in (2, 1):
        again = [run(folder, cache / "new-0", threads) for _ in range(given.repeat)]
        runs[f"neuco bench, again, {threads} thread{'s' * (threads > 1)}"] = least(again)
    runs["loop over DataLoaders (scaled up)"] = whole = loop(folder, cache, given)
    for name, used in runs.items():
        ratio = (
            "" if used is whole else f"   {whole.wall / used.wall:.0f} times by wall, {whole.cpu / used.cpu:.0f} by CPU"
        )
        print(f"{name:44} {used}{ratio}")
    for name, place in (("new to it", cache / "parts"), ("again", cache / "parts")):
        parts = stage("parts", folder, place)
        total = sum(spent["cpu"] for spent in parts.values())
        shares = sorted(parts.items(), key=lambda item: -item[1]["cpu"])
        print(f"CPU seconds by part, {name}: ", end="")
        print(", ".join(f"{part} {spent['cpu']:.2f} ({spent['cpu'] / total:.0%})" for part, spent in shares))


def report_clone(folder: Path, place: Path) -> None:
    """A new clone, with what is committed; the packages are those that are installed here."""
    for name, prepared in (("set up", True), ("not set up", False)):
        tree = place / name.replace(" ", "-")
        subprocess.run(["git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), str(tree)], check=True)
        if prepared:
            used = spend([sys.executable, "-m", "neuco_core.scoring.warm"], tree)
            print(f"{'new clone: what set-up compiles':44} {used}")
        for which in ("first", "second"):
            print(f"{f'new clone, {name}: {which} run':44} {run(folder, place / 'cache' / name, tree=tree)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", 13260), ("dim", 1024), ("splits", 40), ("epochs", 20), ("repeat", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--clone", action="store_true", help="also the first run in a new clone")
    parser.add_argument(
        "--upstream", type=Path, metavar="FOLDER", help="a checkout of NeuCo-Bench, run in place of the loop"
    )
    parser.add_argument(
        "--upstream-splits", type=int, nargs=2, default=(1, 5), metavar="N", help="splits of its two runs"
    )
    parser.add_argument("--stage", choices=("parts", "before"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stage:
        sys.path.insert(0, str(ROOT))
        spent = {"parts": stage_parts, "before": stage_before}[given.stage](given.folder)
        (given.folder / f"{given.stage}.json").write_text(json.dumps(spent))
        return
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name) / "whole", Path(name) / "cache"
        write_workload(Path(name) / "small", 100, 16, 2, 2)
        run(Path(name) / "small", cache)  # compiles what is not compiled yet
        subprocess.run([sys.executable, "-m", "neuco_core.scoring.warm"], check=True, cwd=ROOT)
        write_workload(folder, given.rows, given.dim, given.splits, given.epochs)
        if given.upstream:
            describe(folder, given)
            sizes = tuple(given.upstream_splits)
            if not report_upstream(given.upstream, folder, cache, sizes, given.splits, given.epochs, given.repeat):
                raise SystemExit("the scores differ")
        else:
            report(folder, cache, given)
        if given.clone:
            report_clone(folder, Path(name) / "clones")


if __name__ == "__main__":
    main()
