"""How long a large board takes: ``python benchmarks/board.py [--methods 400] [--tasks 11]``.

Ready scores of 400 methods on 11 tasks, 40 splits each: build the board with its intervals, write the site, open the
page in Chromium (headless, from a file, until it can be used, and until all rows are drawn), sort it, rank it anew
without a task and a method, and open the tab with the profiles. ``built_s`` is the board and the site. ``…_cpu_s`` is
the time of the processor, of the browser that of the page's main thread: on a busy machine only that tells anything.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuco_core.boards.cells import from_records
from neuco_core.boards.model import plain
from neuco_core.boards.stats.uncertainty import REPLICATES, TaskScores
from neuco_core.files import dump
from neuco_core.records.store import read_all, write_records
from neuco_core.site.page_data import PageData
from neuco_core.site.write import write_site
from tests.boards.helpers import board_of, cells_of, make_record, make_suite, simulate
from tests.conftest import FLAGS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", type=int, default=400)
    parser.add_argument("--tasks", type=int, default=11)
    args = parser.parse_args()
    _, scores = simulate(np.random.default_rng(0), args.methods, args.tasks)
    cells = cells_of(scores, baselines=(0, 1))
    figures: dict[str, Any] = {"methods": args.methods, "tasks": args.tasks, "replicates": REPLICATES}
    start, cpu = time.perf_counter(), time.process_time()
    board = board_of(cells, "large")
    figures["build_s"] = round(time.perf_counter() - start, 2)
    figures["build_cpu_s"] = round(time.process_time() - cpu, 2)
    figures["load_average"] = os.getloadavg()[0]
    figures["board_bytes"] = len(dump(plain(board)))
    figures["read_records_s"] = read_records(scores)
    with tempfile.TemporaryDirectory() as folder:
        start, cpu = time.perf_counter(), time.process_time()
        source = PageData(id="large", title="A large board", board=board, cells=cells)
        figures["pages"] = write_site([source], Path(folder))
        figures["site_s"] = round(time.perf_counter() - start, 2)
        figures["site_cpu_s"] = round(time.process_time() - cpu, 2)
        figures["built_s"] = round(figures["build_s"] + figures["site_s"], 2)
        page = Path(folder) / "boards/large/index.html"
        figures["page_bytes"] = page.stat().st_size
        figures |= open_page(page)
    figures |= {"python": platform.python_version(), "numpy": np.__version__, "cores": len(os.sched_getaffinity(0))}
    print(json.dumps(figures, indent=1))


def read_records(scores: Sequence[TaskScores]) -> float:
    """The time to read as many records from disk, each checked strictly, and to sort them into a table."""
    tasks = [f"t{t:02}" for t in range(len(scores))]
    with tempfile.TemporaryDirectory() as folder:
        records = [
            make_record(f"m{m:03}", task, splits)
            for task, found in zip(tasks, scores, strict=True)
            for m, splits in enumerate(found.splits.tolist())
        ]
        write_records(Path(folder), records)
        start = time.perf_counter()
        from_records(read_all(Path(folder)), make_suite(*tasks))
        return round(time.perf_counter() - start, 2)


# What a reader does, and what shows that it is done.
STEPS = {
    "sort_s": ("neuco.set({sort: 'mean_q'})", "th[data-key='mean_q'][aria-sort='descending']"),
    "rank_anew_s": ("neuco.set({off: 't00', out: 'm005'})", "#board.anew"),
    "profiles_s": ("neuco.set({tab: 'tasks'})", "#parallel svg"),
}
PAINTED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def open_page(path: Path) -> dict[str, Any]:
    """Medians of five, each in a context of its own: opening the page cold, and then each step."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        return {"open_s": "no browser"}
    taken: dict[str, list[float]] = {}

    def note(name: str, start: float) -> None:
        """The time since then, and that of the processor since the last note."""
        taken.setdefault(name, []).append(time.perf_counter() - start)
        metrics = {item["name"]: item["value"] for item in session.send("Performance.getMetrics")["metrics"]}
        own = taken.setdefault("cpu", [])
        taken.setdefault(name.replace("_s", "_cpu_s"), []).append(metrics["TaskDuration"] - sum(own))
        own.append(metrics["TaskDuration"] - sum(own))

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        for _ in range(5):
            page = browser.new_context().new_page()
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            taken["cpu"] = []
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("#toolbar:not([hidden])")
            page.evaluate(PAINTED)
            note("open_s", start)
            page.wait_for_selector("#board.ready")
            page.evaluate(PAINTED)
            note("all_rows_s", start)
            for name, (step, shown) in STEPS.items():
                start = time.perf_counter()
                page.evaluate(step)
                page.wait_for_selector(shown, state="attached")
                page.evaluate(PAINTED)
                note(name, start)
        version = browser.version
        browser.close()
    del taken["cpu"]
    return {name: round(float(np.median(own)), 2) for name, own in taken.items()} | {"chromium": version}


if __name__ == "__main__":
    main()
