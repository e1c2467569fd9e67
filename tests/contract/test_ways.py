"""The ways to run the contract: ``neuco check`` with names and paths, a plugin's own tests, pytest with an option."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from neuco_core.contract.contract import all_checks
from tests.contract.helpers import TASK_FILE, check, only_good, quick_neuco, run_pytest


def test_a_path_is_as_good_as_a_name(good: Path) -> None:
    path = str(good / "neuco_tasks" / "good")
    assert check(good, path, "--only", "task-metadata") == check(good, "good", "--only", "task-metadata")


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        ((), 2, "names, paths, or --all"),
        (("good", "--all"), 2, "names, paths, or --all"),
        (("goode",), 3, "Did you mean 'good'"),
        (("zzz",), 3, "See `neuco tasks` and `neuco methods`, or give the directory of a plugin"),
        (("",), 2, "names, paths, or --all"),
        (("good", "--only", "task-filez"), 3, "Did you mean 'task-files'"),
    ],
)
def test_a_wrong_use_gets_one_line(good: Path, args: tuple[str, ...], code: int, text: str) -> None:
    done = quick_neuco(good, "check", *args)
    assert (done.code, text in done.err) == (code, True), done.err


def test_a_broken_plugin_cannot_be_checked_and_the_reason_is_given(good: Path) -> None:
    (good / TASK_FILE).write_text("raise RuntimeError('cheese')")
    for name in ("good", str(good / "neuco_tasks" / "good")):
        done = quick_neuco(good, "check", name)
        assert (done.code, "RuntimeError: cheese" in done.err) == (5, True), done.err


def test_a_run_in_which_nothing_was_checked_is_a_failure(good: Path) -> None:
    findings = check(good, "plain", "--only", "task-files")
    assert findings == {}


def test_the_help_lists_exactly_what_is_run(good: Path) -> None:
    """``test_contract`` holds that all of these are run."""
    text = quick_neuco(good, "check", "--help").out
    assert re.findall(r"^  (\w+-\w+) ", text, re.MULTILINE) == [item.id for item in all_checks()]


def test_contract_gives_one_test_for_each_check(good: Path) -> None:
    file = good / "neuco_tasks" / "good" / "test.py"
    file.write_text('from neuco_core.testing import contract\n\ntest_contract = contract("task", "good")\n')
    (good / "neuco_tasks" / "good" / "README.md").unlink()
    done = run_pytest(good, file)
    assert f"1 failed, {len(all_checks('task')) - 4} passed, 1 skipped" in done.out
    assert "cure: write README.md and test.py" in done.out


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--neuco", "plain"), 1, ("1 failed, 11 passed, 4 skipped", "cure: write README.md")),
        (("--neuco", "goode"), 4, ("no task or method 'goode'",)),
    ],
)
def test_the_pytest_plugin_needs_no_file(good: Path, args: tuple[str, ...], code: int, words: tuple[str, ...]) -> None:
    (good / "neuco_methods" / "plain" / "README.md").unlink()
    (good / "empty").mkdir()
    done = run_pytest(good, good / "empty", *args)
    assert done.code == code, done.text
    assert all(word in done.text for word in words), done.out


def test_no_evidence_is_seen_in_pytest_and_turns_no_test_red(good: Path) -> None:
    only_good(good)
    (good / "neuco_tasks/good/labels.csv").unlink()
    file = good / "neuco_methods" / "plain" / "test.py"
    file.write_text('from neuco_core.testing import contract\n\ntest_contract = contract("method", "plain")\n')
    done = run_pytest(good, file, "-rs")
    assert (done.code, "10 passed, 4 skipped" in done.out) == (0, True), done.out
    assert done.out.count("no evidence for an essential check: no ") == 2
    (good / "empty").mkdir()
    asked = run_pytest(good, good / "empty", "--neuco", "plain")
    assert (asked.code, "10 passed, 6 skipped" in asked.out) == (8, True), asked.out
