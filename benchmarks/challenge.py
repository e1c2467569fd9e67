"""What does a challenge cost? ``python benchmarks/challenge.py [--k 10] [--engine dask] [--submissions 4]``.

One challenge of the paper's sizes: 13,260 ids, nine tasks with as many labels as those of SSL4EO-S12-downstream, 1,024
dimensions, the linear probe of NeuCo-Bench with 20 epochs. A few submissions are evaluated with a few splits by two
processes, each on one core, and the time is scaled to 400 submissions of 200 splits: the part of an evaluation that
depends on the number of splits is proportional to it. CPU time of the workers is counted, so that others on the machine
matter less. Values and labels are random numbers, on which the probe does exactly the same work.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import psutil

from neuco_core.tables.embeddings import make_embeddings, write_embeddings
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.rules import load_challenge
from neuco_extensions.challenge.seal import seal
from neuco_extensions.challenge.setup import add_team
from neuco_extensions.challenge.workers import evaluate_waiting, start_engine

# Labels by task, as docs/ref/tasks.md has them.
SIZES = {
    "biomass_mean": 2415,
    "biomass_std": 2415,
    "crops": 3355,
    "landcover_agriculture": 4691,
    "landcover_forest": 4691,
    "clouds": 1140,
    "heatisland_mean": 1659,
    "heatisland_std": 1659,
    "nodata": 13260,
}
IDS, DIM, K, SUBMISSIONS = 13260, 1024, 200, 400
RULES = """
id = "cost"
title = "What it costs"
dataset = "ssl4eo_s12_downstream"
[phases.{name}]
start = 2025-01-01T00:00:00Z
end = 2999-01-01T00:00:00Z
tasks = {tasks}
ids = "ids.txt"
k = {k}
"""


def make(folder: Path, k: int, rng: np.random.Generator) -> Path:
    """A challenge with random labels."""
    ids = np.array([f"{number:064x}" for number in range(IDS)])
    labels = folder / "private" / "labels"
    labels.mkdir(parents=True)
    (folder / "ids.txt").write_text("\n".join(ids) + "\n")
    text = RULES.format(name="test", tasks=[*SIZES], k=k)
    for name, size in SIZES.items():
        chosen = ids[rng.permutation(IDS)[:size]]
        lines = [f"{sample},{value!r}" for sample, value in zip(chosen, rng.normal(size=size).tolist(), strict=True)]
        (labels / f"{name}.csv").write_text("\n".join(["id,label", *lines]) + "\n")
        text += f'[tasks.{name}]\nlabels = "private/labels/{name}.csv"\n'
    (folder / "challenge.toml").write_text(text)
    add_team(folder, "alpha", "Alpha")
    seal(load_challenge(folder))
    return folder


def measure(base: Path, k: int, engine: str, submissions: int) -> float:
    """CPU seconds of the workers for one submission."""
    rng = np.random.default_rng(0)
    folder = make(base / f"{engine}-{k}", k, rng)
    ids = (folder / "ids.txt").read_text().split()
    with Host(folder) as host:
        for number in range(submissions + 2):
            team = f"team{number}"
            add_team(folder, team, team)
            host.challenge = load_challenge(folder)
            path = base / f"{number}.csv"
            if not path.exists():
                values = rng.normal(size=(IDS, DIM)).astype(np.float32)
                write_embeddings(make_embeddings(ids, values), path)
            host.submit(team, "test", path)
        done = evaluate_waiting(host, start_engine(engine, 2), 2)
        next(done), next(done)  # imports and labels, once for each worker
        before = cpu()
        count = sum(own.state == "scored" for own in done)
        if count != submissions:
            raise SystemExit("a submission failed")
        return (cpu() - before) / count


def cpu() -> float:
    """CPU seconds that the workers, which are processes below this one, have used so far."""
    return sum(sum(process.cpu_times()[:2]) for process in psutil.Process().children(recursive=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, default=10, help="splits of a run; another one has twice as many")
    parser.add_argument("--engine", default="local", help="local or dask: two processes either way")
    parser.add_argument("--submissions", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [measure(Path(folder), k, chosen.engine, chosen.submissions) for k in (chosen.k, 2 * chosen.k)]
    few, many = found
    split = (many - few) / chosen.k
    fixed = few - split * chosen.k
    whole = fixed + split * K
    print(f"{chosen.engine}: {chosen.k} splits {few:.2f} s, {2 * chosen.k} splits {many:.2f} s a submission")
    print(f"scaled: {fixed:.2f} s + {split:.4f} s a split; {K} splits {whole:.1f} s")
    print(f"{SUBMISSIONS} submissions: {whole * SUBMISSIONS / 3600:.1f} h of CPU, half of it on two cores")


if __name__ == "__main__":
    main()
