"""Tables know how wide the terminal is, and nobody else gets fewer columns or colours."""

from __future__ import annotations

import pytest

from neuco_core.cli import output
from neuco_core.cli.output import NOT_SHOWN, table
from neuco_core.text import common_prefix
from tests.command import neuco_here
from tests.terminal import neuco_in_terminal, unstyled

HEADERS = ("task", "score", "a long header of a number", "title")
ROWS = [("mini_clouds", "0.123", "1", "Cloud cover of the scene"), ("mini_crops", "-1.5", "20", "Share of soybean")]


@pytest.fixture
def width(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(output, "coloured", lambda: False)
    return monkeypatch


def fitted(width: pytest.MonkeyPatch, limit: int | None, **options: object) -> list[str]:
    width.setattr(output, "room", lambda: limit)
    return table(HEADERS, ROWS, {1, 2}, **{"drop": (2, 3), **options}).splitlines()  # type: ignore[arg-type]


def test_with_enough_room_nothing_is_cut(width: pytest.MonkeyPatch) -> None:
    lines = fitted(width, None)
    assert lines[0] == "task         score  a long header of a number  title"
    assert fitted(width, 200) == lines
    assert fitted(width, 40, drop=None) == lines, "what must not be cut is as wide as it is"


def test_what_gives_way_first(width: pytest.MonkeyPatch) -> None:
    whole = max(map(len, fitted(width, None)))
    cut = fitted(width, whole - 10)
    assert (max(map(len, cut)), len(cut)) == (whole - 10, 4)
    assert "a long header …" in cut[0], "headers of numbers before anything else"
    assert "Cloud cover of the scene" in cut[2]
    without = fitted(width, 45)
    assert without[-1] == f"{NOT_SHOWN} a long header of a number"
    assert "Cloud cover of the scene" in without[2]
    last = fitted(width, 20)
    assert last[-1] == f"{NOT_SHOWN} a long header of a number, title"
    assert last[2] == "mini_clouds  0.123"
    assert max(len(line) for line in fitted(width, 12)[:-1]) == 12, "at last even names and numbers are cut"


def test_names_lose_what_they_have_in_common_and_their_middle(width: pytest.MonkeyPatch) -> None:
    prefix = common_prefix([row[0] for row in ROWS])
    assert prefix == "mini_"
    assert [line.split()[0] for line in fitted(width, 60, prefix=prefix)[2:4]] == ["clouds", "crops"]
    assert fitted(width, None, prefix=prefix)[2].startswith("mini_clouds"), "only on a terminal"
    width.setattr(output, "room", lambda: 9)
    assert table(("x",), [("landcover_forest",)], drop=()).splitlines()[2] == "land…rest"


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


def test_wide_characters_count_twice(width: pytest.MonkeyPatch) -> None:
    width.setattr(output, "room", lambda: 9)
    line = table(("name",), [("森林森林森林森林",)], drop=()).splitlines()[2]
    assert output._width(line) <= 9
    assert "…" in line


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


def test_colour_only_on_a_terminal_and_not_for_those_who_want_none() -> None:
    shown = neuco_in_terminal("suites")
    assert "\x1b[1msuite\x1b[0m" in shown
    for variable in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert neuco_in_terminal("suites", **variable) == unstyled(shown)
    assert "\x1b" not in neuco_here("suites").out
    assert "\x1b" in neuco_in_terminal("suites", NO_COLOR=""), "an empty NO_COLOR is none"


def test_a_pipe_gets_every_column_and_columns_are_those_that_are_asked_for() -> None:
    assert "protocol" in neuco_here("suites").out.splitlines()[0]
    assert NOT_SHOWN in neuco_in_terminal("tasks", columns=80)
    assert NOT_SHOWN not in neuco_in_terminal("tasks", columns=80, COLUMNS="300")
