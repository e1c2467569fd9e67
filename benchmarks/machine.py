"""How far do scores move on another processor? ``python benchmarks/machine.py [METHOD…]``.

For methods that declare a ``machine_spread``. Another processor is imitated on this one: torch is told to use its plain
instructions instead of the vector ones, so that sums are rounded differently. Embeddings are made afresh, scored on
all embedded tasks under `ridge`, and compared with the records of the registry.
"""

from __future__ import annotations

import argparse
import os
import tempfile

os.environ["ATEN_CPU_CAPABILITY"] = "default"  # read when torch is imported

import torch

from neuco_core import Method, list_methods, list_tasks, load_protocol, score
from neuco_core.env import registry_dir
from neuco_core.records.store import find_record

PROTOCOL = "ridge"


def moved(method: Method) -> None:
    largest = 0.0
    for task in list_tasks("*", tag="embedded"):
        then = find_record(registry_dir(), (method.label, task.label, PROTOCOL))
        if then is None:
            continue
        now = score(method.embeddings(task.dataset), task, load_protocol(PROTOCOL))
        pairs = [(a, b) for a, b in zip(now.per_split, then.per_split, strict=True) if b is not None]
        mean, split = abs(now.mean - (then.mean or 0.0)), max(abs(a - b) for a, b in pairs)
        print(f"{method.id:18} {task.id:28} {then.mean:8.4f} {now.mean:8.4f} {mean:7.4f} {split:7.4f}", flush=True)
        largest = max(largest, mean)
    print(f"{method.id:18} mean scores move by up to {largest:.3f}; declared {method.machine_spread:g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", default=["*"])
    names = parser.parse_args().methods
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    print(f"{'method':18} {'task':28} {'recorded':>8} {'here':>8} {'mean':>7} {'split':>7}")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NEUCO_CACHE"] = cache
        for method in list_methods(*names):
            if method.machine_spread:
                moved(method)


if __name__ == "__main__":
    main()
