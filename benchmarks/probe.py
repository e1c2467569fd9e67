"""The probe stage on the paper's eight tasks: a loop over DataLoaders, a plain torch loop, and the compiled kernel.

    python benchmarks/probe.py [--tasks 8] [--dim 1024] [--splits 40] [--epochs 20] [--repeat 3]

The kernel does the whole work, through ``score``. The two loops do the first split of every task, the DataLoaders
for some epochs only, and are scaled up: their cost per split and epoch is constant. The DataLoaders run as NeuCo-Bench
runs them, with as many threads as torch takes by itself; the plain loop on one, which is no slower. Every stage has a
process of its own, so that peak memory is its own; the best of several runs counts. Compiling is not part of it and is
shown apart. Wall-clock times, and what two threads gain, mean something only on a quiet machine.
"""

from __future__ import annotations

import argparse
import copy
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SIZES = (2415, 2415, 3355, 4691, 4691, 1140, 1659, 1659)
LOADER_EPOCHS = 5


def make_task(n: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, dim), dtype=np.float32)
    y = x[:, : min(dim, 20)].sum(axis=1) + rng.standard_normal(n)
    return x, y


def tasks(options: argparse.Namespace) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for i, n in enumerate(SIZES[: options.tasks]):
        yield make_task(n, options.dim, i)


def scaled(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = (x - np.float32(x.mean(dtype=np.float64))) / np.float32(x.std(dtype=np.float64))
    return x, ((y - y.min()) / np.ptp(y)).astype(np.float32).reshape(-1, 1)


def run_score(x: np.ndarray, y: np.ndarray, threads: int, **changes: Any) -> Any:
    from neuco_core import load_protocol, score
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

    ids = tuple(map(str, range(len(x))))
    rules = load_protocol("neuco-2025").with_(**changes)
    return score(Embeddings(ids, x, "0" * 64), Labels("task", "regression", ids, y, "0" * 64), rules, threads=threads)


def stage_kernel(options: argparse.Namespace) -> dict[str, Any]:
    from neuco_core.scoring import kernel

    begin = time.perf_counter()
    kernel.warm()
    compiled = time.perf_counter() - begin
    data = list(tasks(options))
    begin, cpu, curves = time.perf_counter(), time.process_time(), []
    for x, y in data:
        got = run_score(x, y, options.threads, k=options.splits, epochs=options.epochs)
        curves.append(got.curves["metric"][0].tolist())
    return {**spent(begin, cpu), "compile": compiled, "curves": curves, "share": 1.0}


def stage_oracle(options: argparse.Namespace) -> dict[str, Any]:
    import torch
    from torch import nn

    from neuco_core.scoring.metrics import r2_steps
    from tests.scoring.oracle import train_splits

    def train(x: np.ndarray, y: np.ndarray, epochs: int) -> list[float]:
        split = first_split(len(x))
        trained = train_splits(x, y, [split], loss=nn.MSELoss(), outputs=1, epochs=epochs, batch_size=64, lr=1e-3)
        return [float(value) for value in r2_steps(y[split[1]], trained[0].outputs)]

    torch.set_num_threads(1)
    train(*scaled(*make_task(100, 4, 0)), epochs=1)  # what torch does once is not counted
    data = [scaled(x, y) for x, y in tasks(options)]
    begin, cpu = time.perf_counter(), time.process_time()
    curves = [train(x, y, options.epochs) for x, y in data]
    return {**spent(begin, cpu), "curves": curves, "share": 1 / options.splits}


def stage_loaders(options: argparse.Namespace) -> dict[str, Any]:
    """As NeuCo-Bench trains: DataLoaders that fetch sample by sample, both losses, torchmetrics, the best kept."""
    import torch
    from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset
    from torchmetrics.regression import R2Score

    def step(model: Any, optimizer: Any, batch: Any, training: bool) -> tuple[Any, Any, Any]:
        inputs, targets = (part.to("cpu") for part in batch)
        with torch.set_grad_enabled(training):
            predicted = model(inputs)
            value = torch.nn.functional.mse_loss(predicted, targets.float())
            if training:
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
        return value.detach(), predicted.detach(), targets

    def train(x: np.ndarray, y: np.ndarray, epochs: int) -> list[float]:
        dataset = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
        samplers = [SubsetRandomSampler(part) for part in first_split(len(x))]  # type: ignore[arg-type]
        train, test = (DataLoader(dataset, batch_size=64, sampler=sampler) for sampler in samplers)
        torch.manual_seed(42)
        model, metric, best, curve = torch.nn.Linear(x.shape[1], 1), R2Score(), float("-inf"), []
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for _ in range(epochs):
            model.train()
            seen = [step(model, optimizer, batch, True) for batch in train]
            torch.stack([value for value, _, _ in seen]).mean().item()
            model.eval()
            with torch.no_grad():
                judged = [step(model, optimizer, batch, False) for batch in test]
            torch.stack([value for value, _, _ in judged]).mean().item()
            curve.append(metric(*(torch.cat(side) for side in list(zip(*judged, strict=True))[1:])).item())
            if curve[-1] > best:
                best = curve[-1]
                copy.deepcopy(model.state_dict())
        return curve

    train(*scaled(*make_task(100, 4, 0)), epochs=1)
    epochs = min(LOADER_EPOCHS, options.epochs)
    data = [scaled(x, y) for x, y in tasks(options)]
    begin, cpu = time.perf_counter(), time.process_time()
    curves = [train(x, y, epochs) for x, y in data]
    return {**spent(begin, cpu), "curves": curves, "share": epochs / options.epochs / options.splits}


def first_split(n: int) -> tuple[np.ndarray, np.ndarray]:
    from neuco_core.protocol import load_protocol
    from neuco_core.scoring.splits import shuffle

    return shuffle(n, load_protocol("neuco-2025").with_(k=1))[0]


def spent(begin: float, cpu: float) -> dict[str, float]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wall": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "memory": peak}


def stage_limits(options: argparse.Namespace) -> dict[str, Any]:
    """What one core can do: bytes read per second from data of a task's size, and multiply-adds on data in L1."""
    import numba

    def dot(a: Any, b: Any, times: int) -> Any:
        total = np.float32(0)
        for t in range(times):
            for j in range(a.size):
                total += a[j] * b[j]
            a[t % a.size] += np.float32(1e-9)  # or the compiler would do the work only once
        return total

    def read(a: Any, times: int) -> Any:
        total = np.float32(0)
        for t in range(times):
            for j in range(a.size):
                total += a[j]
            a[t % a.size] += np.float32(1e-9)
        return total

    multiply, load = (numba.njit(fastmath={"reassoc", "contract"})(function) for function in (dot, read))
    small, large = np.ones((2, 1024), np.float32), np.ones(4691 * options.dim, np.float32)
    multiply(small[0], small[1], 1)
    load(large, 1)
    rate = 2 * 1024 * 200_000 / best_of(lambda: multiply(small[0], small[1], 200_000), 20)
    return {"flops": rate, "bytes": large.nbytes * 10 / best_of(lambda: load(large, 10), 20)}


def stage_scaling(options: argparse.Namespace) -> dict[str, Any]:
    """CPU seconds of a base case, and of the same with one size doubled."""
    base = {"samples": 2400, "dim": 512, "k": 12, "epochs": 10}
    found = {}
    for name in ("", *base):
        size = {key: value * (2 if key == name else 1) for key, value in base.items()}
        x, y = make_task(size["samples"], size["dim"], 0)
        run = lambda x=x, y=y, size=size: run_score(x, y, 1, k=size["k"], epochs=size["epochs"])  # noqa: E731
        found[name or "base"] = best_of(run, options.repeat + 2)
    return found


def best_of(run: Callable[[], Any], times: int) -> float:
    """The least CPU seconds."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found)


STAGES = {name.removeprefix("stage_"): value for name, value in list(globals().items()) if name.startswith("stage_")}


def measure(stage: str, options: argparse.Namespace, threads: int = 1) -> dict[str, Any]:
    """One stage in a process of its own."""
    given = {key: value for key, value in vars(options).items() if key not in ("stage", "threads")}
    command = [sys.executable, __file__, "--stage", stage, "--threads", str(threads)]
    command += [text for key, value in given.items() for text in (f"--{key}", str(value))]
    result: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return result


def report(options: argparse.Namespace) -> None:
    measure("kernel", argparse.Namespace(**{**vars(options), "tasks": 1, "splits": 1}))  # fills the compile cache
    runs: dict[str, list[dict[str, Any]]] = {}
    for _ in range(options.repeat):  # in turns, so that a busy minute on the machine hits all alike
        for name, stage, threads in (("kernel, 1 thread", "kernel", 1), ("kernel, 2 threads", "kernel", 2)):
            runs.setdefault(name, []).append(measure(stage, options, threads))
    runs["torch loop"] = [measure("oracle", options)]
    runs["DataLoaders"] = [measure("loaders", options)]
    best = {name: min(found, key=lambda run: run["wall"]) for name, found in runs.items()}
    cpu = {name: min(run["cpu"] for run in found) / found[0]["share"] for name, found in runs.items()}
    wall = {name: run["wall"] / run["share"] for name, run in best.items()}
    print(f"tasks {SIZES[: options.tasks]}, {options.dim} dimensions, {options.splits} splits, {options.epochs} epochs")
    print(f"{'':18} {'wall s':>8} {'CPU s':>8} {'times faster':>13} {'by CPU':>8} {'peak MB':>8}  measured")
    for name in ("DataLoaders", "torch loop", "kernel, 1 thread", "kernel, 2 threads"):
        ratio, by_cpu = wall["DataLoaders"] / wall[name], cpu["DataLoaders"] / cpu[name]
        line = f"{name:18} {wall[name]:8.2f} {cpu[name]:8.2f} {ratio:13.1f} {by_cpu:8.1f} {best[name]['memory']:8.0f}"
        print(f"{line}  {best[name]['share']:.2%} of the work")
    gain = wall["kernel, 1 thread"] / wall["kernel, 2 threads"]
    print(f"2 threads against 1: {gain:.2f} times faster; loading the compiled kernel: {warm(runs):.2f} s")
    print(f"largest difference in R² from the torch loop: {difference(best, 'torch loop'):.1e}", end="")
    print(f", from the DataLoaders: {difference(best, 'DataLoaders'):.1e}")
    report_limits(options, cpu["kernel, 1 thread"])
    report_scaling(options)


def warm(runs: dict[str, list[dict[str, Any]]]) -> float:
    return min(float(run["compile"]) for run in runs["kernel, 1 thread"])


def difference(best: dict[str, dict[str, Any]], other: str) -> float:
    """Over the epochs of the first split of every task, which all of them have trained."""
    pairs = zip(best["kernel, 1 thread"]["curves"], best[other]["curves"], strict=True)
    return max(abs(float(a) - float(b)) for ours, theirs in pairs for a, b in zip(ours, theirs, strict=False))


def report_limits(options: argparse.Namespace, seconds: float) -> None:
    limits = measure("limits", options)
    values = sum(SIZES[: options.tasks]) * options.dim * options.epochs * options.splits
    # Every epoch reads each sample once from memory; a batch's second pass finds it in the processor's cache.
    moved, worked = 4 * values, (0.9 * 4 + 0.1 * 2) * values
    print(
        f"one core reads {limits['bytes'] / 1e9:.1f} GB/s and does {limits['flops'] / 1e9:.1f} Gflop/s; the kernel",
        end="",
    )
    print(f" {moved / seconds / 1e9:.1f} GB/s ({moved / seconds / limits['bytes']:.0%})", end="")
    print(f" and {worked / seconds / 1e9:.1f} Gflop/s ({worked / seconds / limits['flops']:.0%}) per CPU second;")
    floor = moved / limits["bytes"] + worked / limits["flops"]
    print(
        f"reading once, then working from L1, would take {floor:.2f} s: {floor / seconds:.0%} of the limit is reached"
    )


def report_scaling(options: argparse.Namespace) -> None:
    found = measure("scaling", options)
    print(f"cost when one size doubles (base {found['base']:.3f} CPU s):", end="")
    print(",".join(f" {name} ×{found[name] / found['base']:.2f}" for name in found if name != "base"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("tasks", 8), ("dim", 1024), ("splits", 40), ("epochs", 20), ("repeat", 3), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--stage", choices=sorted(STAGES), help="run one stage here and print it as JSON")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if options.stage:
        print(json.dumps(STAGES[options.stage](options)))
    else:
        report(options)


if __name__ == "__main__":
    main()
