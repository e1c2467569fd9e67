"""How large records become, and how long they take: ``python benchmarks/store.py [--methods 500] [--tasks 1000]``.

Generated records of 500 methods on 1,000 tasks, 40 splits and three metrics each, packed as publishing does: bytes as
loose files and packed, the time to read all heads (what a plan needs), to find one record, to publish one more method
and one more task, and what these two add to git and to the wheel.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from neuco_core.jsonio import hashed
from neuco_core.records.model import Record, fingerprint, record_bytes, summary
from neuco_core.records.packs import change_packs, read_manifest, record_name
from neuco_core.records.store import find_record, pack_records, read_all, read_heads
from tests.records.examples import scored

SPLITS = 40


def record(method: str, task: str, chance: random.Random) -> Record:
    """A record whose numbers and hashes are its own, as real ones have them."""
    base = BASE
    splits = tuple(chance.random() for _ in range(SPLITS))
    mean, std, q = summary(splits, True) or (None, None, None)
    own = {"method": method, "task": task}
    hashes = {"labels": hashed(task), "labels_from": hashed([task]), "embeddings": hashed(method)}
    inputs = {**base.inputs, **own, **hashes, "embeddings_from": hashed([method])}
    values = {"per_split": splits, "mean": mean, "std": std, "q": q, "fingerprint": fingerprint(inputs)}
    metrics = {name: tuple(chance.random() for _ in splits) for name in ("mae", "mse")}
    return msgspec.structs.replace(base, **own, **values, inputs=inputs, metrics=metrics)


BASE = scored(k=SPLITS)


def rows(method: str, tasks: int) -> Iterator[Record]:
    chance = random.Random(method)
    yield from (record(method, f"task_{number:04}", chance) for number in range(tasks))


def timed(figures: dict[str, Any], name: str, action: Callable[[], Any]) -> Any:
    start, cpu = time.perf_counter(), time.process_time()
    result = action()
    figures[f"{name}_s"] = round(time.perf_counter() - start, 2)
    figures[f"{name}_cpu_s"] = round(time.process_time() - cpu, 2)
    return result


class Repository:
    """The registry in git; what a commit adds is the size of its objects."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet")
        # The first commit is only there to have something to add to: no time is lost on squeezing it.
        self.commit("-c", "core.compression=0")

    def git(self, *args: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "gc.auto=0")
        return subprocess.run(["git", *who, *args], cwd=self.folder, check=True, capture_output=True, text=True).stdout

    def commit(self, *options: str) -> int:
        before = self.size()
        self.git(*options, "add", "--all")
        self.git("commit", "--quiet", "-m", "x")
        return self.size() - before

    def size(self) -> int:
        files = (self.folder / ".git" / "objects").rglob("*")
        return sum(path.stat().st_size for path in files if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", type=int, default=500)
    parser.add_argument("--tasks", type=int, default=1000)
    args = parser.parse_args()
    figures: dict[str, Any] = {"methods": args.methods, "tasks": args.tasks, "records": args.methods * args.tasks}
    names = [f"method_{number:03}" for number in range(args.methods)]
    with tempfile.TemporaryDirectory() as folder:
        registry = Path(folder)
        loose = 0
        start = time.process_time()
        for name in names:
            made = {record_name(item.task, item.protocol): record_bytes(item) for item in rows(name, args.tasks)}
            loose += sum(map(len, made.values()))
            change_packs(registry, {name: made})
        figures["make_and_pack_cpu_s"] = round(time.process_time() - start, 1)
        packs = [pack for own in read_manifest(registry).by_method.values() for pack in own]
        figures |= {"loose_MB": round(loose / 1e6, 1), "packed_MB": round(sum(p.size for p in packs) / 1e6, 1)}
        figures |= {"loose_bytes_each": loose // figures["records"], "files": len(packs)}
        figures["manifest_in_wheel_bytes"] = len(zlib.compress((registry / "records.json").read_bytes(), 6))
        repository = Repository(registry)
        heads = timed(figures, "read_heads", lambda: read_heads(registry))
        figures["heads"] = len(heads)
        del heads
        figures["peak_memory_MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        timed(figures, "find_one", lambda: find_record(registry, names[0], "task_0007", BASE.protocol))
        more = list(rows("method_new", args.tasks))
        timed(figures, "publish_method", lambda: pack_records(registry, more))
        figures["publish_method_git_bytes"] = repository.commit()
        chance = random.Random(1)
        column = [record(name, "task_new", chance) for name in names]
        timed(figures, "publish_task", lambda: pack_records(registry, column))
        figures["publish_task_git_bytes"] = repository.commit()
    with tempfile.TemporaryDirectory() as folder:
        pack_records(Path(folder), more)
        timed(figures, "read_1_method_strictly", lambda: read_all(Path(folder)))
    figures |= {"python": platform.python_version(), "cores": len(os.sched_getaffinity(0))}
    figures["load_average"] = os.getloadavg()[0]
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
