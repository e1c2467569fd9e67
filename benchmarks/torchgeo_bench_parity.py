"""kNN and logistic regression of torchgeo-bench 0.4.0, run on scikit-learn's digits, beside ours on the same splits.

    python3.12 -m venv /tmp/tgb && /tmp/tgb/bin/pip install torchgeo-bench==0.4.0
    python benchmarks/torchgeo_bench_parity.py /tmp/tgb/bin/python

torchgeo-bench needs Python 3.12 and an environment of its own, so its part runs in that process and its probabilities
come back as a file. Ties, where several samples are as far away as the fifth neighbour, are counted: faiss takes any of
them, ours the one in the lower row.

Both logistic regressions learn from the same scaled features with the same C. They have the same optimum, which
Newton's method finds here, and stop before it, so each is run as shipped and to convergence. Theirs computes in single
precision and ends at a gradient of 1e-7 at the latest; "theirs, double" is the same code in double precision, with
1e-13. Of each row: the largest component of the gradient, the largest difference of a probability from the optimum and
from ours run to convergence, and how many predictions and how much macro F1 differ from ours in the same state.
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

def run(name, dtype, **settings):
    for split in range(int(given["k"])):
        scaled, unseen = (torch.from_numpy(given[f"{part}_x{split}"].astype(dtype)) for part in ("train", "test"))
        model = LogisticRegression(C=float(given[f"C{split}"]), **settings)
        model.fit(scaled, torch.from_numpy(given["y"][given[f"train{split}"]]))
        found[f"{name}{split}"] = model.predict_proba(unseen)
        found[f"{name}{split} weights"] = np.column_stack([model.coef_, model.intercept_])

run("shipped", np.float32)
run("tightened", np.float32, tol=0.0, max_iter=10_000)
torch.float32, LBFGS = torch.float64, torch.optim.LBFGS
torch.set_default_dtype(torch.float64)
torch.optim.LBFGS = lambda *args, **settings: LBFGS(*args, **{**settings, "tolerance_grad": 1e-13})
run("double", np.float64, tol=0.0, max_iter=10_000)
np.savez(sys.argv[2], **found)
"""


def gradient(weights: np.ndarray, x: np.ndarray, y: np.ndarray, cost: float) -> float:
    """The largest component of the gradient of mean log loss and penalty."""
    from scipy.special import softmax

    wrong = softmax(x @ weights[:, :-1].T + weights[:, -1], axis=1) - np.eye(len(weights))[y]
    penalty = np.column_stack([weights[:, :-1] / cost, np.zeros(len(weights))]) / len(x)
    return float(abs(np.column_stack([wrong.T @ x, wrong.sum(axis=0)]) / len(x) + penalty).max())


def main(python: str, k: int = 3) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.preprocessing import StandardScaler

    from neuco_core.protocol import load_protocol
    from neuco_core.scoring.probes import Split
    from neuco_core.scoring.probes.knn import NearestNeighbors
    from neuco_core.scoring.probes.logistic import TunedLogistic
    from neuco_core.scoring.splits import shuffle

    x, y = load_digits(return_X_y=True)
    x, y = x.astype(np.float32), y.astype(np.int64)
    near, seed = load_protocol("knn+metric=l2"), load_protocol("logistic").seed
    given, ours, tied = {"x": x, "y": y, "k": np.array(k)}, {}, []
    for index, (train, test) in enumerate(shuffle(len(x), near.with_(k=k))):
        split = Split(x, y[:, None].astype(np.float32), train, test, "classification", 10, index)
        ours[f"knn{index}"] = NearestNeighbors(near).fit(split).predictions[0]
        tuned = TunedLogistic(1000, seed).fit(x[train], y[train])
        cost, scaler = tuned.settings_["C"], StandardScaler().fit(x[train].astype(float))
        parts = [scaler.transform(x[part].astype(float)) for part in (train, test)]
        newton = LogisticRegression(C=cost, solver="newton-cg", max_iter=1000, tol=1e-12)
        converged = LogisticRegression(C=cost, max_iter=100_000, tol=1e-12)
        models = {"shipped": tuned.model, "tightened": converged, "optimum": newton}
        for name, model in models.items():
            model.fit(parts[0], y[train])
            ours[f"{name}{index}"] = model.predict_proba(parts[1])
            ours[f"{name}{index} weights"] = np.column_stack([model.coef_, model.intercept_])
        given |= {f"train{index}": train, f"test{index}": test, f"C{index}": np.array(cost)}
        given |= {f"train_x{index}": parts[0], f"test_x{index}": parts[1]}
        distance = np.sort(((x[test, None] - x[train]) ** 2).sum(axis=2), axis=1)
        tied.append(distance[:, 4] == distance[:, 5])
    with TemporaryDirectory() as folder:
        paths = [str(Path(folder, name)) for name in ("given.npz", "found.npz")]
        np.savez(paths[0], **given)  # type: ignore[arg-type]
        subprocess.run([python, "-c", THEIRS, *paths], check=True)
        theirs = dict(np.load(paths[1]))
    rows = [("ours, as shipped", ours, "shipped"), ("ours, converged", ours, "tightened")]
    rows += [("theirs, as shipped", theirs, "shipped"), ("theirs, tol=0", theirs, "tightened")]
    rows += [("theirs, double", theirs, "double"), ("Newton's method", ours, "optimum")]
    for index, ties in enumerate(tied):
        apart = abs(ours[f"knn{index}"] - theirs[f"knn{index}"]).max(axis=1)
        print(f"split {index}: kNN of {len(ties)} samples at most {apart[~ties].max():.1e} apart; {ties.sum()} tied,")
        print(f"         of which {(apart[ties] > 1e-6).sum()} differ, by {apart.max():.1f} at most")
        cost, truth = float(given[f"C{index}"]), y[given[f"test{index}"]]
        print(f"{f'logistic, C {cost:g}':22} gradient  from optimum  from ours  predictions  macro F1")
        for title, found, name in rows:
            chances, like = found[f"{name}{index}"], "shipped" if name == "shipped" else "tightened"
            down = gradient(found[f"{name}{index} weights"], given[f"train_x{index}"], y[given[f"train{index}"]], cost)
            far = [abs(chances - ours[f"{other}{index}"]).max() for other in ("optimum", "tightened")]
            labels, same = chances.argmax(axis=1), ours[f"{like}{index}"].argmax(axis=1)
            more = abs(f1_score(truth, labels, average="macro") - f1_score(truth, same, average="macro"))
            differ = (labels != same).sum()
            print(f"{title:22} {down:8.1e} {far[0]:13.1e} {far[1]:10.1e} {differ:12} {more:9.1e}")


if __name__ == "__main__":
    main(sys.argv[1])
