"""The page of a method and the page of a task on a board: scores split by split, labels, card, how to reproduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from neuco_core.boards.formatting import LOWER, RANK, higher_is_better, in_row, with_values
from neuco_core.boards.model import BoardRow, BoardTask, Interval
from neuco_core.boards.views.site import details
from neuco_core.boards.views.site.board_estimates import estimated_of_method, estimated_of_task
from neuco_core.boards.views.site.cards import render
from neuco_core.boards.views.site.charts import Scale, class_bars, histogram, rank_axis, scale, strip
from neuco_core.boards.views.site.html import Safe, code_box, join, linked, page, scroll, section, table, tag
from neuco_core.boards.views.site.pieces import facts_list, nobody_yet, shown
from neuco_core.boards.views.site.profile import profile_of
from neuco_core.boards.views.site.source import BoardSource, Words
from neuco_core.text import counted

UP = "../../../"
Scales = Mapping[str, Scale]


def scales(source: BoardSource) -> Scales:
    """By task, a scale wide enough for every method's splits, or scores where there are no splits."""
    found = {}
    for task in source.board.tasks:
        splits = [value for row in source.board.rows for value in _splits(source, row, task.id)]
        scores = [value for row in source.board.rows if (value := source.board.score(row, task.id)) is not None]
        found[task.id] = scale(splits or scores, task.greater_is_better)
    return found


def method_page(source: BoardSource, row: BoardRow, on: Scales) -> str:
    words, title = source.method(row.method), source.method_title(row.method)
    facts: list[tuple[str, object]] = []
    if row.rank:
        interval = row.intervals.get(RANK.key)
        drawn = rank_axis(row.rank, interval, len(source.board.ranked))
        between = f" ({shown(RANK, interval)})" if interval else ""
        facts.append((RANK.label, join((tag("b", f"{row.rank} of {len(source.board.ranked)}{between} "), drawn))))
    facts += [(column.label, in_row(column, row)) for column in with_values(source.board.columns, (row,))]
    facts += [("Id", row.method), *words.facts]
    facts += [(c.label, shown(c, row.facts[c.key])) for c in source.board.fact_columns if c.key in row.facts]
    facts += [(f"Overlap with {dataset}", said) for dataset, said in row.overlaps.items()]
    facts += [("Baseline", "yes")] if row.baseline else []
    facts += [("Not ranked", row.note)] if row.note else []
    facts += (
        [("The same as", tag("a", source.method_title(row.same_as), href=f"{row.same_as}.html"))] if row.same_as else []
    )
    note = _strip_note(source) if row.known else ""
    body = join(
        (
            _heading(source, title, words, facts),
            profile_of(source, row),
            section(
                "Scores",
                _method_scores(source, row, on),
                estimated_of_method(source, row.method),
                id_="scores",
                note=note,
            ),
            _records(source, row),
            _card(words),
            _reproduce(source, f"neuco score --method {row.method} --suite {source.id}"),
        )
    )
    return page(f"{title} on {source.title}", body, up=UP)


def task_page(source: BoardSource, task: BoardTask, on: Scales) -> str:
    words, title = source.task(task.id), source.task_title(task.id)
    facts: list[tuple[str, object]] = [("Id", task.id)]
    facts += [(c.label, shown(c, task.values[c.key])) for c in source.board.task_columns if c.key in task.values]
    facts += [*(words.facts or (("Metric", task.metric),))]
    facts += [] if task.greater_is_better else [("Scores", LOWER)]
    ranked = bool(source.board.ranked)
    scores, note = (
        (_task_scores(source, task, on[task.id]), _strip_note(source)) if ranked else (nobody_yet(source), "")
    )
    body = join(
        (
            _heading(source, title, words, facts),
            _samples(source, task.id),
            section("Methods", scores, estimated_of_task(source, task.id), id_="scores", note=note),
            _labels(source, task.id),
            _card(words),
            _reproduce(source, "\n".join(_task_commands(source, task.id))),
        )
    )
    return page(f"{title} on {source.title}", body, up=UP)


def _heading(source: BoardSource, title: str, words: Words, facts: Sequence[tuple[str, object]]) -> Safe:
    crumbs = (tag("a", "Boards", href=f"{UP}index.html"), tag("a", source.title, href="../index.html"), title)
    about = [tag("p", linked(words.description), class_="lead")] if words.description else []
    tags = [tag("p", *(tag("span", item, class_="badge") for item in words.tags), class_="tags")] if words.tags else []
    return join((tag("p", join(crumbs, " / "), class_="crumbs"), tag("h1", title), *about, facts_list(facts), *tags))


def _strip_note(source: BoardSource) -> str:
    means = "Dots are means over the runs." if source.board.uncertainty else "Only means are known of these scores."
    dots = "Dots are the scores of single splits; the large dot is their mean, the bar its 95 % interval."
    shared = "The scale of a task is the same for all methods; an arrow at its edge stands for what lies beyond it."
    return f"{means if source.cells is None else dots} {shared}"


def _splits(source: BoardSource, row: BoardRow, task: str) -> list[float]:
    if source.cells is None or source.board.score(row, task) is None:
        return []
    return [value for value in source.cells.cell(row.method, task).splits if value is not None]


def _method_scores(source: BoardSource, row: BoardRow, on: Scales) -> Safe:
    rows = []
    for task in source.board.tasks:
        link = tag("a", source.task_title(task.id), href=f"../task/{task.id}.html", id=f"on-{task.id}")
        link = link if task.greater_is_better else join((link, tag("small", f" {LOWER}", class_="soft")))
        rows.append((link, *_score_cells(source, row, task.id, on[task.id])))
    return table(_headers(source, "Task"), rows, caption="Scores on the tasks of this board", class_="strips")


def _records(source: BoardSource, row: BoardRow) -> Safe:
    """What is behind each score, folded away; the same as the board shows for a cell."""
    found = [(task, details.facts(source, row.method, task.id)) for task in source.board.tasks]
    folded = [
        tag(
            "details",
            tag("summary", source.task_title(task.id)),
            facts_list(facts),
            code_box(details.command(source, row.method, task.id), f"Command that verifies the score on {task.id}"),
        )
        for task, facts in found
        if facts
    ]
    note = "Hashes name the labels and embeddings that were scored; the command runs the score again."
    return section("Records", *folded, id_="records", note=note) if folded else Safe("")


def _task_scores(source: BoardSource, task: BoardTask, on: Scale) -> Safe:
    board = source.board
    # By the column that is drawn over the tasks, such as the rank, or else by the score.
    column = next(c for c in board.cell_columns if board.profile in (c.key, ""))
    sign = -1 if higher_is_better(column, task) else 1
    values = {row.method: row.cells[task.id].values.get(column.key) for row in board.ranked if task.id in row.cells}
    order = {method: sign * value for method, value in values.items() if value is not None}
    rows = []
    for row in sorted((r for r in board.ranked if r.method in order), key=lambda r: (order[r.method], r.method)):
        link = tag("a", source.method_title(row.method), href=f"../method/{row.method}.html")
        rows.append((link, *_score_cells(source, row, task.id, on)))
    return table(_headers(source, "Method"), rows, caption="Ranked methods on this task", class_="strips")


def _headers(source: BoardSource, first: str) -> tuple[object, ...]:
    drawn = "Mean on the scale of the task" if source.cells is None else "Distribution over splits"
    return (first, drawn, *((column.label, "number") for column in source.board.cell_columns))


def _score_cells(source: BoardSource, row: BoardRow, task: str, on: Scale) -> tuple[object, ...]:
    cell, columns = row.cells.get(task), source.board.cell_columns
    score = source.board.score(row, task)
    if cell is None or score is None:
        words = f"{cell.status}: {cell.reason}" if cell else "not scored"
        return (words, *[""] * len(columns))
    interval: Interval | None = cell.intervals.get(columns[0].key)
    drawn = strip(_splits(source, row, task), score, interval, on, f"{row.method} on {task}")
    if cell.status != "ok":
        drawn = join((drawn, tag("small", f"{cell.status}: {cell.reason}", class_="soft")))
    return (drawn, *((shown(column, cell.values.get(column.key)), "number") for column in columns))


def _samples(source: BoardSource, task: str) -> Safe:
    """A few samples with their labels; all pictures of a task have one scale of brightness."""
    found = source.pictures.get(task, ())
    shown_ = []
    for number, picture in enumerate(found):
        count, height, width, _ = picture.images.shape
        size = {"width": count * width, "height": height}
        words = f"Sample {picture.id}, {', '.join(picture.seasons)}, label {picture.label}"
        image = tag("img", src=f"{task}-{number}.png", alt=words, **size, loading="lazy")
        seasons = [tag("small", " · ".join(picture.seasons))] if count > 1 else []
        name = tag("span", picture.id[:16], title=picture.id)
        caption = tag("figcaption", tag("b", picture.label), " ", name, *seasons)
        shown_.append(tag("figure", image, caption))
    look = "samples small" if found and len(found[0].seasons) == 1 else "samples"
    note = (
        "From the whole range of labels, in true colour where the dataset has it. The card says where they come from."
    )
    return section("Samples", tag("div", *shown_, class_=look), id_="samples", note=note) if found else Safe("")


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
    parts = [section("Card", render(words.card), id_="card")] if words.card else []
    rights = [("Citation", words.citation), ("Licence", words.license)]
    if items := [tag("div", tag("dt", name), tag("dd", linked(value))) for name, value in rights if value]:
        parts.append(section("Citation and licence", tag("dl", *items), id_="citation"))
    return join(parts)


def _task_commands(source: BoardSource, task: str) -> list[str]:
    """Commands that work as they stand: with a method of this board, the first if anybody is ranked."""
    found = [f"neuco show {task}"]
    suite, rows = source.board.suite, source.board.rows
    if rows and suite:
        found.append(f"neuco score --method {rows[0].method} --task {task} --protocol {suite.protocol}")
    return found


def _reproduce(source: BoardSource, command: str) -> Safe:
    if mark := source.board.published:
        return section("Source", tag("p", f"{mark.source}. ", linked(mark.citation)), id_="source")
    return section("Reproduce", code_box(command, "Commands that give these scores"), id_="reproduce")
