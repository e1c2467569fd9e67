"""A board as text: cells and sentences for a terminal, Markdown and LaTeX for documents, CSV for machines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from msgspec.structs import replace

from neuco_core.boards.formatting import (
    DOUBT,
    LOWER,
    MARK,
    RANK,
    higher_is_better,
    in_cell,
    in_row,
    nobody,
    show,
    why_unranked,
    with_values,
)
from neuco_core.boards.model import Board, BoardRow, Column, Number, Section, Value
from neuco_core.errors import UnknownIdError, UsageError
from neuco_core.text import as_cell, common_prefix, counted, join_names, one_line

ARROW = "↓"
LONGEST = 100_000  # a note is never cut in practice; it may name every task of a large suite
OVERLAP = "overlap"
TEXT = ("text", "choice", "method", "task", "moves")
WITH_DETAILS = "--details says why"
GROUPED = "The data do not confirm the order of methods in a group"


@dataclass(frozen=True)
class Grid:
    """Headers, rows of text, and what must be said below them. ``plain`` is the same board for machines.

    For a terminal: ``brief`` are the notes without what is long, ``drop`` the columns that it does without if it is
    narrow, the first one first, and ``best`` the cells (row, column) with the best value of a task; those of the
    board's own columns are ``best_of_columns``.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    plain: tuple[tuple[str, ...], ...] = ()
    brief: tuple[str, ...] = ()
    drop: tuple[int, ...] = ()
    best: tuple[tuple[int, int], ...] = ()
    best_of_columns: tuple[tuple[int, int], ...] = ()


def grid(board: Board, values: str = "", more: Iterable[str] = (), only: Sequence[str] = ()) -> Grid:
    """A board as cells; ``values`` is the key of the column that stands under each task, by default the first.

    ``more`` is said last. ``only`` chooses columns and tasks, by patterns of their keys and ids.
    """
    keys = {column.key: column for column in board.cell_columns}
    if values and values not in keys:
        raise UsageError(f"the board has no {values!r} under its tasks", expected=f"one of {', '.join(keys)}")
    under = keys[values] if values else next(iter(keys.values()), None)
    board = _reduced(board, only) if only else board
    columns = with_values(board.columns, board.shown)
    tasks = [task.id + f" {ARROW}" * (not task.greater_is_better) for task in board.tasks]
    headers = (RANK.label, "Method", *(column.label for column in columns), *tasks)
    shown = [row for row in board.shown if not row.same_as]
    rows = tuple(
        (*leading_cells(row, columns), *(in_cell(under, row, task.id) if under else "" for task in board.tasks))
        for row in shown
    )
    long_notes = tuple(one_line(note, LONGEST) for note in (*notes(board, under), *more))
    short_notes = tuple(one_line(note, LONGEST) for note in (*notes(board, under, brief=True), *more))
    ranked = {r: row for r, row in enumerate(shown) if row.rank}
    best: list[tuple[int, int]] = []
    best_of_columns: list[tuple[int, int]] = []
    for t, task in enumerate(board.tasks):
        if under:
            under_task = {r: row.value(task.id, under.key) for r, row in ranked.items()}
            best += _best(under_task, 2 + len(columns) + t, higher=higher_is_better(under, task))
    for c, column in enumerate(columns):
        if column.direction:
            in_column = {r: row.values.get(column.key) for r, row in ranked.items()}
            best_of_columns += _best(in_column, 2 + c, higher=column.direction == "higher")
    return Grid(
        headers,
        rows,
        long_notes,
        _plain(board, under),
        short_notes,
        _dispensable(columns, board),
        tuple(best),
        tuple(best_of_columns),
    )


def _best(values: Mapping[int, str | Number], column: int, *, higher: bool) -> list[tuple[int, int]]:
    """The cells (row, column) with the best of some values, by row; all of them stand in the column at ``place``."""
    numbers = {r: value for r, value in values.items() if isinstance(value, int | float)}
    top = (max if higher else min)(numbers.values(), default=None)
    return [(r, column) for r, value in numbers.items() if value == top]


def _reduced(board: Board, patterns: Sequence[str]) -> Board:
    """The board with the columns and tasks that match a pattern; each pattern must match one."""
    keys = [*(column.key for column in (*board.columns, *board.fact_columns)), *(task.id for task in board.tasks)]
    for pattern in patterns:
        if not any(fnmatchcase(key, pattern) for key in keys):
            raise UnknownIdError("column or task", pattern, keys)
    kept = {key for key in keys if any(fnmatchcase(key, pattern) for pattern in patterns)}
    rows = (
        replace(
            row,
            values={key: value for key, value in row.values.items() if key in kept},
            facts={key: value for key, value in row.facts.items() if key in kept},
        )
        for row in board.rows
    )
    return replace(
        board,
        columns=tuple(column for column in board.columns if column.key in kept),
        fact_columns=tuple(column for column in board.fact_columns if column.key in kept),
        tasks=tuple(task for task in board.tasks if task.id in kept),
        rows=tuple(rows),
        scatter=None,
    )


def _sorts(column: Column, board: Board) -> bool:
    """Whether the rows stand in the order of a column, with equal ranks for equal values."""
    ranked = [row for row in board.rows if row.rank]
    pairs = [(row.values.get(column.key), row.rank) for row in ranked]
    values = [value for value, _ in pairs if isinstance(value, int | float)]
    in_order = sorted(values, reverse=column.direction == "higher")
    return len(values) == len(pairs) and values == in_order and len(set(values)) == len({rank for _, rank in pairs})


def _dispensable(columns: Sequence[Column], board: Board) -> tuple[int, ...]:
    """The columns of a grid that a narrow terminal does without, the first one first.

    Those of the kind from its last to its second, but for those with an interval and the one that the rows are sorted
    by; the tasks from the last; the others.
    """
    leading = range(2, 2 + len(columns))
    sorted_by = next((column.key for column in columns if _sorts(column, board)), columns[0].key if columns else "")
    kept = {
        i
        for i, column in zip(leading, columns, strict=True)
        if column.key == sorted_by or any(column.key in row.intervals for row in board.rows)
    }
    tasks = range(2 + len(columns), 2 + len(columns) + len(board.tasks))
    return (*(i for i in reversed(leading) if i not in kept), *reversed(tasks), *sorted(kept, reverse=True))


def leading_cells(row: BoardRow, columns: Iterable[Column]) -> tuple[str, ...]:
    interval = row.intervals.get(RANK.key)
    rank = show(RANK, row.rank) + (f" ({show(RANK, interval)})" if interval else "")
    name = (row.title or row.method) + " (baseline)" * row.baseline + f" ({OVERLAP})" * bool(row.overlaps)
    return rank, name, *(in_row(column, row) for column in columns)


def notes(board: Board, under: Column | None = None, *, brief: bool = False) -> Iterable[str]:
    """The source, the rule, the tasks, what the kind has to say, and who is not ranked with the reason.

    ``brief`` is for below a table in a terminal, and leaves to the details what takes more than a line.
    """
    if board.published:
        yield f"{board.published.description} Source: {board.published.source}"
    yield f"Ranking: {board.rule}."
    if not board.ranked and board.suite:
        yield nobody(board)
    prefix = common_prefix([task.id for task in board.tasks]) if brief else ""
    for column in board.task_columns[:1] if board.ranked else ():
        values = [(task.id.removeprefix(prefix), show(column, task.values.get(column.key))) for task in board.tasks]
        yield f"{column.label}{f' ({prefix}…)' if prefix else ''}: {', '.join(map(' '.join, values))}."
    if under and board.tasks and board.ranked:
        yield f"Values under the tasks: {under.label}."
    lower = [task.id for task in board.tasks if not task.greater_is_better]
    if lower:
        yield f"{ARROW} {LOWER}: {', '.join(lower)}."
    yield from board.notes
    if how := board.uncertainty:
        yield (
            f"Intervals: {how.level:.0%}; --details says how they were made."
            if brief
            else f"Intervals: {how.level:.0%}, {how.how}."
        )
    marked = {cell.status for row in board.shown for cell in row.lacks.values() if cell.values}
    if marked:
        yield f"{MARK} marks values that do not count: {', '.join(sorted(marked))}."
    yield from (f"{DOUBT} {reason}." for reason in doubts(board))
    if not brief:
        yield from overlaps(board)
    elif any(overlaps(board)):
        yield f"({OVERLAP}): may have seen the test samples during training; {WITH_DETAILS}."
    yield from copies(board)
    left = {row.method: why_unranked(row) for row in board.unranked if not row.same_as}
    whys = {*left.values()}
    if not brief:
        yield from (f"Not ranked: {method}: {why}" for method, why in left.items())
    elif left:
        names = join_names([*left], 2)
        yield f"Not ranked: {names}: {whys.pop()}" if len(whys) == 1 else f"Not ranked: {names}; {WITH_DETAILS}."


def doubts(board: Board) -> list[str]:
    """What is said of scores that count, each once."""
    cells = (cell for row in board.shown for cell in row.cells.values())
    return sorted({cell.reason for cell in cells if cell.status == "ok" and cell.reason})


def copies(board: Board) -> Iterable[str]:
    """Methods that are one on this data, as variants by season are where there is one: one of each is ranked."""
    if board.copies:
        names = "; ".join(" = ".join([first, *others]) for first, others in board.copies.items())
        count = counted(sum(map(len, board.copies.values())), "method")
        yield f"{count} with the same embeddings as another, not ranked: {names}."


def overlaps(board: Board) -> Iterable[str]:
    """What is said of overlaps, each once, with the methods and the datasets of which it is said."""
    methods_by_sentence: dict[str, dict[str, list[str]]] = {}
    for row in board.shown:
        for dataset, sentence in row.overlaps.items():
            methods_by_sentence.setdefault(sentence, {}).setdefault(row.method, []).append(dataset)
    for sentence, datasets in methods_by_sentence.items():
        rows = "; ".join(f"{name} ({', '.join(sets)})" for name, sets in datasets.items())
        yield f"{OVERLAP.capitalize()} of training data and samples: {rows}: {sentence}."


def _plain(board: Board, under: Column | None) -> tuple[tuple[str, ...], ...]:
    """The header and a row for each method, ranked or not; a column with intervals has its two ends beside it."""
    columns = [(c.key, any(c.key in row.intervals for row in board.rows)) for c in board.columns]
    ends = [name for key, wide in columns for name in (key, *((f"{key}_low", f"{key}_high") if wide else ()))]
    facts = [column.key for column in board.fact_columns]
    about = (*facts, OVERLAP) if facts else ()
    first = ("method", "baseline", "rank", "rank_low", "rank_high")
    header = (*first, *ends, *about, "reason", *(t.id for t in board.tasks))
    lines = [header]
    for row in board.rows:
        cells: list[object] = [row.method, row.baseline, row.rank, *_ends(row, RANK.key)]
        for key, wide in columns:
            cells += [row.values.get(key), *(_ends(row, key) if wide else ())]
        if facts:
            sentences = [f"{dataset}: {sentence}" for dataset, sentence in row.overlaps.items()]
            cells += [*(row.facts.get(key) for key in facts), "; ".join(sentences)]
        cells.append("" if row.rank else one_line(why_unranked(row), LONGEST))
        cells += [row.value(task.id, under.key) if under else None for task in board.tasks]
        lines.append(tuple(map(_bare, cells)))
    return tuple(lines)


def _ends(row: BoardRow, key: str) -> tuple[object, object]:
    interval = row.intervals.get(key)
    return (interval.low, interval.high) if interval else (None, None)


def _bare(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(as_cell(value))


def details(board: Board) -> list[Section]:
    """All that there is to tell of a board, for a terminal; matrices are for the page."""
    joined = tuple((", ".join(group),) for group in board.groups or ())
    groups = Section(GROUPED, (Column("methods", "Methods", format="text"),), joined)
    sections = [s for s in board.sections if not s.matrix]
    ordered = [s for about in ("ranking", "robustness", "column") for s in sections if s.about == about]
    tasks = [*([diagnostics(board)] if board.ranked else []), *(s for s in sections if s.about == "tasks")]
    short_notes = {*notes(board, brief=True)}
    left_out = tuple((note,) for note in notes(board) if note not in short_notes)
    remarks = Section("Remarks", (Column("remark", "", format="text"),), left_out)
    # What is known of methods besides their scores. Overlaps with several datasets mostly have the same words.
    columns = (
        Column("method", "Method", format="method"),
        *board.fact_columns,
        Column("overlap", OVERLAP.capitalize(), format="text"),
    )
    facts = tuple(
        (row.method, *(row.facts.get(c.key) for c in board.fact_columns), "; ".join(sorted({*row.overlaps.values()})))
        for row in board.shown
        if row.facts
    )
    every = [Section("Methods", columns, facts), groups, *ordered, *tasks, remarks]
    return [section for section in every if section.rows or section.empty]


def diagnostics(board: Board) -> Section:
    """The tasks with the columns that the kind has for them."""
    filled = [c for c in board.task_columns if any(task.values.get(c.key) is not None for task in board.tasks)]
    columns = (Column("task", "Task", format="task"), Column("metric", "Metric", format="text"), *filled)
    rows = tuple(
        (
            task.id,
            (task.metric or "–") + ("" if task.greater_is_better else f", {LOWER}"),
            *(task.values.get(column.key) for column in filled),
        )
        for task in board.tasks
    )
    return Section("Task diagnostics", columns, rows)


def marked(board: Board, row: tuple[Value, ...], column: Column, value: Value) -> bool:
    return column.format == "rank" and value != board.ranks.get(str(row[0]))


def lines(board: Board, section: Section) -> list[list[str]]:
    """The rows of a section as text; a * marks a rank that is not the board's."""
    return [
        [show(c, value) + "*" * marked(board, row, c, value) for c, value in zip(section.columns, row, strict=True)]
        for row in section.rows
    ]


def to_csv(grid: Grid) -> str:
    """Comma-separated values: plain numbers, nothing where nothing is known; the notes are not data and stay out."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(grid.plain)
    return text.getvalue()


def to_markdown(grid: Grid) -> str:
    lines = ["| " + " | ".join(map(_markdown, row)) + " |" for row in (grid.headers, *grid.rows)]
    lines.insert(1, "|" + "|".join("---" if i == 1 else "---:" for i in range(len(grid.headers))) + "|")
    return "\n".join([*lines, "", *(f"- {_markdown(note)}" for note in grid.notes)]) + "\n"


def to_latex(grid: Grid) -> str:
    """A tabular for the booktabs package, the best of each column in bold; the notes are comments above it."""
    columns = "rl" + "r" * (len(grid.headers) - 2)
    bold = {*grid.best, *grid.best_of_columns}
    rows = [list(map(_latex, grid.headers))]
    for r, row in enumerate(grid.rows):
        cells = enumerate(map(_latex, row))
        rows.append([rf"\textbf{{{cell}}}" if (r, c) in bold else cell for c, cell in cells])
    lines = [" & ".join(row) + r" \\" for row in rows]
    notes = [f"% {' '.join(note.split())}" for note in grid.notes]
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
    return "\n".join([*notes, *body, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _markdown(text: str) -> str:
    """Names are strangers' words: no markup, no second line, no cell of their own."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&$!])", r"\\\1", " ".join(text.split()))


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
_LATEX |= {"λ": r"$\lambda$", "↓": r"$\downarrow$", DOUBT: r"$\dagger$"}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(char, f"\\{char}" if char in "&%$#_{}" else char) for char in " ".join(text.split()))
