"""kNN and logistic regression of torchgeo-bench 0.4.0, run on scikit-learn's digits, beside ours on the same splits.

    python3.12 -m venv /tmp/tgb && /tmp/tgb/bin/pip install torchgeo-bench==0.4.0
    python benchmarks/torchgeo_bench_parity.py /tmp/tgb/bin/python

torchgeo-bench needs Python 3.12 and an environment of its own, so its part runs in that process and its probabilities
come back as a file. Ties, where several samples are as far away as the fifth neighbour, are counted: faiss takes any of
them, ours the one in the lower row. Both logistic regressions learn from the same scaled features with the same C; ours
is scikit-learn's, which stops at a gradient of 1e-4, so both are shown beside the optimum, too.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

THEIRS = """
import sys, numpy as np, torch
from torchgeo_bench.knn import KNNClassifier
from torchgeo_bench.linear import LogisticRegression
given, found = np.load(sys.argv[1]), {}
for split in range(int(given["k"])):
    x, y = given["x"], given["y"]
    train, test = given[f"train{split}"], given[f"test{split}"]
    found[f"knn{split}"] = KNNClassifier(5).fit(x[train], y[train]).predict_proba(x[test])
    scaled, unseen = (torch.from_numpy(given[f"{part}_x{split}"]) for part in ("train", "test"))
    for tol in (1e-4, 1e-9):
        model = LogisticRegression(C=float(given[f"C{split}"]), tol=tol, max_iter=10_000)
        found[f"logistic{split}_{tol:g}"] = model.fit(scaled, torch.from_numpy(y[train])).predict_proba(unseen)
np.savez(sys.argv[2], **found)
"""


def main(python: str, k: int = 3) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    from neuco_core.protocol import load_protocol
    from neuco_core.scoring.probes import Split
    from neuco_core.scoring.probes.knn import NearestNeighbors
    from neuco_core.scoring.probes.logistic import logistic_probe
    from neuco_core.scoring.splits import shuffle

    x, y = load_digits(return_X_y=True)
    x, y = x.astype(np.float32), y.astype(np.int64)
    near, logistic = (load_protocol(name) for name in ("knn+metric=l2", "logistic"))
    given, ours, tied = {"x": x, "y": y, "k": np.array(k)}, {}, []
    for index, (train, test) in enumerate(shuffle(len(x), near.with_(k=k))):
        split = Split(x, y[:, None].astype(np.float32), train, test, "classification", 10, index)
        ours[f"knn{index}"] = NearestNeighbors(near).fit(split).predictions[0]
        fit = logistic_probe(logistic).fit(split)
        scaler = StandardScaler().fit(x[train].astype(float))
        parts = [scaler.transform(x[part].astype(float)) for part in (train, test)]
        best = LogisticRegression(C=fit.settings["C"], max_iter=100_000, tol=1e-10).fit(parts[0], y[train])
        ours[f"logistic{index}"], ours[f"optimum{index}"] = fit.predictions[0], best.predict_proba(parts[1])
        given |= {f"train{index}": train, f"test{index}": test, f"C{index}": np.array(fit.settings["C"])}
        given |= {f"train_x{index}": parts[0].astype(np.float32), f"test_x{index}": parts[1].astype(np.float32)}
        distance = np.sort(((x[test, None] - x[train]) ** 2).sum(axis=2), axis=1)
        tied.append(distance[:, 4] == distance[:, 5])
    with TemporaryDirectory() as folder:
        paths = [str(Path(folder, name)) for name in ("given.npz", "found.npz")]
        np.savez(paths[0], **given)  # type: ignore[arg-type]
        subprocess.run([python, "-c", THEIRS, *paths], check=True)
        theirs = dict(np.load(paths[1]))
    for index, ties in enumerate(tied):
        apart = abs(ours[f"knn{index}"] - theirs[f"knn{index}"]).max(axis=1)
        print(f"split {index}: kNN of {len(ties)} samples at most {apart[~ties].max():.1e} apart; {ties.sum()} tied,")
        truth = y[given[f"test{index}"]]
        pairs = ((ours, f"logistic{index}"), (theirs, f"logistic{index}_0.0001"), (theirs, f"logistic{index}_1e-09"))
        right = [int((found[name].argmax(axis=1) == truth).sum()) for found, name in pairs]
        largest = [abs(found[name] - ours[f"optimum{index}"]).max() for found, name in pairs]
        print(f"         of which {(apart[ties] > 1e-6).sum()} differ, by {apart.max():.1f} at most")
        print(
            f"         logistic, C {float(given[f'C{index}']):g}: right {right[0]}, theirs {right[1]} of {len(truth)};"
        )
        print(
            f"         from the optimum: ours {largest[0]:.1e}, theirs {largest[1]:.1e}, with tol=1e-9 {largest[2]:.1e}"
        )


if __name__ == "__main__":
    main(sys.argv[1])
