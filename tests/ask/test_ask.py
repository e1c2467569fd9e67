"""The question to an author has the settings and the scores, and how each score came about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from neuco_core import load_method
from tests import command


def test_the_question_has_settings_and_scores() -> None:
    done = command.neuco_here("ask-author", "mosaiks", env={})
    assert done.code == 0, done.err
    for words in ("filters: 512", "packages: torch", "digits_class, ridge: f1 0.983, Q 65.5 (self-reported)"):
        assert words in done.out
    assert "coder=" not in done.out, "only what boards compare"
    assert "neuco verify mosaiks" in done.out


def test_words_of_a_method_steer_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(load_method("mosaiks"), title="A\x1b]0;owned\x07\nSubject: B", preprocessing="\x1b[2J" * 3)
    monkeypatch.setattr("neuco_extensions.ask.command.load_method", lambda name: spec)
    done = command.neuco_here("ask-author", "mosaiks", env={})
    assert (done.code, "\x1b" in done.out, done.out.count("\nSubject:")) == (0, False, 0)


def test_a_method_without_scores_has_nothing_to_ask_about() -> None:
    done = command.neuco_here("ask-author", "torchgeo_dofa_base", env={})
    assert done.code == 4
    assert "Score it first" in done.err
