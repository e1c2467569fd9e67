"""A small seeded case and the numbers that NeuCo-Bench (commit a89ba06, torch 2.13.0, CPU) gives for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SAMPLES, DIM, RANK = 700, 48, 6
CONFIG = """\
k_folds: 8
epochs: 12
batch_size: 64
learning_rate: 0.01
standardize_embeddings: true
normalize_labels: true
embedding_dim: null
enable_plots: false
output_fold_results: true
"""
# Each task's Q and scores per split when all four are run in one go, …
WHOLE = {
    "alpha": (17.647120630049734, [0.7907923460006714, 0.7282838821411133, 0.783638596534729, 0.6064573526382446,
                                   0.7986016273498535, 0.7279740571975708, 0.7995185852050781, 0.827868640422821]),
    "beta": (0.2095308703296676, [0.4003957509994507, -0.4978632926940918, 0.3278348445892334, -0.3116520643234253,
                                  -0.24412274360656738, 0.12747621536254883, 0.22524958848953247, 0.253445029258728]),
    "delta": (41.45800333778562, [0.8920518159866333, 0.8822593092918396, 0.8728889226913452, 0.9080042839050293,
                                  0.8891391158103943, 0.8959265351295471, 0.8278707265853882, 0.887658953666687]),
    "gamma": (19.146276930091226, [0.930232584476471, 0.7777777910232544, 0.8125, 0.774193525314331,
                                   0.9285714030265808, 0.8947368264198303, 0.9777777791023254, 0.8888888955116272]),
}  # fmt: skip
OVERALL_Q, OVERALL_MEAN = 19.61523294206406, 0.6370117776095867
# … and when each is run alone.
ALONE = {
    "alpha": WHOLE["alpha"],
    "beta": (1.0075666990424637, [0.5289207696914673, -0.2930225133895874, -0.32865607738494873, 0.5940171480178833,
                                  0.15665322542190552, 0.3424682021141052, 0.3172610402107239, 0.06451064348220825]),
    "delta": (34.37096638241927, [0.8554349541664124, 0.9263687133789062, 0.9104794859886169, 0.9060217142105103,
                                  0.9064046144485474, 0.8354038000106812, 0.8821212649345398, 0.8487941026687622]),
    "gamma": (18.04304920379337, [0.9523809552192688, 0.800000011920929, 0.800000011920929, 0.800000011920929,
                                  0.9285714030265808, 0.8947368264198303, 0.9777777791023254, 0.774193525314331]),
}  # fmt: skip


def write_case(folder: Path) -> None:
    """``embeddings.csv`` and ``labels/``: the same numbers on every machine, so the draws keep their order."""
    random = np.random.default_rng(2025)
    ids = [f"s{i:04d}" for i in range(SAMPLES)]
    latent = random.standard_normal((SAMPLES, RANK))
    mixing = random.standard_normal((RANK, DIM))
    values = np.round(latent @ mixing + 0.3 * random.standard_normal((SAMPLES, DIM)) + 0.5, 5)
    rows = [[name, *map(repr, row)] for name, row in zip(ids, values.tolist(), strict=True)]
    _write_csv(folder / "embeddings.csv", ["id", *map(str, range(DIM))], rows)
    for name, count, noise, binary in (
        ("alpha__regr", 643, 0.5, False),
        ("beta__regr", 320, 2.0, False),
        ("gamma__cls", 500, 0.8, True),
        ("delta__regr", 700, 0.1, False),
    ):
        chosen = random.choice(SAMPLES, count, replace=False)
        signal = latent[chosen] @ random.standard_normal(RANK) + noise * random.standard_normal(count)
        labels = (signal > np.quantile(signal, 0.7)).astype(int) if binary else np.round(signal, 5)
        pairs = [[ids[i], repr(label)] for i, label in zip(chosen, labels.tolist(), strict=True)]
        _write_csv(folder / "labels" / f"{name}.csv", ["id", "label"], pairs)
    (folder / "config.yaml").write_text(CONFIG)


def _write_csv(path: Path, head: list[str], rows: list[list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(",".join(row) for row in [head, *rows]) + "\n")
