"""Nearest neighbours and retrieval of 40 splits, beside scikit-learn and faiss: seconds, memory, and the same numbers.

    python benchmarks/knn.py [--samples 13260] [--dim 1024] [--splits 40] [--classes 10] [--threads 2]

Ours go through ``score``. scikit-learn and faiss do the splits one after another, as they must, with as many threads;
retrieval is a search for the whole gallery. Every stage has a process of its own, so that peak memory is its own. CPU
seconds count where other work runs on the machine; wall-clock times mean something only on a quiet one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
NEIGHBORS = 5


def make_data(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """Classes of equal size along a line, in noise."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((options.samples, options.dim), dtype=np.float32)
    signal = x[:, :20].sum(axis=1)
    x[:, 20:] *= 0.3
    return x, (signal.argsort().argsort() * options.classes // options.samples).astype(float)


def splits_of(options: argparse.Namespace) -> list[tuple[np.ndarray, np.ndarray]]:
    from neuco_core.protocol import load_protocol
    from neuco_core.scoring.splits import shuffle

    return shuffle(options.samples, load_protocol(f"knn+k={options.splits}"))


def ours(options: argparse.Namespace, protocol: str) -> list[float]:
    from neuco_core import score
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

    x, y = make_data(options)
    ids = tuple(map(str, range(len(x))))
    labels = Labels("task", "classification", ids, y, "0" * 64)
    got = score(Embeddings(ids, x, "0" * 64), labels, f"{protocol}+k={options.splits}", threads=options.threads)
    return list(got.metrics["accuracy"] if protocol == "knn" else got.per_split)


def stage_knn(options: argparse.Namespace) -> list[float]:
    return ours(options, "knn")


def stage_retrieval(options: argparse.Namespace) -> list[float]:
    return ours(options, "retrieval")


def stage_sklearn_knn(options: argparse.Namespace) -> list[float]:
    from sklearn.neighbors import KNeighborsClassifier

    x, y = make_data(options)
    model = KNeighborsClassifier(NEIGHBORS, metric="cosine")
    return [float(model.fit(x[train], y[train]).score(x[test], y[test])) for train, test in splits_of(options)]


def stage_faiss_knn(options: argparse.Namespace) -> list[float]:
    import faiss

    (x, y), found = make_data(options), []
    faiss.omp_set_num_threads(options.threads)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for train, test in splits_of(options):
        index = faiss.IndexFlatIP(x.shape[1])
        index.add(x[train])
        near = y[train][index.search(x[test], NEIGHBORS)[1]]
        votes = (near[:, :, None] == np.arange(options.classes)).sum(axis=1)
        found.append(float((votes.argmax(axis=1) == y[test]).mean()))
    return found


def stage_faiss_retrieval(options: argparse.Namespace) -> list[float]:
    import faiss

    (x, y), found = make_data(options), []
    faiss.omp_set_num_threads(options.threads)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for train, test in splits_of(options):
        index = faiss.IndexFlatIP(x.shape[1])
        index.add(x[train])
        precisions = []
        for part in np.array_split(test, 8):
            ranked = y[train][index.search(x[part], len(train))[1]] == y[part][:, None]
            ranks = np.arange(1, len(train) + 1)
            precisions.append((ranked.cumsum(axis=1) / ranks * ranked).sum(axis=1) / ranked.sum(axis=1))
        found.append(float(np.concatenate(precisions).mean()))
    return found


STAGES = {name.removeprefix("stage_"): value for name, value in list(globals().items()) if name.startswith("stage_")}
LIMITED = {"faiss_retrieval": 2}  # splits; a search for a whole gallery is slow, and each split costs the same


def measure(stage: str, options: argparse.Namespace) -> dict[str, Any]:
    """One stage in a process of its own, with as many threads for linear algebra as for all else."""
    given = vars(options) | {"stage": stage, "splits": min(options.splits, LIMITED.get(stage, options.splits))}
    command = [sys.executable, __file__, *(text for key, value in given.items() for text in (f"--{key}", str(value)))]
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def report(options: argparse.Namespace) -> None:
    size = f"{options.samples} samples, {options.dim} dimensions, {options.classes} classes"
    print(f"{size}, {options.splits} splits, {options.threads} threads")
    print(f"{'':18} {'wall s':>8} {'CPU s':>8} {'peak MB':>8}  splits  largest difference from ours")
    reference: dict[str, list[float]] = {}
    for stage in STAGES:
        got = measure(stage, options)
        kind, values = stage.rpartition("_")[2], got["values"]
        ours_of = reference.setdefault(kind, values)
        apart = max(abs(a - b) for a, b in zip(ours_of, values, strict=False))
        print(f"{stage:18} {got['wall']:8.1f} {got['cpu']:8.1f} {got['memory']:8.0f} {len(values):7}  {apart:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("samples", 13260), ("dim", 1024), ("splits", 40), ("classes", 10), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--stage", choices=STAGES, help="run one stage here and print it as JSON")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if not options.stage:
        return report(options)
    begin, cpu = time.perf_counter(), time.process_time()
    values = STAGES[options.stage](options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    spent = {"wall": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "memory": peak}
    print(json.dumps({**spent, "values": values}))
    return None


if __name__ == "__main__":
    main()
