"""The parts of a board's page around its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuco_core.boards.history import Change
from neuco_core.boards.stats.ranges import SLACK
from neuco_core.boards.views.report import reasons
from neuco_core.boards.views.site.html import Safe, code_box, join, num, section, table, tag
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import counted

MANY = 12
NOBODY = "Nobody is ranked yet."
LESS = "less is better"
Board = Mapping[str, Any]


def heading(source: BoardSource) -> Safe:
    board = source.board
    crumbs = tag("p", tag("a", "Boards", href="../../index.html"), " / ", source.id, class_="crumbs")
    facts = [("Ranked methods", len(board["rows"])), ("Tasks", len(board["tasks"]) or "–")]
    if not source.published:
        suite = board["suite"]
        facts += [("Protocol", suite["protocol"]), ("Suite version", suite["version"])]
    if board["rows"]:
        facts.append(("First", _leader(source)))
    listed = tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_="facts")
    return join((crumbs, tag("h1", source.title), _lead(source), _banner(source), listed))


def _lead(source: BoardSource) -> Safe:
    return tag("p", source.description, class_="lead") if source.description else Safe("")


def _banner(source: BoardSource) -> Safe:
    if not source.published:
        return Safe("")
    mark = source.board["published"]
    words = "Published result, imported as it was printed. Nothing on this page was computed from embeddings by neuco. "
    return tag("p", tag("strong", words), f"Source: {mark['source']}. {mark['citation']}", class_="banner")


def _leader(source: BoardSource) -> str:
    first = [row for row in source.board["rows"] if row["rank"] == 1]
    names = ", ".join(source.method_title(row["method"]) for row in first)
    chance = first[0].get("best") if len(first) == 1 < len(source.board["rows"]) else None
    return f"{names} (on {chance:.0%} of plausible boards)" if chance is not None else names


def ranking_note(board: Board) -> str:
    if "ranking" not in board:
        return "Ranks as published."
    words = board["ranking"]["words"]
    return f"{words[0].upper()}{words[1:]}."


def figures(board: Board) -> Safe:
    """Places for the drawings; the scripts fill and show them."""
    if not board["rows"] or not board["tasks"]:
        return Safe("")
    boxes = [
        _figure(
            "parallel", "Profiles", "Each line is a method, each axis a task: the higher, the better its rank there."
        ),
        _figure("scatter", "Size against quality", "Size of the embedding against mean Q, with its interval."),
    ]
    note = "Point at a line or a dot to see whose it is; tick methods in the table to highlight them."
    return tag(
        "div",
        section("Figures", tag("div", *boxes, class_="figures"), id_="figures", note=note),
        hidden=True,
        id="drawn",
    )


def _figure(name: str, title: str, words: str) -> Safe:
    drawing = tag("div", id=name, class_="drawing")
    return tag(
        "figure", tag("figcaption", tag("b", title), " ", words), drawing, tag("p", id=f"{name}-says", class_="note")
    )


def certainty(source: BoardSource) -> Safe:
    board = source.board
    if not board.get("uncertainty"):
        if not board["tasks"] or not board["rows"]:
            return Safe("")
        words = "The scores of single splits are not known here, so nothing can be said about chance."
        return section("How sure is this?", tag("p", words), id_="certainty")
    how = board["uncertainty"]
    words = f"Intervals are at {how['level']:.0%}: {how['how']}; {how['replicates']} replicates."
    body = [tag("p", _apart(board)), *_groups(source)]
    body += [tag("p", _ranks_words(how))] if len(board["rows"]) > 1 else []
    return section("How sure is this?", *body, tag("p", words, class_="note"), id_="certainty")


def _groups(source: BoardSource) -> list[Safe]:
    groups = source.board["groups"]
    items = [tag("li", _group(source, group)) for group in groups[:MANY]]
    if len(groups) > MANY:
        items.append(tag("li", f"and {counted(len(groups) - MANY, 'more group')}, in the JSON file"))
    return [tag("ul", *items)] if items else []


def _apart(board: Board) -> str:
    if len(board["rows"]) == 1:
        return "Only one method is ranked: there is nobody to tell it apart from."
    if board["groups"]:
        return "The data cannot tell the methods of each of these groups apart:"
    return "Every method can be told apart from its neighbours in the ranking."


def _ranks_words(how: Mapping[str, Any]) -> str:
    """What the bars beside the ranks mean, and P(best)."""
    return (
        f"The bar beside a rank spans the ranks that are plausible for the method: it is made to hold its rank on "
        f"{how['level']:.0%} of plausible boards on average, and for each method on at least "
        f"{how['level'] - SLACK:.0%}. "
        "P(best) is how often the method is first on a plausible board."
    )


def _group(source: BoardSource, group: Sequence[str]) -> Safe:
    """The names of a group; of a large one the ends, and how many it has."""
    names = [tag("b", source.method_title(name)) for name in group]
    if len(names) <= MANY:
        return join(names, ", ")
    return join((*names[:3], f"… ({len(names)} methods) …", *names[-2:]), ", ")


def stability(source: BoardSource) -> Safe:
    board = source.board
    if len(board["rows"]) < 2:  # alone, nobody can change places
        return Safe("")
    if not board.get("variants") and not board.get("without_method") and not board.get("without_task"):
        return Safe("")
    body = [_variants(source)]
    for key, what, title in (
        ("without_method", "method", source.method_title),
        ("without_task", "task", source.task_title),
    ):
        flips = sorted(board[key], key=lambda flip: (-len(flip["moves"]), flip["left_out"]))
        rows = [(title(flip["left_out"]), _moves(source, flip["moves"])) for flip in flips[:MANY]]
        caption = f"If one {what} is left out: who changes places (rank among the rest, before → after)"
        if rows:
            body.append(table((f"Left out {what}", "Moves"), rows, caption=caption))
        else:
            body.append(tag("p", f"Leaving out any one {what} changes no order."))
    return section("What does it hang on?", *body, id_="stability")


def _moves(source: BoardSource, moves: Mapping[str, Any]) -> str:
    ordered = sorted(moves.items(), key=lambda item: item[1])
    shown = [f"{source.method_title(name)} {before} → {after}" for name, (before, after) in ordered[:MANY]]
    return "; ".join(shown) + (f"; and {len(ordered) - MANY} more" if len(ordered) > MANY else "")


def _variants(source: BoardSource) -> Safe:
    board = source.board
    headers = ("Method", "this board", *(variant["name"] for variant in board["variants"]))
    headers += ("mean rank", "mean Q", "mean score", "Borda")
    rows = []
    for row in board["rows"][:MANY]:
        own = [variant["ranks"][row["method"]] for variant in board["variants"]]
        own += [row["ranks"][key] for key in ("mean_rank", "mean_q", "mean_score", "borda")]
        cells = [(place, "number moved" if place != row["rank"] else "number") for place in (row["rank"], *own)]
        rows.append((source.method_title(row["method"]), *cells))
    more = f", first {MANY}" if len(board["rows"]) > MANY else ""
    numbers = [headers[0], *((header, "number") for header in headers[1:])]
    return table(numbers, rows, caption=f"Ranks by other rules{more}")


def task_section(source: BoardSource) -> Safe:
    board = source.board
    if not board["tasks"]:
        return Safe("")
    if not board["rows"]:  # a task contributes nothing yet, but it has a page
        bare = [(_task_link(source, task), task["kind"], task["metric"] or "–") for task in board["tasks"]]
        return section("Tasks", table(("Task", "kind", "metric"), bare, caption="Tasks of this board"), id_="tasks")
    names = ("weight", "pairs told apart", "noise", "agrees with final", "negative Q")
    headers = ("Task", *((name, "number") for name in names))
    alone = len(board["rows"]) == 1
    rows = [
        (
            _task_link(source, task),
            (num(task["weight"]), "number"),
            ("–" if alone or task["pairs_apart"] is None else f"{task['pairs_apart']:.0%}", "number"),
            (num(task["noise"], 2), "number"),
            (num(task["agreement"], 2), "number"),
            (num(task["negative"], 0), "number"),
        )
        for task in board["tasks"]
    ]
    note = (
        "Noise is the spread over splits relative to that between methods. Agreement is Spearman's correlation of a "
        "task's ranks with the final ones."
    )
    same = [
        tag(
            "li",
            f"{' and '.join(pair['tasks'])} order the methods almost alike (correlation {num(pair['correlation'], 2)})",
        )
        for pair in board["redundant"]
    ]
    body = [table(headers, rows, caption="What each task contributes")]
    body += [tag("ul", *same)] if same else []
    return section("Tasks", *body, _correlation(board), id_="tasks", note=note)


def _task_link(source: BoardSource, task: Mapping[str, Any]) -> Safe:
    return tag("a", source.task_title(task["id"]), href=f"task/{task['id']}.html")


def _correlation(board: Board) -> Safe:
    names = [task["id"] for task in board["tasks"]]
    if len(names) < 2 or len(board["rows"]) < 3:
        return Safe("")
    rows = []
    for name, line in zip(names, board["correlation"], strict=True):
        levels = [0 if value is None else round(max(value, 0.0) * 10) for value in line]
        cells = [(num(value, 2), f"number h{level}") for value, level in zip(line, levels, strict=True)]
        rows.append((name, *cells))
    inner = table(
        ("", *((name, "number") for name in names)), rows, caption="Spearman's correlation of Q between tasks"
    )
    return tag("details", tag("summary", "Correlation between tasks"), inner)


def not_ranked(source: BoardSource) -> Safe:
    incomplete = source.board.get("incomplete", ())
    rows = [(_method_link(source, row["method"]), *why) for row in incomplete for why in reasons(row)]
    if not rows:
        return Safe("")
    inner = table(("Method", "Task", "Status", "Reason"), rows, caption="Methods that are not ranked, and why")
    return section("Not ranked", inner, id_="not-ranked")


def _method_link(source: BoardSource, name: str) -> Safe:
    return tag("a", source.method_title(name), href=f"method/{name}.html")


def versions(source: BoardSource) -> Safe:
    if not source.history:
        return Safe("")
    entries = []
    for entry in list(source.history)[: -MANY - 1 : -1]:
        said = [tag("li", str(Change(**change))) for change in entry["changes"]] or [tag("li", "First version.")]
        entries.append(tag("details", tag("summary", f"Version {entry['version']}"), tag("ul", *said)))
    return section("History", *entries, id_="history")


def about(source: BoardSource) -> Safe:
    files = [tag("a", "JSON", href="board.json", download=f"{source.id}.json")]
    files.append(tag("a", "CSV", href="board.csv", download=f"{source.id}.csv"))
    items = [tag("p", "Download: ", join(files, " · "))]
    if not source.published:
        verbs = ("score --all --suite", "leaderboard build", "leaderboard check")
        commands = "\n".join(f"neuco {verb} {source.id}" for verb in verbs)
        items += [tag("p", "Make this board again:"), code_box(commands, "Commands that make this board")]
    else:
        items.append(code_box(f"neuco leaderboard show {source.id}", "Command that prints this board"))
    return section("Data", *items, id_="data")
