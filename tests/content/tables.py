"""Reference pages that follow from the code, for the documentation: `python -m tests.content.tables docs`."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from neuco_core import hookspecs
from neuco_core.contract.builtin import CHECKS
from neuco_core.plugins.catalog import list_datasets, list_methods, list_suites, list_tasks
from neuco_core.specs import Check, Dataset, Method, Spec, Suite, Task

S = TypeVar("S", bound=Spec)

HEAD = "<!-- Written by `python -m tests.content.tables docs`; do not edit. -->\n"
TASKS = """\
# Datasets, tasks and suites

Each id links to its card with the source, the caveats, the licence, the baseline and the citation. Baselines of
NeuCo-Bench's tasks are the paper's scores under `neuco-2025+k=50,lr=0.0001`, with a tolerance of neuco's own,
0.1 + 0.25·|R²|.

{datasets}

## Suites

A suite is a frozen list of task versions that are ranked together, under one protocol; `neuco show SUITE` lists them.

{suites}
"""
METHODS = """\
# Methods

Each id links to its card; `neuco leaderboard show olinda` shows how they score. The settings of MOSAIKS, the
autoencoder and PCA were chosen with the labels of `olinda` and `digits` in sight, so their scores there are a little
too high; none was chosen on the synthetic `mini`.

{methods}
"""

HOOKS = """\
# Hooks

A plugin implements hooks with `@hookimpl`; each yields frozen specs ([how to write a plugin](../howto/package.md)). The
group of entry points of `neuco_tasks()` is `neuco.tasks`, and so on.
"""

CONTRACT = """\
# Checks

`neuco check`, a plugin's `test.py` and continuous integration run these; one that fails says what to do. Checks with
`*` are made of tasks, methods and datasets (`task-files`, `method-files`, `dataset-files`).

{checks}
"""


def task_page() -> str:
    """Datasets with their tasks, and suites."""
    datasets = [_dataset_part(item) for item in in_tree(list_datasets())]
    suites = [_suite_row(item) for item in list_suites() if not item.living]
    return HEAD + TASKS.format(
        datasets="\n\n".join(datasets),
        suites=markdown(("suite", "what", "protocol", "tasks"), suites),
    )


def method_page() -> str:
    """Methods, each with a link to its card."""
    return HEAD + METHODS.format(methods="\n".join(map(_method_line, in_tree(list_methods()))))


def hook_page() -> str:
    """Every hook with the text and the example of its docstring."""
    parts = [HEAD + HOOKS]
    for name, hook in vars(hookspecs).items():
        if name.startswith("neuco_"):
            text = inspect.getdoc(hook) or ""
            start = text.index("@hookimpl")
            parts.append(f"## `{name}()`\n\n{text[:start].rstrip()}\n\n```python\n{text[start:]}\n```\n")
    return "\n".join(parts)


def check_page() -> str:
    """The contract: what each check asks for, and in one line what it asks of every noun."""
    asked: dict[tuple[str, str], list[Check]] = {}
    for item in CHECKS:
        asked.setdefault((item.id.partition("-")[2], item.asks.replace(f"the {item.noun} ", "it ")), []).append(item)
    lines = [
        f"- `{items[0].id}`: {items[0].asks}" if len(items) == 1 else f"- `*-{name}`: {asks}"
        for (name, asks), items in asked.items()
    ]
    return HEAD + CONTRACT.format(checks="\n".join(lines))


PAGES = {
    "ref/tasks.md": task_page,
    "ref/methods.md": method_page,
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


def _dataset_part(dataset: Dataset) -> str:
    """A heading, a sentence and the table of the dataset's tasks."""
    tasks = [task for task in in_tree(list_tasks()) if task.dataset == dataset.id]
    labels = sorted({_labels(task) for task in tasks})
    counts = f"{_count(dataset.bands, 'band')}, {_count(dataset.seasons, 'season')}"
    facts = f"{dataset.description}. {counts}; labels {' or '.join(labels)}."
    return "\n".join((f"## {card(dataset)}\n\n{facts}\n", *map(_task_line, tasks)))


def _count(names: Sequence[str], noun: str) -> str:
    return f"{len(names)} {noun}" + "s" * (len(names) != 1)


def _labels(item: Task) -> str:
    """Where the labels are: in the package, or at an address with or without a checksum."""
    return "embedded" if item.source.url.startswith("pkg://") else ("unpinned", "pinned")[item.source.pinned]


def _task_line(item: Task) -> str:
    what = item.title.rpartition(": ")[2]  # without the name of the dataset
    if item.control:
        what = f"**control**, {what}"
    measure = f"{item.metric}, {item.unit}" if item.unit else item.metric
    return f"- {card(item)}: {what} ({measure})"


def _suite_row(suite: Suite) -> list[str]:
    return [f"`{suite.id}` v{suite.version}", suite.title, f"`{suite.protocol}`", str(len(suite.tasks))]


def _method_line(item: Method) -> str:
    facts = [f"{item.dim} numbers" if item.dim else "of varying size"]
    if item.baseline:
        facts.append("baseline")
    if item.files:
        facts.append("files")
    if item.machine_spread:
        facts.append("depends on the machine")
    if item.requires:
        facts.append("needs " + " and ".join(f"`{name}`" for name in item.requires))
    return f"- {card(item)}: {item.title} ({', '.join(facts)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")
        print(folder / name)


if __name__ == "__main__":
    main()
