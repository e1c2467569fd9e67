"""``neuco capabilities`` at the command line, and its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neuco_core.cli.capabilities import COMMANDS
from tests import console
from tests.capabilities.test_predictor import made, written
from tests.command import neuco
from tests.fetch.helpers import own_settings


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(tmp_path / "known.csv", made(10, 6))


def test_predictions_are_those_that_are_missing(table: Path) -> None:
    known = made(10, 6)
    told = json.loads(neuco("capabilities", "predict", str(table), "--json").out)
    assert told["known"] == known.known.sum()
    assert len(told["cells"]) == (~known.known).sum()
    assert all(cell["low"] <= cell["predicted"] <= cell["high"] for cell in told["cells"])
    shown = neuco("capabilities", "predict", str(table), "--method", "m0").out
    assert "no scores, and never ranked" in shown
    assert "m1" not in shown


def test_suggestions_leave_less_and_less_unknown(table: Path) -> None:
    method = next(
        name for name, known in zip(made(10, 6).methods, made(10, 6).known, strict=True) if (~known).sum() > 1
    )
    found = json.loads(neuco("capabilities", "suggest", str(table), "--method", method, "--number", "9", "--json").out)
    assert len(found) == (~made(10, 6).known[int(method[1:])]).sum()
    assert all(one["after"] < one["before"] for one in found)


def test_models_are_compared(table: Path) -> None:
    words = ("capabilities", "evaluate", str(table), "--least", "2", "--models", "mean,neuco", "--json")
    rows = json.loads(neuco(*words).out)["models"]
    assert [(row["protocol"], row["model"]) for row in rows] == [
        (protocol, name) for protocol in ("honest", "paper") for name in ("mean", "neuco")
    ]
    assert sum(row["worse"] is None for row in rows) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("predict", "nowhere.csv"), "nowhere.csv"),
        (("predict", "nothing"), "nothing"),
        (("predict", "mini", "--method", "pcaa"), "Did you mean pca?"),
        (("suggest", "mini", "--method", "nobody"), "no result of a method 'nobody'"),
        (("evaluate", "mini", "--models", "l3"), "unknown predictor 'l3'"),
    ],
)
def test_mistakes_are_told(words: tuple[str, ...], said: str) -> None:
    done = neuco("capabilities", *words)
    assert done.code != 0
    assert said in done.err


def test_the_page_does_what_it_says(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (root / "docs/capabilities.md").read_text(encoding="utf-8")
    run = [step.command for step in console.steps(text)]
    assert [name for name in COMMANDS if not any(f"capabilities {name}" in line for line in run)] == []
    own_settings(tmp_path, monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(root))
    failures = console.play(text, tmp_path, {"HOME": str(tmp_path / "home")}, {})
    assert not failures, "\n\n".join(failures)
