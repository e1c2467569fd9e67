"""The page of a board. The table is complete without scripts; scripts sort, search, filter and draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from neuco_core.boards.facts import FILTERS
from neuco_core.boards.model import BoardCell, BoardRow, BoardTask, Column, Number, plain, rounded
from neuco_core.boards.values import LOWER, MARK, NONE, RANK, show, with_values
from neuco_core.boards.views.report import OVERLAP, copies, overlaps
from neuco_core.boards.views.site import board_parts as parts
from neuco_core.boards.views.site.charts import bounds, rank_interval
from neuco_core.boards.views.site.html import Safe, data, join, page, scroll, section, tag
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import clean, counted

UP = "../../"
LEVELS = 10
UNKNOWN = "unknown"


def board_page(source: BoardSource) -> str:
    board = source.board
    table = (_toolbar(source), _table(source)) if board.shown else (parts.nobody_yet(source),)
    note = f"{board.rule[:1].upper()}{board.rule[1:]}. {' '.join(board.notes)}"
    said = [tag("p", words, class_="note") for words in (*overlaps(board), *copies(board))]
    body = join(
        (
            parts.heading(source),
            section("Ranking", *table, *said, id_="ranking", note=note),
            parts.figures(board),
            parts.certainty(source),
            parts.stability(source),
            parts.task_section(source),
            parts.not_ranked(source),
            parts.versions(source),
            parts.about(source),
            data("board-data", view_data(source)),
        )
    )
    scripts = ("state.js", "board.js", "figures.js") if board.shown else ()
    return page(source.title, body, up=UP, scripts=scripts)


def view_data(source: BoardSource) -> Mapping[str, Any]:
    """What the scripts need, with as many digits as are shown."""
    board = source.board
    tasks = [
        {
            "id": t.id,
            "title": clean(source.task_title(t.id)),
            "kind": t.kind,
            "dataset": t.dataset,
            "greater_is_better": t.greater_is_better,
        }
        for t in board.tasks
    ]
    columns = (RANK, *_columns(source))
    return {
        "board": source.id,
        "tasks": tasks,
        "columns": plain(columns),
        "cellColumns": plain(board.cell_columns),
        "limits": [plain(column) for column, _ in _limits(source)],
        "choices": [{"key": column.key, "label": column.label} for column, _ in _choices(source)],
        "profile": [column.key for column in board.cell_columns].index(board.profile) if board.profile else None,
        "scatter": [plain(c) for key in board.scatter or () for c in board.columns if c.key == key],
        "rows": [_row_data(source, row, columns) for row in board.shown],
    }


def _row_data(source: BoardSource, row: BoardRow, columns: Sequence[Column]) -> dict[str, Any]:
    words = source.method(row.method)
    cells = [row.cells[task.id].values if task.id in row.cells else {} for task in source.board.tasks]
    keys = [column.key for column in source.board.cell_columns]
    return {
        "id": row.method,
        "title": clean(source.method_title(row.method)),
        "find": " ".join((row.method, words.title, *words.tags)).lower(),
        "base": row.baseline,
        "values": {column.key: rounded(value_of(row, column), 4) for column in columns} | {RANK.key: row.rank},
        "overlaps": row.overlaps,
        "intervals": {key: rounded([i.low, i.high], 4) for key, i in row.intervals.items()},
        "cells": [rounded([own.get(key) for key in keys], 4) if own else None for own in cells],
    }


def _columns(source: BoardSource) -> tuple[Column, ...]:
    """The columns of the ranking, then those of facts, which scripts hide until they are asked for."""
    return (*with_values(source.board.columns, source.board.shown), *source.board.fact_columns)


def value_of(row: BoardRow, column: Column) -> str | Number:
    return row.values.get(column.key, row.facts.get(column.key))


def _limits(source: BoardSource) -> list[tuple[Column, list[float]]]:
    """Counts by which the rows can be filtered, such as the size of an embedding, and their values."""
    integers = [column for column in _columns(source) if column.format == "integer"]
    rows = source.board.shown
    found = [(c, sorted({v for row in rows if isinstance(v := value_of(row, c), int | float)})) for c in integers]
    return [(column, values) for column, values in found if len(values) > 1]


def _choices(source: BoardSource) -> list[tuple[Column, list[str]]]:
    """Facts by whose words the rows can be filtered, and the words; no word is a choice, too."""
    columns = [column for column in source.board.fact_columns if column.key in FILTERS]
    found = [(c, sorted({str(row.facts.get(c.key, "")) for row in source.board.shown})) for c in columns]
    return [(column, words) for column, words in found if len(words) > 1]


def _toolbar(source: BoardSource) -> Safe:
    board = source.board
    kinds = sorted({task.kind for task in board.tasks})
    search = tag("input", id="search", type="search", placeholder="Search methods ( / )", autocomplete="off")
    controls = [tag("label", tag("span", "Search", class_="hidden"), search)]
    if board.tasks and board.cell_columns:
        controls.append(_choice("Show", "show", [(column.key, column.label) for column in board.cell_columns]))
    if any(row.baseline for row in board.shown):
        controls.append(tag("label", tag("input", id="no-baselines", type="checkbox"), " Hide baselines"))
    limits = {column: _limit(column, counts) for column, counts in _limits(source)}
    controls += [control for column, control in limits.items() if column not in board.fact_columns]
    if len(kinds) > 1:
        controls.append(_choice("Tasks", "kind", [("", "all"), *((kind, kind) for kind in kinds)]))
    if board.fact_columns:
        controls.append(_facts(source, [limits[column] for column in limits if column in board.fact_columns]))
    controls.append(tag("button", "Download view (CSV)", id="download", type="button", class_="quiet"))
    chips = tag("div", id="chips", class_="chips", role="group", aria_label="Filters that are on")
    status = tag("p", id="status", role="status", class_="note")
    # Without scripts the controls would do nothing, so scripts show them.
    return tag("div", tag("div", *controls, class_="controls", role="search"), chips, status, id="toolbar", hidden=True)


def _facts(source: BoardSource, limits: Sequence[Safe]) -> Safe:
    """What there is to choose by facts, folded away: a phone has no room for more than the usual."""
    inside = [tag("label", tag("input", id="facts", type="checkbox"), " Show as columns"), *limits]
    for fact, words in _choices(source):
        named = [(word or UNKNOWN, word or UNKNOWN) for word in words]
        inside.append(_choice(fact.label, f"is-{fact.key}", [("", "any"), *named]))
    if any(row.overlaps for row in source.board.shown):
        inside.append(tag("label", tag("input", id="no-overlap", type="checkbox"), " Hide overlaps"))
    return tag("details", tag("summary", "Facts"), tag("div", *inside), class_="more")


def _limit(column: Column, counts: Sequence[float]) -> Safe:
    most = [(str(count), f"at most {show(column, count)}") for count in counts]
    return _choice(column.label, f"max-{column.key}", [("", "any"), *most])


def _choice(label: str, name: str, options: Sequence[tuple[str, str]]) -> Safe:
    return tag("label", f"{label} ", tag("select", *(tag("option", t, value=v) for v, t in options), id=name))


def _table(source: BoardSource) -> Safe:
    board, columns = source.board, _columns(source)
    head = [
        _header(RANK.key, RANK.label, RANK.help, sorted_="ascending", class_="rank"),
        _header("method", "Method", "Name and id", class_="name"),
        *(_header(column.key, column.label, column.help, class_=_class(source, column)) for column in columns),
        *(_task_header(source, task) for task in board.tasks),
    ]
    heat = {task.id: _heat(source, task) for task in board.tasks}
    rows = [_row(source, row, columns, heat, i) for i, row in enumerate(board.shown)]
    size = f"{counted(len(board.ranked), 'ranked method')}, {counted(len(board.tasks), 'task')}"
    caption = f"{source.title}: {size}"
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *rows), id="board")
    return scroll("div", inner, label=caption, class_="scroll board")


def _header(key: str, label: object, words: str, *, sorted_: str = "none", class_: str = "") -> Safe:
    button = tag("button", label, type="button", title=words or None)
    return tag("th", button, scope="col", data_key=key, aria_sort=sorted_, class_=class_ or None)


def _task_header(source: BoardSource, task: BoardTask) -> Safe:
    small = [
        f"{c.label} {parts.shown(c, task.values.get(c.key))}" for c in source.board.task_columns[:1] if task.values
    ]
    small += [] if task.greater_is_better else [LOWER]
    label = join((tag("span", join(task.id.split("_"), f"_{tag('wbr')}")), *(tag("small", words) for words in small)))
    words = source.task_title(task.id) + ("" if task.greater_is_better else f" ({LOWER})")
    return _header(f"task:{task.id}", label, words, class_="number task")


def _row(source: BoardSource, row: BoardRow, columns: Sequence[Column], heat: Mapping[str, Any], index: int) -> Safe:
    interval = row.intervals.get(RANK.key)
    if row.rank is None:
        first = tag("td", tag("span", "not ranked", class_="soft", title=row.note or None), class_="rank")
    else:
        # Where there is no room for the drawing, the interval is shown in figures.
        figures = tag("span", show(RANK, interval), class_="range") if interval else Safe("")
        drawn = rank_interval(row.rank, interval, len(source.board.ranked))
        first = tag("td", tag("b", row.rank), figures, drawn, class_="rank")
    cells = [_column_cell(column, row, _class(source, column)) for column in columns]
    cells += [_score_cell(source, row, name, level) for name, level in heat.items()]
    unranked = "incomplete" if row.rank is None else None
    return tag("tr", first, _name_cell(source, row), *cells, data_i=index, class_=unranked)


def _class(source: BoardSource, column: Column) -> str:
    fact = " fact" if column in source.board.fact_columns else ""
    return ("words" if column.format == "text" else "number") + fact


def _column_cell(column: Column, row: BoardRow, class_: str) -> Safe:
    interval = row.intervals.get(column.key)
    if column.format == "range":
        return tag("td", parts.shown(column, interval), class_=class_)
    ends = tag("small", parts.shown(column, interval), class_="ends") if interval else Safe("")
    return tag("td", parts.shown(column, value_of(row, column)), ends, class_=class_)


def _name_cell(source: BoardSource, row: BoardRow) -> Safe:
    title = source.method_title(row.method)
    label = tag("a", title, href=f"method/{row.method}.html") if source.board.tasks else tag("span", title)
    small = [tag("small", row.method)] if title != row.method else []
    small += [tag("span", "baseline", class_="badge")] if row.baseline else []
    if row.overlaps:
        words = "; ".join(f"{dataset}: {said}" for dataset, said in row.overlaps.items())
        small.append(tag("span", OVERLAP, class_="badge warn", title=words))
    drawn = bool(source.board.tasks)  # without figures there is nothing to highlight: it then stays hidden
    pick = tag(
        "input", type="checkbox", class_="pick", aria_label=f"Highlight {title}", hidden=True, data_needs_script=drawn
    )
    return tag("th", tag("div", pick, tag("div", label, *small)), scope="row", class_="name")


def _score_cell(source: BoardSource, row: BoardRow, task: str, heat: Any) -> Safe:
    cell = row.cells.get(task, BoardCell(status="missing"))
    column = next(iter(source.board.cell_columns), RANK)
    value = cell.values.get(column.key)
    words = f"{cell.status}: {cell.reason}"
    if value is None:
        return tag("td", tag("abbr", NONE, title=words, aria_label=words), class_="number none")
    if cell.status != "ok":
        return tag("td", f"{MARK}{parts.shown(column, value)}", title=words, class_="number marked")
    level = heat(value) if heat else None
    return tag("td", parts.shown(column, value), class_="number" if level is None else f"number h{level}")


def _heat(source: BoardSource, task: BoardTask) -> Callable[[float], int] | None:
    """A colour level by score; none where no two scores differ. The highest, which is bold, is for the best alone.

    The bad end is cut, so that one very bad method does not bleach the rest.
    """
    ends = bounds(source.board.scores(task.id), task.greater_is_better, 1.5)
    if ends is None or ends[0] == ends[1]:
        return None
    worst, best = ends if task.greater_is_better else ends[::-1]

    def level(value: float) -> int:
        share = (value - worst) / (best - worst)
        return LEVELS if value == best else min(max(round(share * LEVELS), 0), LEVELS - 1)

    return level
