"""Tables know how wide the terminal is, and nobody else gets fewer columns or colours."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from neuco_core.cli.output import NOT_SHOWN, table
from neuco_core.text import common_prefix
from tests.command import neuco_here
from tests.terminal import neuco_in_terminal, unstyled

HEADERS = ("task", "score", "a long header of a number", "title")
ROWS = [("mini_clouds", "0.123", "1", "Cloud cover of the scene"), ("mini_crops", "-1.5", "20", "Share of soybean")]


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The lines of a table on a terminal of some width."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    def fit(limit: int | None, rows: Sequence[Sequence[str]] = ROWS, **options: Any) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(limit or 1000))
        return table(HEADERS[: len(rows[0])], rows, {1, 2}, **{"drop": (2, 3), **options}).splitlines()

    return fit


def test_with_enough_room_nothing_is_cut(fitted: Callable[..., list[str]]) -> None:
    lines = fitted(None)
    assert lines[0] == "task         score  a long header of a number  title"
    assert fitted(200) == lines
    assert fitted(40, drop=None) == lines, "what must not be cut is as wide as it is"


def test_sentences_and_headers_are_wrapped_before_a_column_goes(fitted: Callable[..., list[str]]) -> None:
    wrapped = fitted(60)
    assert max(map(len, wrapped)) <= 60
    assert NOT_SHOWN not in "\n".join(wrapped)
    without = fitted(45)
    assert " ".join(without).endswith(f"{NOT_SHOWN} a long header of a number")
    assert "Cloud cover of the scene" in "\n".join(without)
    last = fitted(20)
    assert " ".join(last).endswith(f"{NOT_SHOWN} a long header of a number, title")
    assert last[2] == "mini_clouds  0.123"


def test_names_and_numbers_are_never_cut_so_that_they_can_be_copied(fitted: Callable[..., list[str]]) -> None:
    name = "mini_landcover_of_agriculture"
    shown = "\n".join(fitted(50, [(name, "0.1234 ± 0.0567", "1", "A sentence that may be wrapped")]))
    assert name in shown
    assert "0.1234 ± 0.0567" in shown


def test_headers_lose_what_they_have_in_common_on_a_terminal_only(
    fitted: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fitted(200, prefix="a long ")[0].endswith("  header of a number  title")
    assert fitted(200, prefix="mini_")[2].startswith("mini_clouds"), "ids of rows stay whole"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert "a long header" in table(HEADERS, ROWS, prefix="a long ", drop=())


@pytest.mark.parametrize(
    ("names", "prefix"),
    [
        (["mini_a_x", "mini_a_y"], "mini_a_"),
        (["mini_a", "mini_ab"], "mini_"),
        (["mini", "minimal"], ""),
        (["one_task"], ""),
        (["a_x", "b_x"], ""),
        (["neuco-x", "neuco-y"], "neuco-"),
        ([], ""),
    ],
)
def test_common_prefixes_end_where_a_word_ends(names: list[str], prefix: str) -> None:
    assert common_prefix(names) == prefix


def test_wide_characters_count_twice() -> None:
    _, rule, row, other = table(("name", "n"), [("森林", "1"), ("wood", "2")]).splitlines()
    assert (rule, row, other) == ("----  -", "森林  1", "wood  2")


@pytest.mark.parametrize(
    "command",
    [
        ("tasks",),
        ("methods",),
        ("datasets",),
        ("suites",),
        ("protocols",),
        ("leaderboard", "list"),
        ("leaderboard", "show", "embedded", "--details"),
        ("score", "--method", "averaging", "--task", "olinda_*"),
        ("compare", "averaging", "random", "--task", "mini_clouds", "--task", "mini_crops"),
    ],
)
def test_nothing_is_wider_than_the_terminal(command: tuple[str, ...]) -> None:
    lines = unstyled(neuco_in_terminal(*command, columns=80)).splitlines()
    assert len(lines) > 3
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("columns", [60, 80, 100])
@pytest.mark.parametrize(
    "command",
    [
        ("leaderboard", "show", "olinda"),
        ("compare", "averaging", "pca", "--task", "olinda_elevation_mean", "--task", "olinda_sea_level"),
    ],
)
def test_what_is_shown_is_whole(command: tuple[str, ...], columns: int) -> None:
    """In a narrow terminal a column goes, or its sentences wrap; no number, name or word is cut."""
    told = set(neuco_here(*command).out.split())
    _, shown = unstyled(neuco_in_terminal(*command, columns=columns)).split("\n", 1)
    table_lines = shown.partition("Not shown")[0].splitlines()
    words = [word for line in table_lines for word in line.split() if word.strip("-")]
    known = told | {word.removeprefix("olinda_") for word in told}
    assert [word for word in words if word not in known] == []
    assert max(map(len, table_lines)) <= columns


def test_colour_only_on_a_terminal_and_not_for_those_who_want_none() -> None:
    shown = neuco_in_terminal("suites")
    assert shown.startswith("\x1b[1msuite")
    for variable in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = neuco_in_terminal("suites", **variable).splitlines()
        assert plain == [line.rstrip() for line in unstyled(shown).splitlines()]
    assert "\x1b" not in neuco_here("suites").out
    assert "\x1b" in neuco_in_terminal("suites", NO_COLOR=""), "an empty NO_COLOR is none"


def test_a_pipe_gets_every_column_and_columns_are_those_that_are_asked_for() -> None:
    assert "protocol" in neuco_here("suites").out.splitlines()[0]
    assert NOT_SHOWN in neuco_in_terminal("tasks", columns=80)
    assert NOT_SHOWN not in neuco_in_terminal("tasks", columns=80, COLUMNS="300")
