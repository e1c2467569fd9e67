"""The table of a board: complete without scripts, which sort, search, filter, and show other values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from neuco_core.boards.formatting import LOWER, MARK, NONE, RANK, axes, higher_is_better, show, with_values
from neuco_core.boards.model import Board, BoardCell, BoardRow, BoardTask, Column, Number
from neuco_core.boards.views.report import OVERLAP
from neuco_core.boards.views.site import charts
from neuco_core.boards.views.site.board_estimates import estimated_cell
from neuco_core.boards.views.site.html import Safe, join, scroll, tag
from neuco_core.boards.views.site.pieces import shown
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import counted

LEVELS = 10
SHADES = "0123456789a"  # a level as one character, for the scripts
AXIS = "place"
SHORTEST_HEAD, LONGEST_TAIL = 9, 30  # characters, of a name that is cut
LONG = 100  # rows
FITTING = 11  # tasks on a wide screen
LONGEST_WORD = 14  # in the head of a column
Heat = Callable[[float], int]


@dataclass(frozen=True)
class Layout:
    """Where the columns of a board stand: one drawn as bars before the tasks, with capabilities beside it, a few after
    them, the rest on demand. Where there are capabilities, the tasks are on demand, too."""

    drawn: tuple[Column, ...]
    beside: tuple[Column, ...]
    after: tuple[Column, ...]
    more: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.drawn, *self.beside, *self.after, *self.more)


def layout(board: Board) -> Layout:
    """The columns that are drawn against each other are always shown; a board without tasks has room for all."""
    known = with_values(board.columns, lines_of(board))
    numbers = [column for column in known if column.format in ("number", "percent", "integer")]
    pair = [column for key in board.scatter or () for column in numbers if column.key == key]
    bars = pair[-1:] or [column for column in numbers if any(column.key in r.intervals for r in lines_of(board))][:1]
    beside = [column for column in axes(board) if column in known and column not in bars]
    rest = [column for column in known if column not in (*bars, *beside)]
    after = [column for column in rest if column in pair or not board.tasks or len(known) <= 3]
    more = [column for column in rest if column not in after]
    return Layout(tuple(bars), tuple(beside), tuple(after), (*more, *board.fact_columns))


def one_line(title: str) -> Safe:
    """A name for one line. Variants of a method mostly differ after the last comma: what is before that is cut."""
    head, _, tail = title.rpartition(", ")
    if len(head) < SHORTEST_HEAD or len(tail) > LONGEST_TAIL:
        return tag("span", title, class_="head")
    return join((tag("span", head, class_="head"), tag("span", f", {tail}", class_="tail")))


def lines_of(board: Board) -> tuple[BoardRow, ...]:
    """The rows of the table; a copy of another method is named beside that one."""
    return tuple(row for row in board.shown if not row.same_as)


def value_of(row: BoardRow, column: Column) -> str | Number:
    return row.values.get(column.key, row.facts.get(column.key))


def short_names(tasks: Sequence[BoardTask]) -> dict[str, str]:
    """The names of tasks without the words that they all begin with."""
    words = {task.id: task.id.replace("-", "_").split("_") for task in tasks}
    common = 0
    while len(tasks) > 1 and len({tuple(own[: common + 1]) for own in words.values()}) == 1:
        if any(len(own) <= common + 1 for own in words.values()):
            break
        common += 1
    return {task: " ".join(own[common:]) for task, own in words.items()}


def heat(board: Board, column: Column, task: BoardTask) -> Heat | None:
    """A colour level by a value; none where no two differ. The highest, which is bold, is for the best alone.

    The bad end is cut, so that one very bad method does not bleach the rest.
    """
    cells = [row.cells[task.id].values.get(column.key) for row in board.ranked if task.id in row.cells]
    return _levels([value for value in cells if value is not None], higher_is_better(column, task))


def _levels(values: Sequence[float], higher: bool) -> Heat | None:
    ends = charts.bounds(values, higher, 1.5)
    if ends is None or ends[0] == ends[1]:
        return None
    worst, best = ends if higher else ends[::-1]

    def level(value: float) -> int:
        share = (value - worst) / (best - worst)
        return LEVELS if value == best else min(max(round(share * LEVELS), 0), LEVELS - 1)

    return level


def column_heat(board: Board, column: Column) -> Heat | None:
    """The same for a column of the board."""
    values = [value for row in board.ranked if isinstance(value := row.values.get(column.key), int | float)]
    return _levels(values, column.direction != "lower")


def shades(board: Board) -> dict[str, list[str]]:
    """By method, for each column of cells a text with one character per task: its level, or - for none."""
    found: dict[str, list[str]] = {row.method: [] for row in lines_of(board)}
    for column in board.cell_columns:
        levels = [heat(board, column, task) for task in board.tasks]
        for row in lines_of(board):
            own = [row.cells.get(task.id, BoardCell()) for task in board.tasks]
            values = [cell.values.get(column.key) if cell.status == "ok" else None for cell in own]
            pairs = zip(levels, values, strict=True)
            marks = ("-" if level is None or value is None else SHADES[level(value)] for level, value in pairs)
            found[row.method].append("".join(marks))
    return found


def gaps(board: Board) -> set[str]:
    """The methods above which the data draw a line: no group holds both them and the one before."""
    if board.groups is None:
        return set()
    order = [row.method for row in board.ranked]
    joined = {pair for group in board.groups for pair in pairwise(group)}
    return {after for before, after in pairwise(order) if (before, after) not in joined}


def table(source: BoardSource, colours: Mapping[str, Sequence[str]]) -> Safe:
    board, place = source.board, layout(source.board)
    tail = (*place.after, *place.more)
    head = [
        _header(RANK.key, RANK.label, RANK.help, sorted_="ascending", class_="rank"),
        _header("method", "Method", "Name and id", class_="name"),
        _axis_head(board),
        *(_header(column.key, _interval_label(board, column), column.help, class_="amount") for column in place.drawn),
        *(_header(c.key, _breakable(c.label), c.help, class_="number beside") for c in place.beside),
        *_task_heads(source),
        *(_header(column.key, column.label, column.help, class_=_class(place, column)) for column in tail),
    ]
    ends = {column: _ends(board, column) for column in place.drawn}
    levels = {column: column_heat(board, column) for column in place.beside}
    apart = gaps(board)
    rows = []
    for index, row in enumerate(lines_of(board)):
        cells = [_rank_cell(board, row), _name_cell(source, row), _axis_cell(board, row)]
        cells += [_bar_cell(column, row, ends[column]) for column in place.drawn]
        cells += [_beside_cell(column, row, levels[column]) for column in place.beside]
        first = colours[row.method][0] if board.cell_columns else ""
        cells += [_score_cell(source, row, task.id, first[i]) for i, task in enumerate(board.tasks) if first]
        cells += [_column_cell(column, row, _class(place, column)) for column in tail]
        class_ = "incomplete" if row.rank is None else "gap" if row.method in apart else None
        rows.append(tag("tr", *cells, data_i=index, class_=class_))
    size = f"{counted(len(board.ranked), 'ranked method')}, {counted(len(board.tasks), 'task')}"
    caption = f"{source.title}: {size}"
    folded = bool(place.beside)
    # How much room there is for names.
    room = None if folded else "roomy" if len(board.tasks) <= 5 else "dense" if len(board.tasks) > 9 else None
    parts = (tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *rows))
    # Of a long table the first rows are drawn at once, and the rest when they can be used.
    wide = len(board.tasks) > FITTING or folded
    look = " ".join(filter(None, (room, "wide" * wide, "long" * (len(rows) > LONG), "folded" * folded)))
    inner = tag("table", *parts, id="board", class_=look or None)
    return scroll("div", inner, label=caption, class_="scroll board")


def _header(key: str, label: object, words: str, *, sorted_: str = "none", class_: str = "") -> Safe:
    button = tag("button", label, type="button", title=words or None)
    return tag("th", button, scope="col", data_key=key, aria_sort=sorted_, class_=class_ or None)


def _breakable(label: str) -> Safe:
    """A long name may break after a slash."""
    return join(label.split("/"), f"/{tag('wbr')}")


def _axis_head(board: Board) -> Safe:
    level = f"{board.uncertainty.level:.0%} interval of the rank" if board.uncertainty else "Rank, interval unknown"
    return tag("th", tag("span", level), charts.rank_ticks(max(len(board.ranked), 1)), scope="col", class_=AXIS)


def _interval_label(board: Board, column: Column) -> str:
    known = board.uncertainty and any(column.key in row.intervals for row in board.ranked)
    return f"{column.label}, {board.uncertainty.level:.0%} interval" if known and board.uncertainty else column.label


def _task_heads(source: BoardSource) -> list[Safe]:
    """The name leads to the task's page; the bar below it, of the first column of tasks, sorts."""
    board = source.board
    names, columns = short_names(board.tasks), board.task_columns[:1]
    known = [v for task in board.tasks for c in columns if (v := task.values.get(c.key)) is not None and v >= 0]
    found = []
    for task in board.tasks if board.cell_columns else ():
        title = source.task_title(task.id) + ("" if task.greater_is_better else f" ({LOWER})")
        words = [join(re.findall(f".{{1,{LONGEST_WORD}}}", word), tag("wbr")) for word in names[task.id].split()]
        link = tag("a", join(words, " "), href=f"task/{task.id}.html", title=title)
        drawn = [
            charts.weight_bar(value, max(known), f"{column.label} {shown(column, value)}")
            for column in columns
            if (value := task.values.get(column.key)) is not None and known
        ]
        below = [] if task.greater_is_better else [tag("small", LOWER)]
        label = join((tag("span", f"Sort by {names[task.id]}. ", class_="hidden"), *drawn))
        button = tag("button", label, type="button")
        attributes = {"scope": "col", "data_key": f"task:{task.id}", "aria_sort": "none"}
        found.append(tag("th", link, *below, button, **attributes, class_="task"))
    return found


def _rank_cell(board: Board, row: BoardRow) -> Safe:
    interval = row.intervals.get(RANK.key)
    if row.rank is None:
        return tag("td", tag("span", "not ranked", class_="soft", title=row.note or None), class_="rank")
    figures = show(RANK, interval) if interval else "?" if board.uncertainty is None else ""
    title = None if interval else "interval unknown"
    return tag("td", tag("b", row.rank), tag("small", figures, class_="range", title=title), class_="rank")


def _axis_cell(board: Board, row: BoardRow) -> Safe:
    drawn = charts.rank_axis(row.rank, row.intervals.get(RANK.key), len(board.ranked)) if row.rank else Safe("")
    return tag("td", drawn, class_=AXIS)


def _name_cell(source: BoardSource, row: BoardRow) -> Safe:
    title = source.method_title(row.method)
    label = (
        tag("a", one_line(title), href=f"method/{row.method}.html", title=f"{title} ({row.method})", class_="label")
        if source.board.tasks
        else tag("span", one_line(title), class_="label", title=title)
    )
    small = []
    if same := [other.method for other in source.board.rows if other.same_as == row.method]:
        words = f"The same in every task: {', '.join(map(source.method_title, same))}"
        small.append(tag("small", f"= {', '.join(same)}", class_="same", title=words))
    small += [tag("span", "baseline", class_="badge")] if row.baseline else []
    if row.overlaps:
        words = "; ".join(f"{dataset}: {said}" for dataset, said in row.overlaps.items())
        small.append(tag("span", OVERLAP, class_="badge warn", title=words))
    # Without tasks there is nothing to compare. Without scripts the style sheet hides it.
    hidden = not source.board.tasks
    pick = tag("input", type="checkbox", class_="pick", aria_label=f"Select {title}", hidden=hidden)
    return tag("th", tag("div", pick, label, *small), scope="row", class_="name")


def _ends(board: Board, column: Column) -> tuple[float, float]:
    """The smallest and the largest value of a column, intervals included."""
    values = [row.values.get(column.key) for row in board.ranked]
    for row in board.ranked:
        if interval := row.intervals.get(column.key):
            values += [interval.low, interval.high]
    known = [value for value in values if isinstance(value, int | float)] or [0.0]
    return min(known), max(known)


def _bar_cell(column: Column, row: BoardRow, ends: tuple[float, float]) -> Safe:
    value, interval = value_of(row, column), row.intervals.get(column.key)
    figure = tag("span", shown(column, value), class_="figure")
    if not isinstance(value, int | float):
        return tag("td", figure, class_="amount")
    between = shown(column, interval) if interval else ""
    label = f"{column.label} {shown(column, value)}" + (f", between {between}" if between else "")
    drawn = charts.value_bar(value, interval, ends, label)
    ends_ = [tag("small", between, class_="ends")] if between else []
    return tag("td", tag("div", figure, drawn, *ends_), class_="amount")


def _beside_cell(column: Column, row: BoardRow, level: Heat | None) -> Safe:
    value, interval = row.values.get(column.key), row.intervals.get(column.key)
    heat_ = f" h{level(value)}" if level and isinstance(value, int | float) else ""
    title = f"{column.label} {shown(column, value)}, between {shown(column, interval)}" if interval else None
    return tag("td", shown(column, value), class_=f"number beside{heat_}", title=title)


def _class(place: Layout, column: Column) -> str:
    return ("words" if column.format == "text" else "number") + (" more" if column in place.more else "")


def _column_cell(column: Column, row: BoardRow, class_: str) -> Safe:
    interval = row.intervals.get(column.key)
    if column.format == "range":
        return tag("td", shown(column, interval), class_=class_)
    ends = tag("small", f" {shown(column, interval)}", class_="ends") if interval else Safe("")
    return tag("td", shown(column, value_of(row, column)), ends, class_=class_)


def _score_cell(source: BoardSource, row: BoardRow, task: str, shade: str) -> Safe:
    cell = row.cells.get(task, BoardCell(status="missing"))
    column = source.board.cell_columns[0]
    value = cell.values.get(column.key)
    words = f"{cell.status}: {cell.reason}"
    if value is None:
        none = tag("abbr", NONE, title=words, aria_label=words)
        return tag("td", none, estimated_cell(source, row, task), class_="cell none")
    marked = cell.status != "ok"
    # What is behind the number is on the page of the method; scripts show it here, too.
    class_ = "cell marked" if marked else "cell" if shade == "-" else f"cell h{SHADES.index(shade)}"
    return tag("td", f"{MARK * marked}{shown(column, value)}", class_=class_, title=words if marked else None)
