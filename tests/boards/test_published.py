"""Boards that others have published are read strictly, marked, and have their source."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core.boards.published import read_published
from neuco_core.errors import DataError


def test_a_published_board_is_marked_and_has_its_source(committed_registry: Path) -> None:
    for path in sorted((committed_registry / "published").glob("*.json")):
        board = read_published(path).board()
        assert board.published is not None
        assert board.published.source
        assert "2510.17914" in board.published.citation
        assert board.suite is None
        assert board.uncertainty is None


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        *(
            ("neuco-paper-table-4", old, new, words)
            for old, new, words in (
                ('"kind": "neuco"', '"kind": "No Id"', "kind"),
                ('"schema": 2', '"schema": 1', "schema"),
                ("-2.293", "1e999", "malformed|range"),
                ("-2.293, ", "", "7 scores for 8 tasks"),
                ('"method": "averaging"', '"method": "../averaging"', "method"),
                ('"method": "dofa-pre"', '"method": "dofa-post"', "there twice"),
                ("{", "", "Expected `object`"),
            )
        ),
        *(
            ("earthvision-2025-challenge", old, new, words)
            for old, new, words in (
                ('"rank": 4', '"rank": "4<b>"', r"got `str`, at `\.rows\[3\]\.values"),
                ('"rank": 4', '"rank": true', r"got `bool`, at `\.rows\[3\]"),
                ('"mean_q": 14.874', '"mean_q": "14"', r"got `str`, at `\.rows\[0\]"),
                ('"weighted_rank": 2.31', '"weighted_rank": NaN', "JSON is malformed"),
                ('"title": "KTH and Friends"', '"title": 5', r"Expected `str`, got `int`, at `\.rows\[1\]\.title"),
                ('"title": "KTH and Friends"', '"title": "\\ud800"', "surrogate|malformed"),
                ('"baseline": false', '"baseline": 0', r"Expected `bool`, got `int`, at `\.rows\[0\]\.baseline"),
                ('"kind": "standings"', '"kind": ["standings"]', "got `array`, at `.kind"),
                ('"rows": [', '"rows": 5, "other": [', "at `.rows|unknown field"),
                ('{"baseline"', '5, {"baseline"', r"got `int`, at `\.rows\[0\]"),
                ('"schema": 2', '"schema": true', "at `.schema"),
                ('"id": "earth', '"id": "mars', "bad id; expected the name of the file"),
                ('"label": "Mean Q"', '"label": 5', r"at `\.columns\[0\]\.label"),
            )
        ),
    ],
)
def test_a_published_board_that_is_not_right_is_refused(
    tmp_path: Path, committed_registry: Path, name: str, old: str, new: str, words: str
) -> None:
    text = (committed_registry / f"published/{name}.json").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / f"{name}.json"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError, match=words):
        read_published(path)
