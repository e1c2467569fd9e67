"""A board for the tests of the page: made-up scores, and names that try to break out of their place."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from msgspec import structs

from neuco_core.boards.cells import BoardMethod, Cell, Cells
from neuco_core.boards.facts import COLUMNS
from neuco_core.boards.model import Number
from neuco_core.boards.published import read_published
from neuco_core.scoring.quality import summarize
from neuco_core.site.page_data import About, Histogram, PageData, from_published
from tests.boards.helpers import board_of, cells_of, simulate

IMAGE = "<img src=x onerror=alert(1)>"
MARKUP = "__#bold|[e]"
LONG = "Averylongnamewithoutanyspace" * 8
CARD = f"""# m000

A card with **bold**, `code` and a [link](https://example.org/x), and {IMAGE}.

| a | b |
|---|---|
| 1 | <script>alert(2)</script> |

- first
- second "quoted"
"""


class Elements(HTMLParser):
    """The elements of a page with their attributes, in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.started: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.started.append((tag, dict(attrs)))

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.started}

    @property
    def attributes(self) -> set[str]:
        return {key for _, attributes in self.started for key in attributes}

    @property
    def links(self) -> list[str]:
        return [attributes["href"] or "" for _, attributes in self.started if "href" in attributes]


def made_source(methods: int = 12, tasks: int = 5, name: str = "made", replicates: int = 200) -> PageData:
    """Methods m000 (a hostile title and card), m001 (another), …; the last lacks a task and is not ranked."""
    _, scores = simulate(np.random.default_rng(11), methods, tasks)
    whole = cells_of(scores, baselines=(2,))
    lacking = (whole.methods[-1].id, whole.tasks[0].id)
    failed = Cell(status="failed", reason=f"memory: needed more than {IMAGE}")
    cells = Cells(whole.tasks, whole.methods, {**whole.cells, lacking: failed})
    words = {"m000": About(title=IMAGE, card=CARD, citation=IMAGE, tags=("first-tag",)), "m001": About(title=MARKUP)}
    labels = {
        "t00": Histogram((1, 4, 2), (0.0, 1.0, 2.0, 3.0), "m", 7),
        "t01": Histogram((3, 1), (), "", 4, ("cat", IMAGE)),
    }
    return PageData(
        id=name,
        title="A made-up suite",
        description="Simulated scores, to try the page.",
        board=board_of(cells, name, replicates=replicates),
        cells=cells,
        methods=words,
        tasks={"t00": About(title=f"First task {IMAGE}", facts=(("Metric", "r2"),))},
        labels=labels,
    )


def turned(source: PageData, task: int) -> PageData:
    """The board if less were better on a task: Q is then negative for everybody, and the number says nothing."""
    tasks = [structs.replace(t, greater_is_better=i != task) for i, t in enumerate(source.board.tasks)]
    return replace(source, board=structs.replace(source.board, tasks=tuple(tasks)))


def without_scores(source: PageData, reason: str = "no memory") -> PageData:
    """The same board if every score had failed: nobody is ranked, and nobody has a score."""
    assert source.cells is not None
    cells = replace(source.cells, cells={key: Cell(status="failed", reason=reason) for key in source.cells.cells})
    return replace(source, cells=cells, board=board_of(cells, source.id))


def all_sources(registry: Path) -> list[PageData]:
    return [
        made_source(),
        *(from_published(read_published(path)) for path in sorted(registry.glob("published/*.json"))),
    ]


def odd_source(name: str, tasks: int) -> PageData:
    """A method called "constructor", long names, and a last task where less is better and classes are told apart."""
    _, scores = simulate(np.random.default_rng(5), 4, tasks, splits=8)
    made = cells_of(scores)
    last = structs.replace(made.tasks[-1], kind="classification", greater_is_better=False)
    cells = {}
    for (method, task), cell in made.cells.items():
        q = summarize(list(cell.splits), False)[2] if task == last.id else cell.q  # type: ignore[index]
        cells["constructor" if method == "m003" else method, task] = replace(cell, q=q)
    whole = Cells((*made.tasks[:-1], last), (*made.methods[:-1], BoardMethod("constructor", dim=8)), cells)
    board = board_of(whole, name, replicates=50)
    words = About(title=LONG, description=LONG, tags=(LONG,), citation=LONG)
    return PageData(
        id=name,
        title=f"{LONG} {name}",
        board=board,
        cells=whole,
        methods={"m001": words},
        tasks={"t00": About(title=LONG)},
    )


def facts_source() -> PageData:
    """Four methods with facts: m000 overlaps, m001 says what no page may run, of m003 nothing is known."""
    source = made_source(4, 2, "facts", 20)
    facts: dict[str, dict[str, str | Number]] = {
        "m000": {"pretraining": "ImageNet", "n_parameters": 5_000_000, "trust": "copied"},
        "m001": {"pretraining": IMAGE, "n_parameters": 7, "trust": "self-reported", "encode_ms": 1.25},
        "m002": {"pretraining": "nothing", "n_parameters": 0},
    }
    rows = tuple(
        structs.replace(
            row, facts=facts.get(row.method, {}), overlaps={"made": f"seen {IMAGE}"} if row.method == "m000" else {}
        )
        for row in source.board.rows
    )
    columns = tuple(column for column in COLUMNS if any(column.key in own for own in facts.values()))
    return replace(source, board=structs.replace(source.board, rows=rows, fact_columns=columns))
