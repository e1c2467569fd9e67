"""Methods × embedded tasks as Markdown: `python benchmarks/methods.py [--methods ID,…] [--write FILE]`.

Each table is one suite, with the suite's protocol. A cell is Q and, in brackets, the mean score over the splits. With
`--write` the tables replace what stands between the marks `<!-- scores -->` and `<!-- /scores -->` in a file.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from neuco_core import Method, NeucoError, Protocol, Task, list_methods, list_tasks, load_protocol, load_suite, score

SUITES = ("mini", "olinda", "olinda-blocks")
MARKS = re.compile(r"(<!-- scores -->\n).*?(<!-- /scores -->)", re.DOTALL)
# The orders that published results lead to expect; what comes out otherwise is printed, not hidden.
EXPECTED = {
    "mini": (("random", "averaging", "mosaiks"), ("mosaiks_pre", "mosaiks")),
    "olinda": (("random", "averaging", "pca", "mosaiks"),),
}

Row = dict[str, tuple[float, float]]


def score_method(method: Method, tasks: Sequence[Task], protocol: Protocol) -> Row:
    """Q and mean score by task."""
    row = {}
    for task in tasks:
        result = score(method.embeddings(task.dataset), task, protocol)
        row[task.id] = (result.q, result.mean)
    return row


def mean_q(row: Row) -> float:
    return math.fsum(q for q, _ in row.values()) / len(row)


def markdown(rows: dict[str, Row], tasks: Sequence[Task]) -> str:
    """The best method first."""
    names = [task.id.removeprefix(f"{task.dataset}_") for task in tasks]
    lines = ["| method | mean Q | " + " | ".join(names) + " |", "|---|---:|" + "---:|" * len(names)]
    for method, row in sorted(rows.items(), key=lambda item: -mean_q(item[1])):
        cells = [f"{number(q, 1)} ({number(mean, 2)})" for q, mean in row.values()]
        lines.append(f"| `{method}` | {number(mean_q(row), 2)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def orders(suite: str, rows: dict[str, Row]) -> list[str]:
    """Whether the expected orders hold for the methods that were scored."""
    lines = []
    for order in EXPECTED.get(suite, ()):
        if all(name in rows for name in order):
            values = [mean_q(rows[name]) for name in order]
            holds = all(low < high for low, high in pairwise(values))
            text = " < ".join(f"{name} {number(value, 2)}" for name, value in zip(order, values, strict=True))
            lines.append(f"Expected order {'holds' if holds else 'does NOT hold'}: {text}.")
    return lines


def report(suite_id: str, methods: Sequence[Method]) -> str:
    suite = load_suite(suite_id)
    tasks, protocol = list_tasks(suite=suite_id), load_protocol(suite.protocol)
    rows: dict[str, Row] = {}
    left_out = []
    for method in methods:
        try:
            rows[method.id] = score_method(method, tasks, protocol)
            print(f"{suite_id}: {method.id} has mean Q {mean_q(rows[method.id]):.2f}", file=sys.stderr, flush=True)
        except NeucoError as error:
            left_out.append(f"`{method.id}` is not in the table: {error}.")
    head = f"**{suite.title}**, protocol `{protocol.name}`:"
    return "\n\n".join([head, markdown(rows, tasks), *orders(suite_id, rows), *left_out])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default="", help="ids, separated by commas; all encoders if left out")
    parser.add_argument("--suites", default=",".join(SUITES))
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    chosen = [name for name in options.methods.split(",") if name]
    methods = [method for method in list_methods(*chosen) if method.encoder or chosen]
    text = "\n\n".join(report(suite, methods) for suite in options.suites.split(","))
    if options.write is None:
        print(text)
        return
    page = options.write.read_text(encoding="utf-8")
    if not MARKS.search(page):
        parser.error(f"{options.write} has no marks <!-- scores --> and <!-- /scores -->")
    options.write.write_text(MARKS.sub(lambda found: found[1] + text + "\n" + found[2], page), encoding="utf-8")


if __name__ == "__main__":
    main()
