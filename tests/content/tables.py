"""Reference pages that follow from the code, for the documentation: `python -m tests.content.tables docs`."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from neuco_core import hookspecs
from neuco_core.boards.report import grid, to_markdown
from neuco_core.boards.store import stored_board
from neuco_core.contract.builtin import CHECKS
from neuco_core.plugins.catalog import list_datasets, list_methods, list_suites, list_tasks
from neuco_core.specs import Dataset, Method, Spec, Suite, Task

S = TypeVar("S", bound=Spec)
ROOT = Path(__file__).parents[2]

HEAD = "<!-- Written by `python -m tests.content.tables docs`; do not edit. -->\n"
TASKS = """\
# Datasets, tasks and suites

What ships with neuco. Each id links to its card, which tells the source, the caveats and the citation.

## Datasets

{datasets}

## Tasks

*Baseline* is the mean score that the named method is expected to reach, with its tolerance and protocol.
Scores of `neuco-2025+k=50,lr=0.0001` are the paper's; their tolerance is neuco's own, 0.1 + 0.25·|R²|.

{tasks}

## Suites

A suite is a frozen list of task versions that are ranked together, under one protocol.

{suites}
"""
METHODS = """\
# Methods

What ships with neuco. Each id links to its card. *Needs* are packages beyond a plain installation.

{methods}
"""

HOOKS = """\
# Hooks

A plugin implements hooks with `@hookimpl`; each yields frozen specs ([how to write a plugin](../howto/package.md)). The
tests install and use every example.
"""

CONTRACT = """\
# Checks

`neuco check`, a plugin's `test.py` and continuous integration run these. An essential check that is skipped ends
`neuco check` with exit code 8. One that fails says why it is there and what to do.

{checks}
"""

SCORES = """\
# Scores of the shipped methods

The boards of the embedded suites: ranks, mean Q, and the mean score on each task. `neuco leaderboard show SUITE` shows
the same with intervals. A † marks a negative mean score, which Q does not compare. `mini` is synthetic: it is for
trying things out, not for claims about the world. The settings of MOSAIKS, the autoencoder and PCA were chosen with the
labels of `olinda` and `digits` in sight, so their scores there are a little too kind
([how](../../neuco_methods/mosaiks/README.md)); none was chosen on `mini`.

"""


def task_page() -> str:
    """Datasets, tasks and suites, each with a link to its card."""
    datasets = [_dataset_row(item) for item in in_tree(list_datasets())]
    tasks = [_task_row(item) for item in in_tree(list_tasks())]
    suites = [_suite_row(item) for item in list_suites() if not item.living]
    return HEAD + TASKS.format(
        datasets=markdown(("dataset", "what", "bands", "seasons", "data", "licence"), datasets),
        tasks=markdown(("task", "what", "kind", "metric", "unit", "labels", "baseline", "licence"), tasks),
        suites=markdown(("suite", "what", "protocol", "tasks"), suites),
    )


def method_page() -> str:
    """Methods, each with a link to its card."""
    rows = [_method_row(item) for item in in_tree(list_methods())]
    return HEAD + METHODS.format(methods=markdown(("method", "what", "numbers", "kind", "needs", "licence"), rows))


def score_page() -> str:
    """The boards of the embedded suites, as they are committed."""
    boards = [stored_board(ROOT / "registry", suite) for suite in ("mini", "olinda", "olinda-blocks")]
    tables = [f"## {board.suite.title}\n\n{to_markdown(replace(grid(board, 'score'), notes=()))}" for board in boards]
    return HEAD + SCORES + "\n".join(tables)


def hook_page() -> str:
    """Every hook with its group of entry points and the example of its docstring."""
    parts = [HEAD + HOOKS]
    for name, hook in vars(hookspecs).items():
        if name.startswith("neuco_"):
            sentence, example = (inspect.getdoc(hook) or "").split("\n\n", 1)
            group = f"Entry-point group: `neuco.{name.removeprefix('neuco_')}`."
            parts.append(f"## `{name}()`\n\n{sentence}\n{group}\n\n```python\n{example}\n```\n")
    return "\n".join(parts)


def check_page() -> str:
    """The contract: what each check asks for."""
    rows = [[f"`{item.id}`", item.asks] for item in CHECKS]
    return HEAD + CONTRACT.format(checks=markdown(("check", "asks for"), rows))


PAGES = {
    "ref/tasks.md": task_page,
    "ref/methods.md": method_page,
    "ref/scores.md": score_page,
    "ref/hooks.md": hook_page,
    "ref/checks.md": check_page,
}


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )


def in_tree(specs: Iterable[S]) -> list[S]:
    """Those of this repository: a stranger's package on this machine is no part of its documentation."""
    return [spec for spec in specs if spec.origin is not None and not spec.origin.distribution]


def card(spec: Spec) -> str:
    """The id as a link from a page in docs/ref/ to the README beside the plugin."""
    package = "neuco_methods" if isinstance(spec, Method) else "neuco_tasks"
    plugin = spec.origin.plugin if spec.origin else spec.id
    return f"[`{spec.id}`](../../{package}/{plugin}/README.md)"


def _dataset_row(item: Dataset) -> list[str]:
    kind = "synthetic" if item.synthetic else "real"
    return [card(item), item.description, str(len(item.bands)), ", ".join(item.seasons), kind, item.license]


def _task_row(item: Task) -> list[str]:
    baseline = "–"
    if item.baseline is not None:
        expected = item.baseline
        baseline = f"{expected.score:.3f} ± {expected.tolerance:.3f} ({expected.method}, `{expected.protocol}`)"
    state = "embedded" if item.source.url.startswith("pkg://") else ("unpinned", "pinned")[item.source.pinned]
    title = f"**control**: {item.title}" if item.control else item.title
    return [card(item), title, item.kind, item.metric, item.unit or "–", state, baseline, item.license]


def _suite_row(suite: Suite) -> list[str]:
    tasks = ", ".join(f"`{task}`" for task in suite.tasks)
    return [f"`{suite.id}` v{suite.version}", suite.title, f"`{suite.protocol}`", tasks]


def _method_row(item: Method) -> list[str]:
    kind = ("files" if item.files else "encoder") + (", baseline" if item.baseline else "")
    kind += ", depends on the machine" if item.machine_spread else ""
    needs = ", ".join(f"`{name}`" for name in item.requires) or "–"
    return [card(item), item.description or item.title, str(item.dim or "varies"), kind, needs, item.license or "–"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")
        print(folder / name)


if __name__ == "__main__":
    main()
