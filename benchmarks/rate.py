"""Eight coders under ridge, beside the same by hand: ``python benchmarks/rate.py [--k 40]``.

13,260 made-up embeddings of 1,024 dimensions, of which a few directions tell the label. Ours is what a cell of ``neuco
rate curve`` does; by hand the quantisers are faiss's, components and ridge regression scikit-learn's, each fitted on
the training part of the same splits. Each way runs in a process of its own, of which the peak memory is printed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

CODERS = ("float16", "float8", "int8", "int4", "binary", "prefix=64+int8", "pca=64+int8", "pq=32")
RANK = 48  # directions that matter


def data(samples: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    hidden = random.standard_normal((samples, RANK)).astype(np.float32)
    values = hidden @ random.standard_normal((RANK, dim)).astype(np.float32)
    values += 2 * random.standard_normal((samples, dim)).astype(np.float32)
    return values, hidden @ random.standard_normal(RANK) + 3 * random.standard_normal(samples)


def ours(samples: int, dim: int, k: int, threads: int) -> None:
    from neuco_core import load_protocol, score
    from neuco_core.tables.embeddings import make_embeddings
    from neuco_core.tables.labels import Labels
    from neuco_extensions.coded.probe import coded_protocol

    values, truth = data(samples, dim)
    ids = tuple(map(str, range(samples)))
    embeddings = make_embeddings(ids, values)
    labels = Labels("made", "regression", ids, truth, sha256="0" * 64)
    for coder in CODERS:
        start = time.perf_counter()
        scored = score(embeddings, labels, coded_protocol(load_protocol("ridge").with_(k=k), coder), threads=threads)
        tell(coder, scored.mean, scored.settings["bytes_per_sample"][0], start)


def by_hand(samples: int, dim: int, k: int, threads: int) -> None:
    import faiss
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import ShuffleSplit
    from threadpoolctl import threadpool_limits

    faiss.omp_set_num_threads(threads)
    values, truth = data(samples, dim)
    splits = list(ShuffleSplit(k, test_size=0.1, random_state=42).split(values))
    with threadpool_limits(threads):
        for coder in CODERS:
            start, found, size = time.perf_counter(), [], 0.0
            for train, test in splits:
                coded, size = hand_coded(coder, values, train, faiss)
                model = RidgeCV(np.logspace(-3, 6, 10)).fit(coded[train], truth[train])
                found.append(model.score(coded[test], truth[test]))
            tell(coder, float(np.mean(found)), size, start)


def hand_coded(coder: str, values: np.ndarray, train: np.ndarray, faiss: Any) -> tuple[np.ndarray, float]:
    """All rows as they come back from faiss's coder, or numpy's, and bytes per sample."""
    dim = values.shape[1]
    if coder == "float16":
        return values.astype(np.float16).astype(np.float32), 2.0 * dim
    if coder == "float8":
        import torch

        scale = np.abs(values[train]).max() / 448
        return torch.from_numpy(values / scale).to(torch.float8_e4m3fn).float().numpy() * scale, float(dim)
    if coder == "binary":
        above = values > np.median(values[train], axis=0)
        return above.astype(np.float32), dim / 8
    if coder.startswith("pca"):
        from sklearn.decomposition import PCA

        values = PCA(64, random_state=0).fit(values[train]).transform(values).astype(np.float32)
    elif coder.startswith("prefix"):
        values = np.ascontiguousarray(values[:, :64])
    dim = values.shape[1]
    if coder.startswith("pq"):
        quantiser = faiss.ProductQuantizer(dim, 32, 8)
        quantiser.cp.min_points_per_centroid = 1
    else:
        kind = faiss.ScalarQuantizer.QT_4bit if coder == "int4" else faiss.ScalarQuantizer.QT_8bit
        quantiser = faiss.ScalarQuantizer(dim, kind)
    quantiser.train(np.ascontiguousarray(values[train]))
    codes = quantiser.compute_codes(values)
    return quantiser.decode(codes), float(codes.shape[1])


def tell(coder: str, mean: float, size: float, start: float) -> None:
    print(f"  {coder:16} {size:7.1f} bytes  R² {mean:.4f}  {time.perf_counter() - start:7.1f} s", flush=True)


WAYS: dict[str, Callable[[int, int, int, int], None]] = {"neuco": ours, "by hand": by_hand}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=13260)
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--k", type=int, default=40, help="splits")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--way", choices=[*WAYS])
    options = parser.parse_args()
    if not options.way:
        for way in WAYS:
            subprocess.run([sys.executable, *sys.argv, "--way", way], check=True)
        return
    print(f"{options.way}: {options.samples:,} × {options.dim:,}, {options.k} splits, {options.threads} threads")
    start = time.perf_counter()
    WAYS[options.way](options.samples, options.dim, options.k, options.threads)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cpu = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    print(f"  all {time.perf_counter() - start:.1f} s, {cpu:.1f} s of processor time, peak {peak:.0f} MB")


if __name__ == "__main__":
    main()
