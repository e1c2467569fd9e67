"""NeuCo-Bench's own command beside ``neuco bench``: the part of ``benchmarks/bench.py`` behind ``--upstream``.

The whole run of NeuCo-Bench takes minutes, so it is run with few splits, and again with some more; with all tasks and
all epochs. What the second run costs more is the cost of its further splits. That alone is scaled up: what a run costs
whatever the splits (imports, reading, pictures of the loss curves) is counted once.
"""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path

from workload import Usage, least, options, run, spend, write_config

# What torch takes by itself, and one thread, which may be faster: batches are small.
THREADS = {"threads as torch takes": {}, "one thread": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}}
# docs/why/differences-from-neuco-bench.md, "The same numbers": a split's score, and Q absolute or relative.
SPLIT_MAY_DIFFER, Q_MAY_DIFFER, Q_RELATIVE = 2e-4, 1e-2, 1e-3


def find_command(checkout: Path) -> Path:
    """The folder of ``main.py`` in a checkout of NeuCo-Bench."""
    for folder in (checkout / "benchmark", checkout):
        if (folder / "main.py").is_file() and (folder / "evaluation").is_dir():
            return folder.resolve()
    raise SystemExit(f"--upstream {checkout}: no benchmark/main.py there; expected a checkout of NeuCo-Bench")


def scaled(small: Usage, large: Usage, sizes: tuple[int, int], splits: int) -> Usage:
    """A straight line through two runs, at ``splits``."""
    further = (splits - sizes[0]) / (sizes[1] - sizes[0])
    wall, cpu = (a + (b - a) * further for a, b in ((small.wall, large.wall), (small.cpu, large.cpu)))
    if min(large.wall - small.wall, large.cpu - small.cpu) <= 0:
        raise SystemExit(
            f"{sizes[1]} splits took no longer than {sizes[0]}: the machine is too busy, or they are too few"
        )
    return Usage(wall, cpu, large.peak_mb)


def read_results(out: Path) -> dict[str, dict[str, object]]:
    """The results of the one run in a folder, by task; both commands write the same files."""
    found = {path.parent.name: json.loads(path.read_text()) for path in sorted(out.glob("*/*/*/*_result.json"))}
    if not found:
        raise SystemExit(f"no results in {out}")
    return found


def compare(ours: Path, theirs: Path) -> bool:
    """Print how far apart the scores are, and whether docs/why/differences-from-neuco-bench.md says so."""
    left, right = read_results(ours), read_results(theirs)
    if left.keys() != right.keys():
        raise SystemExit(f"other tasks: {sorted(left)} here, {sorted(right)} there")
    pairs = [pair for task in left for pair in zip(left[task]["q_t"], right[task]["q_t"], strict=True)]
    apart = max(abs(a - b) for a, b in pairs)
    qs = [(left[task]["q_stat"], right[task]["q_stat"]) for task in left]
    same = all(math.isclose(a, b, rel_tol=Q_RELATIVE, abs_tol=Q_MAY_DIFFER) for a, b in qs)
    same = same and apart <= SPLIT_MAY_DIFFER
    q_apart, q_relative = max(abs(a - b) for a, b in qs), max(abs(a / b - 1) for a, b in qs)
    print(
        f"{len(left)} tasks, {len(pairs)} scores of splits: at most {apart:.1e} apart, Q {q_apart:.1e}"
        f" ({q_relative:.1e} relative): {'as' if same else 'NOT as'} docs/why/differences-from-neuco-bench.md says"
    )
    return same


def report_upstream(
    checkout: Path, folder: Path, cache: Path, sizes: tuple[int, int], splits: int, epochs: int, repeat: int
) -> bool:
    """Both commands in turns, on the same files; True if their scores agree."""
    command = [sys.executable, str(find_command(checkout) / "main.py")]
    for size in sizes:
        write_config(folder / f"{size}.yaml", size, epochs)
    used: dict[str, list[Usage]] = {}
    for turn in range(repeat):
        last = turn == repeat - 1
        used.setdefault("neuco bench, a CSV file that is new to it", []).append(run(folder, cache / f"turn-{turn}"))
        for name, env in THREADS.items():
            for size in sizes:
                told = [*options(folder, str(size), f"upstream-{turn}-{len(env)}-{size}"), "--method_name", "upstream"]
                cost = spend([*command, *told], Path(command[1]).parent, env)
                used.setdefault(f"NeuCo-Bench, {size} splits, {name}", []).append(cost)
            threads = 1 if env else os.cpu_count()
            again = f"neuco bench, again, {threads} thread{'s' * (threads != 1)}"
            used.setdefault(again, []).append(run(folder, cache / f"turn-{turn}", threads))
        if last:
            for size in sizes:
                run(folder, cache / f"turn-{turn}", told=options(folder, str(size), f"ours-{size}"))
    costs = {name: least(runs) for name, runs in used.items()}
    for name in THREADS:
        small, large = (costs[f"NeuCo-Bench, {size} splits, {name}"] for size in sizes)
        costs[f"NeuCo-Bench, {splits} splits (scaled up), {name}"] = scaled(small, large, sizes, splits)
    whole = [cost for name, cost in costs.items() if "scaled up" in name]
    wall, cpu = min(cost.wall for cost in whole), min(cost.cpu for cost in whole)
    for name, cost in sorted(costs.items()):
        ratio = (
            f"   {wall / cost.wall:.1f} times by wall, {cpu / cost.cpu:.1f} by CPU" if name.startswith("neuco") else ""
        )
        print(f"{name:60} {cost}{ratio}")
    print(f"times: against the better of NeuCo-Bench's two; load of the machine at the end {os.getloadavg()[0]:.1f}")
    if any(cost.wall * (os.cpu_count() or 1) < cost.cpu for cost in whole):
        print("The machine was too busy for wall-clock times: scaled up, they are less than its cores can do.")
    agree = [compare(folder / f"ours-{size}", folder / f"upstream-{repeat - 1}-0-{size}") for size in sizes]
    return all(agree)
