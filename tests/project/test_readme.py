"""The README tells the truth: its code runs, its links lead somewhere, its commands exist, its table is the suite's."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from neuco_core import list_tasks
from neuco_core.cli import COMMANDS


@pytest.fixture
def text(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def test_the_python_runs(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    first, *table = capsys.readouterr().out.splitlines()
    assert first.startswith("Results(averaging: mean Q 17.66 over 3 tasks under ridge")
    assert [line.split()[0] for line in table[2:]] == [task.id for task in list_tasks(suite="olinda")]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_links_lead_somewhere(page: str, root: Path) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", (root / page).read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert link.startswith("https://") or (root / link).exists(), link


def test_every_page_of_the_documentation_is_listed(text: str, root: Path) -> None:
    for page in (root / "docs").glob("*.md"):
        assert f"(docs/{page.name})" in text, page.name


def test_the_commands_exist(text: str) -> None:
    commands = re.findall(r"^neuco (.+?)(?: #.*)?$", text, re.MULTILINE)
    assert len(commands) > 5
    for command in commands:
        assert shlex.split(command)[0] in COMMANDS, command


def test_the_output_of_make_score_is_that_of_the_suite(text: str) -> None:
    """The numbers themselves are those of the declared baselines, which each plugin's test scores again."""
    pattern = r"^(\S+) +(?:r2|f1) +(-?[\d.]+) ± .* (-?[\d.]+) ± [\d.]+ (met|\(\w+\))$"
    rows = re.findall(pattern, text, re.MULTILINE)
    tasks = list_tasks(suite="embedded")
    assert [row[0] for row in rows] == [task.id for task in tasks]
    for task, (_, score, declared, verdict) in zip(tasks, rows, strict=True):
        assert task.baseline is not None
        assert float(declared) == pytest.approx(task.baseline.score, abs=1e-4)
        by_averaging = task.baseline.method == "averaging"
        assert verdict == ("met" if by_averaging else f"({task.baseline.method})")
        assert not by_averaging or abs(float(score) - task.baseline.score) <= task.baseline.tolerance
