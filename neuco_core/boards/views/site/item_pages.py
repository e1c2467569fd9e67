"""The page of a method and the page of a task on a board: scores split by split, labels, card, how to reproduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuco_core.boards.views.site.board_parts import LESS, NOBODY
from neuco_core.boards.views.site.cards import render
from neuco_core.boards.views.site.charts import Scale, class_bars, histogram, rank_interval, scale, strip
from neuco_core.boards.views.site.html import Safe, code_box, join, num, page, scroll, section, table, tag
from neuco_core.boards.views.site.source import BoardSource, Words
from neuco_core.text import counted

UP = "../../../"
Row = Mapping[str, Any]
Scales = Mapping[str, Scale]


def scales(source: BoardSource) -> Scales:
    """By task, a scale wide enough for every method's splits, or means where there are no splits."""
    found = {}
    rows = [*source.board["rows"], *source.board["incomplete"]]
    for task in source.board["tasks"]:
        name = task["id"]
        scored = [row for row in rows if name in row["scores"]]
        splits = [value for row in scored for value in _splits(source, row["method"], name)]
        values = splits or [row["scores"][name]["mean"] for row in scored]
        found[name] = scale(values, task["greater_is_better"])
    return found


def method_page(source: BoardSource, row: Row, on: Scales) -> str:
    name = row["method"]
    words = source.method(name)
    facts = [("Id", name), ("Size", row["dim"] or "not known"), *words.facts]
    facts += [("Baseline", "yes")] if row["baseline"] else []
    if row.get("rank"):
        drawn = rank_interval(row["rank"], row["rank_interval"], len(source.board["rows"]))
        place = join((tag("b", f"{row['rank']} of {len(source.board['rows'])} "), drawn))
        facts = [("Rank", place), *_more_ranks(row), *facts]
    note = _strip_note(source) if row["scores"] else ""
    body = join(
        (
            _heading(source, words.title or name, words, facts),
            section("Scores", _method_scores(source, row, on), id_="scores", note=note),
            _card(words),
            _reproduce(source, f"neuco score --method {name} --suite {source.id}"),
        )
    )
    return page(f"{words.title or name} on {source.title}", body, up=UP)


def _more_ranks(row: Row) -> list[tuple[str, object]]:
    """What else is known of a rank, if it is."""
    found: list[tuple[str, object]] = []
    if row["rank_other_tasks"]:
        low, high = row["rank_other_tasks"]
        found.append(("With other tasks of this kind", str(low) if low == high else f"{low} to {high}"))
    if row["best"] is not None:
        found.append(("First on", f"{row['best']:.0%} of plausible boards"))
    return found


def task_page(source: BoardSource, task: Row, on: Scales) -> str:
    name = task["id"]
    words = source.task(name)
    facts = [("Id", name), ("Weight", num(task["weight"])), *(words.facts or (("Metric", task["metric"]),))]
    facts += [] if task["greater_is_better"] else [("Scores", LESS)]
    ranked = bool(source.board["rows"])
    scores = _task_scores(source, task, on[name]) if ranked else tag("p", NOBODY)
    body = join(
        (
            _heading(source, words.title or name, words, facts),
            section("Methods", scores, id_="scores", note=_strip_note(source) if ranked else ""),
            _labels(source, name),
            _card(words),
            _reproduce(source, "\n".join(_task_commands(source, name))),
        )
    )
    return page(f"{words.title or name} on {source.title}", body, up=UP)


def _heading(source: BoardSource, title: str, words: Words, facts: Sequence[tuple[str, object]]) -> Safe:
    crumbs = (tag("a", "Boards", href=f"{UP}index.html"), tag("a", source.title, href="../index.html"), title)
    listed = tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_="facts")
    about = [tag("p", words.description, class_="lead")] if words.description else []
    tags = [tag("p", *(tag("span", item, class_="badge") for item in words.tags), class_="tags")] if words.tags else []
    return join((tag("p", join(crumbs, " / "), class_="crumbs"), tag("h1", title), *about, listed, *tags))


def _strip_note(source: BoardSource) -> str:
    shared = "The scale of a task is the same for all methods; an arrow at its edge stands for what lies beyond it."
    if source.table is None:
        return f"Only means are known of these scores. {shared}"
    dots = "Dots are the scores of single splits; the large dot is their mean, the bar its 95 % interval."
    return f"{dots} {shared}"


def _splits(source: BoardSource, method: str, task: str) -> list[float]:
    if source.table is None:
        return []
    return [value for value in source.table.cell(method, task).splits if value is not None]


def _method_scores(source: BoardSource, row: Row, on: Scales) -> Safe:
    rows = []
    for task in source.board["tasks"]:
        name = task["id"]
        link = tag("a", source.task_title(name), href=f"../task/{name}.html")
        link = link if task["greater_is_better"] else join((link, tag("small", f" {LESS}", class_="soft")))
        score = row["scores"].get(name)
        cells: tuple[object, ...]
        if score is None:
            lack = row["lacks"][name]
            cells = (f"{lack['status']}: {lack['reason']}", "", "", "", "")
        else:
            cells = _score_cells(source, row["method"], name, score, on[name])
        rows.append((link, *cells))
    return table(_headers(source, "Task"), rows, caption="Scores on the tasks of this board", class_="strips")


def _task_scores(source: BoardSource, task: Row, on: Scale) -> Safe:
    name = task["id"]
    ordered = sorted(source.board["rows"], key=lambda row: (row["scores"][name]["rank"], row["method"]))
    rows = [
        (
            tag("a", source.method_title(row["method"]), href=f"../method/{row['method']}.html"),
            *_score_cells(source, row["method"], name, row["scores"][name], on),
        )
        for row in ordered
    ]
    return table(_headers(source, "Method"), rows, caption="Ranked methods on this task", class_="strips")


def _headers(source: BoardSource, first: str) -> tuple[object, ...]:
    drawn = "Mean on the scale of the task" if source.table is None else "Distribution over splits"
    return (first, drawn, *((name, "number") for name in ("mean", "std", "Q", "rank")))


def _score_cells(source: BoardSource, method: str, task: str, score: Row, on: Scale) -> tuple[object, ...]:
    words = f"{method} on {task}"
    drawn = strip(_splits(source, method, task), score["mean"], score.get("mean_interval"), on, words)
    numbers = (num(score["mean"]), num(score["std"]), num(score["q"], 2), score.get("rank") or "–")
    return (drawn, *((value, "number") for value in numbers))


def _labels(source: BoardSource, task: str) -> Safe:
    found = source.labels.get(task)
    if found is None:
        return Safe("")
    words = counted(found.total, "label") + (f" ({found.unit})" if found.unit else "")
    if found.classes:
        words += f", {counted(len(found.classes), 'class')}"
        drawn = class_bars(found.counts, found.classes, words)
    else:
        words += f", from {found.edges[0]:.4g} to {found.edges[-1]:.4g}"
        drawn = histogram(found.counts, found.edges, words)
    return section("Labels", scroll("div", drawn, label="How the labels are spread"), id_="labels", note=words)


def _card(words: Words) -> Safe:
    parts = []
    if words.card:
        parts.append(section("Card", render(words.card), id_="card"))
    rights = [("Citation", words.citation), ("Licence", words.license)]
    items = [tag("div", tag("dt", name), tag("dd", value)) for name, value in rights if value]
    if items:
        parts.append(section("Citation and licence", tag("dl", *items), id_="citation"))
    return join(parts)


def _task_commands(source: BoardSource, task: str) -> list[str]:
    """Commands that work as they stand: with a method of this board, the first if anybody is ranked."""
    found = [f"neuco show {task}"]
    methods = [row["method"] for row in (*source.board["rows"], *source.board["incomplete"])]
    if methods and not source.published:
        protocol = source.board["suite"]["protocol"]
        found.append(f"neuco score --method {methods[0]} --task {task} --protocol {protocol}")
    return found


def _reproduce(source: BoardSource, command: str) -> Safe:
    if source.published:
        mark = source.board["published"]
        return section("Source", tag("p", f"{mark['source']}. {mark['citation']}"), id_="source")
    return section("Reproduce", code_box(command, "Commands that give these scores"), id_="reproduce")
