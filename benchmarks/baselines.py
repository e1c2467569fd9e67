"""Measure the baselines that embedded tasks declare: `python benchmarks/baselines.py [TASK…]`.

As `neuco new task` does: the score under the protocol's own seed, what shuffled labels reach, and a tolerance of 0.01,
or half the way to what they reach if that is less. A task whose baseline they reach has no headroom: a control.
"""

from __future__ import annotations

import argparse

from neuco_core import Task, list_tasks, load_method, load_protocol
from neuco_core.contract.metric_scale import MeasuredBaseline, measure_baseline

METHOD = "averaging"
PROTOCOL = "ridge"


def measure(task: Task) -> MeasuredBaseline:
    method = task.baseline.method if task.baseline else METHOD
    embeddings = load_method(method).embeddings(task.dataset)
    return measure_baseline(embeddings, task.labels(), load_protocol(PROTOCOL), task.metric)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=["*"])
    options = parser.parse_args()
    print(f"{METHOD}, or the method that the task names, {PROTOCOL}")
    print(f"{'task':28} {'score':>8} {'shuffled':>8} {'tolerance':>9}  declared")
    for task in list_tasks(*options.tasks, tag="embedded"):
        found = measure(task)
        declared = f"{task.baseline.score:.3f} ± {task.baseline.tolerance:.3f}" if task.baseline else "none"
        declared += ", control" if task.control else "" if found.headroom else ", no headroom"
        print(f"{task.id:28} {found.score:8.3f} {found.reach:8.3f} {found.tolerance:9.3f}  {declared}", flush=True)


if __name__ == "__main__":
    main()
