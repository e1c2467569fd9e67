"""The page of a board. The table is complete without scripts; scripts sort, search, filter and draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from neuco_core.boards.views.site import board_parts as parts
from neuco_core.boards.views.site.charts import bounds, rank_interval
from neuco_core.boards.views.site.html import Safe, data, join, num, page, scroll, section, tag
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import clean, counted

UP = "../../"
LEVELS = 10
# Key in the row, header, digits, what it is. Ranks are computed elsewhere; the page only shows them.
COLUMNS = (
    ("weighted_rank", "Weighted rank", 2, "Sum of weight × rank over the tasks; the less, the better"),
    ("mean_q", "Mean Q", 2, "Mean of Q over the tasks"),
    ("mean_score", "Mean score", 3, "Mean of the mean scores over the tasks"),
    ("borda", "Borda", 1, "A point for each method beaten on a task"),
    ("best", "P(best)", 2, "How often it is first on a plausible board"),
    ("dim", "Size", 0, "Numbers in an embedding"),
)


def board_page(source: BoardSource) -> str:
    board = source.board
    anybody = bool(_all_rows(board))
    shown = (_toolbar(source), _table(source)) if anybody else (tag("p", parts.NOBODY),)
    body = join(
        (
            parts.heading(source),
            section("Ranking", *shown, id_="ranking", note=parts.ranking_note(board)),
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
    scripts = ("state.js", "board.js", "figures.js") if anybody else ()
    return page(source.title, body, up=UP, scripts=scripts)


def view_data(source: BoardSource) -> Mapping[str, Any]:
    """What the scripts need, with as many digits as are shown."""
    tasks = source.board["tasks"]
    ids = [task["id"] for task in tasks]
    rows = [_row_data(source, row, ids) for row in _all_rows(source.board)]
    names = [
        {
            "id": task["id"],
            "title": clean(source.task_title(task["id"])),
            "kind": task.get("kind", ""),
            "greater_is_better": task["greater_is_better"],
        }
        for task in tasks
    ]
    return {"board": source.id, "tasks": names, "columns": [key for key, *_ in _columns(source.board)], "rows": rows}


def _row_data(source: BoardSource, row: Mapping[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
    words = source.method(row["method"])
    found: dict[str, Any] = {
        "id": row["method"],
        "title": clean(words.title or row["method"]),
        "find": " ".join((row["method"], words.title, *words.tags)).lower(),
        "rank": row.get("rank"),
        "base": row["baseline"],
    }
    found |= {key: _short(row.get(key)) for key, *_ in COLUMNS}
    found["rank_interval"] = row.get("rank_interval")
    found["q_interval"] = [_short(end) for end in row.get("mean_q_interval") or ()]
    scores = row.get("scores", {})
    found["scores"] = [_score_data(scores.get(task)) for task in tasks]
    return found


def _score_data(score: Mapping[str, Any] | None) -> list[Any] | None:
    return (
        None if score is None else [_short(score["mean"]), _short(score["q"]), score.get("rank"), _short(score["std"])]
    )


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _all_rows(board: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The ranked methods, and those that lack something; who has no score at all is only in the list of reasons."""
    return [*board["rows"], *(row for row in board.get("incomplete", ()) if row["scores"])]


def _columns(board: Mapping[str, Any]) -> list[tuple[str, str, int, str]]:
    """The columns of which anything is known."""
    rows = _all_rows(board)
    known = [column for column in COLUMNS if any(row.get(column[0]) is not None for row in rows)]
    if board["tasks"]:
        return known
    # Standings are shown with all the digits that were published.
    return [(key, label, 3 if key == "mean_q" else digits, words) for key, label, digits, words in known]


def _toolbar(source: BoardSource) -> Safe:
    kinds = sorted({task["kind"] for task in source.board["tasks"]})
    dims = sorted({row["dim"] for row in _all_rows(source.board) if row.get("dim")})
    search = tag("input", id="search", type="search", placeholder="Search methods ( / )", autocomplete="off")
    controls = [tag("label", tag("span", "Search", class_="hidden"), search)]
    if source.board["tasks"]:
        options = [
            tag("option", label, value=value)
            for value, label in (("score", "mean score"), ("q", "Q"), ("rank", "rank"))
        ]
        controls.append(tag("label", "Show ", tag("select", *options, id="show")))
    if any(row["baseline"] for row in _all_rows(source.board)):
        controls.append(tag("label", tag("input", id="no-baselines", type="checkbox"), " Hide baselines"))
    if len(dims) > 1:
        options = [tag("option", "any", value=""), *(tag("option", f"at most {dim}", value=dim) for dim in dims)]
        controls.append(tag("label", "Size ", tag("select", *options, id="dim")))
    if len(kinds) > 1:
        options = [tag("option", "all", value=""), *(tag("option", kind, value=kind) for kind in kinds)]
        controls.append(tag("label", "Tasks ", tag("select", *options, id="kind")))
    controls.append(tag("button", "Download view (CSV)", id="download", type="button", class_="quiet"))
    chips = tag("div", id="chips", class_="chips", role="group", aria_label="Filters that are on")
    status = tag("p", id="status", role="status", class_="note")
    # Without scripts the controls would do nothing, so scripts show them.
    return tag("div", tag("div", *controls, class_="controls", role="search"), chips, status, id="toolbar", hidden=True)


def _table(source: BoardSource) -> Safe:
    board = source.board
    columns = _columns(board)
    head = [
        _header(
            "rank", "Rank", "Final rank, and the ranks that are plausible for it", sorted_="ascending", class_="rank"
        ),
        _header("method", "Method", "Name and id", class_="name"),
        *(_header(key, label, words, class_="number") for key, label, _, words in columns),
        *(_task_header(source, task) for task in board["tasks"]),
    ]
    heat = {task["id"]: _heat(board, task) for task in board["tasks"]}
    rows = [_row(source, row, columns, heat, i) for i, row in enumerate(_all_rows(board))]
    size = f"{counted(len(board['rows']), 'ranked method')}, {counted(len(board['tasks']), 'task')}"
    caption = f"{source.title}: {size}"
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *rows), id="board")
    return scroll("div", inner, label=caption, class_="scroll board")


def _header(key: str, label: object, words: str, *, sorted_: str = "none", class_: str = "", **more: Any) -> Safe:
    button = tag("button", label, type="button", title=words)
    return tag("th", button, scope="col", data_key=key, aria_sort=sorted_, class_=class_ or None, **more)


def _task_header(source: BoardSource, task: Mapping[str, Any]) -> Safe:
    weight = tag("small", f"weight {num(task['weight'], 3)}") if task["weight"] is not None else Safe("")
    turned = Safe("") if task["greater_is_better"] else tag("small", parts.LESS)
    label = join((tag("span", join(task["id"].split("_"), f"_{tag('wbr')}")), weight, turned))
    words = source.task_title(task["id"]) + ("" if task["greater_is_better"] else f" ({parts.LESS})")
    return _header(f"task:{task['id']}", label, words, class_="number task")


def _row(source: BoardSource, row: Mapping[str, Any], columns: Any, heat: Mapping[str, Any], index: int) -> Safe:
    methods = len(source.board["rows"])
    place = row.get("rank")
    if place is None:
        first = tag("td", tag("span", "not ranked", class_="soft"), class_="rank")
    else:
        ends = row.get("rank_interval")
        # Where there is no room for the drawing, the interval is shown in figures.
        figures = tag("span", "–".join(map(str, ends)), class_="range") if ends else Safe("")
        first = tag("td", tag("b", place), figures, rank_interval(place, ends, methods), class_="rank")
    cells = [tag("td", num(row.get(key), digits), class_="number") for key, _, digits, _ in columns]
    cells += [_score_cell(row, name, level) for name, level in heat.items()]
    return tag(
        "tr", first, _name_cell(source, row), *cells, data_i=index, class_="incomplete" if place is None else None
    )


def _name_cell(source: BoardSource, row: Mapping[str, Any]) -> Safe:
    name = row["method"]
    title = source.method_title(name)
    label = tag("a", title, href=f"method/{name}.html") if source.board["tasks"] else tag("span", title)
    small = [tag("small", name)] if title != name else []
    small += [tag("span", "baseline", class_="badge")] if row["baseline"] else []
    drawn = bool(source.board["tasks"])  # without figures there is nothing to highlight: it then stays hidden
    words = f"Highlight {title}"
    pick = tag("input", type="checkbox", class_="pick", aria_label=words, hidden=True, data_needs_script=drawn)
    return tag("th", tag("div", pick, tag("div", label, *small)), scope="row", class_="name")


def _score_cell(row: Mapping[str, Any], task: str, heat: Any) -> Safe:
    score = row.get("scores", {}).get(task)
    if score is None:
        lack = row.get("lacks", {}).get(task, {})
        words = f"{lack.get('status', 'no score')}: {lack.get('reason', '')}"
        return tag("td", tag("abbr", "–", title=words, aria_label=words), class_="number none")
    level = heat(score["mean"]) if heat else None
    return tag("td", num(score["mean"]), class_="number" if level is None else f"number h{level}")


def _heat(board: Mapping[str, Any], task: Mapping[str, Any]) -> Callable[[float], int] | None:
    """A colour level by score; none where no two scores differ. The highest, which is bold, is for the best alone.

    The bad end is cut, so that one very bad entry does not bleach the rest.
    """
    means = [row["scores"][task["id"]]["mean"] for row in board["rows"]]
    ends = bounds(means, task["greater_is_better"], 1.5)
    if ends is None or ends[0] == ends[1]:
        return None
    worst, best = ends if task["greater_is_better"] else ends[::-1]

    def level(value: float) -> int:
        share = (value - worst) / (best - worst)
        return LEVELS if value == best else min(max(round(share * LEVELS), 0), LEVELS - 1)

    return level
