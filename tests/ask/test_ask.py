"""The question to an author has the settings and the scores, and how each score came about."""

from __future__ import annotations

from tests import command


def test_the_question_has_settings_and_scores() -> None:
    done = command.neuco_here("ask-author", "mosaiks", env={})
    assert done.code == 0, done.err
    for words in ("filters: 512", "packages: torch", "digits_class, ridge: f1 0.983, Q 65.5 (self-reported)"):
        assert words in done.out
    assert "neuco verify mosaiks" in done.out


def test_a_method_without_scores_has_nothing_to_ask_about() -> None:
    done = command.neuco_here("ask-author", "torchgeo_dofa_base", env={})
    assert done.code == 4
    assert "Score it first" in done.err
